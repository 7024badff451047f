package workerid_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

// newFromProps returns an assigner as a rule creates it.
func newFromProps(t *testing.T, typ string, values map[string]any) spi.WorkerIDAssigner {
	t.Helper()
	p := must.Get(spi.NewProps(values, spi.Host{}))(t)
	a := must.Get(spi.NewWorkerIDAssigner(typ, p))(t)
	return a
}

// List creates no directory.
func TestList_fileMakesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "workers")
	list, err := newFromProps(t, "FILE", map[string]any{"path": dir}).(spi.WorkerIDLister).ListWorkerIDs(t.Context())
	if _, stat := os.Stat(dir); err != nil || len(list.List) > 0 || !errors.Is(stat, os.ErrNotExist) {
		t.Errorf("have: %v, %v, %v\nwant: nothing, and nothing made", list, err, stat)
	}
}

// List creates no table, and needs only the privilege to read.
func TestList_sqlMayOnlyRead(t *testing.T) {
	if testserver.EachAndOldest(t, TestList_sqlMayOnlyRead) {
		return
	}
	dsn := testserver.Database(t)
	c := must.Get(mysql.ParseDSN(dsn))(t)
	user := "r_" + c.DBName[max(0, len(c.DBName)-14):]
	mustExec(t, dsn, "CREATE USER %s IDENTIFIED BY 'secret-word'", user)
	t.Cleanup(func() { mustExec(t, dsn, "DROP USER %s", user) })
	mustExec(t, dsn, "GRANT SELECT ON %s.* TO %s", c.DBName, user)
	c.User, c.Passwd = user, "secret-word"
	reader := newFromProps(t, "SQL", map[string]any{"dsn": c.FormatDSN()}).(spi.WorkerIDLister)
	if list, err := reader.ListWorkerIDs(t.Context()); err != nil || len(list.List) > 0 {
		t.Errorf("without a table\nhave: %v, %v\nwant: nothing", list, err)
	}
	mustExec(t, dsn, "%s", workerid.TableDDL("shardkey_worker")) // fails if the table exists
	mustExec(t, dsn, "INSERT INTO shardkey_worker VALUES ('shardkey', 7, 'x', 1, 0, 'host pid 1', 1)")
	if list, err := reader.ListWorkerIDs(t.Context()); err != nil || len(list.List) != 1 || list.List[0].ID != 7 || list.List[0].State != "expired" {
		t.Errorf("have: %v, %v\nwant: worker ID 7, expired", list, err)
	}
}

// The test lists each state, by this machine's clock.
func TestList_states(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
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
	list, err := newFromProps(t, "FILE", map[string]any{"path": dir}).(spi.WorkerIDLister).ListWorkerIDs(t.Context())
	if err != nil || len(list.List) != 1 || list.List[0].State != "unknown" || list.List[0].Err == nil {
		t.Errorf("have: %+v, %v\nwant: worker ID 3, unknown", list, err)
	}
}

func TestList_fixed(t *testing.T) {
	list, err := newFromProps(t, "STATIC", map[string]any{"worker-id": "5"}).(spi.WorkerIDLister).ListWorkerIDs(t.Context())
	if err != nil || len(list.List) != 1 || list.List[0].ID != 5 || list.List[0].State != "fixed" || list.Store != "STATIC worker-id=5" {
		t.Errorf("have: %+v, %v\nwant: worker ID 5, fixed", list, err)
	}
}
