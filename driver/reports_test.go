package driver

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	testcases "github.com/shardkey/shardkey/internal/test/cases"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

type reportTrigger struct {
	name string
	ddl  []string
}

// reportTriggers are the triggers of t. log (id, n) has AUTO_INCREMENT, called(n) inserts into it.
var reportTriggers = []reportTrigger{
	{"none", nil},
	{"BEFORE INSERT sets a column", []string{"BEFORE INSERT ON t FOR EACH ROW SET NEW.a = COALESCE(NEW.a, 3)"}},
	{"AFTER INSERT inserts", []string{"AFTER INSERT ON t FOR EACH ROW INSERT INTO log (n) VALUES (NEW.u)"}},
	{"BEFORE UPDATE sets a column", []string{"BEFORE UPDATE ON t FOR EACH ROW SET NEW.s = 'updated'"}},
	{"AFTER UPDATE inserts", []string{"AFTER UPDATE ON t FOR EACH ROW INSERT INTO log (n) VALUES (NEW.u)"}},
	{"AFTER DELETE inserts", []string{"AFTER DELETE ON t FOR EACH ROW INSERT INTO log (n) VALUES (OLD.u)"}},
	{"LAST_INSERT_ID(expr)", []string{"BEFORE INSERT ON t FOR EACH ROW SET NEW.s = LAST_INSERT_ID(123)",
		"BEFORE UPDATE ON t FOR EACH ROW SET NEW.s = LAST_INSERT_ID(124)"}},
	{"procedure and function", []string{"BEFORE INSERT ON t FOR EACH ROW SET NEW.s = called(NEW.u)",
		"AFTER UPDATE ON t FOR EACH ROW CALL logged(NEW.u)"}},
	{"SIGNAL", []string{"BEFORE INSERT ON t FOR EACH ROW IF NEW.u = 13 THEN SIGNAL SQLSTATE '45000'; END IF",
		"BEFORE UPDATE ON t FOR EACH ROW IF NEW.a = 13 THEN SIGNAL SQLSTATE '45000'; END IF"}},
}

// Triggers and stored functions don't change what a statement reports.
func TestReports_triggersAndFunctions(t *testing.T) {
	onEachAndOldest(t, testReports_triggersAndFunctions)
}

func testReports_triggersAndFunctions(t *testing.T) {
	var variants []variant
	var all [][2]side
	for _, sh := range shapes[:2] {
		for _, params := range []string{"", "clientFoundRows=true", "interpolateParams=true"} {
			v := variant{shape: sh, params: params}
			variants = append(variants, v)
			all = append(all, reportSides(t, v))
		}
	}
	for at, tr := range reportTriggers {
		for _, both := range all {
			tr.create(t, both)
		}
		for i, line := range testcases.Read(t, "testdata/reports.txt", 2) {
			st := q(line[0], argsOf(line[1])...)
			n := at + i // each statement runs in other ways with each trigger
			v := variants[n%len(variants)]
			if v.prepared = n/len(variants)%2 == 1; tr.differs(st, v) {
				continue
			}
			rows := q("INSERT INTO t (id, u, a) VALUES (5, 1, 1), (6, 2, 2), (7, 3, 3)")
			c := differentialCase{st.text, []step{rows, st, q("INSERT INTO child (t_id) VALUES (LAST_INSERT_ID())")}}
			t.Run(tr.name+"/"+v.String()+"/"+st.text, func(t *testing.T) {
				report(t, c.run(t, all[n%len(variants)], v))
			})
		}
		for _, both := range all {
			tr.drop(t, both)
		}
	}
}

func reportSides(t *testing.T, v variant) [2]side {
	t.Helper()
	both := sides(t, v.params, v.shape)
	for _, s := range both {
		for _, ddl := range []string{
			"CREATE TABLE log (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, n INT) AUTO_INCREMENT = 5000000",
			"CREATE FUNCTION called(x INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO log (n) VALUES (x); RETURN x; END",
			"CREATE PROCEDURE logged(x INT) INSERT INTO log (n) VALUES (x)",
			"CREATE VIEW calling AS SELECT called(8) AS n",
		} {
			mustExec(t, s.db, ddl)
		}
	}
	return both
}

func (tr *reportTrigger) create(t *testing.T, both [2]side) {
	for _, s := range both {
		for i, ddl := range tr.ddl {
			mustExec(t, s.db, fmt.Sprintf("CREATE TRIGGER tr%d %s", i, ddl))
		}
	}
}

func (tr *reportTrigger) drop(t *testing.T, both [2]side) {
	for _, s := range both {
		for i := range tr.ddl {
			mustExec(t, s.db, fmt.Sprintf("DROP TRIGGER tr%d", i))
		}
	}
}

// differs reports whether docs/reference/sql.md lists a difference.
func (tr *reportTrigger) differs(st step, v variant) bool {
	updates := slices.ContainsFunc(tr.ddl, func(ddl string) bool { return strings.Contains(ddl, "UPDATE ON") })
	byKey := v.params == "clientFoundRows=true" && strings.Contains(st.text, "(5, 11, 1) ON DUPLICATE KEY UPDATE a = 1")
	return updates && (byKey || strings.Contains(st.text, "LAST_INSERT_ID(id)")) || byKey && v.shape.name == "AUTO_INCREMENT"
}

// Triggers don't hide the key of a row from WithKeys.
func TestReports_keysOfUpserts(t *testing.T) { onEachAndOldest(t, testReports_keysOfUpserts) }

func testReports_keysOfUpserts(t *testing.T) {
	both := reportSides(t, variant{shape: shapes[0], params: "clientFoundRows=true"})
	ours := both[1].db
	ours.SetMaxOpenConns(1)
	for _, tr := range reportTriggers {
		tr.create(t, both)
		for _, us := range [][]any{{11}, {1}, {11, 12}, {1, 11}, {11, 2}} {
			for _, a := range []int{9, 1} { // changed or not
				mustExec(t, ours, "DELETE FROM t")
				mustExec(t, ours, "INSERT INTO t (id, u, a) VALUES (5, 1, 1), (6, 2, 1)")
				query := "INSERT INTO t (u, a) VALUES (?, 1)" + strings.Repeat(", (?, 1)", len(us)-1) + fmt.Sprintf(" ON DUPLICATE KEY UPDATE a = %d", a)
				var keys Keys
				_, err := ours.ExecContext(WithKeys(t.Context(), &keys), query, us...)
				noError(t, err)
				var want []string
				for _, u := range us {
					want = append(want, strings.Trim(readAll(t, ours, fmt.Sprintf("SELECT id FROM t WHERE u = %d", u)), "[]"))
				}
				equal(t, fmt.Sprint(keys.Values()), fmt.Sprint(want), tr.name, query, us)
			}
		}
		tr.drop(t, both)
	}
}

func TestMayCallFunctions(t *testing.T) {
	for _, c := range testcases.Read(t, "testdata/functions.txt", 2) {
		equal(t, fmt.Sprint(mayCallFunctions(c[1])), c[0], c[1])
	}
}

// splitting is a base connector like a proxy that splits reads and writes: it sends a SELECT to a
// replica, which lags behind.
type splitting struct {
	primary, replica driver.Connector
	keeps            *regexp.Regexp // the SELECTs for the primary
	kept             string         // the latest of them
}

func (c *splitting) Driver() driver.Driver { return c.primary.Driver() }

func (c *splitting) Connect(ctx context.Context) (driver.Conn, error) {
	primary, err := c.primary.Connect(ctx)
	if err != nil {
		return nil, err
	}
	replica, err := c.replica.Connect(ctx)
	return &splittingConn{primary, replica, c}, err
}

type splittingConn struct {
	driver.Conn
	replica driver.Conn
	of      *splitting
}

func (c *splittingConn) Close() error { return errors.Join(c.Conn.Close(), c.replica.Close()) }

func (c *splittingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *splittingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	to := c.Conn
	switch keeps := c.of.keeps.MatchString(query); {
	case keeps:
		c.of.kept = query
	case strings.HasPrefix(query, "SELECT"):
		to = c.replica
	}
	return to.(driver.QueryerContext).QueryContext(ctx, query, args)
}

// Behind a proxy that splits reads and writes, the keys come from the primary. If they can't, a
// warning is logged.
func TestReports_behindSplittingProxy(t *testing.T) {
	onEachAndOldest(t, testReports_behindSplittingProxy)
}

func testReports_behindSplittingProxy(t *testing.T) {
	const query, none, table = "^SELECT.*FOR UPDATE$|^SELECT LAST_INSERT_ID", "^SELECT LAST_INSERT_ID", "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, u INT UNIQUE, a INT)"
	for _, c := range []struct {
		name, keeps, query, want string
		warns                    bool
	}{
		{"IGNORE", query, "INSERT IGNORE INTO ruled (u) VALUES (11), (12), (1)", "[1001 1002 <nil>]", false},
		{"upsert", query, "INSERT INTO ruled (u, a) VALUES (11, 1), (1, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)", "[1001 7]", false},
		{"upsert of its own row", query, "INSERT INTO ruled (u, a) VALUES (11, 1), (11, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)", "[1001 <nil>]", false},
		{"REPLACE", query, "REPLACE INTO ruled (u, a) VALUES (11, 1), (1, 2)", "[1001 1002]", false},
		{"IGNORE on a replica", none, "INSERT IGNORE INTO ruled (u) VALUES (11), (12), (1)", "[<nil> <nil> <nil>]", true},
		{"upsert on a replica", none, "INSERT INTO ruled (u, a) VALUES (11, 1), (12, 1), (1, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)", "[<nil> <nil> <nil>]", true},
		{"REPLACE on a replica", none, "REPLACE INTO ruled (u, a) VALUES (11, 1), (1, 2)", "[<nil> <nil>]", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := &splitting{keeps: regexp.MustCompile(c.keeps)}
			for i, to := range []*driver.Connector{&base.primary, &base.replica} {
				cfg := must(mysql.ParseDSN(testserver.Database(t)))(t)
				*to = must(mysql.NewConnector(cfg))(t)
				db := sql.OpenDB(*to)
				defer db.Close()
				mustExec(t, db, table)
				if i == 0 {
					mustExec(t, db, "INSERT INTO ruled VALUES (7, 1, 1)")
				}
			}
			var made int64
			var log bytes.Buffer
			connector := must(NewConnector(base, scriptRule(t, counted(&made), "ruled.id"), WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))(t)
			db := sql.OpenDB(connector)
			defer db.Close()
			var keys Keys
			_, err := db.ExecContext(WithKeys(t.Context(), &keys), c.query)
			noError(t, err)
			equal(t, fmt.Sprint(keys.Values()), c.want)
			equal(t, strings.Contains(log.String(), "keys of an INSERT are unknown"), c.warns, log.String())
		})
	}
}

// Explicit keys are reported as the server stores them, and readers of session variables see the
// LAST_INSERT_ID() of an AUTO_INCREMENT column.
func TestReports_keysAndReaders(t *testing.T) { onEachAndOldest(t, testReports_keysAndReaders) }

func testReports_keysAndReaders(t *testing.T) {
	var cs []differentialCase
	for _, key := range []any{" 12", "12 ", "\t12", "+12", "012", "12.0", "12.", 12.0, true, []byte(" 12"), uint64(12)} {
		cs = append(cs, differentialCase{fmt.Sprintf("%T %q", key, fmt.Sprint(key)), []step{q("INSERT INTO t (id, a) VALUES (?, 1)", key)}})
	}
	for _, key := range []string{"' 12'", "'12 '", "'012'", "12.0", "'12.0'", "TRUE", "0xC"} {
		cs = append(cs, differentialCase{key, []step{q("INSERT INTO t (id, a) VALUES (" + key + ", 1)")}})
	}
	for _, reader := range []string{
		"SHOW VARIABLES WHERE Variable_name = 'identity'",
		"SHOW SESSION VARIABLES WHERE Variable_name IN ('identity')",
		"SHOW VARIABLES LIKE '%insert_i%'",
		"SHOW VARIABLES LIKE 'iden%'",
	} {
		cs = append(cs, differentialCase{reader, []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT IGNORE INTO t (u) VALUES (1)"), q(reader)}})
	}
	for _, query := range []string{
		"INSERT INTO t (id, a) SELECT 9, LAST_INSERT_ID(5)", "INSERT INTO t (a) SELECT LAST_INSERT_ID(5)", "INSERT INTO t (id, a) SELECT 9, LAST_INSERT_ID()",
		"INSERT INTO t (a) SELECT LAST_INSERT_ID(5) FROM t WHERE id > 60", "INSERT INTO t (a, u) SELECT LAST_INSERT_ID(6), 1", "INSERT IGNORE INTO t (a, u) SELECT LAST_INSERT_ID(6), 1",
		"INSERT INTO t (a, u) SELECT LAST_INSERT_ID(6), 1 ON DUPLICATE KEY UPDATE a = 8", "INSERT INTO t (a, u) SELECT 3, 1 ON DUPLICATE KEY UPDATE a = LAST_INSERT_ID(7)",
	} {
		cs = append(cs, differentialCase{query, []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("DO LAST_INSERT_ID(77)"), q(query), q("SELECT LAST_INSERT_ID()")}})
	}
	both := sides(t, "", shapes[0])
	for _, c := range cs {
		for _, prepared := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) { report(t, c.run(t, both, variant{shape: shapes[0], prepared: prepared})) })
		}
	}
}

// Exec of an INSERT … RETURNING reports no insert ID, as without shardkey.
func TestReports_execReturning(t *testing.T) { onEach(t, testReports_execReturning) }

func testReports_execReturning(t *testing.T) {
	if !hasReturning(t) {
		return
	}
	for _, s := range sides(t, "multiStatements=true", shapes[1]) {
		for _, query := range []string{"INSERT INTO t (u) VALUES (1) RETURNING id", "INSERT INTO t (u) VALUES (2); INSERT INTO child (a) VALUES (3) RETURNING id"} {
			id, err := mustExec(t, s.db, query).LastInsertId()
			check(t, err)
			equal(t, id, 0, s.plain, query)
		}
	}
}

// The error about a key column that the table lacks names the rule, if the program doesn't name the
// column.
func TestReports_missingKeyColumn(t *testing.T) { onEachAndOldest(t, testReports_missingKeyColumn) }

func testReports_missingKeyColumn(t *testing.T) {
	var made int64
	ours, plain := openScripted(t, scriptRule(t, counted(&made), "ruled.id"), "multiStatements=true")
	mustExec(t, plain, "CREATE TABLE ruled (u INT UNIQUE, a INT)")
	for _, c := range []struct {
		query string
		args  []any
		rules bool // the error names the rule
	}{
		{"INSERT INTO ruled (u) VALUES (1)", nil, true},
		{"INSERT INTO ruled (u) VALUES (?)", []any{1}, true},
		{"REPLACE INTO ruled SET u = 1", nil, true},
		{"INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE a = 2", nil, true},
		{"INSERT INTO ruled (u) SELECT 1", nil, true},
		{"INSERT INTO ruled (u) VALUES (1); INSERT INTO ruled (u) VALUES (2)", nil, true},
		{"INSERT INTO ruled (id, u) VALUES (NULL, 1)", nil, false},
		{"INSERT INTO ruled (id, u) VALUES (NULL, 1) ON DUPLICATE KEY UPDATE a = 2", nil, false},
		{"INSERT INTO ruled SET id = 0, u = 1", nil, false},
		{"INSERT INTO ruled (nothing) VALUES (1)", nil, false},
		{"INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE nothing = 2", nil, true},
	} {
		_, err := ours.Exec(c.query, c.args...)
		_, same := err.(*mysql.MySQLError)
		var my *mysql.MySQLError
		if !errors.As(err, &my) || my.Number != 1054 || same == c.rules || c.rules != strings.Contains(err.Error(), "column id, which the rule names") {
			t.Errorf("%s\nhave: %v", c.query, err)
		}
	}
}

// The query for keys has FOR UPDATE, but it locks no row and no gap, and needs no privilege but SELECT.
func TestReports_queryLocksNothing(t *testing.T) { onEachAndOldest(t, testReports_queryLocksNothing) }

func testReports_queryLocksNothing(t *testing.T) {
	connector := must(mysql.NewConnector(must(mysql.ParseDSN(testserver.Database(t)))(t)))(t)
	base := &splitting{primary: connector, replica: connector, keeps: regexp.MustCompile("FOR UPDATE$")}
	var made int64
	root, db := sql.OpenDB(connector), sql.OpenDB(mustConnector(t, base, scriptRule(t, counted(&made), "ruled.id")))
	defer root.Close()
	defer db.Close()
	mustExec(t, root, "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, u INT UNIQUE, a INT) ENGINE = InnoDB")
	mustExec(t, root, "INSERT INTO ruled VALUES (7, 1, 1)")
	_, user := openAs(t, root, "SELECT, INSERT ON ruled")
	mustExec(t, db, "INSERT IGNORE INTO ruled (u) VALUES (1), (11)")
	mustExec(t, root, "DELETE FROM ruled WHERE id = 1002") // so that the query reads a gap

	reader := must(user.BeginTx(t.Context(), nil))(t)
	defer reader.Rollback()
	equal(t, readAll(t, reader, strings.Replace(base.kept, "1001", "7", 1)), "[7]", base.kept)
	writer := must(root.Conn(t.Context()))(t)
	defer writer.Close()
	for _, query := range []string{"SET innodb_lock_wait_timeout = 1", "INSERT INTO ruled VALUES (1002, 12, 1)", "UPDATE ruled SET a = 2 WHERE id = 7"} {
		mustExec(t, writer, query)
	}
}
