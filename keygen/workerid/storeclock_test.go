package workerid

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// clockedStore is a store whose clock says another time than the processes'.
type clockedStore struct {
	*oneRecord
	clock *fixedClock
	apart time.Duration
	err   error
}

func (s *clockedStore) Now(context.Context) (time.Time, error) {
	return s.clock.Now().Add(s.apart), s.err
}

// A store's clock is compared before a worker id is taken from an empty store, and
// before a reservation is moved on by more than a day.
func TestClock_isComparedWithTheStores(t *testing.T) {
	away := errors.New("away")
	for name, c := range map[string]struct {
		apart time.Duration
		err   error
		want  func(error) bool
	}{
		"a day less":         {-horizon, nil, func(err error) bool { return err == nil }},
		"more":               {time.Hour * 1000, nil, func(err error) bool { return err == nil }},
		"over a day less":    {-horizon - time.Millisecond, nil, isClockError},
		"it does not answer": {0, away, func(err error) bool { return errors.Is(err, away) && errors.Is(err, spi.ErrStore) }},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &fixedClock{ms: 1_790_000_000_000}
			store := &clockedStore{oneRecord: new(oneRecord), clock: clock, apart: c.apart, err: c.err}
			a := newAssigner(store, config{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
			a.manual = true
			if _, err := a.acquire(t.Context(), 0); !c.want(err) {
				t.Errorf("a first worker id\nhave: %v", err)
			}

			store.apart, store.err, store.record = 0, nil, Record{}
			l, err := a.acquire(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			limit := l.Limit()
			store.apart, store.err = c.apart, c.err
			clock.ms += 2 * horizon.Milliseconds()
			if err := l.keep(t.Context()); !c.want(err) || (l.Limit() > limit) != (err == nil) {
				t.Errorf("a renewal two days later\nhave: %v, limit %d", err, l.Limit())
			}
		})
	}
}

func isClockError(err error) bool {
	var wrong *clockError
	return errors.As(err, &wrong) && errors.Is(err, spi.ErrStore)
}
