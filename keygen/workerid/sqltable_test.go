package workerid_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

const primaryKey = "PRIMARY KEY (namespace, worker_id)"

// tableWith is the table's statement with one text in place of another.
func tableWith(t *testing.T, old, changed string) string {
	t.Helper()
	ddl := workerid.TableDDL("shardkey_worker")
	if !strings.Contains(ddl, old) {
		t.Fatalf("the statement has no %q", old)
	}
	return strings.Replace(ddl, old, changed, 1)
}

func acquire(t *testing.T, dsn string) error {
	t.Helper()
	a := workerid.Assign(t, mustSQL(t, dsn, "shardkey_worker"), workerid.Config{})
	t.Cleanup(func() { _ = a.Close() })
	_, err := a.AcquireWorkerID(t.Context(), 1023)
	return err
}

func wantTableError(t *testing.T, what string, err error) *workerid.TableError {
	t.Helper()
	var table *workerid.TableError
	if !errors.As(err, &table) || !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), primaryKey) {
		t.Fatalf("%s\nhave: %v\nwant: a TableError with the statement to run", what, err)
	}
	return table
}

// A table that was made by hand, or restored, may have lost its key. Each process
// would insert a row of its own, and all of them hold worker id 0.
func TestSQLStore_tableWithoutItsKey(t *testing.T) {
	if testserver.Each(t, TestSQLStore_tableWithoutItsKey) {
		return
	}
	for name, c := range map[string]struct {
		key  string
		good bool
	}{
		"no key":                     {"CHECK (worker_id >= 0)", false},
		"a key that is not unique":   {"KEY k (namespace, worker_id)", false},
		"a unique key that has more": {"UNIQUE KEY k (namespace, worker_id, owner)", false},
		"a unique key":               {"PRIMARY KEY (owner), UNIQUE KEY k (worker_id, namespace)", true},
		"a narrower unique key":      {"UNIQUE KEY k (worker_id)", true},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := testserver.Database(t)
			mustExec(t, dsn, "%s", tableWith(t, primaryKey, c.key))
			err := acquire(t, dsn)
			if c.good {
				if err != nil {
					t.Errorf("have: %v\nwant: a lease", err)
				}
				return
			}
			table := wantTableError(t, "Acquire", err)
			mustExec(t, dsn, "%s", table.DDL)
			if err := acquire(t, dsn); err != nil {
				t.Errorf("after running %s\nhave: %v\nwant: a lease", table.DDL, err)
			}
		})
	}
}

// A key that is dropped while processes run shows as soon as a row is doubled.
func TestSQLStore_severalRowsOfOneWorkerID(t *testing.T) {
	if testserver.Each(t, TestSQLStore_severalRowsOfOneWorkerID) {
		return
	}
	for name, use := range map[string]func(workerid.Store, workerid.Record) error{
		"List": func(s workerid.Store, _ workerid.Record) error {
			_, err := s.List(t.Context())
			return err
		},
		"Get": func(s workerid.Store, _ workerid.Record) error {
			_, err := s.Get(t.Context(), 0)
			return err
		},
		"CompareAndSet": func(s workerid.Store, r workerid.Record) error {
			next := r
			next.Owner, next.ReservedUntil = "next", r.ReservedUntil+1
			_, err := s.CompareAndSet(t.Context(), 0, r, next)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := testserver.Database(t)
			s := mustSQL(t, dsn, "shardkey_worker")
			defer s.Close()
			r := workerid.Record{Owner: "me", ReservedUntil: 9}
			if ok, err := s.CompareAndSet(t.Context(), 0, workerid.Record{}, r); !ok || err != nil {
				t.Fatal(ok, err)
			}
			mustExec(t, dsn, "ALTER TABLE shardkey_worker DROP PRIMARY KEY")
			mustExec(t, dsn, "INSERT INTO shardkey_worker SELECT * FROM shardkey_worker")
			wantTableError(t, name, use(s, r))
		})
	}
}

// Without a strict mode the server would cut values off, and with autocommit off
// it would forget them: neither is left to the server's or the address's settings.
func TestSQLStore_serverWithOtherDefaults(t *testing.T) {
	if testserver.Each(t, TestSQLStore_serverWithOtherDefaults) {
		return
	}
	server := testserver.StartSQL(t, "--autocommit=0", "--sql-mode=")
	exec(t, server.DSN(), "SET autocommit=1", "CREATE DATABASE good", "CREATE DATABASE narrow")

	good := server.DSN() + "good"
	s := mustSQL(t, good, "shardkey_worker")
	r := workerid.Record{Owner: "me", ReservedUntil: 9}
	if ok, err := s.CompareAndSet(t.Context(), 0, workerid.Record{}, r); !ok || err != nil {
		t.Fatal(ok, err)
	}
	next := workerid.Record{Owner: "me again", ReservedUntil: 10}
	if ok, err := s.CompareAndSet(t.Context(), 0, r, next); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustSQL(t, good, "shardkey_worker")
	defer again.Close()
	if have, err := again.Get(t.Context(), 0); err != nil || have != next {
		t.Fatalf("after the connection was closed\nhave: %+v, %v\nwant: %+v", have, err, next)
	}

	for _, c := range []struct{ column, narrow string }{
		{"reserved_until BIGINT", "reserved_until INT"},
		{"owner          VARBINARY(64)", "owner VARBINARY(16)"},
		{"holder         VARCHAR(255)", "holder VARCHAR(2)"},
		{"since          BIGINT", "since INT"},
	} {
		exec(t, server.DSN()+"narrow", "SET autocommit=1", "DROP TABLE IF EXISTS shardkey_worker", tableWith(t, c.column, c.narrow))
		wantTableError(t, c.narrow, acquire(t, server.DSN()+"narrow?sql_mode=''"))
	}
	exec(t, server.DSN()+"narrow", "SET autocommit=1", "DROP TABLE IF EXISTS shardkey_worker", tableWith(t, "reserved_until BIGINT", "reserved_until FLOAT"))
	if err := acquire(t, server.DSN()+"narrow"); !errors.Is(err, spi.ErrStore) {
		t.Errorf("reserved_until FLOAT\nhave: %v\nwant: spi.ErrStore", err)
	}
}

// exec runs statements on one connection.
func exec(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}
