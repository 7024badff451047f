package fakedb_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/internal/test/must"
)

func open(t *testing.T, s *fakedb.Server) *sql.DB {
	t.Helper()
	db := sql.OpenDB(s)
	t.Cleanup(func() {
		if err := db.Close(); err != nil || s.Conns != 0 || s.Stmts != 0 {
			t.Errorf("%v, %d connections and %d statements are left", err, s.Conns, s.Stmts)
		}
	})
	return db
}

func TestServer_kinds(t *testing.T) {
	for _, kind := range fakedb.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			s := &fakedb.Server{Kind: kind, Columns: [][2]string{{"id", "bigint"}}}
			db := open(t, s)
			res := must.Get(db.Exec("INSERT INTO t VALUES (?)", 7))(t)
			if n, _ := res.RowsAffected(); n != 1 || fmt.Sprint(s.Sent) != "[INSERT INTO t VALUES (?) [7]]" {
				t.Errorf("have: %d rows, sent %v", n, s.Sent)
			}
			var field, typ, collation, null string
			err := db.QueryRow("SHOW FULL COLUMNS FROM t WHERE Field = 'ID'").Scan(&field, &typ, &collation, &null)
			if err != nil || typ != "bigint" {
				t.Errorf("have: %s, %v\nwant: bigint", typ, err)
			}
			tx, err := db.Begin()
			if err != nil || tx.Rollback() != nil || s.Count("rollback") != 1 {
				t.Errorf("have: %v, %q", err, s.Calls)
			}
		})
	}
}

func TestServer_faults(t *testing.T) {
	lost, refused := errors.New("lost"), &mysql.MySQLError{Number: 1062}
	s := &fakedb.Server{Faults: []fakedb.Fault{
		{At: "INSERT", Skip: 1, Times: 2, Err: refused},
		{At: "INSERT", Err: lost, Done: true},
		{At: "DELETE", Times: -1, Err: refused},
		{At: "UPDATE", Panic: "boom"},
		{At: "ping", Err: driver.ErrBadConn},
	}}
	db := open(t, s)
	for i, want := range []error{nil, refused, refused, lost, nil, nil} {
		must.Is(t, must.Err(db.Exec("INSERT INTO t VALUES (?)", i)), want, i)
	}
	must.Equal(t, fmt.Sprint(s.Sent[0].Args, s.Sent[1].Args, s.Sent[2].Args, s.Sent[3].Args), "[0] [3] [4] [5]")
	for range 3 {
		if _, err := db.Exec("DELETE FROM t"); err != refused {
			t.Errorf("have: %v\nwant: %v", err, refused)
		}
	}
	if err := db.Ping(); err != driver.ErrBadConn || db.Ping() != nil || s.Count("connect") != 2 {
		t.Errorf("have: %v, %q\nwant: another connection", err, s.Calls)
	}
	defer func() {
		if recover() != "boom" {
			t.Error("it did not panic")
		}
	}()
	_, _ = db.Exec("UPDATE t SET a = 1")
}

func TestServer_statements(t *testing.T) {
	s := &fakedb.Server{Kind: fakedb.Skipping, Statements: 1}
	db := open(t, s)
	st := must.Get(db.Prepare("SELECT ?"))(t)
	var full *mysql.MySQLError
	if _, err := db.Exec("DO ?", 1); !errors.As(err, &full) || full.Number != 1461 {
		t.Errorf("have: %v\nwant: error 1461", err)
	}
	must.Do(t, st.Close())
	if _, err := db.Exec("DO ?", 1); err != nil || s.Prepared != 2 {
		t.Errorf("have: %v, %d prepared", err, s.Prepared)
	}
}
