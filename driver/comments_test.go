package driver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/fakedb"
)

// commentedForms are statements in comments; "%" is the statement.
var commentedForms = []string{
	"% /*traceparent='00-%d-01'*/", "/* trace %d */ %", "-- trace %d\n%", "% -- trace %d", "%\n# trace %d", "/* %d */\n% /* a */ -- ? 'b", "\t/* ' */ % /* \" %d */\n",
}

var commentedStatements = []string{
	"INSERT INTO t (a) VALUES (?)", "INSERT INTO t (a) VALUES (1), (2)", "INSERT INTO t VALUES (NULL, ?)", "INSERT INTO t SET a = ?",
	"INSERT IGNORE INTO `t` (id, a) VALUES (?, ?), (0, 5)", "REPLACE t (a) VALUES ('x -- y'), ('/* z')", "INSERT INTO t (a) VALUES (\"#\")",
	"INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = VALUES(a)", "INSERT INTO t (a) VALUES (1) -- in front\n ON DUPLICATE KEY UPDATE a = 5",
	"INSERT INTO t (a) VALUES (1); INSERT INTO t (a) VALUES (2)", "INSERT INTO t (a) VALUES (1);", "INSERT INTO t (a) VALUES (ROW_COUNT())",
	"INSERT INTO other (a) VALUES (?)", "INSERT INTO other (a) VALUES ('a /* b'); INSERT INTO t (a) VALUES (1)", "INSERT INTO other (a) VALUES ('a\\'')",
	"INSERT INTO t (a) VALUES (1", "INSERT INTO t (a) VALUES ('1", "INSERT INTO t (a) VALUES (1) /*!50000 , (2) */", "INSERT INTO t (a) VALUES (1) garbage",
	"SET STATEMENT max_statement_time = 1 FOR INSERT INTO t (a) VALUES (1)", "EXPLAIN ANALYZE INSERT INTO t (a) VALUES (1)",
}

// A statement between comments is planned as with them, once for all comments.
func TestComments_samePlan(t *testing.T) {
	for _, statement := range commentedStatements {
		for _, form := range commentedForms {
			server := &fakedb.Server{Columns: [][2]string{{"id", "bigint"}, {"a", "int"}}}
			db, _ := openFake(t, server, generatorRule(t, counted(), "t.id"), Config{Server: "mysql"})
			noError(t, pinned(t, db).Raw(func(raw any) error {
				c := raw.(*conn)
				for n := range 2 {
					query := strings.ReplaceAll(strings.Replace(form, "%", statement, 1), "%d", fmt.Sprint(n))
					if strings.HasPrefix(form, "/*") || strings.HasPrefix(form, "--") || strings.HasPrefix(form, "\t") {
						query = strings.ReplaceAll(strings.Replace(strings.ReplaceAll(form, "%d", fmt.Sprint(n)), "%", statement, 1), "%%", "%")
					}
					want, wantErr := c.connector.rules.Load().plan(t.Context(), &c.session, query, false)
					var have planned
					err := c.planFor(t.Context(), query, &have)
					if fmt.Sprint(err) != fmt.Sprint(wantErr) || have.plan.fills() != want.fills() ||
						want.fills() && have.comments.around(have.plan.Query()) != want.Query() {
						t.Errorf("%s\nhave: %v, %v\nwant: %v, %v", query, have.plan, err, want, wantErr)
					}
				}
				return nil
			}))
		}
	}
}

// Statements that differ in comments only are planned once, and sent with their comments.
func TestComments_planned(t *testing.T) {
	for _, kind := range []fakedb.Kind{fakedb.Direct, fakedb.Skipping} {
		for _, table := range []string{"t_order", "other"} {
			server := &fakedb.Server{Kind: kind, Statements: 1000}
			db, connector := openFake(t, server, benchRule(t), Config{Server: "mysql"})
			conn := pinned(t, db)
			for n := range 20 {
				mustExec(t, conn, fmt.Sprintf("INSERT INTO %s (a) VALUES (?) /* trace %d */", table, n), n)
			}
			st := must(conn.PrepareContext(t.Context(), "/* trace */ INSERT INTO "+table+" (a) VALUES (?)"))(t)
			must(st.Exec(20))(t)
			noError(t, st.Close())
			if plans := connector.counts.planMisses.Load(); plans > 2 { // without known placeholders, the second plan is kept
				t.Errorf("%s\nhave: %d plans\nwant: at most 2", table, plans)
			}
			equal(t, connector.cache.Stats().Open, 0, table, "cached statements")
			equal(t, server.Stmts, 0, table, "open statements")
			sent := strings.Join(server.Calls, "\n")
			for n := range 20 {
				equal(t, strings.Count(sent, fmt.Sprintf(" /* trace %d */", n)) > 0, true, table, n)
			}
			equal(t, strings.Contains(sent, "/* trace */ INSERT"), true, table)
		}
	}
}

// A comment that begins in a string, or ends in the middle of one, ends no statement.
func TestComments_inStrings(t *testing.T) {
	server := &fakedb.Server{}
	db, _ := openFake(t, server, generatorRule(t, counted(), "t.id"), Config{Server: "mysql"})
	conn := pinned(t, db)
	// Both are cut at the comment in the string. The first has no INSERT into t.
	mustExec(t, conn, "INSERT INTO other VALUES ('a /* b') -- */")
	_, err := conn.ExecContext(t.Context(), "INSERT INTO other VALUES ('a /* b'); INSERT INTO t (a) VALUES (1) garbage -- */")
	if !errors.Is(err, ErrUnsupportedStatement) {
		t.Errorf("have: %v\nwant: refused, since it inserts into t", err)
	}
}

// A statement with the same comment each time is cached as any other.
func TestComments_repeated(t *testing.T) {
	k := newKeeping(t, &fakedb.Server{Statements: 1000, Kind: fakedb.Skipping}, "auto").warm()
	for range 10 {
		for app := range 3 {
			k.exec(fmt.Sprintf("INSERT INTO t_order (a) VALUES (?) /* app %d */", app), 1)
		}
	}
	if k.base.Prepared > 6 {
		t.Errorf("have: %d prepared statements for 30 executions of 3 queries\nwant: at most 6", k.base.Prepared)
	}
}
