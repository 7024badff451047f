package workerid

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// awayStore is a store that one process can be cut off from.
type awayStore struct {
	Hooked
	away atomic.Bool
}

func newAwayStore(store Store) *awayStore {
	s := new(awayStore)
	s.Hooked = Hooked{Store: store, Before: func(context.Context) error {
		if s.away.Load() {
			return errAway
		}
		return nil
	}}
	return s
}

// machineState is what one running copy is told by its machine.
type machineState struct {
	store     *awayStore
	identity  atomic.Value
	assigner  *assigner
	lease     *lease
	given     bool // the lease, to the generator
	generator Snowflake
}

func startMachine(t *testing.T, dir string) *machineState {
	t.Helper()
	m := &machineState{store: newAwayStore(newFileStore(dir, "orders"))}
	m.identity.Store("boot 1")
	m.assigner = assign(m.store, config{})
	m.assigner.identity = func() string { return m.identity.Load().(string) }
	g, err := NewSnowflake(m, spi.Host{}, 1, map[string]any{"max-vibration-offset": "0", "epoch": "1999-01-01"})
	if err != nil {
		t.Fatal(err)
	}
	m.generator = g
	t.Cleanup(func() {
		_ = g.Close()
		_ = m.assigner.Close()
	})
	return m
}

// AcquireWorkerID gives the generator the lease that was copied first, if any.
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

// copyLease starts the other's lease here too, as it stands.
func (m *machineState) copyLease(t *testing.T, other *lease) {
	t.Helper()
	l := newLease(m.assigner)
	if err := other.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.begin(other.workerID, other.floor, other.limit.Load(), other.newest)
	l.identity = other.identity
	other.unlock()
	if err := m.assigner.start(l); err != nil {
		t.Fatal(err)
	}
	m.lease = l
}

// Two machines go on with one lease, each with a key a millisecond, from a snapshot
// taken at different times within a renewal. What is measured is how long both
// make keys of that worker id.
func TestLease_copiesEndWithTheNextRenewal(t *testing.T) {
	for name, c := range map[string]struct {
		tell  func(original, clone *machineState)
		most  time.Duration // how long keys repeat
		least time.Duration // in the worst of the snapshots; or the test shows nothing
	}{
		"nothing tells": {func(_, _ *machineState) {}, 3 * time.Second, time.Second}, // the first renewal comes early by chance
		"another process": {func(_, clone *machineState) {
			clone.identity.Store("boot 2")
		}, lookEvery, lookEvery / 2},
		"the clone without the store": {func(_, clone *machineState) {
			clone.store.away.Store(true)
		}, 10 * time.Second, 6 * time.Second}, // less what passed since the last renewal
	} {
		t.Run(name, func(t *testing.T) {
			worst := time.Duration(-1)
			for after := time.Duration(0); after < 3*time.Second; after += 700 * time.Millisecond {
				synctest.Test(t, func(t *testing.T) {
					last, renewers := runCopies(t, after, c.tell)
					if last > c.most {
						t.Errorf("snapshot %v after a renewal: keys repeated\nhave: until %v\nwant: until %v", after, last, c.most)
					}
					if renewers != 1 {
						t.Errorf("snapshot %v after a renewal: machines that go on with the worker id\nhave: %d\nwant: 1", after, renewers)
					}
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

// runCopies returns when the last key was made twice, after the start of the copy
// (negative for none), and how many of the machines have the worker id in the end.
func runCopies(t *testing.T, after time.Duration, tell func(original, clone *machineState)) (last time.Duration, holders int) {
	dir := t.TempDir()
	original := startMachine(t, dir)
	if _, err := original.generator.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3*time.Second + after + time.Millisecond)
	clone := startMachine(t, dir)
	clone.copyLease(t, original.lease)
	tell(original, clone)

	began, made := time.Now(), map[int64]bool{}
	last = -1
	for time.Since(began) < 15*time.Second {
		for _, m := range []*machineState{original, clone} {
			key, err := m.generator.Next(t.Context())
			if errors.Is(err, spi.ErrLeaseLimit) && m.store.away.Load() {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
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

// A copy does not say from where a worker id is free: it does not know what the others
// have used.
func TestLease_copyGivesNothingBack(t *testing.T) {
	store := new(oneRecord)
	a := assign(store, config{Clock: &fixedClock{ms: 1_790_000_000_000}})
	a.manual = true
	identity := "boot 1"
	a.identity = func() string { return identity }
	l, err := a.acquire(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	before := store.record
	for _, identity = range []string{"", "boot 1"} { // nothing told is nothing changed
		if err := l.copied(); err != nil {
			t.Errorf("identity %q\nhave: %v\nwant: no copy", identity, err)
		}
	}
	identity = "boot 2"
	if err := l.Release(t.Context(), 0); err != nil || store.record != before {
		t.Errorf("have: %v, %v\nwant: the record untouched", err, store.record)
	}
}

// A clock that is set has the store asked at once: a machine that comes from a
// snapshot is set right.
func TestLease_clockThatIsSetIsARenewal(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		wall, passed time.Duration
		want         bool
	}{
		{100 * time.Millisecond, 100 * time.Millisecond, false},
		{time.Hour, time.Hour, false}, // the process was stopped
		{999 * time.Millisecond, 0, false},
		{2 * time.Second, 0, true},
		{-2 * time.Second, 0, true},
	} {
		if have := wasSet(c.wall, c.passed); have != c.want {
			t.Errorf("%v by the wall clock, %v by the other\nhave: %v\nwant: %v", c.wall, c.passed, have, c.want)
		}
	}
	if clockWasSet(now, now.Add(time.Hour)) {
		t.Error("an hour by both clocks counts as a step")
	}
}

// Machines that start from one snapshot may have the same random numbers to come.
func TestTokenOf_differsWithTheTime(t *testing.T) {
	now := time.Now()
	a, b := tokenOf([16]byte{1}, now), tokenOf([16]byte{1}, now.Add(time.Nanosecond))
	if a == b || len(a) > 64 {
		t.Errorf("have: %s, %s\nwant: two of at most 64 characters, the owner column's", a, b)
	}
}
