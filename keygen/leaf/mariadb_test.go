package leaf

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// leafTable is Leaf's own definition, word for word in its columns.
const leafTable = "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint(20) NOT NULL DEFAULT '1', step int(11) NOT NULL, " +
	"description varchar(256) DEFAULT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag)) ENGINE=InnoDB"

func openDB(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// leafDatabase makes a database with Leaf's table and a row for "order".
func leafDatabase(t testing.TB, maxID, step int64) (dsn string, db *sql.DB) {
	t.Helper()
	dsn = testserver.Database(t)
	db = openDB(t, dsn)
	mustExec(t, db, leafTable)
	mustExec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', ?, ?)", maxID, step)
	return dsn, db
}

func newGen(t testing.TB, c config) *generator {
	t.Helper()
	if c.Key == "" {
		c.Key = "order"
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute // a busy machine is not what is tested
	}
	g, err := newGenerator(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func maxID(t testing.TB, db *sql.DB) (v int64) {
	t.Helper()
	if err := db.QueryRow("SELECT max_id FROM leaf_alloc WHERE biz_tag = 'order'").Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// leafFetch does what Leaf's server does and returns its segment.
func leafFetch(db *sql.DB, key string, step int64) (first, end int64, err error) {
	tx, err := db.Begin()
	if err != nil {
		return 0, 0, err
	}
	defer tx.Rollback()
	if step > 0 {
		_, err = tx.Exec("UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?", step, key)
	} else {
		_, err = tx.Exec("UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?", key)
	}
	if err != nil {
		return 0, 0, err
	}
	var rowStep int64
	if err := tx.QueryRow("SELECT max_id, step FROM leaf_alloc WHERE biz_tag = ?", key).Scan(&end, &rowStep); err != nil {
		return 0, 0, err
	}
	if step == 0 {
		step = rowStep
	}
	return end - step, end, tx.Commit()
}

// Two generators and two programs that do what Leaf does share a row.
func TestSQLStore_sharedWithLeaf(t *testing.T) {
	if testserver.Each(t, TestSQLStore_sharedWithLeaf) {
		return
	}
	dsn, db := leafDatabase(t, 1, 50)
	var keys ledger
	var wg sync.WaitGroup
	for i := range 2 {
		g := newGen(t, config{DSN: dsn, MaxStep: 400})
		for range 4 {
			wg.Go(func() {
				for j := range 1000 {
					own := make([]int64, 1+j%5)
					if err := g.GenerateInt64Keys(t.Context(), column, own); err != nil {
						t.Error(err)
						return
					}
					keys.add(t, fmt.Sprint("shardkey ", i), own...)
				}
			})
		}
		wg.Go(func() {
			for j := range int64(200) {
				first, end, err := leafFetch(db, "order", j%3*50)
				if err != nil {
					t.Error(err)
					return
				}
				for k := first; k < end; k++ {
					keys.add(t, fmt.Sprint("Leaf ", i), k)
				}
			}
		})
	}
	wg.Wait()
	if end := maxID(t, db); int64(keys.len()) >= end {
		t.Errorf("\nhave: %d keys\nwant: less than max_id, which is %d", keys.len(), end)
	}
}

// The interval's bounds are Leaf's: the first key of a new row is its max_id.
func TestSQLStore_boundsAreLeafs(t *testing.T) {
	if testserver.Each(t, TestSQLStore_boundsAreLeafs) {
		return
	}
	dsn, db := leafDatabase(t, 1, 10)
	g := newGen(t, config{DSN: dsn, MaxStep: 10})
	for want := int64(1); want <= 10; want++ {
		if have := mustReserve(t, g, 1); have != want {
			t.Fatalf("\nhave: %d\nwant: %d", have, want)
		}
	}
	g.Close()
	end := maxID(t, db)
	first, _, err := leafFetch(db, "order", 0)
	if err != nil || first != end || (end-1)%10 != 0 {
		t.Errorf("\nhave: Leaf's first is %d %v\nwant: %d, a multiple of the step above 1", first, err, end)
	}
}

// A fetch is one statement: counted by the server.
func TestSQLStore_oneStatementAFetch(t *testing.T) {
	if testserver.Each(t, TestSQLStore_oneStatementAFetch) {
		return
	}
	server := testserver.StartSQL(t)
	mustExec(t, openDB(t, server.DSN()), "CREATE DATABASE leaf")
	dsn := server.DSN() + "leaf"
	db := openDB(t, dsn)
	mustExec(t, db, leafTable)
	mustExec(t, db, "INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 10)")
	g := newGen(t, config{DSN: dsn, MaxStep: 10})
	mustReserve(t, g, 1)
	mustReserve(t, g, 100)
	before := questions(t, db)
	const fetches = 50
	for range fetches {
		mustReserve(t, g, 100)
	}
	if have := questions(t, db) - before; have > fetches+2 {
		t.Errorf("\nhave: %d statements\nwant: %d", have, fetches)
	}
}

func questions(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	var name string
	if err := db.QueryRow("SHOW GLOBAL STATUS LIKE 'Queries'").Scan(&name, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSQLStore_manyGoroutines(t *testing.T) {
	if testserver.Each(t, TestSQLStore_manyGoroutines) {
		return
	}
	dsn, _ := leafDatabase(t, 1, 100)
	g := newGen(t, config{DSN: dsn})
	var keys ledger
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			for range 20 {
				keys.add(t, "a goroutine", mustReserve(t, g, 1))
			}
		})
	}
	wg.Wait()
	if h := g.Health(); keys.len() != 20_000 || len(h.Errors) != 0 || h.Issued != 20_000 {
		t.Errorf("\nhave: %d keys, %d issued, errors %v\nwant: 20000, none", keys.len(), h.Issued, h.Errors)
	}
}

// A server whose OK packet carries no LAST_INSERT_ID gets Leaf's transaction.
// MariaDB does echo; told otherwise, the generator works as well, even on an
// engine that locks no rows.
func TestSQLStore_serverThatDoesNotEcho(t *testing.T) {
	for _, engine := range []string{"InnoDB", "MyISAM"} {
		t.Run(engine, func(t *testing.T) { testWithoutEcho(t, engine) })
	}
}

func testWithoutEcho(t *testing.T, engine string) {
	dsn, db := leafDatabase(t, 1, 10)
	mustExec(t, db, "ALTER TABLE leaf_alloc ENGINE="+engine)
	g := newGen(t, config{DSN: dsn})
	store := g.store.(*sqlStore)
	store.echo.Store(echoNo)
	var keys ledger
	var wg sync.WaitGroup
	for _, n := range []int64{5, 7} { // as many as the pool has connections
		wg.Go(func() {
			for range 80 {
				first, err := store.claim(t.Context(), n, noLeast)
				for errors.Is(err, errRaced) { // on an engine without locks, again and again
					first, err = store.claim(t.Context(), n, noLeast)
				}
				if err != nil {
					t.Error(err)
					return
				}
				for k := range n {
					keys.add(t, "a goroutine", first+k)
				}
			}
		})
	}
	wg.Wait()
	if have, want := maxID(t, db), int64(1+80*(5+7)); have != want || store.echo.Load() != echoNo {
		t.Errorf("\nhave: max_id %d, echo %d\nwant: %d, %d", have, store.echo.Load(), want, echoNo)
	}
}

// What was claimed after the row was read is not claimed again.
func TestSQLStore_swapCompares(t *testing.T) {
	if testserver.Each(t, TestSQLStore_swapCompares) {
		return
	}
	_, db := leafDatabase(t, 1, 10)
	for _, c := range []struct{ read, rows, then int64 }{{5, 0, 1}, {1, 1, 101}, {1, 0, 101}} {
		res, err := db.Exec(claimSwap, c.read+100, "order", c.read)
		if err != nil {
			t.Fatal(err)
		}
		if rows, _ := res.RowsAffected(); rows != c.rows || maxID(t, db) != c.then {
			t.Errorf("max_id read as %d\nhave: %d rows, max_id %d\nwant: %d, %d", c.read, rows, maxID(t, db), c.rows, c.then)
		}
	}
}

// Rolling back, or never ending, a caller's transaction has nothing to do with
// a fetch.
func TestSQLStore_fetchIsNotInACallersTransaction(t *testing.T) {
	if testserver.Each(t, TestSQLStore_fetchIsNotInACallersTransaction) {
		return
	}
	dsn, db := leafDatabase(t, 1, 10)
	g := newGen(t, config{DSN: dsn + "?autocommit=0"})
	var keys ledger
	for range 5 {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		keys.add(t, "a call", mustReserve(t, g, 1), mustReserve(t, g, 1000))
		tx.Rollback()
	}
	if have := maxID(t, db); have < 5000 {
		t.Errorf("\nhave: max_id %d\nwant: above 5000, committed", have)
	}
}

func TestSQLStore_cancelWhileTheRowIsLocked(t *testing.T) {
	if testserver.Each(t, TestSQLStore_cancelWhileTheRowIsLocked) {
		return
	}
	dsn, db := leafDatabase(t, 1, 10)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("UPDATE leaf_alloc SET step = 10 WHERE biz_tag = 'order' AND description IS NULL"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SELECT * FROM leaf_alloc FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	g := newGen(t, config{DSN: dsn})
	for _, n := range []int64{1, 5000} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := g.reserve(ctx, n); !errors.Is(err, context.Canceled) {
			t.Errorf("%d keys\nhave: %v\nwant: context.Canceled", n, err)
		}
	}
	tx.Rollback()
	mustReserve(t, g, 1)
}

// The server stops: what is in the buffers serves, then a typed error; the
// server is back: keys come again, above the old ones.
func TestSQLStore_serverAwayAndBack(t *testing.T) {
	if testserver.Each(t, TestSQLStore_serverAwayAndBack) {
		return
	}
	server := testserver.StartSQL(t)
	db := openDB(t, server.DSN())
	mustExec(t, db, "CREATE DATABASE leaf")
	mustExec(t, db, "CREATE TABLE leaf."+strings.TrimPrefix(leafTable, "CREATE TABLE "))
	mustExec(t, db, "INSERT INTO leaf.leaf_alloc (biz_tag, step) VALUES ('order', 1000)")
	g := newGen(t, config{JDBCURL: "jdbc:mysql://" + server.Addr() + "/leaf?useSSL=false&serverTimezone=UTC", User: "root"})
	var keys ledger
	for range 200 {
		keys.add(t, "before", mustReserve(t, g, 1))
	}
	for _, stop := range []func(){server.Stop, server.Kill} {
		stop()
		var err error
		served := 0
		for err == nil {
			var k int64
			if k, err = g.reserve(t.Context(), 1); err == nil {
				keys.add(t, "from memory", k)
				served++
			}
		}
		if served < 500 || !errors.Is(err, spi.ErrStore) || g.Health().Err == nil {
			t.Errorf("\nhave: %d keys, then %v\nwant: 500 or more, then spi.ErrStore", served, err)
		}
		server.Start()
		for range 5000 {
			keys.add(t, "after", mustReserve(t, g, 1))
		}
		if err := g.Health().Err; err != nil {
			t.Errorf("\nhave: %v\nwant: healthy again", err)
		}
	}
}

func TestSQLStore_privileges(t *testing.T) {
	if testserver.Each(t, TestSQLStore_privileges) {
		return
	}
	dsn, db := leafDatabase(t, 1, 10)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	user := cfg.DBName[len(cfg.DBName)-12:]
	mustExec(t, db, "CREATE USER "+user+"@'127.0.0.1' IDENTIFIED BY 'geheim'")
	t.Cleanup(func() { mustExec(t, db, "DROP USER "+user+"@'127.0.0.1'") })
	mustExec(t, db, "GRANT SELECT ON leaf_alloc TO "+user+"@'127.0.0.1'")
	for password, says := range map[string]string{"falsch-geheim": "leaf.jdbc.password", "geheim": "GRANT SELECT, UPDATE"} {
		g := newGen(t, config{DSN: dsn, User: user, Password: password})
		_, err := g.reserve(t.Context(), 1)
		if !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("\nhave: %v\nwant: spi.ErrStore that says %q", err, says)
		}
		var server *mysql.MySQLError
		if !errors.As(err, &server) {
			t.Errorf("have: %v\nwant: the server's error in the chain", err)
		}
	}
	mustExec(t, db, "GRANT UPDATE ON leaf_alloc TO "+user+"@'127.0.0.1'")
	g := newGen(t, config{DSN: dsn, User: user, Password: "geheim"})
	mustReserve(t, g, 1)
}
