package workerid

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	testclock "github.com/shardkey/shardkey/internal/test/clock"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/spi"
)

// Tokens created at the same time differ.
func TestNewToken_isRandom(t *testing.T) {
	const random = 32 // digits of 128 random bits
	seen := map[string]bool{}
	for range 1000 {
		token := newToken()
		if len(token) < random || seen[token[:random]] {
			t.Fatalf("have: %s\nwant: %d random digits that have not come before", token, random)
		}
		seen[token[:random]] = true
	}
}

// acquired returns a lease of worker ID 0, its store and its clock.
func acquired(t *testing.T) (*lease, *oneRecord, *fixedClock) {
	t.Helper()
	clock, store := &fixedClock{ms: start}, new(oneRecord)
	_, l := byHand(t, store, config{Clock: clock})
	return l, store, clock
}

// If the lease is released while a renewal waits, the renewal writes nothing on top of the next
// owner's record.
func TestLease_isNotRenewedAfterItsRelease(t *testing.T) {
	l, store, clock := acquired(t)
	must.Do(t, l.Release(t.Context(), clock.ms))
	released := store.record
	if err := l.keep(t.Context()); !errors.Is(err, spi.ErrClosed) || !store.record.Same(released) {
		t.Errorf("have: %v, %v\nwant: %v, the record as it was released", err, store.record, spi.ErrClosed)
	}
}

func TestCandidates_ofRecords(t *testing.T) {
	l, _, clock := acquired(t)
	hour := time.Hour.Milliseconds()
	entries := []Entry{
		{WorkerID: 0, Record: Record{Owner: "held", ReservedUntil: clock.ms + hour}},
		{WorkerID: 1, Record: Record{Owner: "released", ReservedUntil: clock.ms + hour, FreeFrom: clock.ms - hour}},
		{WorkerID: 2, Err: errors.New("not understood")},
		{WorkerID: 3, Record: Record{Owner: "run out", ReservedUntil: clock.ms - hour}},
		{WorkerID: 5000, Record: Record{Owner: "above the layout's", ReservedUntil: clock.ms - hour}},
	}
	free, err := l.assigner.candidates(t.Context(), entries, 3)
	if err != nil || len(free) != 2 || free[0].WorkerID != 1 || free[1].WorkerID != 3 {
		t.Errorf("have: %v, %v\nwant: worker IDs 1 and 3", free, err)
	}
}

// The store may lose a record in a crash that a lease has only read. The limit rises after a
// write on top of it is acknowledged.
func TestLease_shownRecordDoesNotMoveTheLimit(t *testing.T) {
	l, store, clock := acquired(t)
	reserved := l.Limit()
	clock.ms += 3000
	store.silent, store.writes = 2, 0
	for range 2 {
		if err := l.keep(t.Context()); !errors.Is(err, spi.ErrStore) || l.Limit() != reserved {
			t.Errorf("while nothing is confirmed\nhave: %v, limit %d\nwant: spi.ErrStore, limit %d", err, l.Limit(), reserved)
		}
	}
	must.Equal(t, store.record.ReservedUntil, reserved+3000, "the record that the store shows")
	shown := store.record
	if err := l.keep(t.Context()); err != nil || l.Limit() != reserved+3000 {
		t.Errorf("once it is confirmed\nhave: %v, limit %d\nwant: limit %d", err, l.Limit(), reserved+3000)
	}
	if store.record.Owner == shown.Owner || store.writes != 3 {
		t.Errorf("have: the record that was shown, after %d writes\nwant: one on top of it, after 3", store.writes)
	}
}

func TestAssigner_shownTakeoverIsWrittenAgain(t *testing.T) {
	free := Record{Owner: "x", ReservedUntil: start + 9_999, FreeFrom: start + 9_999}
	for name, c := range map[string]struct {
		before Record
		silent int
		writes int
		taken  bool
	}{
		"the second is confirmed":           {free, 1, 2, true},
		"none is confirmed":                 {free, 2, 2, false},
		"a first record need not be":        {Record{}, 1, 2, true},
		"the second one, of a first record": {Record{}, 2, 3, true},
		"none, of a first record":           {Record{}, 3, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock, store := &fixedClock{ms: start}, &oneRecord{record: c.before, silent: c.silent}
			a := assign(store, config{Clock: clock})
			l, err := a.acquire(t.Context(), 0)
			switch {
			case store.writes != c.writes:
				t.Errorf("writes\nhave: %d\nwant: %d", store.writes, c.writes)
			case c.taken && (err != nil || l.Limit() != clock.ms+10_000 || l.Floor() != clock.ms+9_999):
				t.Errorf("have: %v, %v\nwant: a lease", l, err)
			case !c.taken && !errors.Is(err, spi.ErrStore):
				t.Errorf("have: %v\nwant: spi.ErrStore", err)
			}
		})
	}
}

func TestAssigner_refusesARecordThatCameBackOtherThanWritten(t *testing.T) {
	for name, alter := range map[string]func(*Record){
		"reserved_until": func(r *Record) { r.ReservedUntil = 1<<31 - 1 },
		"free_from":      func(r *Record) { r.FreeFrom = min(r.FreeFrom, 0) },
		"free_from kept": func(r *Record) { r.FreeFrom = 1 },
	} {
		a := assign(&oneRecord{alter: alter}, config{Clock: &fixedClock{ms: start}})
		if l, err := a.acquire(t.Context(), 0); !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "changed a record") {
			t.Errorf("%s\nhave: %v, %v\nwant: that the record was changed", name, l, err)
		}
	}
}

func TestIPWorkerID_lastBits(t *testing.T) {
	for _, c := range []struct {
		addrs []string
		want  int64 // -1 for an error
	}{
		{[]string{"127.0.0.1/8", "10.0.3.17/16"}, 3*256 + 17},
		{[]string{"10.0.4.17/16"}, 17}, // only two bits of the third byte
		{[]string{"fe80::1/64", "192.168.255.255/16"}, 1023},
		{[]string{"10.0.0.1/8", "10.0.0.2/8"}, 1},
		{[]string{"2001:db8::9/64", "10.0.0.2/8"}, 2},
		{[]string{"127.0.0.1/8", "169.254.0.9/16", "::1/128"}, -1},
		{nil, -1},
	} {
		var addrs []net.Addr
		for _, a := range c.addrs {
			ip, n, err := net.ParseCIDR(a)
			must.Do(t, err)
			addrs = append(addrs, &net.IPAddr{IP: ip}, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		have, err := ipWorkerID(firstIPv4(addrs))
		if err != nil {
			have = -1
		}
		must.Equal(t, have, c.want, c.addrs, err)
	}
}

func TestHostnameWorkerID_ordinal(t *testing.T) {
	for name, want := range map[string]int64{
		"orders-0": 0, "orders-12": 12, "a-b-1023": 1023, "orders-3.orders.default.svc": 3,
		"orders": -1, "orders12": -1, "orders-": -1, "orders-x": -1, "": -1, "orders-99999999999": -1,
		"ip-10-0-1-12": -1, "ip-10-0-1-12.eu-west-1.compute.internal": -1, "10-0-1-12": -1, "v1-2-3": 3,
	} {
		have, err := hostnameWorkerID(name)
		if err != nil {
			have = -1
		}
		must.Equal(t, have, want, name, err)
	}
}

// fixedClock is a clock that the test sets.
type fixedClock struct{ ms int64 }

func (c *fixedClock) Now() time.Time                             { return time.UnixMilli(c.ms) }
func (c *fixedClock) Sleep(context.Context, time.Duration) error { return errors.New("no sleep here") }

// oneRecord is a store with one worker ID. It counts its calls, and fails as a test sets it.
type oneRecord struct {
	mu                  sync.Mutex
	record              Record
	listed              []Entry // listed instead of the record
	lists, gets, writes int
	at                  []time.Time   // of the writes
	getErr, writeErr    error         // of calls that then have no effect
	refuse              int           // number of writes that have no effect, without an error
	alter               func(*Record) // changes a record before it is stored
	silent              int           // number of writes that have an effect and no answer
	deaf                bool          // no call is answered; writes have an effect

	now       func(context.Context) (time.Time, error) // see Info
	notes     *oneRecord                               // see Info; nil for none
	server    string                                   // name of the server, if there are notes
	serverErr error
}

func (s *oneRecord) info() Info {
	info := Info{Name: "TEST", Now: s.now}
	if s.notes != nil {
		info.notes = s.notes
		info.serverID = func(context.Context) (string, error) { return s.server, s.serverErr }
	}
	return info
}

// do calls f while no call runs.
func (s *oneRecord) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *oneRecord) List(context.Context) ([]Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if s.listed != nil || s.record.IsZero() {
		return s.listed, nil
	}
	return []Entry{{Record: s.record}}, nil
}

func (s *oneRecord) Get(context.Context, int64) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	if s.deaf {
		return Record{}, errAway
	}
	if s.getErr != nil {
		return Record{}, s.getErr
	}
	return s.record, nil
}

func (s *oneRecord) CompareAndSet(_ context.Context, _ int64, prev, next Record) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	s.at = append(s.at, time.Now())
	switch {
	case s.writeErr != nil:
		return false, s.writeErr
	case s.refuse > 0:
		s.refuse--
		return false, nil
	}
	if s.alter != nil {
		s.alter(&next)
	}
	swapped := s.record.Same(prev)
	if swapped {
		s.record = next
	}
	s.silent--
	if s.deaf || s.silent >= 0 {
		return false, errAway
	}
	return swapped, nil
}

func (s *oneRecord) Close() error { return nil }

// cloneOf returns the lease as a cloned machine has it.
func cloneOf(l *lease) *lease {
	clone := newLease(l.assigner)
	clone.begin(l.workerID, l.floor, l.Limit(), l.newest)
	clone.attempts = slices.Clone(l.attempts)
	return clone
}

// A cloned machine runs the same lease twice. Each copy may use only the reservation from the
// time of the snapshot. The first one to write keeps the worker ID. The other one notices at its
// next renewal.
func TestLease_cloneRepeatsNoMoreThanWasReserved(t *testing.T) {
	original, _, clock := acquired(t)
	reserved := original.Limit()
	clone := cloneOf(original)

	clock.ms += 3000
	must.Do(t, original.keep(t.Context()))
	must.Equal(t, clone.Limit(), reserved, "the clone's limit", "what was reserved")
	if err := clone.keep(t.Context()); !errors.Is(err, spi.ErrLeaseLost) || clone.Limit() != noLimit {
		t.Errorf("the clone's renewal\nhave: %v, limit %d\nwant: spi.ErrLeaseLost and no limit", err, clone.Limit())
	}
	if err := original.keep(t.Context()); err != nil || original.Limit() <= reserved {
		t.Errorf("the original\nhave: %v, limit %d\nwant: one beyond %d", err, original.Limit(), reserved)
	}
}

// A lease that starts ahead of the clock has time in reserve. Its renewals are writes anyway, so a
// clone is noticed as early.
func TestLease_cloneOfOneThatStartsAhead(t *testing.T) {
	clock := &fixedClock{ms: start}
	_, original := byHand(t, new(oneRecord), config{Clock: clock, Quarantine: time.Minute})
	must.Do(t, original.Renew(t.Context(), original.Floor()))
	clone := cloneOf(original)
	clock.ms += 3000
	limit := original.Limit()
	if err := original.keep(t.Context()); err != nil || original.Limit() != limit {
		t.Errorf("have: %v, limit %d\nwant: %d, which is far enough", err, original.Limit(), limit)
	}
	must.Is(t, clone.keep(t.Context()), spi.ErrLeaseLost, "the clone's renewal")
}

// A snapshot is taken while a write is in flight. Both copies find that write and know its token.
// Neither trusts it, and the first write on top of it decides.
func TestLease_cloneWithAWriteOnItsWay(t *testing.T) {
	original, store, clock := acquired(t)
	reserved := original.Limit()
	clock.ms += 3000
	store.deaf = true
	must.Is(t, original.keep(t.Context()), spi.ErrStore)
	store.deaf = false
	clone := cloneOf(original)
	for name, l := range map[string]*lease{"original": original, "clone": clone} {
		if err := l.reread(t.Context()); err != nil || l.Limit() != reserved {
			t.Errorf("the %s reads the record\nhave: %v, limit %d\nwant: limit %d", name, err, l.Limit(), reserved)
		}
	}
	if err := clone.keep(t.Context()); err != nil || clone.Limit() != reserved+3000 {
		t.Errorf("the first to write\nhave: %v, limit %d\nwant: limit %d", err, clone.Limit(), reserved+3000)
	}
	if err := original.keep(t.Context()); !errors.Is(err, spi.ErrLeaseLost) || original.Limit() != noLimit {
		t.Errorf("the other one\nhave: %v, limit %d\nwant: spi.ErrLeaseLost", err, original.Limit())
	}
}

// After a renewal whose answer was lost, the limit stays. It rises when the record is read again.
func TestLease_lostAnswer(t *testing.T) {
	l, store, clock := acquired(t)
	reserved := l.Limit()
	clock.ms += 3000
	store.deaf = true
	for range maxAttempts + 10 {
		if err := l.keep(t.Context()); !errors.Is(err, spi.ErrStore) || l.Limit() != reserved {
			t.Fatalf("have: %v, limit %d\nwant: spi.ErrStore, limit %d", err, l.Limit(), reserved)
		}
	}
	if n := len(l.attempts); n > maxAttempts {
		t.Errorf("attempts remembered\nhave: %d\nwant: at most %d", n, maxAttempts)
	}
	store.deaf = false
	if err := l.keep(t.Context()); err != nil || l.Limit() != clock.ms+10_000 || len(l.attempts) != 0 {
		t.Errorf("have: %v, limit %d, %d attempts\nwant: limit %d", err, l.Limit(), len(l.attempts), clock.ms+10_000)
	}
}

// machineState is the information that a machine gives to one running copy.
type machineState struct {
	away      atomic.Bool // it is disconnected from the store
	identity  atomic.Value
	assigner  *assigner
	lease     *lease
	given     bool // whether the lease was passed to the generator
	generator Snowflake
}

func startMachine(t *testing.T, dir string) *machineState {
	t.Helper()
	m := new(machineState)
	m.identity.Store("boot 1")
	m.assigner = assign(&Hooked{Store: newFileStore(dir, "orders"), Before: func(context.Context) error {
		if m.away.Load() {
			return errAway
		}
		return nil
	}}, config{})
	m.assigner.identity = func() string { return m.identity.Load().(string) }
	g := must.Get(NewSnowflake(m, spi.Host{}, 1, map[string]any{"max-vibration-offset": "0", "epoch": "1999-01-01"}))(t)
	m.generator = g
	t.Cleanup(func() {
		_ = g.Close()
		_ = m.assigner.Close()
	})
	return m
}

// AcquireWorkerID returns the copied lease first, if there is one.
func (m *machineState) AcquireWorkerID(ctx context.Context, most int64) (spi.WorkerIDLease, error) {
	if m.lease != nil && !m.given {
		m.given = true
		return m.lease, nil
	}
	l, err := m.assigner.acquire(ctx, most)
	if err != nil {
		return nil, err
	}
	m.lease, m.given = l, true
	return l, nil
}

// copyLease starts a copy of the other's lease in its current state.
func (m *machineState) copyLease(t *testing.T, other *lease) {
	t.Helper()
	l := newLease(m.assigner)
	must.Do(t, other.lock(t.Context()))
	l.begin(other.workerID, other.floor, other.limit.Load(), other.newest)
	l.identity = other.identity
	other.unlock()
	must.Do(t, m.assigner.start(l))
	m.lease = l
}

// Two machines continue one lease with a key per millisecond, from a snapshot at different times
// within a renewal. The test measures how long both generate keys of that worker ID.
func TestLease_copiesEndWithTheNextRenewal(t *testing.T) {
	testserver.NeedsFlock(t)
	for name, c := range map[string]struct {
		tell  func(original, clone *machineState)
		most  time.Duration // longest allowed duration of duplicate keys
		least time.Duration // shortest in the worst snapshot; otherwise the test shows nothing
	}{
		"nothing tells": {func(_, _ *machineState) {}, 3 * time.Second, time.Second}, // the first renewal may come early
		"another process": {func(_, clone *machineState) {
			clone.identity.Store("boot 2")
		}, lookEvery, lookEvery / 2},
		"the clone without the store": {func(_, clone *machineState) {
			clone.away.Store(true)
		}, 10 * time.Second, 6 * time.Second}, // less the time since the last renewal
	} {
		t.Run(name, func(t *testing.T) {
			worst := time.Duration(-1)
			for after := time.Duration(0); after < 3*time.Second; after += 700 * time.Millisecond {
				synctest.Test(t, func(t *testing.T) {
					last, renewers := runCopies(t, after, c.tell)
					if last > c.most {
						t.Errorf("snapshot %v after a renewal: keys repeated\nhave: until %v\nwant: until %v", after, last, c.most)
					}
					must.Equal(t, renewers, 1, "snapshot", after, "after a renewal: machines that continue with the worker ID")
					worst = max(worst, last)
				})
			}
			t.Logf("%s: keys repeated until %v after the snapshot was started", name, worst)
			if worst < c.least {
				t.Errorf("keys repeated\nhave: until %v\nwant: until %v at least, or nothing was tried", worst, c.least)
			}
		})
	}
}

// runCopies returns the time of the last duplicate key after the start of the copy, negative if
// there is none. It also returns how many machines have the worker ID at the end.
func runCopies(t *testing.T, after time.Duration, tell func(original, clone *machineState)) (last time.Duration, holders int) {
	dir := t.TempDir()
	original := startMachine(t, dir)
	must.Get(original.generator.Next(t.Context()))(t)
	time.Sleep(15*time.Second + after + time.Millisecond) // its keys follow the clock
	clone := startMachine(t, dir)
	clone.copyLease(t, original.lease)
	tell(original, clone)

	began, made := time.Now(), map[int64]bool{}
	last = -1
	for time.Since(began) < 15*time.Second {
		for _, m := range []*machineState{original, clone} {
			key, err := m.generator.Next(t.Context())
			if errors.Is(err, spi.ErrLeaseLimit) && m.away.Load() {
				continue
			}
			must.Do(t, err)
			if made[key] {
				last = time.Since(began)
			}
			made[key] = true
		}
		time.Sleep(time.Millisecond)
	}
	for _, m := range []*machineState{original, clone} {
		if h := m.generator.Health(); h.Err == nil && *h.WorkerID == 0 {
			holders++
		}
	}
	return last, holders
}

// A machine that was restored sets its clock. The lease is then renewed at once, not after renew.
func TestLease_renewsAtOnceAfterTheClockWasSet(t *testing.T) {
	for by, early := range map[time.Duration]bool{time.Hour: true, -time.Hour: true, stepMost + 1: true, stepMost: false, 0: false} {
		synctest.Test(t, func(t *testing.T) {
			clock := new(testclock.Clock)
			_, l := byHand(t, new(oneRecord), config{Clock: clock})
			slept := make(chan time.Duration)
			go func(began time.Time) {
				_ = l.sleep(t.Context(), 3*time.Second)
				slept <- time.Since(began)
			}(time.Now())
			time.Sleep(time.Second + time.Millisecond)
			clock.Set(by)
			if have := <-slept; have > time.Second+lookEvery == early {
				t.Errorf("clock set by %v\nhave: slept %v\nwant: interrupted: %v", by, have, early)
			}
		})
	}
}

// A copy doesn't release its worker ID with a free time, because it doesn't know the keys of
// other copies.
func TestLease_copyGivesNothingBack(t *testing.T) {
	store := new(oneRecord)
	a := assign(store, config{Clock: &fixedClock{ms: start}})
	identity := "boot 1"
	a.identity = func() string { return identity }
	l := must.Get(a.acquire(t.Context(), 0))(t)
	before := store.record
	identity = "boot 2"
	if err := l.Release(t.Context(), 0); err != nil || store.record != before {
		t.Errorf("have: %v, %v\nwant: the record untouched", err, store.record)
	}
}

// Machines that start from one snapshot may generate the same random numbers.
func TestTokenOf_differsWithTheTime(t *testing.T) {
	now := time.Now()
	a, b := tokenOf([16]byte{1}, now), tokenOf([16]byte{1}, now.Add(time.Nanosecond))
	if a == b || len(a) > 64 {
		t.Errorf("have: %s, %s\nwant: two of at most 64 characters, the owner column's", a, b)
	}
}
