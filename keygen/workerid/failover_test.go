package workerid

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	testclock "github.com/shardkey/shardkey/internal/test/clock"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/spi"
)

// A replica without the last writes becomes the server. Holders of worker IDs that it doesn't
// know continue until their next renewal. New leases of these begin after that.
func TestAssigner_failoverThatForgets(t *testing.T) {
	testserver.NeedsFlock(t)
	synctest.Test(t, func(t *testing.T) {
		const workers = 4
		f := newFailoverStores(t)
		start := func() *lease {
			t.Helper()
			return must.Get(f.assigner(config{}).acquire(t.Context(), workers-1))(t)
		}
		start() // known by both servers
		time.Sleep(20 * time.Second)
		lag := f.copy()
		time.Sleep(12 * time.Second) // the replica's delay is less
		limits, old := map[int64]int64{}, map[int64]*lease{}
		for range workers - 1 {
			l := start()
			must.Equal(t, len(l.assigner.Health().Warnings), 0, "warnings before the failover")
			old[l.workerID] = l
		}
		time.Sleep(time.Second)
		for id, l := range old {
			limits[id] = l.Limit()
		}
		f.use("second", lag)
		taken := 0
		for range workers - 1 {
			l := start()
			if limit, ok := limits[l.workerID]; ok {
				taken++
				if l.Floor() < limit {
					t.Errorf("worker ID %d: the new lease begins at %s\nwant: not before the old one's limit, %s", l.workerID, formatTime(l.Floor()), formatTime(limit))
				}
			}
			w := strings.Join(l.assigner.Health().Warnings, "\n")
			for _, want := range []string{"was replaced", "New leases start 20s later", "clocks agree within 10s", "no process uses the old server"} {
				must.Contain(t, w, want, "warnings after the failover")
			}
		}
		if taken == 0 {
			t.Error("no worker ID of those that the replica knows nothing of was taken: the test shows nothing")
		}
		time.Sleep(4 * time.Second)
		for id, l := range old {
			must.Equal(t, l.Limit(), noLimit, "worker ID", id, "the limit of the old lease after a renewal")
		}
		time.Sleep(time.Minute)
		for _, l := range old {
			_ = l.assigner.Close()
		}
		late := start()
		if ahead := late.Floor() - late.assigner.now(); ahead > 0 {
			t.Errorf("a minute later a lease begins %d ms ahead", ahead)
		}
		if w := late.assigner.Health().Warnings; len(w) > 0 {
			t.Errorf("warnings a minute later: %q", w)
		}
	})
}

// failoverStores is a namespace on a server that an asynchronous replica can replace. The server is a
// directory, and its address a link to that.
type failoverStores struct {
	t       *testing.T
	server  atomic.Value // name of the server
	dir     string
	address string
}

// replicated is the store of a process. Its notes are next to it.
type replicated struct {
	*fileStore
	server *atomic.Value
}

func (r replicated) info() Info {
	return Info{
		Name: "TEST", notes: newFileStore(r.path, "notes"),
		serverID: func(context.Context) (string, error) { return r.server.Load().(string), nil },
	}
}

func newFailoverStores(t *testing.T) *failoverStores {
	f := &failoverStores{t: t, address: filepath.Join(t.TempDir(), "address")}
	f.use("first", t.TempDir())
	return f
}

func (f *failoverStores) use(name, dir string) {
	f.t.Helper()
	_ = os.Remove(f.address) // there is none at first
	must.Do(f.t, os.Symlink(dir, f.address))
	f.dir = dir
	f.server.Store(name)
}

// copy returns the data that a replica has now.
func (f *failoverStores) copy() (dir string) {
	f.t.Helper()
	dir = f.t.TempDir()
	must.Do(f.t, os.CopyFS(dir, os.DirFS(f.dir)))
	return dir
}

func (f *failoverStores) assigner(c config) *assigner {
	c.Logger = slog.New(slog.DiscardHandler)
	a := assign(replicated{newFileStore(f.address, "orders"), &f.server}, c)
	f.t.Cleanup(func() { _ = a.Close() })
	return a
}

func (f *failoverStores) generator(a *assigner) Snowflake {
	f.t.Helper()
	host := spi.Host{Logger: slog.New(slog.DiscardHandler)}
	g := must.Get(NewSnowflake(a, host, 1, map[string]any{"epoch": "1999-01-01"}))(f.t)
	f.t.Cleanup(func() { _ = g.Close() })
	return g
}

// With any length of leases and quarantine, a process that starts after a failover generates keys
// at once with its first worker ID. It reports why keys are ahead of the clock. So does a process
// that starts after a crash or a Close.
func TestAssigner_failoverFailsNoStart(t *testing.T) {
	testserver.NeedsFlock(t)
	for _, c := range []config{
		{Lease: 10 * time.Second}, {Lease: time.Minute, Renew: 20 * time.Second}, {Lease: 10 * time.Minute, Renew: 3 * time.Minute},
		{Lease: maxLease, Renew: time.Hour}, {Quarantine: time.Minute}, {Quarantine: maxQuarantine},
	} {
		t.Run(c.Lease.String()+c.Quarantine.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFailoverStores(t)
				first := f.generator(f.assigner(c))
				must.Get(first.Next(t.Context()))(t)
				f.use("second", f.copy())
				for i, end := range []func(Snowflake){func(g Snowflake) { _ = g.Close() }, func(Snowflake) {}, func(Snowflake) {}} {
					time.Sleep(time.Second)
					g := f.generator(f.assigner(c))
					must.Do(t, g.Ready(t.Context()), "start", i)
					key := must.Get(g.Next(t.Context()))(t, "start", i)
					h := g.Health()
					if ahead := max(2*c.Lease, c.Quarantine) - 5*time.Second; h.Clock.Ahead < ahead {
						t.Errorf("start %d: keys are %v ahead\nwant: at least %v", i, h.Clock.Ahead, ahead)
					}
					text := strings.Join(h.Warnings, "\n")
					if h.Err != nil || strings.Contains(text, "wrong") || !strings.Contains(text, "was replaced") {
						t.Errorf("start %d: health\nhave: %v, %q\nwant: that a failover is the reason, and no wrong clock", i, h.Err, text)
					}
					time.Sleep(time.Second)
					if next, err := g.Next(t.Context()); err != nil || next <= key {
						t.Errorf("start %d: a second later\nhave: %d, %v\nwant: more than %d", i, next, err, key)
					}
					end(g)
				}
				entries, err := newFileStore(f.address, "orders").List(t.Context())
				if err != nil || len(entries) > 4 {
					t.Errorf("worker IDs that were used\nhave: %d, %v\nwant: at most 4, one each start", len(entries), err)
				}
			})
		})
	}
}

// The clock may step back a little while keys are ahead of it.
func TestAssigner_clockStepsBackAfterAFailover(t *testing.T) {
	testserver.NeedsFlock(t)
	for _, ring := range []int{1, 200} {
		synctest.Test(t, func(t *testing.T) {
			f, clock := newFailoverStores(t), new(testclock.Clock)
			must.Get(f.assigner(config{}).acquire(t.Context(), 9))(t)
			f.use("second", f.copy())
			g := must.Get(NewSnowflake(f.assigner(config{Clock: clock}), spi.Host{Clock: clock},
				ring, map[string]any{"epoch": "1999-01-01"}))(t)
			defer g.Close()
			for range 50 {
				must.Get(g.Next(t.Context()))(t, "ring", ring)
				clock.Set(clock.Off() - 2*time.Millisecond)
			}
		})
	}
}

// A quarantine isn't a step of the clock, so that a step keeps the worker ID.
func TestAssigner_clockStepsBackInQuarantine(t *testing.T) {
	testserver.NeedsFlock(t)
	synctest.Test(t, func(t *testing.T) {
		f, clock := newFailoverStores(t), new(testclock.Clock)
		host := spi.Host{Clock: clock, Logger: slog.New(slog.DiscardHandler)}
		g := must.Get(NewSnowflake(f.assigner(config{Clock: clock, Quarantine: 5 * time.Minute}), host, 1, map[string]any{"epoch": "1999-01-01"}))(t)
		defer g.Close()
		for _, step := range []time.Duration{0, 30 * time.Second, 20 * time.Second} {
			clock.Set(clock.Off() - step)
			must.Get(g.Next(t.Context()))(t, step)
			must.Equal(t, *g.Health().WorkerID, 0, step)
		}
	})
}

// A longer lease reaches its full length once its note has lasted for as long, without a gap.
func TestAssigner_longerLeaseGrows(t *testing.T) {
	testserver.NeedsFlock(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFailoverStores(t)
		must.Get(f.assigner(config{Lease: 2 * time.Second}).acquire(t.Context(), 0))(t)
		l := must.Get(f.assigner(config{Lease: time.Minute, Renew: 20 * time.Second}).acquire(t.Context(), 9))(t)
		for range 80 {
			time.Sleep(time.Second)
			must.Do(t, l.Health().Err)
		}
		if ahead := time.Until(time.UnixMilli(l.Limit())); ahead < 40*time.Second-2*time.Second {
			t.Errorf("reserved %v ahead\nwant: nearly a minute", ahead)
		}
	})
}

// newMoving returns a store whose server has a name that a test changes.
func newMoving() *oneRecord { return &oneRecord{server: "first", notes: new(oneRecord)} }

// A lease that ran out may be another's on a server that doesn't show it. That is remembered over a
// renewal whose answer is lost, although the record has time again after it.
func TestLease_unsureOverALostAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		server string
		want   error
	}{"the same server": {"first", nil}, "another": {"second", spi.ErrLeaseLost}, "one without a name": {"", spi.ErrLeaseLost}} {
		store, clock := newMoving(), &fixedClock{ms: start}
		_, l := byHand(t, store, config{Clock: clock})
		clock.ms += 11_000
		store.silent = 1
		if err := l.keep(t.Context()); !errors.Is(err, errAway) || store.record.ReservedUntil <= clock.ms {
			t.Fatalf("have: %v, %v\nwant: a write without an answer", err, store.record)
		}
		store.server = c.server
		err := l.keep(t.Context())
		if !errors.Is(err, c.want) || c.want == nil && err != nil || (l.Limit() > clock.ms) != (c.want == nil) {
			t.Errorf("%s\nhave: %v, limit %d\nwant: %v", name, err, l.Limit()-clock.ms, c.want)
		}
	}
}

// While the server of an unsure lease isn't known, its limit stays.
func TestLease_unsureWithoutTheServersName(t *testing.T) {
	store, clock := newMoving(), &fixedClock{ms: start}
	_, l := byHand(t, store, config{Clock: clock})
	clock.ms += 11_000
	limit := l.Limit()
	store.serverErr = errAway
	for range 2 {
		if err := l.keep(t.Context()); !errors.Is(err, errAway) || !errors.Is(err, spi.ErrStore) || l.Limit() != limit {
			t.Errorf("have: %v, limit %d\nwant: spi.ErrStore, limit %d", err, l.Limit(), limit)
		}
	}
	store.serverErr = nil
	if err := l.keep(t.Context()); err != nil || l.Limit() != clock.ms+10_000 {
		t.Errorf("have: %v, limit %d\nwant: limit %d", err, l.Limit(), clock.ms+10_000)
	}
}

// Leases are lengthened twice soon after each other. A replica may lack both notes, so the first
// length is used until the last note is as old as its lease.
func TestAssigner_lengthenedTwice(t *testing.T) {
	store, clock := newMoving(), &fixedClock{ms: start}
	for _, c := range []struct{ lease, after, want time.Duration }{
		{10 * time.Second, 0, 10 * time.Second},
		{time.Minute, time.Minute, 10 * time.Second},
		{10 * time.Minute, 30 * time.Second, 10 * time.Second},
		{10 * time.Minute, 9 * time.Minute, 10 * time.Second},
		{10 * time.Minute, time.Minute, 10 * time.Minute},
	} {
		clock.ms += c.after.Milliseconds()
		a := assign(store, config{Clock: clock, Lease: c.lease})
		if err := a.noteLease(t.Context()); err != nil || a.length() != c.want {
			t.Errorf("lease %v, %v later\nhave: %v, %v\nwant: %v", c.lease, c.after, a.length(), err, c.want)
		}
	}
}
