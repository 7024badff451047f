package workerid

import (
	"context"
	"errors"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

// unconfirmed is a store that applies what it does not confirm, and shows it.
type unconfirmed struct {
	*oneRecord
	silent int // so many writes are not confirmed
	writes int
}

func (s *unconfirmed) CompareAndSet(ctx context.Context, id int64, prev, next Record) (bool, error) {
	s.writes++
	ok, err := s.oneRecord.CompareAndSet(ctx, id, prev, next)
	if s.writes <= s.silent {
		return false, errors.New("no answer")
	}
	return ok, err
}

// A record that a lease has only been shown may be one that the store forgets in
// a crash: the limit follows when a write on top of it is confirmed.
func TestLease_shownRecordDoesNotMoveTheLimit(t *testing.T) {
	clock, store := &fixedClock{ms: 1_790_000_000_000}, &unconfirmed{oneRecord: new(oneRecord)}
	_, l := byHand(t, store, config{Clock: clock})
	reserved := l.Limit()
	clock.ms += 3000
	store.silent, store.writes = 2, 0
	for range 2 {
		if err := l.keep(t.Context()); !errors.Is(err, spi.ErrStore) || l.Limit() != reserved {
			t.Errorf("while nothing is confirmed\nhave: %v, limit %d\nwant: spi.ErrStore, limit %d", err, l.Limit(), reserved)
		}
	}
	if store.record.ReservedUntil != reserved+3000 {
		t.Fatalf("the store shows %d, want %d", store.record.ReservedUntil, reserved+3000)
	}
	shown := store.record
	if err := l.keep(t.Context()); err != nil || l.Limit() != reserved+3000 {
		t.Errorf("once it is confirmed\nhave: %v, limit %d\nwant: limit %d", err, l.Limit(), reserved+3000)
	}
	if store.record.Owner == shown.Owner || store.writes != 3 {
		t.Errorf("have: the record that was shown, after %d writes\nwant: one on top of it, after 3", store.writes)
	}
}

func TestAssigner_shownTakeoverIsWrittenAgain(t *testing.T) {
	for name, c := range map[string]struct {
		silent int
		taken  bool
	}{"the second is confirmed": {1, true}, "none is confirmed": {2, false}} {
		t.Run(name, func(t *testing.T) {
			clock, store := &fixedClock{ms: 1_790_000_000_000}, &unconfirmed{oneRecord: new(oneRecord), silent: c.silent}
			a := assign(store, config{Clock: clock})
			a.manual = true
			l, err := a.acquire(t.Context(), 0)
			switch {
			case store.writes != 2:
				t.Errorf("writes\nhave: %d\nwant: 2", store.writes)
			case c.taken && (err != nil || l.Limit() != clock.ms+10_000 || l.Floor() != clock.ms):
				t.Errorf("have: %v, %v\nwant: a lease", l, err)
			case !c.taken && !errors.Is(err, spi.ErrStore):
				t.Errorf("have: %v\nwant: spi.ErrStore", err)
			}
		})
	}
}

// altering is a store with a column that is too narrow.
type altering struct{ *oneRecord }

func (s altering) CompareAndSet(ctx context.Context, id int64, prev, next Record) (bool, error) {
	next.ReservedUntil = 1<<31 - 1
	return s.oneRecord.CompareAndSet(ctx, id, prev, next)
}

func TestAssigner_refusesARecordThatCameBackOtherThanWritten(t *testing.T) {
	a := assign(altering{new(oneRecord)}, config{Clock: &fixedClock{ms: 1_790_000_000_000}})
	a.manual = true
	var altered *alteredError
	if l, err := a.acquire(t.Context(), 0); !errors.As(err, &altered) || !errors.Is(err, spi.ErrStore) {
		t.Errorf("have: %v, %v\nwant: an alteredError", l, err)
	}
}
