package workerid

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// fixedClock stands where it is put.
type fixedClock struct{ ms int64 }

func (c *fixedClock) Now() time.Time                             { return time.UnixMilli(c.ms) }
func (c *fixedClock) Sleep(context.Context, time.Duration) error { return errors.New("no sleep here") }

// oneRecord is a store of one worker id.
type oneRecord struct{ record Record }

func (s *oneRecord) List(context.Context) ([]Entry, error) {
	if s.record.IsZero() {
		return nil, nil
	}
	return []Entry{{Record: s.record}}, nil
}
func (s *oneRecord) Get(context.Context, int64) (Record, error) { return s.record, nil }
func (s *oneRecord) CompareAndSet(_ context.Context, _ int64, prev, next Record) (bool, error) {
	if !s.record.Same(prev) {
		return false, nil
	}
	s.record = next
	return true, nil
}
func (s *oneRecord) Close() error { return nil }

// A cloned machine runs one lease twice. Both copies may use what was reserved
// when the snapshot was taken, and no more: the first one to write has the
// worker id, and the other one finds out and is told at its next renewal.
func TestLease_cloneRepeatsNoMoreThanWasReserved(t *testing.T) {
	clock, store := &fixedClock{ms: 1_790_000_000_000}, new(oneRecord)
	a, original := byHand(t, store, config{Clock: clock})
	reserved := original.Limit()
	clone := newLease(a)
	clone.begin(original.workerID, original.floor, original.Limit(), original.newest)

	clock.ms += 3000
	if err := original.keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if clone.Limit() != reserved {
		t.Errorf("the clone's limit\nhave: %d\nwant: %d, what was reserved", clone.Limit(), reserved)
	}
	if err := clone.keep(t.Context()); !errors.Is(err, spi.ErrLeaseLost) || clone.Limit() != noLimit {
		t.Errorf("the clone's renewal\nhave: %v, limit %d\nwant: spi.ErrLeaseLost and no limit", err, clone.Limit())
	}
	if err := original.keep(t.Context()); err != nil || original.Limit() <= reserved {
		t.Errorf("the original\nhave: %v, limit %d\nwant: one beyond %d", err, original.Limit(), reserved)
	}
}

// A clone whose snapshot was taken while a write was on its way: both find that
// write, and know its token. Neither counts it; the first write on top of it decides.
func TestLease_cloneWithAWriteOnItsWay(t *testing.T) {
	clock := &fixedClock{ms: 1_790_000_000_000}
	store := &deaf{oneRecord: new(oneRecord)}
	a, original := byHand(t, store, config{Clock: clock})
	reserved := original.Limit()
	clock.ms += 3000
	store.answersLost = true
	if err := original.keep(t.Context()); !errors.Is(err, spi.ErrStore) {
		t.Fatal(err)
	}
	store.answersLost = false
	clone := newLease(a)
	clone.begin(original.workerID, original.floor, original.Limit(), original.newest)
	clone.attempts = slices.Clone(original.attempts)
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

// After a renewal whose answer was lost the limit stays, and rises when the
// record is read again.
func TestLease_lostAnswer(t *testing.T) {
	clock := &fixedClock{ms: 1_790_000_000_000}
	store := &deaf{oneRecord: new(oneRecord)}
	_, l := byHand(t, store, config{Clock: clock})
	reserved := l.Limit()
	clock.ms += 3000
	store.answersLost = true
	for range maxAttempts + 10 {
		if err := l.keep(t.Context()); !errors.Is(err, spi.ErrStore) || l.Limit() != reserved {
			t.Fatalf("have: %v, limit %d\nwant: spi.ErrStore, limit %d", err, l.Limit(), reserved)
		}
	}
	if n := len(l.attempts); n > maxAttempts {
		t.Errorf("attempts remembered\nhave: %d\nwant: at most %d", n, maxAttempts)
	}
	store.answersLost = false
	if err := l.keep(t.Context()); err != nil || l.Limit() != clock.ms+10_000 || len(l.attempts) != 0 {
		t.Errorf("have: %v, limit %d, %d attempts\nwant: limit %d", err, l.Limit(), len(l.attempts), clock.ms+10_000)
	}
}

// deaf is a store whose answers can be lost, reads' as well.
type deaf struct {
	*oneRecord
	answersLost bool
}

func (s *deaf) Get(ctx context.Context, id int64) (Record, error) {
	if s.answersLost {
		return Record{}, errors.New("no answer")
	}
	return s.oneRecord.Get(ctx, id)
}

func (s *deaf) CompareAndSet(ctx context.Context, id int64, prev, next Record) (bool, error) {
	ok, err := s.oneRecord.CompareAndSet(ctx, id, prev, next)
	if s.answersLost {
		return false, errors.New("no answer")
	}
	return ok, err
}
