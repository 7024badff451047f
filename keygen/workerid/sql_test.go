package workerid_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/memory"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
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
		"interpolate":     "interpolateParams=true",
	} {
		t.Run(name, func(t *testing.T) {
			workeridtest.TestStore(t, func(t testing.TB) workeridtest.Namespace {
				db := testserver.Database(t)
				dsn := withParams(db, params)
				return workeridtest.Namespace{
					Open: func() (workerid.Store, workerid.Info) { return workerid.Open(mustSQL(t, dsn, "shardkey_worker")) },
					PutForeign: func(id int64) {
						exec(t, db, fmt.Sprintf("INSERT INTO shardkey_worker VALUES ('orders', %d, '', 0, 0, 'not ours', 0)", id))
					},
				}
			})
		})
	}
}

// Parameters that a DSN sets for its application don't change leases.
func TestSQLStore_parameters(t *testing.T) {
	if testserver.Each(t, TestSQLStore_parameters) {
		return
	}
	db := testserver.Database(t)
	for i, param := range testserver.Params {
		table := fmt.Sprintf("worker_%d", i)
		a := workerid.Assign(t, mustSQL(t, withParams(db, param), table), patient)
		for id := range int64(3) {
			lease := must.Get(a.AcquireWorkerID(t.Context(), 2))(t, param)
			must.Equal(t, lease.WorkerID(), id, "worker ID", param)
			must.Do(t, lease.Renew(t.Context(), lease.Limit()), param)
		}
		must.Is(t, must.Err(a.AcquireWorkerID(t.Context(), 2)), spi.ErrNoWorkerID, param)
		list := must.Get(a.ListWorkerIDs(t.Context()))(t, param)
		if len(list.List) != 3 || list.List[2].State != "held" || list.ClockAhead.Abs() > time.Minute {
			t.Errorf("%s\nhave: %+v\nwant: 3 held worker IDs, and the server's clock", param, list)
		}
		if server := must.Get(a.Store().(interface {
			ServerID(context.Context) (string, error)
		}).ServerID(t.Context()))(t); server == "" {
			t.Errorf("%s\nhave: no name of the server", param)
		}
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

// patient is a configuration with which operations may take as long as a busy server needs.
var patient = workerid.Config{Lease: time.Hour, Renew: time.Hour / 2}

func mustSQL(t testing.TB, dsn, table string) workerid.Store {
	t.Helper()
	s, _, err := workerid.NewSQLStore(dsn, table, "orders")
	must.Do(t, err)
	return s
}

// userOf creates a user with privileges on a database until the test ends. Its password is
// secret-word.
func userOf(t *testing.T, dsn, prefix, privileges string) *mysql.Config {
	t.Helper()
	c := must.Get(mysql.ParseDSN(dsn))(t)
	user := prefix + c.DBName[max(0, len(c.DBName)-14):]
	exec(t, dsn, "CREATE USER "+user+" IDENTIFIED BY 'secret-word'")
	t.Cleanup(func() { exec(t, dsn, "DROP USER "+user) })
	exec(t, dsn, fmt.Sprintf("GRANT %s ON %s.* TO %s", privileges, c.DBName, user))
	c.User, c.Passwd = user, "secret-word"
	return c
}

// A user without the privilege to create the table gets the statement to run.
func TestSQLStore_mayNotCreateTable(t *testing.T) {
	if testserver.Each(t, TestSQLStore_mayNotCreateTable) {
		return
	}
	dsn := testserver.Database(t)
	c := userOf(t, dsn, "u_", "SELECT, INSERT, UPDATE")

	a := workerid.Assign(t, mustSQL(t, c.FormatDSN(), "shardkey_worker"), patient)
	_, err := a.AcquireWorkerID(t.Context(), 1023)
	var table *workerid.TableError
	if !errors.As(err, &table) || !errors.Is(err, spi.ErrStore) || strings.Contains(err.Error(), "secret-word") {
		t.Fatalf("have: %v\nwant: a TableError without the password", err)
	}
	for _, want := range []string{"CREATE TABLE", "GRANT SELECT, INSERT, UPDATE ON `shardkey_worker`"} {
		must.Contain(t, err.Error(), want, err)
	}
	if strings.ContainsAny(err.Error(), "\n\"") {
		t.Errorf("a log would escape the statements in %q", err)
	}
	exec(t, dsn, table.DDL)
	lease, err := a.AcquireWorkerID(t.Context(), 1023)
	if err != nil || lease.WorkerID() != 0 {
		t.Errorf("after running the DDL\nhave: %v, %v\nwant: worker ID 0", lease, err)
	}
	if d := a.Describe(); strings.Contains(d, "secret-word") || strings.Contains(d, c.User) {
		t.Errorf("Describe tells too much: %s", d)
	}
}

// A user who may insert a row and not update it gets no lease, which could not be renewed, and leaves
// no record.
func TestSQLStore_mayNotUpdate(t *testing.T) {
	if testserver.Each(t, TestSQLStore_mayNotUpdate) {
		return
	}
	dsn := testserver.Database(t)
	c := userOf(t, dsn, "n_", "SELECT, INSERT, CREATE")

	a := workerid.Assign(t, mustSQL(t, c.FormatDSN(), "shardkey_worker"), patient)
	for range 2 {
		_, err := a.AcquireWorkerID(t.Context(), 1023)
		if !errors.As(err, new(*workerid.TableError)) || !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "GRANT SELECT, INSERT, UPDATE ON") {
			t.Fatalf("have: %v\nwant: a TableError that names the privileges", err)
		}
	}
	exec(t, dsn, "GRANT UPDATE (owner, reserved_until, free_from, holder, since) ON "+c.DBName+".shardkey_worker TO "+c.User)
	if lease, err := a.AcquireWorkerID(t.Context(), 1023); err != nil || lease.WorkerID() != 0 {
		t.Errorf("after the GRANT\nhave: %v, %v\nwant: worker ID 0", lease, err)
	}
}

// A server that refuses writes may be the old primary. The store leaves the connection, so that it
// finds the new one.
func TestSQLStore_leavesAReadOnlyServer(t *testing.T) {
	if testserver.Each(t, TestSQLStore_leavesAReadOnlyServer) {
		return
	}
	dsn := testserver.Database(t)
	variable := "tx_read_only"
	if testserver.KindOf(t) == testserver.KindMySQL {
		variable = "transaction_read_only"
	}
	s := mustSQL(t, dsn, "shardkey_worker")
	defer s.Close()
	record := workerid.Record{Owner: "me", ReservedUntil: 9}
	must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 0, workerid.Record{}, record))(t), true)
	old := mustSQL(t, withParams(dsn, variable+"=1"), "shardkey_worker")
	defer old.Close()
	_, err := old.CompareAndSet(t.Context(), 0, record, workerid.Record{Owner: "you", ReservedUntil: 10})
	must.Is(t, err, driver.ErrBadConn)
}

// The settings with which the server may lose leases are warnings.
func TestSQLStore_warnings(t *testing.T) {
	if testserver.Each(t, TestSQLStore_warnings) {
		return
	}
	server := testserver.StartSQL(t)
	exec(t, server.DSN(), "CREATE DATABASE leases")
	c := must.Get(mysql.ParseDSN(server.DSN()))(t)
	c.DBName = "leases"
	for _, tt := range []struct {
		flush, engine, table string
		want                 []string
	}{
		{"1", "", "shardkey_worker", nil}, // no table yet
		{"1", "InnoDB", "leases.shardkey_worker", nil},
		{"0", "InnoDB", "shardkey_worker", []string{"innodb_flush_log_at_trx_commit 0"}},
		{"2", "MyISAM", "shardkey_worker", []string{"innodb_flush_log_at_trx_commit 2", "engine MyISAM"}},
		{"1", "MyISAM", "leases.shardkey_worker", []string{"engine MyISAM"}},
	} {
		exec(t, c.FormatDSN(), "SET GLOBAL innodb_flush_log_at_trx_commit = "+tt.flush)
		if tt.engine != "" {
			exec(t, c.FormatDSN(), "ALTER TABLE shardkey_worker ENGINE="+tt.engine)
		}
		var log must.Log
		a := workerid.Assign(t, mustSQL(t, c.FormatDSN(), tt.table), workerid.Config{Lease: patient.Lease, Renew: patient.Renew, Logger: log.Logger()})
		must.Get(a.AcquireWorkerID(t.Context(), 1023))(t)
		have := a.Health().Warnings
		logged := strings.Count(log.String(), "may not be unique")
		for i, want := range tt.want {
			if i >= len(have) || !strings.Contains(have[i], want) || !strings.Contains(log.String(), want) {
				t.Errorf("%+v\nhave: %q, logged %s", tt, have, &log)
			}
		}
		if len(have) != len(tt.want) || logged != len(tt.want) {
			t.Errorf("%+v\nhave: %q, %d logged", tt, have, logged)
		}
	}
}

// Processes whose generators have different layouts or epochs in one namespace are warned. Those that
// use more or fewer generators of a rule aren't.
func TestSQLStore_layoutsOfANamespace(t *testing.T) {
	if testserver.Each(t, TestSQLStore_layoutsOfANamespace) {
		return
	}
	dsn := testserver.Database(t)
	type props = map[string]any
	for i, tt := range []struct {
		generators []props
		want       string // the layouts of the process before
	}{
		{[]props{{}}, ""},
		{[]props{{}}, ""},
		{[]props{{}, {"layout": "41-9-13"}}, ""},
		{[]props{{"layout": "41-9-13"}}, ""},
		{[]props{{}, {"layout": "41-9-13"}}, ""},
		{[]props{{"epoch": "2020-01-01"}}, "41-10-12"},
		{[]props{{"epoch": "2020-01-01"}}, ""},
		{[]props{{"epoch": "2020-01-01"}, {"layout": "41-9-13"}}, ""},
		{[]props{{"epoch": "2020-01-01"}, {"layout": "30-9-13", "tick": "1s"}}, "41-9-13"},
	} {
		a := workerid.Assign(t, mustSQL(t, dsn, "shardkey_worker"), patient)
		var last workerid.Snowflake
		for _, p := range tt.generators {
			g := must.Get(workerid.NewSnowflake(a, spi.Host{}, 1, p))(t)
			last = g
		}
		must.Get(last.Next(t.Context()))(t)
		text := ""
		for _, w := range last.Health().Warnings {
			if strings.Contains(w, "keys of one column can repeat") {
				text += w
			}
		}
		if (text != "") != (tt.want != "") || !strings.Contains(text, tt.want) {
			t.Errorf("process %d\nhave: %q\nwant: a warning of %q", i, text, tt.want)
		}
		_ = last.Close()
	}
}

func TestSQLStore_tableOfAnotherSchema(t *testing.T) {
	if testserver.Each(t, TestSQLStore_tableOfAnotherSchema) {
		return
	}
	dsn := testserver.Database(t)
	c := must.Get(mysql.ParseDSN(dsn))(t)
	schema := c.DBName
	c.DBName = ""
	s := mustSQL(t, c.FormatDSN(), schema+".odd`name")
	defer s.Close()
	record := workerid.Record{Owner: "me", ReservedUntil: 9}
	must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 0, workerid.Record{}, record))(t), true)
}

func TestSQLStore_refuses(t *testing.T) {
	for name, c := range map[string]struct{ dsn, table, prop string }{
		"not a DSN":     {"host:1/secret-word", "t", "dsn"},
		"no database":   {"u:secret-word@tcp(h:1)/", "t", "dsn"},
		"three parts":   {"u:secret-word@tcp(h:1)/d", "a.b.c", "table"},
		"empty part":    {"u:secret-word@tcp(h:1)/d", "a.", "table"},
		"a zero":        {"u:secret-word@tcp(h:1)/d", "a\x00b", "table"},
		"no such TLS":   {"u:secret-word@tcp(h:1)/d?tls=nobody", "t", "dsn"},
		"name too long": {"u:secret-word@tcp(h:1)/d", strings.Repeat("x", 65), "table"},
	} {
		_, _, err := workerid.NewSQLStore(c.dsn, c.table, "orders")
		if prop, ok := errors.AsType[*spi.PropError](err); !ok || prop.Name != c.prop || strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%s\nhave: %v\nwant: a PropError of %s without the password", name, err, c.prop)
		}
	}
}

const primaryKey = "PRIMARY KEY (namespace, worker_id)"

// tableWith returns the table's statement with old replaced by changed.
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
	a := workerid.Assign(t, mustSQL(t, dsn, "shardkey_worker"), patient)
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

// A table that was created manually or restored may lack its key. Then each process would
// insert another row, and all of them would hold worker ID 0.
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
			exec(t, dsn, tableWith(t, primaryKey, c.key))
			err := acquire(t, dsn)
			if c.good {
				if err != nil {
					t.Errorf("have: %v\nwant: a lease", err)
				}
				return
			}
			table := wantTableError(t, "Acquire", err)
			exec(t, dsn, table.DDL)
			must.Do(t, acquire(t, dsn), "after running", table.DDL)
		})
	}
}

// Without a strict mode the server would truncate values, and with autocommit off it would lose
// them. The store doesn't depend on these settings of the server or the DSN.
func TestSQLStore_serverWithOtherDefaults(t *testing.T) {
	if testserver.Each(t, TestSQLStore_serverWithOtherDefaults) {
		return
	}
	server := testserver.StartSQL(t, "--autocommit=0", "--sql-mode=")
	exec(t, server.DSN(), "SET autocommit=1", "CREATE DATABASE good", "CREATE DATABASE narrow")

	good := server.DSN() + "good"
	s := mustSQL(t, good, "shardkey_worker")
	r := workerid.Record{Owner: "me", ReservedUntil: 9}
	must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 0, workerid.Record{}, r))(t), true)
	next := workerid.Record{Owner: "me again", ReservedUntil: 10}
	must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 0, r, next))(t), true)
	must.Do(t, s.Close())
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
	must.Is(t, acquire(t, server.DSN()+"narrow"), spi.ErrStore, "reserved_until FLOAT")
}

// exec runs statements on one connection.
func exec(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	db := must.Get(sql.Open("mysql", dsn))(t)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		must.Get(db.Exec(s))(t, s)
	}
}

// A server is killed, down, and started again. The lease is valid until its limit, reports the
// outage, and continues afterwards.
func TestSQLStore_serverKilledAndBack(t *testing.T) {
	if testserver.Each(t, TestSQLStore_serverKilledAndBack) {
		return
	}
	server := testserver.StartSQL(t)
	exec(t, server.DSN(), "CREATE DATABASE w")
	store := mustSQL(t, server.DSN()+"w", "shardkey_worker")
	a := workerid.Assign(t, store, patient)
	l := mustAcquire(t, a, 1023)
	limit := l.Limit()

	server.Kill()
	if err := l.Renew(t.Context(), limit); !errors.Is(err, spi.ErrStore) || errors.Is(err, spi.ErrLeaseLost) {
		t.Errorf("Renew while the server is unavailable\nhave: %v\nwant: spi.ErrStore", err)
	}
	must.Is(t, must.Err(a.AcquireWorkerID(t.Context(), 1023)), spi.ErrStore, "Acquire while the server is unavailable")
	wantMS(t, "limit", l.Limit(), limit)
	if h := a.Health(); h.Err == nil || h.Lease.Limit.UnixMilli() != limit {
		t.Errorf("health\nhave: %+v\nwant: an error and the limit", h)
	}

	server.Start()
	if err := l.Renew(t.Context(), limit); err != nil || l.Limit() <= limit {
		t.Errorf("Renew when the server is back\nhave: %v, limit %d\nwant: one beyond %d", err, l.Limit(), limit)
	}
	if other := mustAcquire(t, a, 1023); other.WorkerID() == l.WorkerID() {
		t.Errorf("worker ID %d twice: the server forgot a lease", l.WorkerID())
	}
	must.Do(t, a.Health().Err)
}

// docs/understand/leases.md shows the same statement as errors.
func TestTableDDL_isInTheDocs(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/understand/leases.md"))(t)
	must.Contain(t, string(page), workerid.TableDDL("`shardkey_worker`"), "docs/understand/leases.md lacks")
}

// lister returns an assigner as a rule creates it.
func lister(t *testing.T, typ string, values map[string]any) spi.WorkerIDLister {
	t.Helper()
	values["lease"], values["renew"] = patient.Lease.String(), patient.Renew.String()
	return must.Get(build(t, typ, spi.Host{}, values))(t).(spi.WorkerIDLister)
}

// List creates no directory.
func TestList_fileMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "workers")
	list, err := lister(t, "FILE", map[string]any{"path": dir}).ListWorkerIDs(t.Context())
	if _, stat := os.Stat(dir); err != nil || len(list.List) > 0 || !errors.Is(stat, os.ErrNotExist) {
		t.Errorf("have: %v, %v, %v\nwant: nothing, and nothing made", list, err, stat)
	}
}

// List creates no table, and needs only the privilege to read.
func TestList_sqlMayOnlyRead(t *testing.T) {
	if testserver.Each(t, TestList_sqlMayOnlyRead) {
		return
	}
	dsn := testserver.Database(t)
	c := userOf(t, dsn, "r_", "SELECT")
	reader := func() spi.WorkerIDLister { return lister(t, "SQL", map[string]any{"dsn": c.FormatDSN()}) }
	if list, err := reader().ListWorkerIDs(t.Context()); err != nil || len(list.List) > 0 {
		t.Errorf("without a table\nhave: %v, %v\nwant: nothing", list, err)
	}
	// This fails if the table exists. A table that was made manually may permit NULL.
	exec(t, dsn, tableWith(t, "free_from      BIGINT NOT NULL", "free_from BIGINT"),
		"INSERT INTO shardkey_worker VALUES ('shardkey', 7, 'x', 1, NULL, 'host pid 1', 1)")
	if list, err := reader().ListWorkerIDs(t.Context()); err != nil || len(list.List) != 1 || list.List[0].ID != 7 || list.List[0].State != "expired" {
		t.Errorf("have: %v, %v\nwant: worker ID 7, expired", list, err)
	}
}

// The test lists each state, by this machine's clock.
func TestList_states(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(memory.Records)
		now := time.Now().UnixMilli()
		const second, day = 1000, 24 * 3600 * 1000
		for id, r := range []workerid.Record{
			{Owner: "a", ReservedUntil: now + 1, Holder: "held", Since: now - second},
			{Owner: "b", ReservedUntil: now + 10*second, FreeFrom: now + second, Holder: "free"},
			{Owner: "c", ReservedUntil: now, Holder: "expired"},
			{Owner: "d", ReservedUntil: now + day, Holder: "held"},
			{Owner: "e", ReservedUntil: now + day + 1, Holder: "ahead"},
			{Owner: "f", ReservedUntil: now + 2*day, FreeFrom: now + 2*day, Holder: "ahead"},
			{Owner: "g", ReservedUntil: now + second, FreeFrom: 1, Holder: "free"}, // written before a first lease
		} {
			m.Put(int64(id), r)
		}
		a := workerid.Assign(t, m.Open(), workerid.Config{})
		list, err := a.ListWorkerIDs(t.Context())
		if err != nil || len(list.List) != 7 || list.ClockAhead != nil || list.Store != "TEST namespace=shardkey" {
			t.Fatalf("have: %+v, %v", list, err)
		}
		for i, id := range list.List {
			if id.ID != int64(i) || id.State != id.Holder || id.Free() != (id.State == "free" || id.State == "expired") {
				t.Errorf("have: %+v\nwant: worker ID %d, state %s", id, i, id.Holder)
			}
		}
		if id := list.List[0]; id.Since.UnixMilli() != now-second || id.ReservedUntil.UnixMilli() != now+1 || !id.FreeFrom.IsZero() {
			t.Errorf("have: %+v", id)
		}
		if id := list.List[6]; !id.FreeFrom.IsZero() {
			t.Errorf("have: %+v\nwant: no time of a lease", id)
		}
		broken := errors.New("broken")
		m.SetAway(broken)
		time.Sleep(5 * time.Second)
		if _, err := a.ListWorkerIDs(t.Context()); !errors.Is(err, broken) || !errors.Is(err, spi.ErrStore) {
			t.Errorf("have: %v\nwant: %v and spi.ErrStore", err, broken)
		}
	})
}

// List returns a record that it doesn't understand with an error.
func TestList_foreign(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(dir, "shardkey"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, "shardkey", "0003.json"), []byte("nothing"), 0o600))
	list, err := lister(t, "FILE", map[string]any{"path": dir}).ListWorkerIDs(t.Context())
	if err != nil || len(list.List) != 1 || list.List[0].State != "unknown" || list.List[0].Err == nil {
		t.Errorf("have: %+v, %v\nwant: worker ID 3, unknown", list, err)
	}
}
