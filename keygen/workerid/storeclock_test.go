package workerid

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	testclock "github.com/shardkey/shardkey/internal/test/clock"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/spi"
)

// clockedStore is a store whose clock differs from the processes'.
type clockedStore struct {
	*oneRecord
	clock *fixedClock
	apart time.Duration
	err   error
}

func (s *clockedStore) Now(context.Context) (time.Time, error) {
	return s.clock.Now().Add(s.apart), s.err
}

func isClockError(err error) bool { return errors.Is(err, errClock) && errors.Is(err, spi.ErrStore) }

// The store's clock is compared before a worker ID is leased. It is also compared before a
// reservation advances by more than this machine's clock may be ahead.
func TestClock_isComparedWithTheStores(t *testing.T) {
	away := errors.New("away")
	for name, c := range map[string]struct {
		apart time.Duration
		err   error
		want  func(error) bool
	}{
		"the bound less":     {-time.Minute, nil, func(err error) bool { return err == nil }},
		"more":               {time.Hour * 1000, nil, func(err error) bool { return err == nil }},
		"over the bound":     {-time.Minute - time.Millisecond, nil, isClockError},
		"it does not answer": {0, away, func(err error) bool { return errors.Is(err, away) && errors.Is(err, spi.ErrStore) }},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &fixedClock{ms: 1_790_000_000_000}
			store := &clockedStore{oneRecord: new(oneRecord), clock: clock, apart: c.apart, err: c.err}
			a := assign(store, config{Clock: clock, MaxClockAhead: time.Minute})
			a.manual = true
			if _, err := a.acquire(t.Context(), 0); !c.want(err) {
				t.Errorf("a first worker ID\nhave: %v", err)
			}

			store.apart, store.err, store.record = 0, nil, Record{}
			l := must.Get(a.acquire(t.Context(), 0))(t)
			limit := l.Limit()
			store.apart, store.err = c.apart, c.err
			clock.ms += 2 * horizon.Milliseconds()
			if err := l.keep(t.Context()); !c.want(err) || (l.Limit() > limit) != (err == nil) {
				t.Errorf("a renewal two days later\nhave: %v, limit %d", err, l.Limit())
			}
		})
	}
}

// The store's clock is queried once per max-clock-ahead, not with every renewal. A step in that
// time is noticed anyway.
func TestClock_ofTheStoreIsQueriedRarely(t *testing.T) {
	clock := &fixedClock{ms: 1_790_000_000_000}
	counted := &countedClock{clockedStore: clockedStore{oneRecord: new(oneRecord), clock: clock}}
	_, l := byHand(t, counted, config{Clock: clock})
	for range 200 {
		clock.ms += 3000
		must.Do(t, l.keep(t.Context()))
	}
	if counted.times > 4 {
		t.Errorf("the store's clock was asked %d times in 10 minutes\nwant: 3, or one more", counted.times)
	}
	limit := l.Limit()
	var err error
	for range 3 { // each step alone is allowed
		clock.ms += 2 * 60_000
		counted.apart -= 2 * time.Minute
		err = l.keep(t.Context())
	}
	if !isClockError(err) || l.Limit() > limit+5*60_000 {
		t.Errorf("three steps of two minutes\nhave: %v, limit %v further\nwant: a clockError", err, l.Limit()-limit)
	}
}

type countedClock struct {
	clockedStore
	times int
}

func (s *countedClock) Now(ctx context.Context) (time.Time, error) {
	s.times++
	return s.clockedStore.Now(ctx)
}

// If the store's clock is an hour behind, the processes of a fleet continue: the record of
// another machine's holder shows that their time is right. A holder on the same machine shows
// nothing.
func TestClock_wrongOneOfTheStore(t *testing.T) {
	clock := &fixedClock{ms: 1_790_000_000_000}
	for holder, want := range map[string]bool{"elsewhere pid 1": true, holderName(): false} {
		store := &clockedStore{oneRecord: new(oneRecord), clock: clock, apart: -time.Hour}
		store.record = Record{Owner: "x", ReservedUntil: clock.ms + 5000, Holder: holder, Since: clock.ms}
		a := assign(store, config{Clock: clock})
		a.manual = true
		_, err := a.acquire(t.Context(), 0)
		if isClockError(err) == want || want && !errors.Is(err, spi.ErrNoWorkerID) {
			t.Errorf("held by %s\nhave: %v", holder, err)
		}
	}
}

// The SQL store reads its server's clock without the session's time zone. In the hour that summer
// time repeats, a local time is ambiguous.
func TestClock_ofSQLWhenSummerTimeEnds(t *testing.T) {
	if testserver.Each(t, TestClock_ofSQLWhenSummerTimeEnds) {
		return
	}
	t.Setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3") // the server's SYSTEM zone
	server := testserver.StartSQL(t)
	db := must.Get(sql.Open("mysql", server.DSN()))(t)
	defer db.Close()
	end := time.Date(2027, 10, 31, 1, 0, 0, 0, time.UTC)
	for _, row := range []string{
		"time_zone (Time_zone_id) VALUES (77)",
		"time_zone_name (Name, Time_zone_id) VALUES ('Berlin', 77)",
		"time_zone_transition_type (Time_zone_id, Transition_type_id, `Offset`, Is_DST, Abbreviation) VALUES (77, 0, 3600, 0, 'CET'), (77, 1, 7200, 1, 'CEST')",
		fmt.Sprintf("time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) VALUES (77, %d, 1), (77, %d, 0)",
			end.AddDate(0, -6, 0).Unix(), end.Unix()),
	} {
		must.Get(db.Exec("INSERT INTO mysql." + row))(t)
	}
	for _, zone := range []string{"SYSTEM", "Berlin", "+05:30"} {
		for _, at := range []time.Time{end.Add(-2 * time.Hour), end.Add(-time.Millisecond), end, end.Add(30 * time.Minute), end.Add(2 * time.Hour)} {
			c := must.Get(mysql.ParseDSN(server.DSN()))(t)
			c.DBName = "mysql"
			c.Params = map[string]string{"time_zone": "'" + zone + "'", "timestamp": fmt.Sprintf("%.3f", float64(at.UnixMilli())/1000)}
			store, info, err := NewSQLStore(c.FormatDSN(), defaultTable, "ns")
			if err != nil {
				t.Fatal(err)
			}
			if have, err := info.Now(t.Context()); err != nil || !have.Equal(at) {
				t.Errorf("zone %s\nhave: %v, %v\nwant: %v", zone, have.UTC(), err, at)
			}
			store.Close()
		}
	}
}

// These cases are not a step ahead: a process that was stopped, a store that was unavailable, and a
// clock that was behind and is now right. Nor are a step that another process's record confirms, a
// step that has lasted, a fleet that was down for a month, and a first start.
func TestClock_isAheadOfNothing(t *testing.T) {
	testserver.NeedsFlock(t)
	const month = 30 * 24 * time.Hour
	for name, c := range map[string]struct {
		before time.Duration // initial offset of the clock
		other  bool          // another process renews
		then   func(*testclock.Clock, *assigner, *lease)
	}{
		"it was stopped for a month": {then: func(*testclock.Clock, *assigner, *lease) { time.Sleep(month) }},
		"it was suspended": {then: func(clock *testclock.Clock, a *assigner, _ *lease) {
			clock.Set(month) // the monotonic clock stood still
			a.uptime = func() (time.Duration, bool) { return 2 * month, true }
		}},
		"it was behind":        {before: -month, then: func(clock *testclock.Clock, _ *assigner, _ *lease) { clock.Set(-month + time.Minute) }},
		"another one is there": {other: true, then: func(clock *testclock.Clock, _ *assigner, _ *lease) { clock.Set(month) }},
		"nothing tells": {then: func(clock *testclock.Clock, a *assigner, _ *lease) {
			clock.Set(month)
			a.uptime = func() (time.Duration, bool) { return 0, false }
		}},
		"it stays there": {then: func(clock *testclock.Clock, _ *assigner, l *lease) {
			clock.Set(month)
			_ = l.keep(context.Background())
			time.Sleep(defaultClockAhead + time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, clock := newFileStore(t.TempDir(), "x"), testclock.New(c.before)
				a := assign(store, config{Clock: clock})
				a.manual = true
				l, err := a.acquire(t.Context(), 3)
				if err != nil {
					t.Fatalf("a first start: %v", err)
				}
				c.then(clock, a, l)
				if c.other {
					r := Record{Owner: "x", ReservedUntil: a.now() + 5000, Holder: "elsewhere pid 1", Since: a.now()}
					if ok, err := store.CompareAndSet(t.Context(), 3, Record{}, r); !ok || err != nil {
						t.Fatal(ok, err)
					}
				}
				if err := l.keep(t.Context()); err != nil || l.Limit() < a.now() {
					t.Errorf("have: %v\nwant: a renewal", err)
				}
				later := assign(store, config{Clock: testclock.New(clock.Off() + month)})
				later.manual = true
				if _, err := later.acquire(t.Context(), 3); err != nil {
					t.Errorf("a start a month later\nhave: %v\nwant: a worker ID", err)
				}
			})
		})
	}
}
