package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	testcases "github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/differential"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testmust "github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/spi"
)

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
	return &splittingConn{primary.(fakedb.Conn), replica, c}, err
}

type splittingConn struct {
	fakedb.Conn
	replica driver.Conn
	of      *splitting
}

func (c *splittingConn) Close() error { return errors.Join(c.Conn.Close(), c.replica.Close()) }

func (c *splittingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	to := driver.QueryerContext(c.Conn)
	switch keeps := c.of.keeps.MatchString(query); {
	case keeps:
		c.of.kept = query
	case strings.HasPrefix(query, "SELECT"):
		to = c.replica.(driver.QueryerContext)
	}
	return to.QueryContext(ctx, query, args)
}

// Behind a proxy that splits reads and writes, the keys come from the primary. If they can't, a
// warning is logged.
func TestReports_behindSplittingProxy(t *testing.T) {
	onEach(t, testReports_behindSplittingProxy)
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
			var log testmust.Log
			db, _ := openFake(t, base, generatorRule(t, counted(), "ruled.id"), WithLogger(log.Logger()))
			var keys Keys
			_, err := db.ExecContext(WithKeys(t.Context(), &keys), c.query)
			noError(t, err)
			equal(t, fmt.Sprint(keys.Values()), c.want)
			equal(t, strings.Contains(log.String(), "keys of an INSERT are unknown"), c.warns, log.String())
		})
	}
}

// The error about a key column that the table lacks names the rule, if the program doesn't name the
// column.
func TestReports_missingKeyColumn(t *testing.T) { onEach(t, testReports_missingKeyColumn) }

func testReports_missingKeyColumn(t *testing.T) {
	ours, plain := openScripted(t, generatorRule(t, counted(), "ruled.id"), "multiStatements=true")
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
		if my, ok := errors.AsType[*mysql.MySQLError](err); !ok || my.Number != 1054 || same == c.rules || c.rules != strings.Contains(err.Error(), "column id, which the rule names") {
			t.Errorf("%s\nhave: %v", c.query, err)
		}
	}
}

// The query for keys has FOR UPDATE, but it locks no row and no gap, and needs no privilege but SELECT.
func TestReports_queryLocksNothing(t *testing.T) { onEach(t, testReports_queryLocksNothing) }

func testReports_queryLocksNothing(t *testing.T) {
	connector := must(mysql.NewConnector(must(mysql.ParseDSN(testserver.Database(t)))(t)))(t)
	base := &splitting{primary: connector, replica: connector, keeps: regexp.MustCompile("FOR UPDATE$")}
	root, db := sql.OpenDB(connector), sql.OpenDB(mustConnector(t, base, generatorRule(t, counted(), "ruled.id")))
	defer root.Close()
	defer db.Close()
	mustExec(t, root, "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, u INT UNIQUE, a INT) ENGINE = InnoDB")
	mustExec(t, root, "INSERT INTO ruled VALUES (7, 1, 1)")
	_, user := openAs(t, root, "SELECT, INSERT ON ruled")
	mustExec(t, db, "INSERT IGNORE INTO ruled (u) VALUES (1), (11)")
	mustExec(t, root, "DELETE FROM ruled WHERE id = 1002") // so that the query reads a gap

	reader := must(user.BeginTx(t.Context(), nil))(t)
	defer reader.Rollback()
	equal(t, differential.ReadAll(t, reader, strings.Replace(base.kept, "1001", "7", 1)), "[7]", base.kept)
	writer := must(root.Conn(t.Context()))(t)
	defer writer.Close()
	for _, query := range []string{"SET innodb_lock_wait_timeout = 1", "INSERT INTO ruled VALUES (1002, 12, 1)", "UPDATE ruled SET a = 2 WHERE id = 7"} {
		mustExec(t, writer, query)
	}
}

// The key of an upsert's last row is not reported as an earlier row's, if only the server knows it.
func TestReports_uncertainLastKey(t *testing.T) { onEach(t, testReports_uncertainLastKey) }

func testReports_uncertainLastKey(t *testing.T) {
	for _, params := range []string{"", "clientFoundRows=true"} {
		ours, plain := openScripted(t, generatorRule(t, counted(), "ruled.id"), params)
		mustExec(t, plain, "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, u INT UNIQUE, a INT)")
		for _, key := range []any{1.5, 20.5, "20.4", []byte("2e1"), float32(20.4)} {
			mustExec(t, ours, "DELETE FROM ruled")
			mustExec(t, ours, "INSERT INTO ruled (id, u) VALUES (6, 2)")
			id, err := mustExec(t, ours, "INSERT INTO ruled (id, u) VALUES (30, 2), (?, 12) ON DUPLICATE KEY UPDATE a = 9", key).LastInsertId()
			noError(t, err)
			equal(t, id == 0 || id == number(t, ours, "SELECT id FROM ruled WHERE u = 12"), true, key, id)
		}
	}
}

// Keys are reported of rows that exist, whatever the number of affected rows is.
func TestReports_rowsThatExist(t *testing.T) { onEach(t, testReports_rowsThatExist) }

func testReports_rowsThatExist(t *testing.T) {
	const unsigned = 1 << 63
	for _, c := range []struct {
		key   string // the type of the key column
		query string
		args  []any
		want  string
	}{
		// The column n of the row 5 is NULL and stays so, which counts as one affected row.
		{"BIGINT", "INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = NULL", nil, "[5]"},
		{"BIGINT", "INSERT INTO ruled (id, u) VALUES (?, 1) ON DUPLICATE KEY UPDATE n = NULL", []any{nil}, "[5]"},
		{"BIGINT", "INSERT INTO ruled (id, u) VALUES (?, 1) ON DUPLICATE KEY UPDATE n = NULL", []any{50}, "[5]"},
		{"BIGINT AUTO_INCREMENT", "INSERT INTO ruled (id, u) VALUES (?, 1) ON DUPLICATE KEY UPDATE n = NULL", []any{50}, "[5]"},
		{"BIGINT AUTO_INCREMENT", "INSERT INTO ruled (id, u) VALUES (?, 11) ON DUPLICATE KEY UPDATE n = NULL", []any{nil}, "[1001]"},
		{"BIGINT", "INSERT INTO ruled (u) VALUES (1), (11) ON DUPLICATE KEY UPDATE n = NULL", nil, "[5 1002]"},
		{"BIGINT", "INSERT INTO ruled (u) VALUES (1), (2) ON DUPLICATE KEY UPDATE n = NULL", nil, "[<nil> <nil>]"},
		{"BIGINT", "INSERT INTO ruled (u) VALUES (1), (2) ON DUPLICATE KEY UPDATE n = 3", nil, "[<nil> <nil>]"},
		{"BIGINT, o BIGINT AUTO_INCREMENT UNIQUE", "INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = NULL", nil, "[5]"},
		{"BIGINT, o BIGINT AUTO_INCREMENT UNIQUE", "INSERT INTO ruled (u) VALUES (11) ON DUPLICATE KEY UPDATE n = NULL", nil, "[1001]"},
		{"VARCHAR(40)", "INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = NULL", nil, "[<nil>]"},
		{"VARCHAR(40)", "INSERT INTO ruled (u) VALUES (11) ON DUPLICATE KEY UPDATE n = NULL", nil, "[text0]"},
		{"VARCHAR(40)", "INSERT INTO ruled (u) VALUES (1), (11) ON DUPLICATE KEY UPDATE n = NULL", nil, "[<nil> text1]"},
		// Keys above the largest int64.
		{"BIGINT UNSIGNED", "INSERT INTO ruled (u) VALUES (3) ON DUPLICATE KEY UPDATE n = 4", nil, fmt.Sprint([]uint64{unsigned + 7})},
		{"BIGINT UNSIGNED", "INSERT INTO ruled (u) VALUES (11), (3) ON DUPLICATE KEY UPDATE n = 4", nil, fmt.Sprint([]uint64{1001, unsigned + 7})},
		// The server can't have inserted a row whose key isn't in the table.
		{"BIGINT", "INSERT IGNORE INTO ruled (id, u) VALUES (50, 1), (51, 11)", nil, "[<nil> 51]"},
		{"BIGINT", "INSERT IGNORE INTO ruled (id, u) VALUES (5, 11), (6, 12), (51, 13)", nil, "[<nil> <nil> <nil>]"},
	} {
		keys := spi.KeyGenerator(counted())
		if strings.HasPrefix(c.key, "VARCHAR") {
			keys = texts(func(i int) any { return fmt.Sprint("text", i) })
		}
		ours, plain := openScripted(t, generatorRule(t, keys, "ruled.id"))
		mustExec(t, plain, "CREATE TABLE ruled (id "+c.key+", u INT UNIQUE, n INT DEFAULT 5, PRIMARY KEY (id))")
		mustExec(t, plain, "INSERT INTO ruled (id, u, n) VALUES (5, 1, NULL), (6, 2, NULL)")
		if strings.Contains(c.key, "UNSIGNED") {
			mustExec(t, plain, fmt.Sprintf("INSERT INTO ruled (id, u) VALUES (%d, 3)", uint64(unsigned+7)))
		}
		var have Keys
		_, err := ours.ExecContext(WithKeys(t.Context(), &have), c.query, c.args...)
		noError(t, err, c.query)
		equal(t, fmt.Sprint(have.Values()), c.want, c.key, c.query)
	}
}

// A trigger of MariaDB 11.8 skips rows without an error.
func TestReports_rowsThatTriggersSkip(t *testing.T) { onEach(t, testReports_rowsThatTriggersSkip) }

func testReports_rowsThatTriggersSkip(t *testing.T) {
	testserver.Needs(t, "MariaDB 11.8", "triggers that skip rows")
	for _, c := range []struct{ query, want, columns string }{
		{"INSERT INTO ruled (u) VALUES (1), (4)", "[<nil> 1002]", "1002"},
		{"INSERT INTO ruled (u) VALUES (4), (1), (5)", "[1001 <nil> 1003]", "1001 1003"},
		{"INSERT INTO ruled (u) VALUES (1)", "[<nil>]", ""},
		{"INSERT INTO ruled (id, u) VALUES (100, 1), (101, 12)", "[<nil> 101]", "101"},
		{"INSERT INTO ruled (id, u) VALUES (100, 1), (NULL, 12), (102, 2)", "[<nil> 1001 <nil>]", "1001"},
		{"INSERT IGNORE INTO ruled (u) VALUES (1), (4)", "[<nil> 1002]", "1002"},
		{"REPLACE INTO ruled (u) VALUES (1), (7)", "[<nil> 1002]", "1002"}, // which counts two rows, as it replaces one
		{"INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE u = 9", "[<nil>]", ""},
		{"INSERT INTO ruled (u) VALUES (1), (4) RETURNING id", "[<nil> 1002]", "1002"},
		{"INSERT INTO ruled (u) VALUES (5), (4) RETURNING id", "[1001 1002]", "1001 1002"},
		{"REPLACE INTO ruled (u) VALUES (1) RETURNING id", "[<nil>]", ""},
		{"REPLACE INTO ruled (u) VALUES (7) RETURNING id", "[1001]", "1001"},
		{"REPLACE INTO ruled (u) VALUES (1), (7) RETURNING id", "[<nil> 1002]", "1002"},
		{"INSERT INTO ruled (u) SELECT 1 UNION ALL SELECT 4", "[<nil> 1002]", "1002"},
		{"INSERT INTO ruled (u) SELECT 1 UNION ALL SELECT 4 RETURNING id", "[<nil> 1002]", "1002"},
		{"REPLACE INTO ruled (u) SELECT 1 UNION ALL SELECT 7", "[<nil> 1002]", "1002"},
	} {
		ours, plain := openScripted(t, generatorRule(t, counted(), "ruled.id"))
		mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, u INT UNIQUE, n INT DEFAULT 5)")
		mustExec(t, plain, "INSERT INTO ruled (id, u) VALUES (7, 7)")
		mustExec(t, plain, "CREATE TRIGGER tr BEFORE INSERT ON ruled FOR EACH ROW IF NEW.u < 3 THEN SIGNAL SQLSTATE '02TRG'; END IF")
		var have Keys
		ctx := WithKeys(t.Context(), &have)
		if strings.Contains(c.query, "RETURNING") {
			noError(t, drain(ours.QueryContext(ctx, c.query)), c.query)
		} else {
			noError(t, errOf(ours.ExecContext(ctx, c.query)), c.query)
		}
		equal(t, fmt.Sprint(have.Values()), c.want, c.query)
		equal(t, column(t, plain, "SELECT id FROM ruled WHERE id <> 7 ORDER BY id"), c.columns, c.query)
	}
}

// An upsert into a system-versioned table leaves its history as it is without shardkey.
func TestReports_systemVersioned(t *testing.T) { onEach(t, testReports_systemVersioned) }

func testReports_systemVersioned(t *testing.T) {
	testserver.Needs(t, testserver.MariaDB, "system versioning")
	for _, d := range []door{doors[0], doors[3]} {
		ours, plain := openScripted(t, generatorRule(t, counted(), "ruled.id"))
		ours.SetMaxOpenConns(1)
		mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, u INT UNIQUE, n INT)")
		const upsert = "INSERT INTO ruled (u, n) VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1"
		var keys Keys
		for _, c := range []struct {
			ddl           string
			history, rows int64
			keys          string
		}{
			{"", 0, 1, "[1001]"},
			{"", 0, 2, "[1001]"},
			{"DROP TABLE ruled; CREATE TABLE ruled (id BIGINT PRIMARY KEY, u INT UNIQUE, n INT WITHOUT SYSTEM VERSIONING) WITH SYSTEM VERSIONING", 1, 1, "new"},
			{"", 1, 2, "[<nil>]"},
			{"", 1, 2, "[<nil>]"},
		} {
			for ddl := range strings.SplitSeq(c.ddl, "; ") {
				if ddl != "" {
					mustExec(t, ours, ddl) // so that the facts are asked again
				}
			}
			res, err := d.exec(WithKeys(t.Context(), &keys), ours, upsert)
			noError(t, err)
			rows, _ := res.RowsAffected()
			equal(t, rows, c.rows, d.name, c.ddl)
			if c.keys == "new" {
				c.keys = fmt.Sprintf("[%s]", column(t, plain, "SELECT id FROM ruled"))
			}
			equal(t, fmt.Sprint(keys.Values()), c.keys, d.name, c.ddl)
			if c.history > 0 {
				equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled FOR SYSTEM_TIME ALL"), c.history, d.name)
			}
		}
	}
}
