package workerid_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

func TestSQLStore_conforms(t *testing.T) {
	if testserver.Each(t, TestSQLStore_conforms) {
		return
	}
	for name, params := range map[string]string{
		"plain":           "",
		"clientFoundRows": "clientFoundRows=true",
		"autocommit off":  "autocommit=0",
		"interpolate":     "interpolateParams=true",
		"latin1":          "charset=latin1",
	} {
		t.Run(name, func(t *testing.T) {
			workeridtest.TestStore(t, func(t testing.TB) workeridtest.Namespace {
				db := testserver.Database(t)
				dsn := withParams(db, params)
				return workeridtest.Namespace{
					Open: func() (workerid.Store, workerid.Info) { return workerid.Open(mustSQL(t, dsn, "shardkey_worker")) },
					PutForeign: func(id int64) {
						mustExec(t, db, "INSERT INTO shardkey_worker VALUES ('orders', %d, '', 0, 0, 'not ours', 0)", id)
					},
				}
			})
		})
	}
}

func withParams(dsn, params string) string {
	switch {
	case params == "":
		return dsn
	case strings.Contains(dsn, "?"):
		return dsn + "&" + params
	}
	return dsn + "?" + params
}

func mustSQL(t testing.TB, dsn, table string) workerid.Store {
	t.Helper()
	s, _, err := workerid.NewSQLStore(dsn, table, "orders")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustExec(t testing.TB, dsn, format string, args ...any) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(fmt.Sprintf(format, args...)); err != nil {
		t.Fatal(err)
	}
}

// Namespaces of one table have nothing in common, not even where their records are
// the same.
func TestSQLStore_namespacesAreApart(t *testing.T) {
	if testserver.Each(t, TestSQLStore_namespacesAreApart) {
		return
	}
	dsn := testserver.Database(t)
	first, second := workerid.Record{Owner: "1", ReservedUntil: 1}, workerid.Record{Owner: "2", ReservedUntil: 2}
	var stores []workerid.Store
	for _, namespace := range []string{"orders", "items"} {
		s, _, err := workerid.NewSQLStore(dsn, "shardkey_worker", namespace)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := s.CompareAndSet(t.Context(), 0, workerid.Record{}, first); !ok || err != nil {
			t.Fatalf("%s\nhave: %v, %v\nwant: a record of its own", namespace, ok, err)
		}
		stores = append(stores, s)
	}
	if ok, err := stores[0].CompareAndSet(t.Context(), 0, first, second); !ok || err != nil {
		t.Errorf("have: %v, %v\nwant: written", ok, err)
	}
	for i, want := range []workerid.Record{second, first} {
		if have, err := stores[i].Get(t.Context(), 0); err != nil || !have.Same(want) {
			t.Errorf("store %d\nhave: %v, %v\nwant: %v", i, have, err, want)
		}
		if entries, err := stores[i].List(t.Context()); err != nil || len(entries) != 1 {
			t.Errorf("store %d\nhave: %v, %v\nwant: its one record", i, entries, err)
		}
	}
}

// A user without the right to make the table is told the statement to run.
func TestSQLStore_mayNotCreateTable(t *testing.T) {
	if testserver.Each(t, TestSQLStore_mayNotCreateTable) {
		return
	}
	dsn := testserver.Database(t)
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	user := "u_" + c.DBName[max(0, len(c.DBName)-20):]
	mustExec(t, dsn, "CREATE USER %s IDENTIFIED BY 'secret-word'", user)
	t.Cleanup(func() { mustExec(t, dsn, "DROP USER %s", user) })
	mustExec(t, dsn, "GRANT SELECT, INSERT, UPDATE ON %s.* TO %s", c.DBName, user)
	c.User, c.Passwd = user, "secret-word"

	a := workerid.Assign(t, mustSQL(t, c.FormatDSN(), "shardkey_worker"), workerid.Config{})
	_, err = a.AcquireWorkerID(t.Context(), 1023)
	var table *workerid.TableError
	if !errors.As(err, &table) || !errors.Is(err, spi.ErrStore) || strings.Contains(err.Error(), "secret-word") {
		t.Fatalf("have: %v\nwant: a TableError without the password", err)
	}
	mustExec(t, dsn, "%s", table.DDL)
	lease, err := a.AcquireWorkerID(t.Context(), 1023)
	if err != nil || lease.WorkerID() != 0 {
		t.Errorf("after running the DDL\nhave: %v, %v\nwant: worker id 0", lease, err)
	}
	if d := a.Describe(); strings.Contains(d, "secret-word") || strings.Contains(d, user) {
		t.Errorf("Describe tells too much: %s", d)
	}
}

func TestSQLStore_foreignTable(t *testing.T) {
	if testserver.Each(t, TestSQLStore_foreignTable) {
		return
	}
	dsn := testserver.Database(t)
	mustExec(t, dsn, "CREATE TABLE shardkey_worker (id INT)")
	s := mustSQL(t, dsn, "shardkey_worker")
	defer s.Close()
	var table *workerid.TableError
	if _, err := s.List(t.Context()); !errors.As(err, &table) {
		t.Errorf("have: %v\nwant: a TableError", err)
	}
}

func TestSQLStore_tableOfAnotherSchema(t *testing.T) {
	if testserver.Each(t, TestSQLStore_tableOfAnotherSchema) {
		return
	}
	dsn := testserver.Database(t)
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	schema := c.DBName
	c.DBName = ""
	s := mustSQL(t, c.FormatDSN(), schema+".odd`name")
	defer s.Close()
	if ok, err := s.CompareAndSet(t.Context(), 0, workerid.Record{}, workerid.Record{Owner: "me", ReservedUntil: 9}); !ok || err != nil {
		t.Errorf("have: %v, %v\nwant: true", ok, err)
	}
}

func TestSQLStore_refuses(t *testing.T) {
	for name, c := range map[string]struct{ dsn, table, prop string }{
		"not a DSN":     {"host:1/secret-word", "t", "dsn"},
		"no database":   {"u:secret-word@tcp(h:1)/", "t", "table"},
		"three parts":   {"u:secret-word@tcp(h:1)/d", "a.b.c", "table"},
		"empty part":    {"u:secret-word@tcp(h:1)/d", "a.", "table"},
		"a zero":        {"u:secret-word@tcp(h:1)/d", "a\x00b", "table"},
		"no such TLS":   {"u:secret-word@tcp(h:1)/d?tls=nobody", "t", "dsn"},
		"name too long": {"u:secret-word@tcp(h:1)/d", strings.Repeat("x", 65), "table"},
	} {
		_, _, err := workerid.NewSQLStore(c.dsn, c.table, "orders")
		var prop *spi.PropError
		if !errors.As(err, &prop) || prop.Name != c.prop || strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%s\nhave: %v\nwant: a PropError of %s without the password", name, err, c.prop)
		}
	}
}
