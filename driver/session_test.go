package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
	testcases "github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// These tests change the session and the tables that shardkey has metadata of.

// one opens a database whose pool has one connection.
func one(t *testing.T, params ...string) (ours, plain *sql.DB) {
	t.Helper()
	ours, plain = openFilled(t, params...)
	ours.SetMaxOpenConns(1)
	return ours, plain
}

// keyless counts the rows of ruled without a generated key.
func keyless(t *testing.T, db *sql.DB, table string) int64 {
	t.Helper()
	return number(t, db, "SELECT COUNT(*) FROM "+table+" WHERE id IS NULL OR id <= 0 OR id > 999")
}

// The columns of these tables are unusual.
func TestSession_unusualTables(t *testing.T) { onEach(t, testSession_unusualTables) }

func testSession_unusualTables(t *testing.T) {
	for _, table := range []struct{ ddl, values string }{
		{"CREATE TABLE ruled (a INT, id BIGINT NOT NULL PRIMARY KEY)", "1, NULL"},
		{"CREATE TABLE ruled (a INT, id BIGINT NOT NULL PRIMARY KEY, b INT INVISIBLE)", "1, DEFAULT"},
		{"CREATE TABLE ruled (id BIGINT NOT NULL INVISIBLE DEFAULT 0 PRIMARY KEY, a INT)", "1"},
		{"CREATE TABLE ruled (a INT, id BIGINT NOT NULL INVISIBLE DEFAULT 0 PRIMARY KEY, b INT)", "1, 2"},
		{"CREATE TABLE ruled (g INT AS (a + 1) STORED, a INT, id BIGINT NOT NULL PRIMARY KEY)", "DEFAULT, 1, 0"},
		{"CREATE TABLE ruled (a INT, v INT AS (a) VIRTUAL, id BIGINT NOT NULL PRIMARY KEY)", "1, DEFAULT, NULL"},
		{"CREATE TABLE ruled (ID BIGINT NOT NULL PRIMARY KEY, `a b` INT, `q``q` INT)", "NULL, 1, 2"},
		{"CREATE TABLE base (id BIGINT NOT NULL PRIMARY KEY, a INT); CREATE VIEW ruled AS SELECT a, id FROM base", "1, NULL"},
		{"CREATE TABLE ruled (id BIGINT NOT NULL, a INT NOT NULL, PRIMARY KEY (id, a)) PARTITION BY HASH (a) PARTITIONS 3", "0, 1"},
		{"CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, a INT) ENGINE=MyISAM", "0, 1"},
		{"CREATE TABLE ruled (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT=5000", "0, 1"},
		{"CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, a INT NOT NULL AUTO_INCREMENT UNIQUE)", "0, NULL"},
	} {
		ours, plain := one(t, "multiStatements=true")
		mustExec(t, plain, "DROP TABLE ruled")
		mustExec(t, plain, table.ddl)
		rows := int64(0)
		for _, query := range []string{
			"INSERT INTO ruled VALUES (" + table.values + ")",
			"INSERT INTO ruled VALUES (" + table.values + "), (" + table.values + ")",
			"REPLACE INTO ruled VALUES (" + table.values + ")",
		} {
			res, err := ours.Exec(query)
			if err != nil {
				t.Errorf("%s\n%s: %v", table.ddl, query, err)
				continue
			}
			n, _ := res.RowsAffected()
			rows += n
		}
		if !strings.Contains(table.values, "DEFAULT") {
			mustExec(t, ours, "INSERT INTO ruled SELECT "+table.values)
			rows++
		}
		if n := number(t, plain, "SELECT COUNT(*) FROM ruled"); n != rows || rows < 4 || keyless(t, plain, "ruled") != 0 {
			t.Errorf("%s\n%d rows of %d: %s", table.ddl, n, rows, column(t, plain, "SELECT id FROM ruled"))
		}
	}
}

const (
	keyFirst = "(id BIGINT PRIMARY KEY, a INT)"
	keyLast  = "(a INT, id BIGINT PRIMARY KEY)"
)

// Columns that the same connection alters are known immediately.
func TestColumns_alteredByOwnConnection(t *testing.T) {
	onEach(t, testColumns_alteredByOwnConnection)
}

func testColumns_alteredByOwnConnection(t *testing.T) {
	ours, plain := one(t, "multiStatements=true")
	mustExec(t, plain, "CREATE PROCEDURE alter_it() ALTER TABLE ruled MODIFY a INT AFTER id")
	mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 1)")
	inserted := 1
	last := true
	for _, alter := range []string{
		"ALTER TABLE ruled MODIFY a INT FIRST",
		"CALL alter_it()",
		"DO 1; ALTER TABLE ruled MODIFY a INT FIRST",
		"CREATE TABLE other LIKE ruled; ALTER TABLE other MODIFY a INT AFTER id; RENAME TABLE ruled TO old, other TO ruled",
		"/* x */ drop table ruled; create table ruled " + keyLast,
		"PREPARE p FROM 'ALTER TABLE ruled MODIFY a INT AFTER id'",
		"EXECUTE p",
	} {
		mustExec(t, ours, alter)
		if alter[:7] == "PREPARE" {
			continue
		}
		inserted++
		if last {
			mustExec(t, ours, "INSERT INTO ruled VALUES (-5, NULL)")
		} else {
			mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, -5)")
		}
		last = !last
		if n := number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0 AND a = -5"); n == 0 {
			t.Errorf("after %s: %s", alter, column(t, plain, "SELECT CONCAT(id, ':', a) FROM ruled"))
		}
		mustExec(t, plain, "DELETE FROM ruled")
	}
}

// Columns that another connection alters are noticed in time. Until then, the key is still in its
// column.
func TestColumns_alteredByOthers(t *testing.T) { onEach(t, testColumns_alteredByOthers) }

func testColumns_alteredByOthers(t *testing.T) {
	for _, params := range bothWays {
		t.Run(params, func(t *testing.T) {
			ours, plain := one(t, params)
			prepared := must(ours.Prepare("INSERT INTO ruled VALUES (?, ?)"))(t)
			defer prepared.Close()
			mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, -5)")
			mustExec(t, ours, "INSERT INTO ruled VALUES (?, ?)", nil, -5)
			mustExec(t, plain, "ALTER TABLE ruled MODIFY a INT FIRST")
			check := func(res sql.Result, err error) {
				t.Helper()
				noError(t, err)
				id, err := res.LastInsertId()
				if n := number(t, plain, fmt.Sprintf("SELECT COUNT(*) FROM ruled WHERE id = %d AND a = -5", id)); n != 1 || err != nil {
					t.Errorf("%d is reported: %v, %s", id, err, column(t, plain, "SELECT CONCAT(id, ':', a) FROM ruled"))
				}
			}
			check(ours.Exec("INSERT INTO ruled VALUES (NULL, -5)"))
			check(ours.Exec("INSERT INTO ruled VALUES (?, ?)", nil, -5))
			check(prepared.Exec(nil, -5))
			check(ours.Exec("INSERT INTO ruled VALUES (77, -5)"))
			mustExec(t, ours, endsFacts)
			check(prepared.Exec(-5, nil))
			check(ours.Exec("INSERT INTO ruled VALUES (-5, NULL)"))
			check(ours.Exec("INSERT INTO ruled VALUES (?, ?)", -5, nil))
			check(ours.Exec("INSERT INTO ruled SELECT -5, NULL"))
		})
	}
}

// Columns are queried once in ten seconds.
func TestColumns_areCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &fakedb.Server{Columns: [][2]string{{"id", "bigint"}, {"a", "int"}}}
		db, _ := openFake(t, base, generatorRule(t, counted(), "ruled.id"), Config{Server: "mysql"})
		asked := func() int { return base.Count("queryContext SELECT * FROM") + base.Count("queryContext SHOW FULL") }
		mustExec(t, db, "INSERT INTO ruled VALUES (NULL, 1)")
		first := asked()
		for round := range 3 {
			for i := range 50 {
				mustExec(t, db, fmt.Sprintf("INSERT INTO ruled VALUES (NULL, %d)", i))
				mustExec(t, db, "INSERT INTO ruled VALUES (?, ?)", nil, i)
			}
			equal(t, asked(), first+round, "questions")
			time.Sleep(11 * time.Second)
		}
	})
}

// A temporary table has its own columns, in its session only.
func TestColumns_temporaryTable(t *testing.T) { onEach(t, testColumns_temporaryTable) }

func testColumns_temporaryTable(t *testing.T) {
	ours, plain := openFilled(t)
	mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 1)")
	hiding := must(ours.Conn(t.Context()))(t)
	defer hiding.Close()
	exec := func(query string) {
		t.Helper()
		mustExec(t, hiding, query)
	}
	exec("CREATE TEMPORARY TABLE ruled (a INT, b INT, id BIGINT)")
	for range 2 {
		exec("INSERT INTO ruled VALUES (-5, 2, NULL)")
		exec("INSERT INTO ruled SELECT -5, 2, NULL")
		mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 1)")
		mustExec(t, ours, "INSERT INTO ruled SELECT NULL, 1")
	}
	var n int
	if err := hiding.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM ruled WHERE id > 0 AND a = -5").Scan(&n); err != nil || n != 4 {
		t.Errorf("%d rows in the temporary table, %v", n, err)
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0 AND a = 1"), 5, "rows in the table")
}

// Names of columns that aren't in ASCII work in each session's character set.
func TestColumns_inEachCharacterSet(t *testing.T) { onEach(t, testColumns_inEachCharacterSet) }

func testColumns_inEachCharacterSet(t *testing.T) {
	ours, plain := openScripted(t, generatorRule(t, counted(), "ruled.id", "ru.ключ"), "charset=latin1")
	for _, query := range []string{"SET NAMES utf8", "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, `ünï` INT)", "CREATE TABLE ru (a INT, `ключ` BIGINT NOT NULL PRIMARY KEY)"} {
		plain.SetMaxOpenConns(1)
		mustExec(t, plain, query)
	}
	a, b := pinned(t, ours), pinned(t, ours)
	mustExec(t, b, "SET NAMES utf8mb4")
	for range 2 {
		for _, conn := range []*sql.Conn{a, b} {
			mustExec(t, conn, "INSERT INTO ruled VALUES (NULL, 1)")
			mustExec(t, conn, "INSERT INTO ruled SELECT NULL, 1")
			mustExec(t, conn, "INSERT INTO ruled VALUES (NULL, ?)", 1)
		}
		mustExec(t, a, "SET NAMES utf8mb4")
		mustExec(t, b, "SET NAMES latin1")
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0 AND `ünï` = 1"), 12, "rows")
	mustExec(t, a, "SET NAMES latin1")
	for _, query := range []string{"INSERT INTO ru VALUES (1, NULL)", "INSERT INTO ru (a) VALUES (1)", "INSERT INTO ru SELECT 1, NULL", "SET character_set_results = utf8", "INSERT INTO ruled VALUES (NULL, 1)"} {
		if _, err := a.ExecContext(t.Context(), query); !strings.HasPrefix(query, "SET") && !errors.Is(err, ErrUnsupportedStatement) {
			t.Errorf("%s\nhave: %v\nwant: refused", query, err)
		}
	}
}

// The names of columns are read without the table's name that a parameter of go-sql-driver adds.
func TestColumns_withAlias(t *testing.T) { onEach(t, testColumns_withAlias) }

func testColumns_withAlias(t *testing.T) {
	ours, plain := openFilled(t, "columnsWithAlias=true")
	schema := column(t, plain, "SELECT DATABASE()")
	for _, query := range []string{"INSERT INTO ruled VALUES (NULL, 1)", "INSERT INTO RULED VALUES (0, 1)", "REPLACE " + schema + ".ruled VALUES (DEFAULT, 1)", "INSERT INTO ruled SELECT NULL, 1"} {
		if query == "INSERT INTO RULED VALUES (0, 1)" && number(t, plain, "SELECT @@lower_case_table_names") == 0 {
			query = strings.ToLower(query)
		}
		mustExec(t, ours, query)
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0 AND a = 1"), 4, "rows")
}

// A user with only the INSERT privilege needs no column list.
func TestColumns_withoutSelectPrivilege(t *testing.T) { onEach(t, testColumns_withoutSelectPrivilege) }

func testColumns_withoutSelectPrivilege(t *testing.T) {
	_, plain := openFilled(t)
	mustExec(t, plain, "ALTER TABLE ruled ADD inv INT INVISIBLE, ADD g INT AS (a + 1) STORED")
	db, _ := openAs(t, plain, "INSERT ON ruled")
	mustExec(t, db, "INSERT INTO ruled VALUES (NULL, 1, DEFAULT)")
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0 AND a = 1"), 1, "rows")
}

// Metadata queries work in spite of the session's limits.
func TestSession_asksUnderSelectLimit(t *testing.T) { onEach(t, testSession_asksUnderSelectLimit) }

func testSession_asksUnderSelectLimit(t *testing.T) {
	for _, limit := range []string{"0", "1"} {
		ours, plain := one(t)
		mustExec(t, ours, "SET sql_mode = 'ANSI_QUOTES', sql_select_limit = "+limit)
		mustExec(t, ours, `INSERT INTO "ruled" (a) VALUES (1)`)
		mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 2)")
		mustExec(t, ours, "INSERT INTO ruled SELECT NULL, 3")
		mustExec(t, ours, "INSERT INTO ruled (a) SELECT a FROM ruled AS r WHERE a < 3")
		equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0"), 5, "limit", limit, "rows")
		mustExec(t, plain, "INSERT INTO ruled VALUES (5000, 0)")
		var keys Keys
		res := must(ours.ExecContext(WithKeys(t.Context(), &keys), "INSERT IGNORE INTO ruled (id, a) VALUES (NULL, 1), (5000, 2), (NULL, 3), (NULL, 4)"))(t)
		if id, _ := res.LastInsertId(); id <= 0 || fmt.Sprint(keys.Values()) != fmt.Sprintf("[%d <nil> %d %d]", id, id+1, id+2) {
			t.Errorf("limit %s: %d, %v", limit, id, keys.Values())
		}
		mustExec(t, plain, "ALTER TABLE ruled ADD u INT UNIQUE")
		_, err := ours.ExecContext(WithKeys(t.Context(), &keys), "INSERT IGNORE INTO ruled (a, u) SELECT 1, 1 UNION ALL SELECT 1, 1 UNION ALL SELECT 1, 2")
		if values := keys.Values(); err != nil || len(values) != 3 || values[0] == nil || values[1] != nil || values[2] == nil {
			t.Errorf("limit %s: %v, %v", limit, keys.Values(), err)
		}
	}
}

// Unreadable metadata is an error if it is needed.
func TestSession_answersInUTF16(t *testing.T) { onEach(t, testSession_answersInUTF16) }

func testSession_answersInUTF16(t *testing.T) {
	ours, plain := one(t)
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (1)") // and the server's kind is known
	mustExec(t, ours, "SET sql_mode = 'ANSI_QUOTES', character_set_results = utf16")
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (1)")
	for _, query := range []string{`INSERT INTO "ruled" (a) VALUES (1)`, "INSERT INTO ruled VALUES (NULL, 1)", "INSERT INTO ruled SELECT NULL, 1"} {
		if _, err := ours.Exec(query); !errors.Is(err, ErrUnsupportedStatement) || !strings.Contains(err.Error(), "character_set_results") {
			t.Errorf("%s: %v", query, err)
		}
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 2, "rows")
}

// transactionSides opens a database with a rule and one with AUTO_INCREMENT, each on one
// connection without cached metadata.
func transactionSides(t *testing.T, tables int) (ours, plain *sql.Conn) {
	t.Helper()
	var columns []string
	made := counted()
	for i := range tables {
		columns = append(columns, fmt.Sprintf("t%d.id", i))
	}
	open := func(db *sql.DB, auto string) *sql.Conn {
		for i := range tables {
			mustExec(t, db, fmt.Sprintf("CREATE TABLE t%d (id BIGINT NOT NULL%s PRIMARY KEY, u INT UNIQUE)", i, auto))
		}
		c := must(db.Conn(context.Background()))(t)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	through, _ := openScripted(t, generatorRule(t, made, columns...), "multiStatements=true")
	_, direct := openScripted(t, generatorRule(t, made, "t0.id"), "multiStatements=true")
	return open(through, ""), open(direct, " AUTO_INCREMENT")
}

// The characteristics of SET TRANSACTION apply to the program's next statement, and to no other.
func TestTransaction_oneShotReachesInsert(t *testing.T) {
	onEach(t, testTransaction_oneShotReachesInsert)
}

func testTransaction_oneShotReachesInsert(t *testing.T) {
	ctx := context.Background()
	for _, c := range [][]string{
		{"SET TRANSACTION READ ONLY", "INSERT INTO t0 (u) VALUES (1)", "COMMIT", "INSERT INTO t1 (u) VALUES (1)"},
		{"SET TRANSACTION READ ONLY", "INSERT INTO t0 VALUES (NULL, 1)", "INSERT INTO t1 VALUES (NULL, 1)"},
		{"INSERT INTO t0 (u) VALUES (1)", "!INSERT INTO t0 (u) VALUES (1)", "SET TRANSACTION READ ONLY", "INSERT INTO t0 (u) VALUES (LAST_INSERT_ID())"},
		{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY", "SET @a = 1", "SELECT 1", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "SELECT COUNT(*) FROM t3", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "INSERT INTO t0 (u) SELECT nope FROM t3", "INSERT INTO t1 (u) SELECT u FROM t3"},
		{"SET TRANSACTION READ ONLY; SET @a = 1", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET SESSION TRANSACTION READ ONLY", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ WRITE", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "SET SESSION tx_read_only = 0", "SET SESSION transaction_read_only = 0", "INSERT INTO t0 VALUES (NULL, 1)", "INSERT INTO t1 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "SET tx_read_only = 0", "SET transaction_read_only = 0", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "SET @@session.tx_isolation = 'SERIALIZABLE'", "SET @@session.transaction_isolation = 'SERIALIZABLE'", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "BEGIN", "COMMIT", "INSERT INTO t0 VALUES (NULL, 1)", "INSERT INTO t1 VALUES (NULL, 1)"},
		{"SET autocommit = 0", "SET TRANSACTION READ ONLY", "INSERT INTO t0 VALUES (NULL, 1)", "ROLLBACK", "INSERT INTO t1 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "INSERT INTO t0 (u) VALUES (1); INSERT INTO t1 (u) VALUES (1)", "INSERT INTO t2 VALUES (NULL, 1)"},
		{"SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "INSERT INTO t0 VALUES (NULL, 1)", "INSERT INTO t0 (u) VALUES (LAST_INSERT_ID() * 0)"},
	} {
		t.Run(strings.Join(c, "; "), func(t *testing.T) {
			ours, plain := transactionSides(t, 4)
			for _, query := range c {
				query, fails := strings.CutPrefix(query, "!")
				_, have := ours.ExecContext(ctx, query)
				_, want := plain.ExecContext(ctx, query)
				if mysqlNumber(have) != mysqlNumber(want) || fails && want == nil {
					t.Errorf("%s\nhave: %v\nwant: %v", query, have, want)
				}
			}
		})
	}
}

// A prepared statement that only passes through is the underlying driver's own. It is the transaction that
// a SET TRANSACTION before or after PREPARE is for.
func TestTransaction_preparedStatement(t *testing.T) { onEach(t, testTransaction_preparedStatement) }

func testTransaction_preparedStatement(t *testing.T) {
	ctx := context.Background()
	ours, plain := transactionSides(t, 3)
	const readOnly, query = "SET TRANSACTION READ ONLY", "SELECT u FROM t0 WHERE u = ?"
	for name, side := range map[string]*sql.Conn{"ours": ours, "plain": plain} {
		before := must(side.PrepareContext(ctx, query))(t)
		mustExec(t, side, readOnly)
		noError(t, drain(before.QueryContext(ctx, 1)), name)
		mustExec(t, side, "INSERT INTO t0 VALUES (NULL, 1)") // without a list of columns, which shardkey asks for

		mustExec(t, side, readOnly)
		after := must(side.PrepareContext(ctx, query))(t)
		noError(t, drain(after.QueryContext(ctx, 1)), name)
		mustExec(t, side, "INSERT INTO t1 VALUES (NULL, 1)")

		mustExec(t, side, readOnly)
		fails(t, errOf(side.ExecContext(ctx, "INSERT INTO t2 VALUES (NULL, 1)")), name+": a read-only transaction")
		check(t, errors.Join(before.Close(), after.Close()))
	}
}

// failingStatements fail on each server, in the session of transactionSides.
var failingStatements = []string{
	"",
	"ROLLBACK TO SAVEPOINT sp", "ROLLBACK TO sp", "RELEASE SAVEPOINT sp", "SET @@no_such = 1", "SET sql_mode = 'NO_SUCH'", "SET @@version = 1",
	"SET NAMES no_such", "USE no_such", "SELECT no_such()", "SELECT no_such", "SELECT no_such FROM t3", "SELECT * FROM no_such", "SELECT * FROM no_such.t", "SELECT u FROM t3, t2",
	"INSERT INTO t0 (no_such) VALUES (1)", "INSERT INTO t0 (u) VALUES (1, 2)", "INSERT INTO t0 (u) VALUES ('x')", "INSERT INTO t0 (id, u) VALUES (7, 99999999999)",
	"INSERT INTO t3 (u) VALUES (8), (8)", "INSERT INTO t3 (u) SELECT 8 UNION ALL SELECT 8", "UPDATE t3 SET no_such = 1", "UPDATE t3 SET u = 'x' WHERE u = 0", "DELETE FROM no_such",
	"CALL no_such()", "EXECUTE no_such", "DEALLOCATE PREPARE no_such", "PREPARE p FROM 'no such'", "PREPARE p FROM 'SELECT * FROM no_such'", "SHOW COLUMNS FROM no_such", "SHOW CREATE TABLE no_such",
	"LOCK TABLES no_such WRITE", "CREATE TABLE t0 (a INT)", "DROP TABLE no_such", "ALTER TABLE no_such ADD a INT", "TRUNCATE TABLE no_such", "no such", "KILL 99999999", "DO no_such()",
	"SELECT 9223372036854775807 + 1", "SELECT (SELECT 1 UNION ALL SELECT 2)", "SELECT EXP(1000)", "XA COMMIT 'x'", "HANDLER t3 READ FIRST", "ANALYZE no_such", "SELECT u FROM t3 GROUP BY", "INSERT INTO no_such VALUES (1)",
	"REPLACE INTO t3 (u, u) VALUES (1, 1)", "SELECT (SELECT u FROM t3 UNION ALL SELECT 1 UNION ALL SELECT 2)", "GRANT SELECT ON no_such TO no_such",
	"CREATE TABLE x LIKE no_such", "CREATE TABLE x SELECT * FROM no_such", "RENAME TABLE no_such TO x", "CREATE INDEX i ON no_such (a)", "CREATE TRIGGER g BEFORE INSERT ON no_such FOR EACH ROW SET @a = 1",
	"LOAD DATA INFILE 'no_such' INTO TABLE no_such", "REPLACE INTO no_such VALUES (1)", "HANDLER no_such OPEN", "/* a */ ROLLBACK WORK TO SAVEPOINT sp", "ROLLBACK TO `sp`", "CALL no_such.no_such(1)", "EXECUTE no_such USING @a", "SELECT no_such.no_such()",
	"UPDATE no_such SET a = 1", "UPDATE t3, no_such SET u = 1", "SELECT * FROM t3 JOIN no_such", "DROP USER no_such", "DROP DATABASE no_such", "CREATE VIEW v AS SELECT * FROM no_such", "DROP VIEW no_such", "DROP PROCEDURE no_such", "DROP TRIGGER no_such",
}

// The characteristics of SET TRANSACTION still apply after a statement that fails before it uses a
// table, and no longer after one that fails later.
func TestTransaction_oneShotAfterAFailure(t *testing.T) {
	onEach(t, testTransaction_oneShotAfterAFailure)
}

func testTransaction_oneShotAfterAFailure(t *testing.T) {
	const tables = 100 // the first INSERT into each needs metadata queries
	ours, plain := transactionSides(t, tables)
	both := func(failing, query string) (want error) {
		_, have := ours.ExecContext(t.Context(), query)
		_, want = plain.ExecContext(t.Context(), query)
		// An INSERT … SELECT is refused while the characteristics apply.
		if mysqlNumber(have) != mysqlNumber(want) && !(errors.Is(have, ErrUnsupportedStatement) && mysqlNumber(want) == 1792) {
			t.Errorf("%s: %s\nhave: %v\nwant: %v", failing, query, have, want)
		}
		return want
	}
	for i, failing := range failingStatements {
		both(failing, "SET TRANSACTION READ ONLY")
		if both(failing, failing) == nil {
			t.Errorf("%s does not fail", failing)
		}
		both(failing, fmt.Sprintf("INSERT INTO t%d VALUES (NULL, NULL)", tables-1-i))
		both(failing, "INSERT INTO t1 SELECT NULL, NULL")
		for _, conn := range []*sql.Conn{ours, plain} { // ends the characteristics
			must(conn.ExecContext(t.Context(), "BEGIN"))(t)
			must(conn.ExecContext(t.Context(), "COMMIT"))(t)
		}
	}
}

// A statement that fails after it has begun was the next transaction.
func TestTransaction_oneShotIsUsedByAFailure(t *testing.T) {
	onEach(t, testTransaction_oneShotIsUsedByAFailure)
}

func testTransaction_oneShotIsUsedByAFailure(t *testing.T) {
	ours, _ := transactionSides(t, 2)
	for _, failing := range []string{"INSERT INTO t0 (u) VALUES (8), (8)", "INSERT INTO t0 VALUES (NULL, 8), (NULL, 8)"} {
		must(ours.ExecContext(t.Context(), "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"))(t)
		if _, err := ours.ExecContext(t.Context(), failing); mysqlNumber(err) == 0 {
			t.Errorf("%s\nhave: %v\nwant: an error of the server", failing, err)
		}
		if _, err := ours.ExecContext(t.Context(), "INSERT INTO t1 SELECT NULL, NULL"); err != nil { // refused before a new transaction
			t.Errorf("INSERT … SELECT after %s: %v", failing, err)
		}
	}
}

// Random sequences of statements around SET TRANSACTION return the same errors as without
// shardkey.
func TestTransaction_sameAsPlain(t *testing.T) { onEach(t, testTransaction_sameAsPlain) }

func testTransaction_sameAsPlain(t *testing.T) {
	ctx, r := context.Background(), rand.New(rand.NewPCG(4, 17))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	refused := 0
	for range 12 {
		ours, plain := transactionSides(t, 4)
		var sent []string
		for range 14 {
			table := pick("t0", "t1", "t2", "t3")
			query := pick("SET TRANSACTION READ ONLY", "SET TRANSACTION READ WRITE", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET @a = 1", "SELECT 1",
				"SELECT COUNT(*) FROM t3", "COMMIT", "BEGIN", "SET @@session.autocommit = "+pick("0", "1"), "DO LAST_INSERT_ID(7)", "SELECT LAST_INSERT_ID()",
				"SELECT * FROM nosuch", "no statement", "UPDATE t0 SET u = u", "DELETE FROM t1")
			if r.IntN(2) == 0 {
				value := fmt.Sprint(r.IntN(5))
				query = pick("INSERT INTO "+table+" (u) VALUES ("+value+")", "INSERT INTO "+table+" VALUES (NULL, "+value+")",
					"INSERT IGNORE INTO "+table+" (u) VALUES ("+value+"), (NULL)", "INSERT INTO "+table+" (u) SELECT NULL")
			}
			sent = append(sent, query)
			_, have := ours.ExecContext(ctx, query)
			if errors.Is(have, ErrUnsupportedStatement) {
				refused++
				continue
			}
			_, want := plain.ExecContext(ctx, query)
			if mysqlNumber(have) != mysqlNumber(want) {
				t.Fatalf("%q\nhave: %v\nwant: %v", sent, have, want)
			}
		}
	}
	if refused > 12 {
		t.Errorf("have: %d statements refused\nwant: few", refused)
	}
}

// mysqlNumber returns the number of a server's error, 0 for nil, and -1 for another error.
func mysqlNumber(err error) int {
	if err == nil {
		return 0
	}
	for number := range slices.Values([]uint16{1062, 1064, 1136, 1146, 1568, 1792}) {
		if sqlerr.Is(err, number) {
			return int(number)
		}
	}
	return -1
}

// The INSERT that is sent contains the key column. So a user with privileges on columns needs
// them for that column, too: INSERT, and UPDATE for an upsert on MariaDB, which requires it for every
// column of the INSERT.
func TestGrants_onColumns(t *testing.T) { onEach(t, testGrants_onColumns) }

func testGrants_onColumns(t *testing.T) {
	root := mustOpen(t, "mysql", testserver.Database(t))
	for _, query := range []string{
		"CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(20) UNIQUE, n INT)",
		"CREATE TABLE auto (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) UNIQUE, n INT)",
	} {
		mustExec(t, root, query)
	}
	readsToUpdate := !testserver.Has(t, testserver.MySQL, "upserts of columns that the user may not read")
	const insert, upsert = "INSERT INTO %s (name, n) VALUES ('a', 1)", "INSERT INTO %s (name, n) VALUES ('a', 1) ON DUPLICATE KEY UPDATE n = 5"
	for _, c := range []struct {
		grants, query string
		denied, plain bool // through shardkey and through the plain driver
	}{
		{"INSERT (name, n)", insert, true, false},
		{"INSERT (id, name, n)", insert, false, false},
		{"SELECT, INSERT, UPDATE (n)", upsert, readsToUpdate, readsToUpdate},
		{"SELECT, INSERT, UPDATE (name, n)", upsert, readsToUpdate, false},
		{"SELECT, INSERT, UPDATE (id, name, n)", upsert, false, false},
	} {
		mustExec(t, root, "DELETE FROM ruled")
		mustExec(t, root, "DELETE FROM auto")
		ours, plain := openAs(t, root, c.grants+" ON ruled", c.grants+" ON auto")
		for range 2 {
			_, err := ours.Exec(fmt.Sprintf(c.query, "ruled"))
			isDenied(t, "ours: "+c.grants, err, c.denied)
			_, err = plain.Exec(fmt.Sprintf(c.query, "auto"))
			isDenied(t, "plain: "+c.grants, err, c.plain)
			if !strings.Contains(c.query, "DUPLICATE") {
				break
			}
		}
	}
}

// openAs opens root's database as a user with only these grants on its tables: with the rule of
// taggedRule, and with the plain driver.
func openAs(t *testing.T, root *sql.DB, grants ...string) (ours, plain *sql.DB) {
	t.Helper()
	cfg := must(mysql.ParseDSN(testserver.Database(t)))(t)
	cfg.DBName = column(t, root, "SELECT DATABASE()")
	cfg.User, cfg.Passwd = fmt.Sprintf("sk_%x", rand.Uint32()), "Ttt-123-secret"
	mustExec(t, root, "CREATE USER "+cfg.User+" IDENTIFIED BY 'Ttt-123-secret'")
	t.Cleanup(func() { _, _ = root.Exec("DROP USER " + cfg.User) })
	for _, grant := range grants {
		mustExec(t, root, "GRANT "+strings.ReplaceAll(grant, " ON ", " ON `"+cfg.DBName+"`.")+" TO "+cfg.User)
	}
	return openScriptedOn(t, cfg.FormatDSN(), taggedRule(t, "ruled", 0))
}

func isDenied(t *testing.T, what string, err error, want bool) {
	t.Helper()
	var refused *mysql.MySQLError
	if denied := errors.As(err, &refused) && refused.Number == sqlerr.ColumnDenied; denied != want || err != nil && !denied {
		t.Errorf("%s\nhave: %v\nwant: error 1143: %t", what, err, want)
	}
}

// readingCase is a case of testdata/reading.txt: a statement that follows others on the same
// connection. want has columns of the rows in table ruled, with "key" for a generated key. If want
// is empty, shardkey must refuse the statement and send nothing.
type readingCase struct {
	name   string
	on     testserver.Servers // with the feature
	setup  []string
	query  string
	args   []any
	want   []string
	params string
}

// TestReading_asTheServer checks that shardkey parses statements as the server does, or refuses
// them.
func TestReading_asTheServer(t *testing.T) { onEach(t, testReading_asTheServer) }

func testReading_asTheServer(t *testing.T) {
	for _, cells := range testcases.Read(t, "testdata/reading.txt", 7) {
		c := readingCase{
			name: cells[0], on: testserver.Servers(cells[1]), params: cells[2], query: cells[5], args: argsOf(cells[6]),
		}
		if cells[3] != "" {
			c.setup = strings.Split(cells[3], " / ")
		}
		if cells[4] != "refused" {
			c.want = strings.Split(cells[4], ", ")
		}
		t.Run(c.name, func(t *testing.T) {
			if c.on != "" {
				testserver.Needs(t, c.on, c.name)
			}
			c.run(t)
		})
	}
}

func (c *readingCase) run(t *testing.T) {
	ctx := t.Context()
	// The underlying driver doesn't set a character set without a collation that it knows. SET
	// NAMES does.
	params, setup := []string{"multiStatements=true"}, c.setup
	for param := range strings.SplitSeq(c.params, "&") {
		if charset, ok := strings.CutPrefix(param, "charset="); ok {
			params = append(params, "charset="+charset)
		} else if mode, ok := strings.CutPrefix(param, "sql_mode="); ok {
			setup = append([]string{"SET sql_mode = " + mode}, setup...)
		}
	}
	ours, plain := openFilled(t, params...)
	mustExec(t, plain, "ALTER TABLE ruled ADD s VARCHAR(60) CHARACTER SET utf8mb4")
	conn := must(ours.Conn(ctx))(t)
	defer conn.Close()
	for _, query := range setup {
		must(conn.ExecContext(ctx, query))(t, query)
	}
	_, err := conn.ExecContext(ctx, c.query, c.args...)
	if c.want == nil && !errors.Is(err, ErrUnsupportedStatement) {
		t.Errorf("%q\nhave: %v\nwant: refused", c.query, err)
	}
	if c.want != nil && err != nil {
		t.Errorf("%q\n%v", c.query, err)
	}
	if have := readingRows(t, plain); !slices.EqualFunc(have, c.want, matches) {
		t.Errorf("%q\nhave: %q\nwant: %q", c.query, have, c.want)
	}
}

// Without multiStatements, a CREATE is one statement for the server, whatever its body contains.
func TestCreate_withoutMultiStatements(t *testing.T) {
	onEach(t, testCreate_withoutMultiStatements)
}

func testCreate_withoutMultiStatements(t *testing.T) {
	file := ruleFile(t, taggedRuleText("ruled", 0))
	dsn := testserver.Database(t)
	ours, plain := mustOpen(t, "shardkey", dsn+"?shardkeyRule="+file), mustOpen(t, "mysql", dsn)
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	const two = "CREATE TABLE z (a INT); INSERT INTO ruled (a) VALUES (1)"
	if _, err := ours.Exec(two); mysqlNumber(err) != 1064 {
		t.Errorf("%s\nhave: %v\nwant: error 1064", two, err)
	}
	if testserver.Has(t, testserver.MariaDB, "Oracle's syntax") {
		conn := must(ours.Conn(t.Context()))(t)
		defer conn.Close()
		mustExec(t, conn, "SET sql_mode = 'ORACLE'")
		mustExec(t, conn, "CREATE PROCEDURE p AS x INT; BEGIN x := 1; INSERT INTO ruled (id, a) VALUES (7, x); END")
		mustExec(t, conn, "CALL p()")
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id <> 7"), 0, "rows")
}

// matches compares rows. A star stands for any value.
func matches(have, want string) bool {
	prefix, any := strings.CutSuffix(want, "*")
	return have == want || any && strings.HasPrefix(have, prefix)
}

func readingRows(t *testing.T, db *sql.DB) (rows []string) {
	t.Helper()
	conn := pinned(t, db)
	mustExec(t, conn, "SET NAMES utf8mb4")
	const query = "SELECT CONCAT_WS(' ', IF(id = 0, '0', 'key'), COALESCE(a, '<nil>'), COALESCE(s, '<nil>')) FROM ruled ORDER BY id"
	found := must(conn.QueryContext(t.Context(), query))(t)
	defer found.Close()
	for found.Next() {
		var row string
		noError(t, found.Scan(&row))
		rows = append(rows, row)
	}
	noError(t, found.Err())
	return rows
}

// In a string, statements that don't get keys may read ROW_COUNT(), also on a new connection.
func TestSession_countsInStrings(t *testing.T) { onEach(t, testSession_countsInStrings) }

func testSession_countsInStrings(t *testing.T) {
	for _, query := range []string{
		"INSERT INTO ruled (a) VALUES (1), (2); SELECT ROW_COUNT()",
		"INSERT INTO ruled (a) VALUES (1), (2); SET @n = ROW_COUNT(); INSERT INTO ruled (a) VALUES (3); SELECT @n",
	} {
		ours, _ := one(t, "multiStatements=true")
		equal(t, number(t, ours, query), 2, query)
	}
}

// An INSERT that reads ROW_COUNT() or FOUND_ROWS() is refused when it is planned, if it gets a key.
func TestSession_readsCounts(t *testing.T) {
	for query, refused := range map[string]bool{
		"INSERT INTO t_user_3 (id, user_id, a) VALUES (1, 7, ROW_COUNT())": true,
		"INSERT INTO t_user_3 VALUES (1, 1, 7, FOUND_ROWS())":              true,
		"INSERT INTO t_user_3 (user_id, a) SELECT 7, FOUND_ROWS()":         true,
		"INSERT INTO t_user_3 (user_id, a) VALUES (7, 'ROW_COUNT()')":      false,
		"INSERT INTO other (a) VALUES (ROW_COUNT())":                       false,
	} {
		db, server := openShards(t, shardedRule(t, ""))
		mustExec(t, db, "INSERT INTO t_user_3 VALUES (1, 1, 7, 1)") // queries the table
		server.Forget()
		_, err := db.Exec(query)
		if errors.Is(err, ErrUnsupportedStatement) != refused || server.Count("queryContext") > 0 {
			t.Errorf("%s\nhave: %v, %q\nwant: refused %v, without a query", query, err, server.Calls, refused)
		}
		_, err = db.Prepare(query)
		equal(t, errors.Is(err, ErrUnsupportedStatement), refused, query)
	}
}
