package ticket

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// The three REPLACEs of a block are one transaction: one write of the log, as for
// one number.
func TestServer_blockIsOneCommit(t *testing.T) {
	if testserver.Each(t, TestServer_blockIsOneCommit) {
		return
	}
	_, dsn := ticketServer(t, 1, 1)
	db := openDB(t, dsn)
	mustExec(t, db, "SET GLOBAL innodb_monitor_enable = 'trx_rw_commits'")
	g := newGen(t, config{DSNs: []string{dsn}})
	mustKeys(t, g, 1)
	commits := func() (n int) {
		if err := db.QueryRow("SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rw_commits'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, n := range []int{1, 100} {
		least := 100 // of several: the server has transactions of its own
		for range 5 {
			before := commits()
			mustKeys(t, g, n)
			least = min(least, commits()-before)
		}
		if least != 1 {
			t.Errorf("transactions for %d numbers\nhave: %d\nwant: 1", n, least)
		}
	}

	// The next single number is committed as well.
	last := mustKeys(t, g, 1)[0]
	var seen int64
	if err := db.QueryRow("SELECT id FROM Tickets64").Scan(&seen); err != nil || seen != last {
		t.Errorf("what others see\nhave: %d, %v\nwant: %d", seen, err, last)
	}
}

// What a server makes the default is not left to it: a number is committed before
// it is handed out.
func TestServer_autocommitOffByDefault(t *testing.T) {
	if testserver.Each(t, TestServer_autocommitOffByDefault) {
		return
	}
	server := testserver.StartSQL(t, "--autocommit=0")
	db := openDB(t, server.DSN())
	mustExec(t, db, "CREATE DATABASE tickets")
	mustExec(t, db, strings.Replace(flickrTable, "Tickets64", "tickets.Tickets64", 1))
	g := newGen(t, config{DSNs: []string{server.DSN() + "tickets"}})
	for _, n := range []int{1, 5, 1} {
		keys := mustKeys(t, g, n)
		var seen int64
		if err := openDB(t, server.DSN()+"?autocommit=1").QueryRow("SELECT id FROM tickets.Tickets64").Scan(&seen); err != nil || seen != keys[n-1] {
			t.Fatalf("what others see after %d numbers\nhave: %d, %v\nwant: %d", n, seen, err, keys[n-1])
		}
	}
}

// A statement whose caller has gone does not stay in the queue for the table's lock.
func TestServer_nothingWaitsAfterTheTimeout(t *testing.T) {
	if testserver.Each(t, TestServer_nothingWaitsAfterTheTimeout) {
		return
	}
	dsn, db := ticketDatabase(t)
	other, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), "LOCK TABLES Tickets64 WRITE"); err != nil {
		t.Fatal(err)
	}
	g := newGen(t, config{DSNs: []string{dsn}, Timeout: time.Second})
	if err := g.GenerateInt64Keys(t.Context(), column, make([]int64, 10)); !errors.Is(err, spi.ErrStore) {
		t.Fatalf("have: %v\nwant: spi.ErrStore", err)
	}
	for waiting := -1; waiting != 0; runtime.Gosched() {
		if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'LOCK TABLES%'").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	if left := tableRows(t, dsn); left != 0 {
		t.Errorf("rows of the statement that was given up\nhave: %d\nwant: 0", left)
	}
}

func tableRows(t *testing.T, dsn string) (n int) {
	t.Helper()
	if err := openDB(t, dsn).QueryRow("SELECT COUNT(*) FROM Tickets64").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLockWait_wholeSeconds(t *testing.T) {
	for timeout, want := range map[time.Duration]int64{
		time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 1500 * time.Millisecond: 2, 2 * time.Second: 2, 1<<63 - 1: 31536000,
	} {
		if have := lockWait(timeout); have != want {
			t.Errorf("%v\nhave: %d\nwant: %d", timeout, have, want)
		}
	}
	cfg, err := parseDSN("u@tcp(h:1)/d?LOCK_WAIT_TIMEOUT=9&innodb_lock_wait_timeout=8&sql_mode=''", 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if have := fmt.Sprint(cfg.Params); have != "map[autocommit:1 innodb_lock_wait_timeout:3 lock_wait_timeout:3 sql_mode:'STRICT_ALL_TABLES']" {
		t.Errorf("session: %s", have)
	}
}

// What a server returns is checked, number by number.
func TestServer_accept(t *testing.T) {
	for name, c := range map[string]struct {
		block block
		want  error // nil: spi.ErrStore alone
		good  bool
	}{
		"right":                 {block{11, 3, 2}, nil, true},
		"no number":             {block{0, 1, 2}, nil, false},
		"off the grid":          {block{12, 1, 2}, errSettings, false},
		"the last one again":    {block{9, 1, 2}, errRepeated, false},
		"the end is the last":   {block{97, 2, 2}, nil, true},
		"the end is beyond it":  {block{97, 3, 2}, errExhausted, false},
		"one beyond the column": {block{101, 1, 2}, errExhausted, false},
		"negative":              {block{-1, 1, 2}, errExhausted, false},
	} {
		s := &server{name: "test", table: "`t`", increment: 2, offset: 1, end: 100, last: 9}
		err := s.accept(c.block)
		if c.good != (err == nil) || !c.good && !errors.Is(err, spi.ErrStore) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s\nhave: %v\nwant: %v", name, err, c.want)
		}
	}
}

// A table without AUTO_INCREMENT is mended, and asked again.
func TestServer_acceptNoNumber(t *testing.T) {
	s := &server{name: "test", table: "`t`", increment: 2, offset: 1, end: 100}
	if err := s.accept(block{0, 1, 2}); err == nil || !strings.Contains(err.Error(), "must have an AUTO_INCREMENT column") || s.refused != nil {
		t.Errorf("have: %v, refused for good: %v\nwant: an error about the column", err, s.refused)
	}
}

// mocked is a server whose answers a test gives.
func mocked(t *testing.T) (*server, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherRegexp))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &server{name: "test", clock: spi.SystemClock, table: "`t`", column: "`id`", increment: 2, offset: 1, end: noEnd, db: db, conn: conn}, mock
}

// A block, or the rows of one REPLACE, that end elsewhere than they should are not
// numbers of this caller alone.
func TestServer_endOfABlockIsChecked(t *testing.T) {
	for last, good := range map[int64]bool{19: true, 17: false, 21: false, 11: false} {
		s, mock := mocked(t)
		mock.ExpectExec("LOCK TABLES").WillReturnResult(sqlmock.NewResult(0, 0))
		mock.ExpectQuery("SELECT @shardkey_first").WillReturnRows(sqlmock.NewRows([]string{"first", "last"}).AddRow(11, last))
		if b, err := s.replaceBlock(t.Context(), 5); good != (err == nil) || !good && !errors.Is(err, spi.ErrStore) || good && b.first != 11 {
			t.Errorf("block of 5 from 11 to %d\nhave: %v, %v\nwant: good: %v", last, b, err, good)
		}

		s, mock = mocked(t)
		mock.ExpectBegin()
		mock.ExpectExec("REPLACE INTO").WillReturnResult(sqlmock.NewResult(11, 9))
		mock.ExpectQuery("SELECT `id`").WillReturnRows(sqlmock.NewRows([]string{"id"}).AddRow(last))
		mock.ExpectCommit()
		if b, err := s.replaceRows(t.Context(), 5); good != (err == nil) || !good && !errors.Is(err, errScattered) || good && b.first != 11 {
			t.Errorf("5 rows from 11 to %d\nhave: %v, %v\nwant: good: %v", last, b, err, good)
		}
	}
}

func TestPool_closeIsAStoreError(t *testing.T) {
	s, mock := mocked(t)
	cause := errors.New("bad connection")
	mock.ExpectClose().WillReturnError(cause)
	p := &pool{members: []*member{{source: s, server: s}}}
	if err := s.conn.Close(); err != nil { // back to the pool
		t.Fatal(err)
	}
	s.conn = nil
	if err := p.close(); !errors.Is(err, spi.ErrStore) || !errors.Is(err, cause) {
		t.Errorf("have: %v\nwant: spi.ErrStore and the cause", err)
	}
}
