package leaf

import (
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/testserver"
)

// failOver makes the server look like a replica that took the place of another one and
// lacks the last claims.
func failOver(t *testing.T, dsn string, maxID int64) {
	t.Helper()
	db := openDB(t, dsn)
	mustExec(t, db, "UPDATE leaf_alloc SET max_id = ? WHERE biz_tag = 'order'", maxID)
	mustExec(t, db, "UPDATE leaf_alloc SET description = 'the server before' WHERE biz_tag = ?", noteKey("order"))
}

// Numbers that a replica knows nothing of are not given again, neither by processes
// that start after the failover nor by those that were there.
func TestFailover_gap(t *testing.T) {
	if testserver.Each(t, TestFailover_gap) {
		return
	}
	dsn, db := leafDatabase(t, 1, 10)
	old := newGen(t, config{DSN: dsn, FailoverGap: 1000})
	last := int64(0)
	for range 35 {
		last = mustReserve(t, old, 1)
	}
	if n := maxID(t, db); n < last || n > 1000 {
		t.Fatalf("max_id of the first server: %d", n)
	}
	failOver(t, dsn, 11)
	after := newGen(t, config{DSN: dsn, FailoverGap: 1000})
	if first := mustReserve(t, after, 1); first <= last {
		t.Errorf("the first number after the failover\nhave: %d\nwant: above %d", first, last)
	}
	if w := strings.Join(after.Health().Warnings, "\n"); !strings.Contains(w, "raised by 1000") || !strings.Contains(w, "none still reaches the server before") {
		t.Errorf("warnings of the process that saw it: %q", w)
	}
	noted := maxID(t, db)
	another := newGen(t, config{DSN: dsn, FailoverGap: 1000})
	mustReserve(t, another, 1)
	if n := maxID(t, db); n >= noted+1000 {
		t.Errorf("max_id after another process\nhave: %d\nwant: one gap only, below %d", n, noted+1000)
	}
	for range 300 {
		last = mustReserve(t, old, 1)
	}
	if last < 1011 {
		t.Errorf("a number of the old process after the failover\nhave: %d\nwant: of after the gap", last)
	}

	failOver(t, dsn, 11)
	without := newGen(t, config{DSN: dsn})
	if first := mustReserve(t, without, 1); first != 11 {
		t.Errorf("without a gap\nhave: %d\nwant: 11", first)
	}
}

func TestFailover_privileges(t *testing.T) {
	if testserver.Each(t, TestFailover_privileges) {
		return
	}
	dsn, db := leafDatabase(t, 1, 10)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	user := cfg.DBName[len(cfg.DBName)-10:] + "_f"
	mustExec(t, db, "CREATE USER "+user+"@'127.0.0.1' IDENTIFIED BY 'geheim'")
	t.Cleanup(func() { mustExec(t, db, "DROP USER "+user+"@'127.0.0.1'") })
	mustExec(t, db, "GRANT SELECT, UPDATE ON leaf_alloc TO "+user+"@'127.0.0.1'")
	g := newGen(t, config{DSN: dsn, User: user, Password: "geheim", FailoverGap: 1000})
	mustReserve(t, g, 1)
	if w := strings.Join(g.Health().Warnings, "\n"); !strings.Contains(w, "GRANT SELECT, INSERT, UPDATE ON leaf_alloc") {
		t.Errorf("warnings\nhave: %q\nwant: the privilege", w)
	}
	mustExec(t, db, "GRANT INSERT ON leaf_alloc TO "+user+"@'127.0.0.1'")
	g = newGen(t, config{DSN: dsn, User: user, Password: "geheim", FailoverGap: 1000})
	mustReserve(t, g, 1)
	if w := g.Health().Warnings; len(w) > 0 {
		t.Errorf("warnings with the privilege: %q", w)
	}
	if n := maxID(t, db); n > 1000 {
		t.Errorf("max_id\nhave: %d\nwant: no gap on a server that is noted for the first time", n)
	}
}

func TestNoteKey(t *testing.T) {
	for _, key := range []string{"order", strings.Repeat("ö", maxKey)} {
		if n := noteKey(key); len([]rune(n)) > maxKey || checkKey(n) == nil {
			t.Errorf("%q: %q is too long, or could be a key", key, n)
		}
	}
	if a, b := noteKey(strings.Repeat("a", maxKey)), noteKey(strings.Repeat("b", maxKey)); a == b {
		t.Error("two keys have one note")
	}
}
