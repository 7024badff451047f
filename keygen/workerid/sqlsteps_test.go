package workerid

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
	testclock "github.com/shardkey/shardkey/internal/test/clock"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// mockedStore is a store of a table whose answers a test gives, in order.
func mockedStore(t *testing.T, keyed bool) (*sqlStore, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	must.Do(t, err)
	t.Cleanup(func() {
		db.Close()
		must.Do(t, mock.ExpectationsWereMet())
	})
	mock.MatchExpectationsInOrder(true)
	t.Cleanup(func() { mock.ExpectClose() })
	s := &sqlStore{db: db, namespace: "ns", table: "`t`", where: "SQL"}
	s.keyed.Store(keyed)
	return s, mock
}

const (
	selectAll = "SELECT worker_id, COALESCE(owner, ''), COALESCE(reserved_until, 0), COALESCE(free_from, 0), " +
		"COALESCE(holder, ''), COALESCE(since, 0) FROM `t` WHERE namespace = ?"
	selectOne = selectAll + " AND worker_id = ?"
	insertRow = "INSERT INTO `t` (namespace, worker_id, owner, reserved_until, free_from, holder, since) VALUES (?, ?, ?, ?, ?, ?, ?)"
	updateRow = "UPDATE `t` SET owner = ?, reserved_until = ?, free_from = ?, holder = ?, since = ?" +
		" WHERE namespace = ? AND worker_id = ? AND owner = ? AND reserved_until = ?"
	selectNow = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"
	showKeys  = "SHOW KEYS FROM `t`"
)

var (
	recordOne = Record{Owner: "one", ReservedUntil: 100, Holder: "host", Since: 5}
	recordTwo = Record{Owner: "two", ReservedUntil: 200, FreeFrom: 150, Holder: "host", Since: 6}
)

func numbered(n uint16) error { return &mysql.MySQLError{Number: n, Message: "refused"} }

func recordRows(records ...[]driver.Value) *sqlmock.Rows {
	rows := sqlmock.NewRows([]string{"worker_id", "owner", "reserved_until", "free_from", "holder", "since"})
	for _, r := range records {
		rows.AddRow(r...)
	}
	return rows
}

func values(id int64, r Record) []driver.Value {
	return []driver.Value{id, r.Owner, r.ReservedUntil, r.FreeFrom, r.Holder, r.Since}
}

// Rows are records. One that this package has not written is listed with an error, a table
// that is missing has none, and each failure is an error.
func TestSQLStore_reads(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(*sqlmock.ExpectedQuery)
		want   []Entry // with any Err, where it has one
		err    error
	}{
		"none": {func(q *sqlmock.ExpectedQuery) { q.WillReturnRows(recordRows()) }, nil, nil},
		"two": {func(q *sqlmock.ExpectedQuery) {
			q.WillReturnRows(recordRows(values(3, recordOne), values(4, recordTwo)))
		}, []Entry{{WorkerID: 3, Record: recordOne}, {WorkerID: 4, Record: recordTwo}}, nil},
		"an odd one": {func(q *sqlmock.ExpectedQuery) {
			q.WillReturnRows(recordRows([]driver.Value{3, "", 0, 0, "", 0}, values(4, recordTwo)))
		}, []Entry{{WorkerID: 3, Err: errAway}, {WorkerID: 4, Record: recordTwo}}, nil},
		"twice": {func(q *sqlmock.ExpectedQuery) {
			q.WillReturnRows(recordRows(values(3, recordOne), values(3, recordTwo)))
		}, nil, errTable},
		"no table":  {func(q *sqlmock.ExpectedQuery) { q.WillReturnError(numbered(sqlerr.UnknownTable)) }, nil, nil},
		"no column": {func(q *sqlmock.ExpectedQuery) { q.WillReturnError(numbered(sqlerr.UnknownColumn)) }, nil, errTable},
		"denied":    {func(q *sqlmock.ExpectedQuery) { q.WillReturnError(numbered(sqlerr.TableDenied)) }, nil, errTable},
		"away":      {func(q *sqlmock.ExpectedQuery) { q.WillReturnError(errAway) }, nil, errAway},
		"away later": {func(q *sqlmock.ExpectedQuery) {
			q.WillReturnRows(recordRows(values(3, recordOne), values(4, recordTwo)).RowError(1, errAway))
		}, nil, errAway},
		"not a number": {func(q *sqlmock.ExpectedQuery) { q.WillReturnRows(recordRows([]driver.Value{"x", "a", 1, 0, "h", 1})) }, nil, errScan},
	} {
		t.Run(name, func(t *testing.T) {
			s, mock := mockedStore(t, true)
			tt.answer(mock.ExpectQuery(selectAll).WithArgs("ns"))
			have, err := s.List(t.Context())
			checkError(t, err, tt.err)
			for i := range have {
				if have[i].Err != nil && i < len(tt.want) && tt.want[i].Err != nil {
					have[i].Err = tt.want[i].Err
				}
			}
			if tt.err == nil && !reflect.DeepEqual(have, tt.want) {
				t.Errorf("have: %+v\nwant: %+v", have, tt.want)
			}
			tt.answer(mock.ExpectQuery(selectOne).WithArgs("ns", 3))
			one, err := s.Get(t.Context(), 3)
			want := Entry{}
			if len(tt.want) > 0 {
				want = tt.want[0]
			}
			if tt.err != nil {
				checkError(t, err, tt.err)
			} else if one != want.Record || (err != nil) != (want.Err != nil) {
				t.Errorf("have: %+v, %v\nwant: %+v", one, err, want)
			}
		})
	}
}

// errTable and errScan stand for a *tableError and for an error of database/sql.
var errTable, errScan = errors.New("a *tableError"), errors.New("any")

func checkError(t *testing.T, have, want error) {
	t.Helper()
	var table *tableError
	switch {
	case want == errTable && !errors.As(have, &table), want == errScan && have == nil, want == nil && have != nil:
		t.Errorf("have: %v\nwant: %v", have, want)
	case want == errTable, want == errScan, want == nil:
	case mysqldb.Number(want) != 0 && mysqldb.Number(have) == mysqldb.Number(want) && !errors.As(have, &table):
	case !errors.Is(have, want):
		t.Errorf("have: %v\nwant: %v", have, want)
	}
}

// A record is put in the place of the one before, or where there is none.
func TestSQLStore_writes(t *testing.T) {
	for name, tt := range map[string]struct {
		prev    Record
		rows    int64
		err     error // of the statement
		swapped bool
		want    error
	}{
		"created":           {Record{}, 1, nil, true, nil},
		"another's already": {Record{}, 0, numbered(sqlerr.DuplicateKey), false, nil},
		"not created":       {Record{}, 0, errAway, false, errAway},
		"refused":           {Record{}, 0, numbered(sqlerr.TableDenied), false, errTable},
		"too long":          {Record{}, 0, numbered(sqlerr.DataTooLong), false, errTable},
		"replaced":          {recordOne, 1, nil, true, nil},
		"another's by now":  {recordOne, 0, nil, false, nil},
		"several rows":      {recordOne, 2, nil, false, errTable},
		"not replaced":      {recordOne, 0, errAway, false, errAway},
		"read-only":         {recordOne, 0, numbered(sqlerr.ReadOnly), false, numbered(sqlerr.ReadOnly)},
	} {
		t.Run(name, func(t *testing.T) {
			s, mock := mockedStore(t, true)
			var e *sqlmock.ExpectedExec
			if tt.prev.IsZero() {
				e = mock.ExpectExec(insertRow).WithArgs("ns", 3, "two", 200, 150, "host", 6)
			} else {
				e = mock.ExpectExec(updateRow).WithArgs("two", 200, 150, "host", 6, "ns", 3, "one", 100)
			}
			if tt.err != nil {
				e.WillReturnError(tt.err)
			} else {
				e.WillReturnResult(sqlmock.NewResult(0, tt.rows))
			}
			swapped, err := s.CompareAndSet(t.Context(), 3, tt.prev, recordTwo)
			checkError(t, err, tt.want)
			must.Equal(t, swapped, tt.swapped)
			must.Equal(t, s.keyed.Load(), name != "several rows", "the key is known")
		})
	}
}

// A store writes to a table that has a unique key of the namespace and the worker ID, or of
// fewer columns. A table that is missing is made.
func TestSQLStore_keys(t *testing.T) {
	key := func(lines ...[]driver.Value) *sqlmock.Rows {
		rows := sqlmock.NewRows([]string{"Table", "Non_unique", "Key_name", "Seq_in_index", "Column_name"})
		for _, l := range lines {
			rows.AddRow(append([]driver.Value{"t"}, l...)...)
		}
		return rows
	}
	created := func(mock sqlmock.Sqlmock) {
		mock.ExpectExec(insertRow).WillReturnResult(sqlmock.NewResult(0, 1))
	}
	both := [][]driver.Value{{"0", "PRIMARY", 1, "namespace"}, {"0", "PRIMARY", 2, "Worker_ID"}}
	missing := numbered(sqlerr.UnknownTable)
	for name, tt := range map[string]struct {
		script func(sqlmock.Sqlmock)
		want   error
	}{
		"primary key":        {func(m sqlmock.Sqlmock) { m.ExpectQuery(showKeys).WillReturnRows(key(both...)); created(m) }, nil},
		"one of its columns": {func(m sqlmock.Sqlmock) { m.ExpectQuery(showKeys).WillReturnRows(key(both[1])); created(m) }, nil},
		"among others": {func(m sqlmock.Sqlmock) {
			m.ExpectQuery(showKeys).WillReturnRows(key([]driver.Value{"0", "u", 1, "owner"}, []driver.Value{"1", "i", 1, "holder"}, both[0], both[1]))
			created(m)
		}, nil},
		"none": {func(m sqlmock.Sqlmock) { m.ExpectQuery(showKeys).WillReturnRows(key()) }, errTable},
		"not unique": {func(m sqlmock.Sqlmock) {
			m.ExpectQuery(showKeys).WillReturnRows(key([]driver.Value{"1", "i", 1, "namespace"}, []driver.Value{"1", "i", 2, "worker_id"}))
		}, errTable},
		"of more": {func(m sqlmock.Sqlmock) {
			m.ExpectQuery(showKeys).WillReturnRows(key(both[0], both[1], []driver.Value{"0", "PRIMARY", 3, "owner"}))
		}, errTable},
		"of others first": {func(m sqlmock.Sqlmock) {
			m.ExpectQuery(showKeys).WillReturnRows(key([]driver.Value{"0", "PRIMARY", 1, "owner"}, []driver.Value{"0", "PRIMARY", 2, "worker_id"}))
		}, errTable},
		"not readable": {func(m sqlmock.Sqlmock) { m.ExpectQuery(showKeys).WillReturnError(errAway) }, errAway},
		"broken off":   {func(m sqlmock.Sqlmock) { m.ExpectQuery(showKeys).WillReturnRows(key(both...).RowError(1, errAway)) }, errAway},
		"missing": {func(m sqlmock.Sqlmock) {
			m.ExpectQuery(showKeys).WillReturnError(missing)
			m.ExpectExec(tableDDL("`t`")).WillReturnResult(sqlmock.NewResult(0, 0))
			m.ExpectQuery(showKeys).WillReturnRows(key(both...))
			created(m)
		}, nil},
		"missing, and may not be made": {func(m sqlmock.Sqlmock) {
			m.ExpectQuery(showKeys).WillReturnError(missing)
			m.ExpectExec(tableDDL("`t`")).WillReturnError(numbered(sqlerr.TableDenied))
		}, errTable},
		"missing, and away then": {func(m sqlmock.Sqlmock) {
			m.ExpectQuery(showKeys).WillReturnError(missing)
			m.ExpectExec(tableDDL("`t`")).WillReturnError(errAway)
		}, errAway},
	} {
		t.Run(name, func(t *testing.T) {
			s, mock := mockedStore(t, false)
			tt.script(mock)
			swapped, err := s.CompareAndSet(t.Context(), 3, Record{}, recordTwo)
			checkError(t, err, tt.want)
			if swapped != (tt.want == nil) || s.keyed.Load() != swapped {
				t.Errorf("have: %v, the key is known: %v\nwant: %v", swapped, s.keyed.Load(), tt.want == nil)
			}
		})
	}
}

// The server's time is zero where it has none, and an error where it does not answer.
func TestSQLStore_now(t *testing.T) {
	for _, tt := range []struct {
		ms   driver.Value
		err  error
		want time.Time
	}{{int64(5000), nil, time.UnixMilli(5000)}, {int64(1), nil, time.UnixMilli(1)}, {int64(0), nil, time.Time{}},
		{int64(-1), nil, time.Time{}}, {nil, nil, time.Time{}}, {nil, errAway, time.Time{}}} {
		s, mock := mockedStore(t, true)
		q := mock.ExpectQuery(selectNow)
		if tt.err != nil {
			q.WillReturnError(tt.err)
		} else {
			q.WillReturnRows(sqlmock.NewRows([]string{"ms"}).AddRow(tt.ms))
		}
		if have, err := s.now(t.Context()); !errors.Is(err, tt.err) || tt.err == nil && err != nil || !have.Equal(tt.want) {
			t.Errorf("%v, %v\nhave: %v, %v\nwant: %v", tt.ms, tt.err, have, err, tt.want)
		}
	}
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
			clock, apart, away := &fixedClock{ms: start}, c.apart, c.err
			store := &oneRecord{now: func(context.Context) (time.Time, error) { return clock.Now().Add(apart), away }}
			a := assign(store, config{Clock: clock, MaxClockAhead: time.Minute})
			if _, err := a.acquire(t.Context(), 0); !c.want(err) {
				t.Errorf("a first worker ID\nhave: %v", err)
			}

			apart, away, store.record = 0, nil, Record{}
			l := must.Get(a.acquire(t.Context(), 0))(t)
			limit := l.Limit()
			apart, away = c.apart, c.err
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
	clock, apart, times := &fixedClock{ms: start}, time.Duration(0), 0
	store := &oneRecord{now: func(context.Context) (time.Time, error) { times++; return clock.Now().Add(apart), nil }}
	_, l := byHand(t, store, config{Clock: clock})
	for range 200 {
		clock.ms += 3000
		must.Do(t, l.keep(t.Context()))
	}
	if times > 4 {
		t.Errorf("the store's clock was asked %d times in 10 minutes\nwant: 3, or one more", times)
	}
	limit := l.Limit()
	var err error
	for range 3 { // each step alone is allowed
		clock.ms += 2 * 60_000
		apart -= 2 * time.Minute
		err = l.keep(t.Context())
	}
	if !isClockError(err) || l.Limit() > limit+5*60_000 {
		t.Errorf("three steps of two minutes\nhave: %v, limit %v further\nwant: a clockError", err, l.Limit()-limit)
	}
}

// If the store's clock is an hour behind, the processes of a fleet continue: the record of
// another machine's holder shows that their time is right. A holder on the same machine shows
// nothing.
func TestClock_wrongOneOfTheStore(t *testing.T) {
	clock := &fixedClock{ms: 1_790_000_000_000}
	for holder, want := range map[string]bool{"elsewhere pid 1": true, holderName(): false} {
		store := &oneRecord{now: func(context.Context) (time.Time, error) { return clock.Now().Add(-time.Hour), nil }}
		store.record = Record{Owner: "x", ReservedUntil: clock.ms + 5000, Holder: holder, Since: clock.ms}
		a := assign(store, config{Clock: clock})
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
	db := must.Open(t, "mysql", server.DSN())
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
	// Stores ignore a DSN's timestamp. The server sets it, for users that don't administer it.
	must.Get(db.Exec("CREATE USER app"))(t)
	must.Get(db.Exec("GRANT SELECT, INSERT, CREATE ON mysql.* TO app"))(t)
	for _, zone := range []string{"SYSTEM", "Berlin", "+05:30"} {
		for _, at := range []time.Time{end.Add(-2 * time.Hour), end.Add(-time.Millisecond), end, end.Add(30 * time.Minute), end.Add(2 * time.Hour)} {
			c := must.Get(mysql.ParseDSN(server.DSN()))(t)
			c.User, c.Passwd, c.DBName = "app", "", "mysql"
			c.Params = map[string]string{"time_zone": "'" + zone + "'"}
			must.Get(db.Exec(fmt.Sprintf("SET GLOBAL init_connect = 'SET timestamp = %.3f'", float64(at.UnixMilli())/1000)))(t)
			store, info, err := NewSQLStore(c.FormatDSN(), defaultTable, "ns")
			must.Do(t, err)
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
				a.renew = nil
				l := must.Get(a.acquire(t.Context(), 3))(t, "a first start")
				c.then(clock, a, l)
				if c.other {
					r := Record{Owner: "x", ReservedUntil: a.now() + 5000, Holder: "elsewhere pid 1", Since: a.now()}
					must.Equal(t, must.Get(store.CompareAndSet(t.Context(), 3, Record{}, r))(t), true)
				}
				if err := l.keep(t.Context()); err != nil || l.Limit() < a.now() {
					t.Errorf("have: %v\nwant: a renewal", err)
				}
				later := assign(store, config{Clock: testclock.New(clock.Off() + month)})
				later.renew = nil
				must.Get(later.acquire(t.Context(), 3))(t, "a start a month later")
			})
		})
	}
}
