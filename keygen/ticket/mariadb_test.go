package ticket

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

var column = spi.Column{Table: "t_order", Name: "order_id"}

// flickrTable is Flickr's own, on InnoDB.
const flickrTable = "CREATE TABLE Tickets64 (id bigint(20) unsigned NOT NULL auto_increment, stub char(1) NOT NULL default '', " +
	"PRIMARY KEY (id), UNIQUE KEY stub (stub)) ENGINE=InnoDB"

func openDB(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// ticketDatabase makes a database with Flickr's table on the shared server.
func ticketDatabase(t testing.TB) (dsn string, db *sql.DB) {
	t.Helper()
	dsn = testserver.Database(t)
	db = openDB(t, dsn)
	mustExec(t, db, flickrTable)
	return dsn, db
}

// ticketServer starts a server of its own with those settings.
func ticketServer(t testing.TB, increment, offset int) (*testserver.Server, string) {
	t.Helper()
	s := testserver.StartSQL(t, fmt.Sprint("--auto-increment-increment=", increment), fmt.Sprint("--auto-increment-offset=", offset))
	db := openDB(t, s.DSN())
	mustExec(t, db, "CREATE DATABASE tickets")
	mustExec(t, db, strings.Replace(flickrTable, "Tickets64", "tickets.Tickets64", 1))
	return s, s.DSN() + "tickets"
}

func newGen(t testing.TB, c config) *generator {
	t.Helper()
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

func mustKeys(t testing.TB, g *generator, n int) []int64 {
	t.Helper()
	keys := make([]int64, n)
	if err := g.GenerateInt64Keys(t.Context(), column, keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

// ledger finds keys that come twice.
type ledger struct {
	mu   sync.Mutex
	seen map[int64]bool
}

func (l *ledger) add(t testing.TB, keys ...int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[int64]bool{}
	}
	for i, k := range keys {
		if k < 1 || l.seen[k] || i > 0 && k <= keys[i-1] {
			t.Errorf("have: %d in %v\nwant: a new, positive, ascending key", k, keys)
		}
		l.seen[k] = true
	}
}

func TestServer_keysAreTheTables(t *testing.T) {
	if testserver.Each(t, TestServer_keysAreTheTables) {
		return
	}
	dsn, db := ticketDatabase(t)
	g := newGen(t, config{DSNs: []string{dsn}})
	for _, tt := range []struct {
		n     int
		first int64
	}{{1, 1}, {1, 2}, {3, 3}, {100, 6}, {1, 106}, {2, 107}} {
		keys := mustKeys(t, g, tt.n)
		for i, k := range keys {
			if k != tt.first+int64(i) {
				t.Errorf("\nhave: %v\nwant: %d numbers from %d", keys, tt.n, tt.first)
				break
			}
		}
	}
	var rows, id int64
	if err := db.QueryRow("SELECT COUNT(*), MAX(id) FROM Tickets64").Scan(&rows, &id); err != nil || rows != 1 || id != 108 {
		t.Errorf("\nhave: %d rows, id %d, %v\nwant: 1 row, 108", rows, id, err)
	}
}

// A batch is one REPLACE; what is left of it serves from memory.
func TestServer_batch(t *testing.T) {
	if testserver.Each(t, TestServer_batch) {
		return
	}
	dsn, _ := ticketDatabase(t)
	g := newGen(t, config{DSNs: []string{dsn}, Batch: 10})
	var keys ledger
	for range 30 {
		keys.add(t, mustKeys(t, g, 1)...)
	}
	if h := g.Health(); *h.Fetches != 3 || *h.SegmentLeft != 0 || h.SegmentSize != 10 || h.Issued != 30 {
		t.Errorf("\nhave: %d fetches, %d left of %d, %d issued\nwant: 3, 0 of 10, 30", *h.Fetches, *h.SegmentLeft, h.SegmentSize, h.Issued)
	}
	keys.add(t, mustKeys(t, g, 4)...)
	keys.add(t, mustKeys(t, g, 25)...)
	keys.add(t, mustKeys(t, g, 6)...)
	if h := g.Health(); *h.Fetches != 5 {
		t.Errorf("\nhave: %d fetches\nwant: 5", *h.Fetches)
	}
}

// Many goroutines of several generators, and others who use the table as
// Flickr does, never get the same number; the deadlocks are retried.
func TestServer_manyClients(t *testing.T) {
	if testserver.Each(t, TestServer_manyClients) {
		return
	}
	dsn, db := ticketDatabase(t)
	var keys ledger
	var wg sync.WaitGroup
	for i := range 4 {
		g := newGen(t, config{DSNs: []string{dsn}, Batch: int64(1 + i*i)})
		for range 8 {
			wg.Go(func() {
				for j := range 50 {
					own := make([]int64, 1+j%4)
					if err := g.GenerateInt64Keys(t.Context(), column, own); err != nil {
						t.Error(err)
						return
					}
					keys.add(t, own...)
				}
			})
		}
	}
	for range 4 {
		wg.Go(func() {
			for range 100 {
				res, err := db.Exec("REPLACE INTO Tickets64 (stub) VALUES ('a')")
				if mysqldb.IsDeadlock(err) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				id, _ := res.LastInsertId()
				keys.add(t, id)
			}
		})
	}
	wg.Wait()
}

// Sixteen processes at once make InnoDB choose deadlocks' victims all the time;
// no caller sees it.
func TestServer_deadlocksAreRetried(t *testing.T) {
	if testserver.Each(t, TestServer_deadlocksAreRetried) {
		return
	}
	dsn, _ := ticketDatabase(t)
	var keys ledger
	var wg sync.WaitGroup
	for range 16 {
		g := newGen(t, config{DSNs: []string{dsn}})
		wg.Go(func() {
			for range 60 {
				keys.add(t, mustKeys(t, g, 1)...)
			}
		})
	}
	wg.Wait()
}

// Calls that wait at the same time share statements.
func TestServer_waitersShareAStatement(t *testing.T) {
	if testserver.Each(t, TestServer_waitersShareAStatement) {
		return
	}
	dsn, db := ticketDatabase(t)
	g := newGen(t, config{DSNs: []string{dsn}})
	mustKeys(t, g, 1)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("SELECT * FROM Tickets64 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	var keys ledger
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() { keys.add(t, mustKeys(t, g, 2)...) })
		if i == 0 {
			awaitQueue(g, 0) // the first call is being served
		}
	}
	awaitQueue(g, 199)
	tx.Rollback()
	wg.Wait()
	if h := g.Health(); *h.Fetches > 4 || len(keys.seen) != 400 {
		t.Errorf("\nhave: %d fetches for %d keys\nwant: at most 4 for 400", *h.Fetches, len(keys.seen))
	}
}

// awaitQueue waits until a fetch is in flight and n calls wait for the next.
func awaitQueue(g *generator, n int) {
	for there := false; !there; runtime.Gosched() {
		g.mu.Lock()
		there = g.done != nil && len(g.queue) == n
		g.mu.Unlock()
	}
}

// Each of these tables gives an error that says the way out.
func TestServer_tables(t *testing.T) {
	if testserver.Each(t, TestServer_tables) {
		return
	}
	tests := []struct {
		name, setup string
		want        error
		says        string
	}{
		{"none", "DROP TABLE Tickets64", spi.ErrStore, "CREATE TABLE `Tickets64`"},
		{"no AUTO_INCREMENT", "ALTER TABLE Tickets64 MODIFY id bigint NOT NULL", spi.ErrStore, "no AUTO_INCREMENT"},
		{"past int64", "ALTER TABLE Tickets64 AUTO_INCREMENT = 9223372036854775900", errExhausted, "at its end"},
		{"end of a tinyint", "ALTER TABLE Tickets64 MODIFY id tinyint NOT NULL AUTO_INCREMENT, AUTO_INCREMENT = 127", errExhausted, "at its end"},
		{"end of an unsigned smallint", "ALTER TABLE Tickets64 MODIFY id smallint unsigned NOT NULL AUTO_INCREMENT, AUTO_INCREMENT = 65535", errExhausted, "at its end"},
		{"end of an int", "ALTER TABLE Tickets64 MODIFY id int NOT NULL AUTO_INCREMENT, AUTO_INCREMENT = 2147483647", errExhausted, "at its end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dsn, db := ticketDatabase(t)
			mustExec(t, db, tt.setup)
			for _, n := range []int{1, 5} {
				g := newGen(t, config{DSNs: []string{dsn + "?sql_mode=''&autocommit=0"}})
				keys, err := g.GenerateKeys(t.Context(), column, n)
				if !errors.Is(err, tt.want) || !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("\nhave: %v %v\nwant: %v that says %q", keys, err, tt.want, tt.says)
				}
			}
		})
	}
}

// A restored backup counts up again from below: never a number twice, and not
// those above either, which others may have been given.
func TestServer_restoredBackup(t *testing.T) {
	if testserver.Each(t, TestServer_restoredBackup) {
		return
	}
	dsn, db := ticketDatabase(t)
	g := newGen(t, config{DSNs: []string{dsn}})
	mustKeys(t, g, 100)
	mustExec(t, db, "DROP TABLE Tickets64")
	mustExec(t, db, flickrTable)
	for range 3 {
		if keys, err := g.GenerateKeys(t.Context(), column, 90); !errors.Is(err, errRepeated) {
			t.Errorf("\nhave: %v %v\nwant: errRepeated", keys, err)
		}
	}
}

// MyISAM, as Flickr had it, has no transaction that would prove that a batch is
// in one piece; the numbers are right all the same.
func TestServer_myISAM(t *testing.T) {
	if testserver.Each(t, TestServer_myISAM) {
		return
	}
	dsn, db := ticketDatabase(t)
	mustExec(t, db, "ALTER TABLE Tickets64 ENGINE=MyISAM")
	var keys ledger
	var wg sync.WaitGroup
	for range 2 {
		g := newGen(t, config{DSNs: []string{dsn}})
		wg.Go(func() {
			for range 50 {
				own := mustKeys(t, g, 3)
				keys.add(t, own...)
				if own[2] != own[0]+2 {
					t.Errorf("\nhave: %v\nwant: numbers that follow each other", own)
				}
			}
		})
	}
	wg.Wait()
}

// A user who may not lock tables, as those of older ticket tables, gets the
// same numbers by statements that take longer.
func TestServer_withoutLockTables(t *testing.T) {
	if testserver.Each(t, TestServer_withoutLockTables) {
		return
	}
	dsn, db := ticketDatabase(t)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.User, cfg.Passwd = cfg.DBName[len(cfg.DBName)-12:], "geheim"
	account := cfg.User + "@'127.0.0.1'"
	mustExec(t, db, "CREATE USER "+account+" IDENTIFIED BY 'geheim'")
	t.Cleanup(func() { mustExec(t, db, "DROP USER "+account) })
	g := newGen(t, config{DSNs: []string{cfg.FormatDSN()}})
	_, err = g.GenerateKeys(t.Context(), column, 1)
	if !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "GRANT") || strings.Contains(err.Error(), "geheim") {
		t.Errorf("without any right\nhave: %v\nwant: spi.ErrStore that says what to grant", err)
	}
	mustExec(t, db, "GRANT SELECT, INSERT, DELETE ON Tickets64 TO "+account)
	var keys ledger
	var wg sync.WaitGroup
	for _, g := range []*generator{g, newGen(t, config{DSNs: []string{dsn}})} { // one with, one without
		for range 4 {
			wg.Go(func() {
				for range 25 {
					own := mustKeys(t, g, 3)
					keys.add(t, own...)
					if own[2] != own[0]+2 {
						t.Errorf("\nhave: %v\nwant: numbers that follow each other", own)
					}
				}
			})
		}
	}
	wg.Wait()
	if !g.pool.members[0].server.noLock {
		t.Error("have: tables locked\nwant: the other way")
	}
	if _, err := g.GenerateKeys(t.Context(), column, maxRows+1); !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "GRANT LOCK TABLES") {
		t.Errorf("too many\nhave: %v\nwant: spi.ErrStore that says what to grant", err)
	}
}

// A killed idle connection is not an error.
func TestServer_idleConnectionKilled(t *testing.T) {
	if testserver.Each(t, TestServer_idleConnectionKilled) {
		return
	}
	dsn, db := ticketDatabase(t)
	g := newGen(t, config{DSNs: []string{dsn}})
	mustKeys(t, g, 1)
	var id int64
	if err := g.pool.members[0].server.conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, fmt.Sprint("KILL ", id))
	mustKeys(t, g, 1)
	mustKeys(t, g, 5)
}

func TestServer_cancelWhileTheRowIsLocked(t *testing.T) {
	if testserver.Each(t, TestServer_cancelWhileTheRowIsLocked) {
		return
	}
	dsn, db := ticketDatabase(t)
	g := newGen(t, config{DSNs: []string{dsn}})
	mustKeys(t, g, 1)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("SELECT * FROM Tickets64 FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.GenerateInt64Keys(ctx, column, make([]int64, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("\nhave: %v\nwant: context.Canceled", err)
	}
	tx.Rollback()
	mustKeys(t, g, 1)
}
