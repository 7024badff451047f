package workerid

import (
	"database/sql/driver"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
)

// mockedStore is a store of a table whose answers a test gives, in order.
func mockedStore(t *testing.T, keyed bool) (*sqlStore, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db.Close()
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
	})
	mock.MatchExpectationsInOrder(true)
	t.Cleanup(func() { mock.ExpectClose() })
	s := &sqlStore{db: db, namespace: "ns", table: "`t`", where: "SQL"}
	s.keyed.Store(keyed)
	return s, mock
}

const (
	selectAll = "SELECT worker_id, owner, reserved_until, free_from, holder, since FROM `t` WHERE namespace = ?"
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
			q.WillReturnRows(recordRows([]driver.Value{3, nil, nil, nil, nil, nil}, values(4, recordTwo)))
		}, []Entry{{WorkerID: 3, Err: errAway}, {WorkerID: 4, Record: recordTwo}}, nil},
		"twice": {func(q *sqlmock.ExpectedQuery) {
			q.WillReturnRows(recordRows(values(3, recordOne), values(3, recordTwo)))
		}, nil, errTable},
		"no table":  {func(q *sqlmock.ExpectedQuery) { q.WillReturnError(numbered(mysqldb.ErrNoSuchTable)) }, nil, nil},
		"no column": {func(q *sqlmock.ExpectedQuery) { q.WillReturnError(numbered(mysqldb.ErrUnknownColumn)) }, nil, errTable},
		"denied":    {func(q *sqlmock.ExpectedQuery) { q.WillReturnError(numbered(mysqldb.ErrTableDenied)) }, nil, errTable},
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
		"another's already": {Record{}, 0, numbered(mysqldb.ErrDuplicateKey), false, nil},
		"not created":       {Record{}, 0, errAway, false, errAway},
		"refused":           {Record{}, 0, numbered(mysqldb.ErrTableDenied), false, errTable},
		"too long":          {Record{}, 0, numbered(mysqldb.ErrDataTooLong), false, errTable},
		"replaced":          {recordOne, 1, nil, true, nil},
		"another's by now":  {recordOne, 0, nil, false, nil},
		"several rows":      {recordOne, 2, nil, false, errTable},
		"not replaced":      {recordOne, 0, errAway, false, errAway},
		"read-only":         {recordOne, 0, numbered(mysqldb.ErrReadOnly), false, numbered(mysqldb.ErrReadOnly)},
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
			if swapped != tt.swapped {
				t.Errorf("have: %v\nwant: %v", swapped, tt.swapped)
			}
			if keyed := name != "several rows"; s.keyed.Load() != keyed {
				t.Errorf("have: the key is known: %v\nwant: %v", s.keyed.Load(), keyed)
			}
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
	missing := numbered(mysqldb.ErrNoSuchTable)
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
			m.ExpectExec(tableDDL("`t`")).WillReturnError(numbered(mysqldb.ErrTableDenied))
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
