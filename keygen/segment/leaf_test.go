package segment

import (
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

func maxID(t testing.TB, dsn string) int64 {
	t.Helper()
	return scan[int64](t, openDB(t, dsn), "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'order'")
}

// A fetch is one statement, by the server's count.
func TestLeaf_oneStatementAFetch(t *testing.T) {
	if testserver.EachAndOldest(t, TestLeaf_oneStatementAFetch) {
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
		row := g.servers.all[0].conn.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Questions'")
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
					g.servers.all[0].claim.(*leafRow).echoes = false
				}
			})
			if have, want := maxID(t, dsn), int64(1+80*(5+7)); have != want {
				t.Errorf("\nhave: max_id %d\nwant: %d", have, want)
			}
		})
	}
}

// mocked returns a server with a connection whose answers the test sets.
func mocked(t *testing.T) (*server, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
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
			must.Do(t, mock.ExpectationsWereMet())
		})
	}
}

// failOver makes the server look like a replica that has replaced another server and lacks the
// last claims.
func failOver(t *testing.T, dsn string) {
	t.Helper()
	db := openDB(t, dsn)
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
	if w := strings.Join(after.Health().Warnings, "\n"); !strings.Contains(w, "raised by 1000") {
		t.Errorf("warnings of the process that saw it: %q", w)
	}
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
	if testserver.EachAndOldest(t, TestLeaf_failoverPrivileges) {
		return
	}
	t.Parallel()
	dsn, db := leafAlloc.database(t)
	account, userDSN := user(t, db, dsn)
	for _, tt := range []struct{ grant, says string }{
		{"SELECT, UPDATE", "GRANT SELECT, INSERT, UPDATE ON leaf_alloc"}, {"INSERT", ""},
	} {
		mustExec(t, db, "GRANT "+tt.grant+" ON leaf_alloc TO "+account)
		g := leafAlloc.generator(t, userDSN, map[string]any{"failover-gap": "1000"})
		mustKey(t, g)
		if w := strings.Join(g.Health().Warnings, "\n"); !strings.Contains(w, tt.says) || (w == "") != (tt.says == "") {
			t.Errorf("warnings with %s too\nhave: %q\nwant: %q", tt.grant, w, tt.says)
		}
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
