package driver

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// leasedRule is a rule over many data sources with leased worker ids of a layout
// that has 16.
func leasedRule(assigner string) string {
	return `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_${0..63}.t_order
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {layout: js53, worker-id-assigner: cluster}}
  workerIdAssigners:
    cluster: ` + assigner + "\n"
}

// shardDSN is the data source of a shard, at an address where nothing listens.
func shardDSN(i int, path string) string {
	return fmt.Sprintf("u%d:p@tcp(127.0.0.1:1)/shard_%d?parseTime=%v&shardkeyRule=%s", i, i, i%2 == 0, path)
}

func openShard(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db := must(sql.Open("shardkey", dsn))(t)
	return db
}

// records lists the worker ids of a FILE store.
func records(t *testing.T, dir string) []string {
	t.Helper()
	files := must(filepath.Glob(filepath.Join(dir, "*", "[0-9]*.json")))(t)
	return files
}

func nextKey(t *testing.T, db *sql.DB) int64 {
	t.Helper()
	keys, err := NextKeys(t.Context(), db, "t_order", 1)
	if err != nil {
		t.Error(err)
		return 0
	}
	return keys[0].(int64)
}

// A database for each shard, or for each tenant: one worker id.
func TestShared_oneLeaseForManyDatabases(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(t.TempDir(), "rule.yaml")
	write(t, path, leasedRule("{type: FILE, props: {path: "+dir+"}}"))
	before := runtime.NumGoroutine()
	var all []*sql.DB
	seen := map[int64]bool{}
	for i := range 64 {
		db := openShard(t, shardDSN(i, path))
		all = append(all, db)
		seen[nextKey(t, db)] = true
	}
	if have := records(t, dir); len(have) != 1 || len(seen) != 64 {
		t.Errorf("have: %d worker ids (%v), %d keys\nwant: 1 and 64", len(have), have, len(seen))
	}
	for i, db := range all {
		if i == 63 && ConnectorOf(db).Stats().Generators[0].Health.WorkerID == nil {
			t.Error("have: no worker id when one database is left\nwant: the one")
		}
		check(t, db.Close())
	}
	waitGoroutines(t, before)
	text, err := os.ReadFile(records(t, dir)[0])
	if err != nil || !strings.Contains(string(text), `"free_from"`) {
		t.Errorf("have: %s, %v\nwant: given back", text, err)
	}
}

// waitGoroutines returns when there are no more of them than before.
func waitGoroutines(t *testing.T, before int) {
	t.Helper()
	for range 1_000_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	buf := make([]byte, 1<<20)
	t.Errorf("goroutines are left: %d, before %d\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}

// Databases are opened and closed at once: no key twice, and nothing stays taken.
func TestShared_openedAndClosedAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(t.TempDir(), "rule.yaml")
	write(t, path, leasedRule("{type: FILE, props: {path: "+dir+"}}"))
	var seen sync.Map
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 8 {
				db, err := sql.Open("shardkey", shardDSN(i, path))
				if err != nil {
					t.Error(err)
					return
				}
				if _, twice := seen.LoadOrStore(nextKey(t, db), true); twice {
					t.Error("a key twice")
				}
				check(t, db.Close())
			}
		})
	}
	wg.Wait()
	for _, path := range records(t, dir) {
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), `"free_from"`) {
			t.Errorf("have: %s, %v\nwant: given back", text, err)
		}
	}
}

// Rules that are others take worker ids of their own, until none is left; the error
// says whose they are.
func TestShared_allTakenByThisProcess(t *testing.T) {
	dir := t.TempDir()
	for i := range 17 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("rule%d.yaml", i))
		write(t, path, leasedRule("{type: FILE, props: {path: "+dir+"}}"))
		db := openShard(t, shardDSN(i, path))
		defer db.Close()
		_, err := NextKeys(t.Context(), db, "t_order", 1)
		switch {
		case i < 16 && err != nil:
			t.Fatal(err)
		case i == 16 && (!errors.Is(err, spi.ErrNoWorkerID) || !strings.Contains(err.Error(), "this very process holds 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 ")):
			t.Errorf("have: %v\nwant: all 16 are this process's", err)
		}
	}
}

func TestShared_stateInEachDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	write(t, path, leasedRule("{type: SQL}"))
	inner, dsnErr := (*rule.Error)(nil), (*DSNError)(nil)
	_, err := sql.Open("shardkey", shardDSN(0, path))
	if !errors.Is(err, rule.ErrOwnDatabase) || !errors.As(err, &inner) || inner.Line != 11 || !errors.As(err, &dsnErr) {
		t.Errorf("several data sources\nhave: %v\nwant: ErrOwnDatabase of line 11", err)
	}
	for name, generator := range map[string]string{
		"SQL":          "{type: SNOWFLAKE, props: {worker-id-assigner: cluster}}\n  workerIdAssigners:\n    cluster: {type: SQL}",
		"LEAF_SEGMENT": "{type: LEAF_SEGMENT, props: {leaf.key: t}}",
		"TICKET":       "{type: TICKET}",
	} {
		text := "rules:\n- !SHARDING\n  tables:\n    t_order:\n      keyGenerateStrategy: {column: id, keyGeneratorName: g}\n  keyGenerators:\n    g: " + generator + "\n"
		write(t, path, text)
		for _, by := range []string{path, "registered"} {
			r, err := rule.Load(path)
			if err == nil {
				err = RegisterRule("registered", r)
			}
			if err != nil {
				t.Fatal(err)
			}
			first := openShard(t, shardDSN(0, by))
			again := openShard(t, strings.Replace(shardDSN(0, by), "u0:p", "other:secret", 1))
			if _, err := sql.Open("shardkey", shardDSN(1, by)); !errors.Is(err, rule.ErrOwnDatabase) || !strings.Contains(err.Error(), "tcp(127.0.0.1:1)/shard_0 and tcp(127.0.0.1:1)/shard_1") {
				t.Errorf("%s by %s\nhave: %v\nwant: ErrOwnDatabase", name, by, err)
			}
			check(t, errors.Join(first.Close(), again.Close()))
			check(t, openShard(t, shardDSN(1, by)).Close())
		}
		write(t, path, strings.Replace(strings.Replace(text, "t_order:\n", "t_order:\n      actualDataNodes: a.t_order,b.t_order\n", 1),
			map[string]string{"SQL": "type: SQL", "TICKET": "type: TICKET", "LEAF_SEGMENT": "leaf.key: t"}[name],
			map[string]string{"SQL": "type: SQL, props: {own-database: yes}", "TICKET": "type: TICKET, props: {own-database: yes}", "LEAF_SEGMENT": "leaf.key: t, own-database: yes"}[name], 1))
		if err := errors.Join(openShard(t, shardDSN(0, path)).Close(), openShard(t, shardDSN(1, path)).Close()); err != nil {
			t.Errorf("%s that is meant so\nhave: %v", name, err)
		}
	}
	DeregisterRule("registered")
}

// The page's own rule loads, and so does what it says about databases.
func TestDocs_severalDatabases(t *testing.T) {
	text := must(os.ReadFile("../docs/several-databases.md"))(t)
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	file, _, ok := strings.Cut(after, "```")
	r, err := rule.Parse("rule.yaml", []byte(file))
	if !ok || err != nil || len(r.DataSources()) != 4 {
		t.Errorf("have: %v, %v\nwant: a rule over 4 data sources", r, err)
	}
	if _, err := rule.Parse("rule.yaml", []byte(strings.Replace(file, `, dsn: "app:pass@tcp(ids:3306)/ids"`, "", 1))); !errors.Is(err, rule.ErrOwnDatabase) {
		t.Errorf("without its dsn\nhave: %v\nwant: ErrOwnDatabase", err)
	}
}

// Two databases on a server, the leases in a third.
func TestShared_serverKeepsOneLease(t *testing.T) {
	if testserver.Each(t, TestShared_serverKeepsOneLease) {
		return
	}
	store := testserver.Database(t)
	path := filepath.Join(t.TempDir(), "rule.yaml")
	write(t, path, leasedRule(fmt.Sprintf("{type: SQL, props: {dsn: %q}}", store)))
	seen := map[int64]bool{}
	for i := range 2 {
		dsn := testserver.Database(t)
		sep := "?"
		if strings.Contains(dsn, "?") {
			sep = "&"
		}
		for range 32 {
			db := openShard(t, dsn+sep+"shardkeyRule="+path)
			defer db.Close()
			mustExec(t, db, "CREATE TABLE IF NOT EXISTS t_order (id BIGINT PRIMARY KEY, a INT)")
			res := must(db.Exec("INSERT INTO t_order (a) VALUES (?)", i))(t)
			id, _ := res.LastInsertId()
			seen[id] = true
		}
	}
	plain := must(sql.Open("mysql", store))(t)
	defer plain.Close()
	var n int
	if err := plain.QueryRow("SELECT COUNT(*) FROM shardkey_worker WHERE namespace = 'shardkey'").Scan(&n); err != nil || n != 1 || len(seen) != 64 {
		t.Errorf("have: %d worker ids, %d keys, %v\nwant: 1 and 64", n, len(seen), err)
	}
}
