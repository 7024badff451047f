package segment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/spi"
)

func maxID(t testing.TB, dsn string) int64 {
	t.Helper()
	return scan[int64](t, must.Open(t, "mysql", dsn), "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'order'")
}

// A fetch is one statement, by the server's count.
func TestLeaf_oneStatementAFetch(t *testing.T) {
	if testserver.Each(t, TestLeaf_oneStatementAFetch) {
		return
	}
	t.Parallel()
	dsn, _ := leafAlloc.database(t)
	g := leafAlloc.generator(t, dsn, map[string]any{"max-step": "10"})
	mustKeys(t, g, 100)
	mustKeys(t, g, 100)
	questions := func() int64 {
		t.Helper()
		var name string
		var n int64
		row := idleServer(g).conn.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Questions'")
		must.Do(t, row.Scan(&name, &n))
		return n
	}
	before := questions()
	const fetches = 50
	for range fetches {
		mustKeys(t, g, 100)
	}
	if have := questions() - before - 1; have != fetches { // 1 is the count itself
		t.Errorf("\nhave: %d statements\nwant: %d", have, fetches)
	}
}

// If a server's OK packet has no LAST_INSERT_ID, the generator uses Leaf's transaction, which
// also works with engines that lock no rows.
func TestLeaf_serverThatDoesNotEcho(t *testing.T) {
	for _, engine := range []string{"InnoDB", "MyISAM"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			dsn, db := leafAlloc.database(t)
			mustExec(t, db, "ALTER TABLE leaf_alloc ENGINE="+engine)
			var keys ledger
			inParallel(2, func(i int) {
				g := leafAlloc.generator(t, dsn, map[string]any{"max-step": "1"})
				for range 80 {
					keys.add(t, who(i), mustKeys(t, g, 5+2*i)...)
					idleServer(g).claim.(*leafRow).echoes = false
				}
			})
			must.Equal(t, maxID(t, dsn), 1+80*(5+7), "max_id")
		})
	}
}

// mocked returns a server with a connection whose answers the test sets. All that it expects must
// have come by the end of the test.
func mocked(t *testing.T) (*server, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	must.Do(t, err)
	t.Cleanup(func() { db.Close() })
	t.Cleanup(func() { must.Do(t, mock.ExpectationsWereMet()) })
	conn := must.Get(db.Conn(t.Context()))(t)
	return &server{words: words{title: "TEST"}, name: "test", db: db, conn: conn}, mock
}

// Each claim is checked. If a server returns no number or a wrong one, or claims several rows, no
// number is handed out.
func TestLeaf_echoIsChecked(t *testing.T) {
	const n, least, claimed = 10, 500, 700
	for name, tt := range map[string]struct{ echoed, rows, want int64 }{
		"right":                  {claimed + n, 1, claimed},
		"none":                   {0, 1, claimed},
		"no number above 0":      {n, 1, claimed},
		"below what was claimed": {least + n - 1, 1, claimed},
		"a key of another table": {7, 1, claimed},
		"a number below 0":       {-1, 1, claimed},
		"no row":                 {0, 0, claimed},
		"two rows":               {claimed + n, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, mock := mocked(t)
			l := &leafRow{server: s, key: "order", least: least, echoes: true}
			mock.ExpectPrepare(claimOne).ExpectExec().WillReturnResult(sqlmock.NewResult(tt.echoed, tt.rows))
			if name != "right" && tt.want > 0 {
				mock.ExpectBegin()
				mock.ExpectQuery(selectRow).WillReturnRows(sqlmock.NewRows([]string{"max_id"}).AddRow(claimed))
				mock.ExpectExec(claimSwap).WithArgs(claimed+n, "order", claimed).WillReturnResult(sqlmock.NewResult(0, 1))
				mock.ExpectCommit()
			}
			r, err := l.claim(t.Context(), s.conn, n)
			if tt.want == 0 {
				wantError(t, err, errBadRow)
			} else if err != nil || r != (run{tt.want, n, 1}) || l.least != tt.want+n || l.echoes != (name == "right") {
				t.Errorf("\nhave: %v %v, echoes %v\nwant: from %d", r, err, l.echoes, tt.want)
			}
		})
	}
}

// failOver makes the server look like a replica that has replaced another server and lacks the
// last claims.
func failOver(t *testing.T, dsn string) {
	t.Helper()
	db := must.Open(t, "mysql", dsn)
	mustExec(t, db, "UPDATE leaf_alloc SET max_id = 11 WHERE biz_tag = 'order'")
	mustExec(t, db, "UPDATE leaf_alloc SET description = 'the server before' WHERE biz_tag = ?", noteKey("order"))
}

// After a failover, numbers that the replica doesn't know aren't handed out again, neither by new
// processes nor by running ones.
func TestLeaf_failoverGap(t *testing.T) {
	if testserver.Each(t, TestLeaf_failoverGap) {
		return
	}
	t.Parallel()
	dsn, _ := leafAlloc.database(t)
	process := func(gap string) *generator {
		return leafAlloc.generator(t, dsn, map[string]any{"failover-gap": gap})
	}
	old := process("1000")
	last := int64(0)
	for range 35 {
		last = mustKey(t, old)
	}
	if n := maxID(t, dsn); n < last || n > 1000 {
		t.Fatalf("max_id of the first server: %d", n)
	}
	failOver(t, dsn)
	after := process("1000")
	if first := mustKey(t, after); first <= last {
		t.Errorf("the first number after the failover\nhave: %d\nwant: above %d", first, last)
	}
	must.Contain(t, strings.Join(after.Health().Warnings, "\n"), "raised by 1000", "warnings of the process that saw it")
	noted := maxID(t, dsn)
	mustKey(t, process("1000"))
	if n := maxID(t, dsn); n >= noted+1000 {
		t.Errorf("max_id after another process\nhave: %d\nwant: one gap only, below %d", n, noted+1000)
	}
	for range 300 {
		last = mustKey(t, old)
	}
	if last < 1011 {
		t.Errorf("a number of the old process after the failover\nhave: %d\nwant: of after the gap", last)
	}

	failOver(t, dsn)
	must.Equal(t, mustKey(t, process("0")), 11, "without a gap")
}

func TestLeaf_failoverPrivileges(t *testing.T) {
	if testserver.Each(t, TestLeaf_failoverPrivileges) {
		return
	}
	t.Parallel()
	dsn, db := leafAlloc.database(t)
	account, userDSN := user(t, db, dsn)
	for _, tt := range []struct {
		grant string
		warns bool
	}{{"SELECT, UPDATE", true}, {"INSERT", false}} {
		mustExec(t, db, "GRANT "+tt.grant+" ON leaf_alloc TO "+account)
		g := leafAlloc.generator(t, userDSN, map[string]any{"failover-gap": "1000"})
		mustKey(t, g)
		warnings := strings.Join(g.Health().Warnings, "\n") // also of durability
		must.Equal(t, strings.Contains(warnings, "GRANT SELECT, INSERT, UPDATE ON leaf_alloc"), tt.warns, tt.grant, warnings)
	}
	if n := maxID(t, dsn); n > 1000 {
		t.Errorf("max_id\nhave: %d\nwant: no gap on a server that is noted for the first time", n)
	}
}

func TestLeaf_noteKey(t *testing.T) {
	for _, key := range []string{"order", strings.Repeat("ö", maxBizTag)} {
		if n := noteKey(key); len([]rune(n)) > maxBizTag || wrongKey(n) == "" {
			t.Errorf("%q: %q is too long, or could be a key", key, n)
		}
	}
	if key := strings.Repeat("k", maxBizTag-16); noteKey(key) != "shardkey/server/"+key {
		t.Errorf("have: %q\nwant: the key in it, which fits", noteKey(key))
	}
	if a, b := noteKey(strings.Repeat("a", maxBizTag)), noteKey(strings.Repeat("b", maxBizTag)); a == b {
		t.Error("two keys have one note")
	}
}

// ticketServer creates a database that represents a ticket server with these settings.
func ticketServer(t testing.TB, increment, offset int) string {
	t.Helper()
	dsn, _ := tickets64.database(t)
	return withSettings(dsn, increment, offset)
}

func withSettings(dsn string, increment, offset int) string {
	return fmt.Sprintf("%s?auto_increment_increment=%d&auto_increment_offset=%d", dsn, increment, offset)
}

// The numbers come from the table, whose row has the last one.
func TestTicket_numbersAreTheTables(t *testing.T) {
	if testserver.Each(t, TestTicket_numbersAreTheTables) {
		return
	}
	t.Parallel()
	dsn, db := tickets64.database(t)
	g := tickets64.generator(t, dsn, nil)
	for _, tt := range []struct {
		n     int
		first int64
	}{{1, 1}, {1, 2}, {3, 3}, {100, 6}, {1, 106}, {2, 107}} {
		if keys := mustKeys(t, g, tt.n); keys[0] != tt.first || keys[tt.n-1] != tt.first+int64(tt.n-1) {
			t.Errorf("\nhave: %v\nwant: %d numbers from %d", keys, tt.n, tt.first)
		}
		must.Equal(t, scan[int64](t, db, "SELECT SUM(id) FROM Tickets64"), tt.first+int64(tt.n-1), "one row, of the last number")
	}
}

// The three REPLACEs of a block are one transaction, with one write of the log.
func TestTicket_blockIsOneCommit(t *testing.T) {
	if testserver.Each(t, TestTicket_blockIsOneCommit) {
		return
	}
	t.Parallel()
	_, dsn := tickets64.server(t)
	db := must.Open(t, "mysql", dsn)
	mustExec(t, db, "SET GLOBAL innodb_monitor_enable = 'trx_rw_commits'")
	g := tickets64.generator(t, dsn, nil)
	mustKey(t, g)
	const commits = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rw_commits'"
	for _, n := range []int{1, 100} {
		least := 100 // smallest of several, because the server has other transactions
		for range 1000 {
			before := scan[int](t, db, commits)
			mustKeys(t, g, n)
			if least = min(least, scan[int](t, db, commits)-before); least == 1 {
				break
			}
		}
		must.Equal(t, least, 1, "transactions for", n, "numbers")
	}
}

// A statement whose caller has given up doesn't stay in the queue for the table's lock.
func TestTicket_nothingWaitsAfterTheTimeout(t *testing.T) {
	if testserver.Each(t, TestTicket_nothingWaitsAfterTheTimeout) {
		return
	}
	t.Parallel()
	dsn, db := tickets64.database(t)
	other := must.Get(db.Conn(t.Context()))(t)
	defer other.Close()
	must.Get(other.ExecContext(t.Context(), "LOCK TABLES Tickets64 WRITE"))(t)
	_, err := generate(t.Context(), tickets64.generator(t, dsn, map[string]any{"timeout": "1s"}), 10)
	wantError(t, err, spi.ErrStore)
	const queue = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'LOCK TABLES%'"
	for scan[int](t, db, queue) > 0 {
		runtime.Gosched()
	}
	must.Get(other.ExecContext(t.Context(), "UNLOCK TABLES"))(t)
	must.Equal(t, scan[int](t, db, "SELECT COUNT(*) FROM Tickets64"), 0, "rows of the statement that was given up")
}

// A user without the LOCK TABLES privilege gets the same numbers with slower statements.
func TestTicket_withoutLockTables(t *testing.T) {
	if testserver.Each(t, TestTicket_withoutLockTables) {
		return
	}
	t.Parallel()
	dsn, db := tickets64.database(t)
	account, userDSN := user(t, db, dsn)
	mustExec(t, db, "GRANT SELECT, INSERT, DELETE ON Tickets64 TO "+account)
	gens := []*generator{tickets64.generator(t, userDSN, nil), tickets64.generator(t, dsn, nil)}
	var keys ledger
	inParallel(8, func(i int) {
		for range 25 {
			own := mustKeys(t, gens[i%2], 3)
			keys.add(t, who(i), own...)
			must.Equal(t, own[2], own[0]+2, "numbers that follow each other", own)
		}
	})
	must.Equal(t, idleServer(gens[0]).claim.(*ticketTable).noLock, true, "tables are not locked")
	must.FailWith(t, must.Err(generate(t.Context(), gens[0], maxRows+1)), "GRANT LOCK TABLES", "too many")
}

// Of two servers with offsets 1 and 2, one stops, then returns, then has the other's offset, and
// is fixed.
func TestTicket_serverStopsInTheMiddle(t *testing.T) {
	if testserver.Each(t, TestTicket_serverStopsInTheMiddle) {
		return
	}
	t.Parallel()
	a, dsn := tickets64.server(t, "--auto-increment-increment=2", "--auto-increment-offset=1")
	clock := &stepClock{}
	props := map[string]any{"dsns": dsn + "," + ticketServer(t, 2, 2), "timeout": "1m"}
	made := must.Get(construct(t, "TICKET", props, spi.Host{Clock: clock}))(t)
	g := made.(*generator)
	var keys ledger
	for step, want := range []struct {
		do        func()
		odd, even int
	}{
		{func() {}, 10, 10},
		{a.Kill, 0, 20},
		{a.Start, 0, 20}, // in its pause
		{func() { clock.step(maxPause) }, 10, 10},
		{a.Stop, 0, 20},
		{func() { a.Start(); clock.step(maxPause) }, 10, 10},
	} {
		want.do()
		odd, even := 0, 0
		for i := range 20 {
			own := mustKeys(t, g, 1+i%3)
			keys.add(t, "the generator", own...)
			odd, even = odd+int(own[0]%2), even+int(1-own[0]%2)
		}
		if odd != want.odd || even != want.even {
			t.Errorf("step %d\nhave: %d of the first server, %d of the second\nwant: %d, %d",
				step, odd, even, want.odd, want.even)
		}
		must.Equal(t, g.Health().Err != nil, want.odd == 0, "step", step, "an error while one is down", g.Health().Err)
	}

	// Connections keep the settings from the time they were opened.
	db := must.Open(t, "mysql", a.DSN())
	mustExec(t, db, "SET GLOBAL auto_increment_offset = 2")
	keys.add(t, "the generator", mustKey(t, g), mustKey(t, g))
	clock.step(lifetime)
	for range 3 {
		wantError(t, must.Err(generate(t.Context(), g, 1)), errSettings)
	}
	mustExec(t, db, "SET GLOBAL auto_increment_offset = 1")
	keys.add(t, "the generator", mustKey(t, g), mustKey(t, g))
}

// stepClock is a clock that the test steps. Its sleeps are real: a few milliseconds between
// deadlocks.
type stepClock struct {
	mu  sync.Mutex
	now time.Duration
}

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Unix(0, 0).Add(c.now)
}

func (c *stepClock) Sleep(ctx context.Context, d time.Duration) error {
	return spi.SystemClock.Sleep(ctx, d)
}

func (c *stepClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
}

// Settings with which two servers would return the same number are errors, whichever server is
// next.
func TestTicket_settings(t *testing.T) {
	if testserver.Each(t, TestTicket_settings) {
		return
	}
	t.Parallel()
	dsn, _ := tickets64.database(t)
	one, three := withSettings(dsn, 2, 1), withSettings(dsn, 2, 3)
	for _, tt := range []struct {
		name  string
		props map[string]any
		says  string
	}{
		{"same offset", map[string]any{"dsns": one + "," + ticketServer(t, 2, 1)}, "set a different offset on each server"},
		{"same server twice", map[string]any{"dsns": one + "," + one}, "set a different offset on each server"},
		{"a smaller increment", map[string]any{"dsns": one, "increment": "4"}, "auto_increment_increment: expected 4, found 2"},
		{"the second is wrong", map[string]any{"dsns": one + "," + three}, "auto_increment_offset: expected at most auto_increment_increment 2, found 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGen(t, "TICKET", tt.props)
			for range 4 { // whichever server is next
				_, err := generate(t.Context(), g, 1)
				wantError(t, err, errSettings)
				must.Contain(t, err.Error(), tt.says, err)
			}
		})
	}
}

// The numbers that a server returns are checked.
func TestTicket_accept(t *testing.T) {
	for name, tt := range map[string]struct {
		run  run
		want error // nil for no error
	}{
		"right":                 {run{11, 3, 2}, nil},
		"no number":             {run{0, 1, 2}, spi.ErrStore},
		"off the grid":          {run{12, 1, 2}, errSettings},
		"the last one again":    {run{9, 1, 2}, errRepeated},
		"the end is the last":   {run{97, 2, 2}, nil},
		"the end is beyond it":  {run{97, 3, 2}, errExhausted},
		"one beyond the column": {run{101, 1, 2}, errExhausted},
		"negative":              {run{-1, 1, 2}, errExhausted},
	} {
		table := &ticketTable{server: &server{name: "test"}, increment: 2, offset: 1, limit: 101, last: 9}
		if err := table.accept(tt.run); (tt.want == nil) != (err == nil) || !errors.Is(err, tt.want) ||
			(table.refused != nil) != (tt.want == errRepeated) { // only this error is permanent: tables can be fixed
			t.Errorf("%s\nhave: %v, refused for good: %v\nwant: %v", name, err, table.refused, tt.want)
		}
		must.Is(t, table.accept(tt.run), spi.ErrStore, name, "once more")
	}
}

func TestServer_closeIsAStoreError(t *testing.T) {
	s, mock := mocked(t)
	cause := errors.New("bad connection")
	mock.ExpectClose().WillReturnError(cause)
	if err := s.conn.Close(); err != nil { // returns it to the pool
		t.Fatal(err)
	}
	s.conn = nil
	wantError(t, (&generator{servers: []*server{s}}).closeServers(), cause)
}

func TestTicket_columnEnd(t *testing.T) {
	for typ, want := range map[string]int64{
		"tinyint(4)": 127, "tinyint(3) unsigned": 255, "smallint": 32767, "mediumint(8) unsigned": 16777215,
		"int(11)": 2147483647, "INT UNSIGNED": 4294967295, "bigint(20) unsigned": noEnd, "bigint": noEnd,
	} {
		must.Equal(t, columnEnd(typ), want, typ)
	}
}
