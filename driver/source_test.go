package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// INSERT … SELECT, beside what the differential test compares.

// typesTable has a column of each type, some that the server makes, and some
// that must be given.
const typesTable = `(
	id BIGINT NOT NULL %s PRIMARY KEY,
	b BIT(9), t TINYINT(1), i INT UNSIGNED ZEROFILL, m DECIMAL(20,7), f FLOAT, d DOUBLE,
	da DATE, ti TIME(3), dt DATETIME(6), ts TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), y YEAR,
	c CHAR(5), v VARCHAR(20) CHARACTER SET latin1, u VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
	bi BINARY(4), vb VARBINARY(9), tx TEXT, bl MEDIUMBLOB, e ENUM('x','1','2') NOT NULL, s SET('a','b','c'),
	j JSON, g GEOMETRY, p POINT,
	n INT NOT NULL, nd VARCHAR(9) NOT NULL DEFAULT 'dflt', inv INT INVISIBLE DEFAULT 6,
	gs INT AS (n + 1) STORED, gv INT AS (n + 2) VIRTUAL)`

func TestInsertSelect_keepsEveryType(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_keepsEveryType) {
		return
	}
	const given = "b, t, i, m, f, d, da, ti, dt, ts, y, c, v, u, bi, vb, tx, bl, e, s, j, g, p, n, nd, inv"
	rows := []string{
		`b'101010101', -1, 7, 1234567890123.1234567, 0.1, 1e300, '2024-02-29', '-838:59:58.999', '2024-02-29 23:59:59.123456', '2024-02-29 23:59:59.123', 2155,
		'ab ', 'Öl', '日本 ', X'00FF', X'0027', REPEAT('t', 700), X'000102', '1', 'a,c', '{"a": [1, "é"]}', ST_GeomFromText('LINESTRING(0 0,1 1)'), Point(1,2), 5, 'x', 9`,
		`NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '2020-01-01', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2, '', NULL, NULL, NULL, 0, '', NULL`,
	}
	for _, mode := range []string{"", "sql_mode=%27%27", "sql_mode=%27TRADITIONAL%27"} {
		ours, plain, _ := openFilled(t, "multiStatements=true", mode)
		mustExec(t, plain, "DROP TABLE ruled")
		mustExec(t, plain, "CREATE TABLE ruled "+fmt.Sprintf(typesTable, "")+"; CREATE TABLE auto "+fmt.Sprintf(typesTable, "AUTO_INCREMENT"))
		mustExec(t, plain, "CREATE TABLE src "+fmt.Sprintf(typesTable, "AUTO_INCREMENT"))
		for _, row := range rows {
			mustExec(t, plain, "INSERT INTO src ("+given+") SELECT "+row)
		}
		for _, query := range []string{
			"INSERT INTO %s (" + given + ") SELECT " + given + " FROM src ORDER BY id",
			"INSERT INTO %s (" + given + ", id) SELECT " + given + ", NULL FROM src ORDER BY id",
			"INSERT INTO %s (n, e) SELECT n, e FROM src ORDER BY id",
			"INSERT INTO %s (n, e) SELECT n, e + 0 FROM src ORDER BY id",
			"INSERT INTO %s (n, e, i, m) SELECT '12', 'x', '34', '5.6'",
			"INSERT INTO %s (n) SELECT 5",
			"INSERT INTO %s (e, n) SELECT 'x', NULL",
			"INSERT INTO %s (e, n, ts) SELECT 'x', 1, NULL",
			"INSERT INTO %s (e) SELECT 'x'",
			"INSERT INTO %s (n, e) SELECT 5, 'nope'",
			"INSERT INTO %s (n, e, i) SELECT 5, 'x', -1",
			"INSERT INTO %s (n, e, c) SELECT 5, 'x', 'too long for it'",
			"INSERT INTO %s (n, e, da) SELECT 5, 'x', '2023-02-30'",
			"INSERT INTO %s (n, e, j) SELECT 5, 'x', '{'",
			"INSERT INTO %s (n, e, gs) SELECT 5, 'x', 6",
			"INSERT INTO %s (n, e, v) SELECT 5, 'x', 'ключ'",
			"INSERT IGNORE INTO %s (n, e, v, c, i) SELECT 5, 'nope', 'ключ', 'much too long', -5",
		} {
			_, want := plain.Exec(strings.ReplaceAll(query, "%s", "auto"))
			_, have := ours.Exec(strings.ReplaceAll(query, "%s", "ruled"))
			if fmt.Sprint(have) != strings.ReplaceAll(fmt.Sprint(want), "auto", "ruled") {
				t.Errorf("%s: %s\nhave: %v\nwant: %v", mode, query, have, want)
			}
		}
		all := strings.NewReplacer(" ts,", " ts > '2024-06-01' OR ts,", " g, p", " ST_AsText(g), ST_AsText(p)").Replace(given)
		read := "SELECT CONCAT_WS('|', HEX(b), COALESCE(" + strings.ReplaceAll(all, ", ", ", '-'), COALESCE(") + ", '-'), gs, gv) FROM %s ORDER BY id"
		want, have := column(t, plain, fmt.Sprintf(read, "auto")), column(t, plain, fmt.Sprintf(read, "ruled"))
		if have != want || want == "" {
			t.Errorf("%s\nhave: %.3000s\nwant: %.3000s", mode, have, want)
		}
	}
}

func TestInsertSelect_manyRows(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_manyRows) {
		return
	}
	const many = 100_000
	ours, plain, c := openFilled(t)
	mustExec(t, plain, "CREATE TABLE digit (n INT)")
	mustExec(t, plain, "INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
	mustExec(t, plain, "CREATE TABLE src AS SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n AS a FROM digit a, digit b, digit c, digit d, digit e")
	var before, after runtime.MemStats
	for _, query := range []string{"INSERT INTO ruled (a) SELECT a FROM src ORDER BY a", "INSERT INTO ruled (a, id) SELECT a, 0 FROM src ORDER BY a"} {
		mustExec(t, plain, "TRUNCATE ruled")
		made := issued(c)
		runtime.ReadMemStats(&before)
		n, err := mustExec(t, ours, query).RowsAffected()
		runtime.ReadMemStats(&after)
		if n != many || err != nil || issued(c)-made != many {
			t.Errorf("%s: %d rows, %v, %d keys", query, n, err, issued(c)-made)
		}
		if have := number(t, plain, "SELECT COUNT(*) FROM (SELECT LAG(id) OVER (ORDER BY a) AS before_it, id FROM ruled) AS r WHERE before_it >= id"); have != 0 {
			t.Errorf("%d keys are not in the order of their rows", have)
		}
		// The test's generator boxes its keys, 16 bytes each and a slice of as much.
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 30<<20 {
			t.Errorf("%s: %d bytes were allocated for %d rows", query, allocated, many)
		}
	}
}

func TestInsertSelect_rolledBack(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_rolledBack) {
		return
	}
	ours, plain, _ := openFilled(t)
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (1), (2)")
	tx, err := ours.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("INSERT INTO ruled (a) VALUES (3)"); err != nil {
		t.Fatal(err)
	}
	if res, err := tx.Exec("INSERT INTO ruled (a) SELECT a + ? FROM ruled", 10); err != nil {
		t.Fatal(err)
	} else if n, _ := res.RowsAffected(); n != 3 {
		t.Errorf("%d rows", n)
	}
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled"); n != 2 {
		t.Errorf("%d rows are seen outside of the transaction", n)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled"); n != 2 {
		t.Errorf("%d rows after the rollback", n)
	}
}

// temporaryTables returns those of ours in the session of db's only connection.
func temporaryTables(t *testing.T, db *sql.DB) (left []string) {
	t.Helper()
	for _, table := range []string{rowsTable, keysTable} {
		if rows, err := db.Query("SELECT 1 FROM " + table); err == nil {
			_ = rows.Close()
			left = append(left, table)
		}
	}
	return left
}

// Temporary tables are dropped, whatever becomes of the statement.
func TestInsertSelect_leavesNoTable(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_leavesNoTable) {
		return
	}
	for _, params := range bothWays {
		ours, _, _ := openFilled(t, params)
		ours.SetMaxOpenConns(1)
		mustExec(t, ours, "INSERT INTO ruled (id, a) VALUES (1000001, 1)")
		before := prepared(t, ours)
		for _, query := range []string{
			"INSERT INTO ruled (a) SELECT ?",
			"INSERT INTO ruled (a, id) SELECT ?, NULL",
			"INSERT INTO ruled (a) SELECT ? FROM DUAL WHERE FALSE",
			"INSERT INTO ruled (id, a) SELECT 1000001, ?",
			"INSERT INTO ruled (a) SELECT ? + nope",
			"INSERT INTO ruled (nope) SELECT ?",
			"INSERT INTO ruled (a) SELECT ?, 2",
			"INSERT INTO ruled (a) SELECT ? ON DUPLICATE KEY UPDATE nope = 1",
			"INSERT INTO ruled (a) SELECT ? RETURNING id",
			"INSERT INTO ruled (a) SELECT ? RETURNING nope",
			"INSERT IGNORE INTO ruled (id, a) SELECT 1000001, ?",
			"REPLACE INTO ruled (id, a) SELECT 1000001, ?",
		} {
			for _, d := range doors {
				if strings.Contains(query, "RETURNING") && d.name != "Query" {
					continue
				}
				_, _ = d.exec(t.Context(), ours, query, 1)
				if left := temporaryTables(t, ours); left != nil {
					t.Errorf("%s, %s, %s: %v", params, d.name, query, left)
				}
			}
		}
		// What the server refused to prepare was never closed.
		refused := number(t, ours, "SHOW STATUS LIKE 'Com_stmt_prepare'")
		if have := prepared(t, ours) - before; have < 0 || have > refused/2 {
			t.Errorf("%s: %d statements", params, have)
		}
	}
}

// A session whose last run could not drop its tables goes on.
func TestInsertSelect_tablesLeftBefore(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_tablesLeftBefore) {
		return
	}
	ours, plain, _ := openFilled(t)
	ours.SetMaxOpenConns(1)
	for _, table := range []string{rowsTable, keysTable} {
		mustExec(t, ours, "CREATE TEMPORARY TABLE "+table+" (x INT)")
	}
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT 5")
	mustExec(t, ours, "CREATE TEMPORARY TABLE "+keysTable+" (x INT)")
	mustExec(t, ours, "INSERT INTO ruled (id, a) SELECT NULL, 6")
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled"); n != 2 {
		t.Errorf("%d rows", n)
	}
}

func TestInsertSelect_canceled(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_canceled) {
		return
	}
	entered := make(chan struct{}, 1)
	waiting := script(func(ctx context.Context, _ spi.Column, n int) ([]any, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	ours, plain := openScripted(t, scriptRule(t, waiting, "ruled.id"))
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	if _, err := ours.ExecContext(ctx, "INSERT INTO ruled (a) SELECT 1"); !errors.Is(err, context.Canceled) {
		t.Errorf("have: %v", err)
	}
	if left := temporaryTables(t, ours); left != nil {
		t.Errorf("left: %v", left)
	}
}

// A query that takes long is left when its context ends: the test ends long
// before the query would.
func TestInsertSelect_canceledInQuery(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_canceledInQuery) {
		return
	}
	ours, plain, _ := openFilled(t)
	for _, d := range doors {
		if d.name == "Tx" {
			continue // the server holds its locks until it sees that the client is gone
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := d.exec(ctx, ours, "INSERT INTO ruled (a) SELECT SLEEP(1000)")
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", d.name, err)
		}
	}
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT 1")
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// Without the privilege, the error names it.
func TestInsertSelect_withoutPrivilege(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_withoutPrivilege) {
		return
	}
	cfg, err := mysql.ParseDSN(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	cfg.User, cfg.Passwd = "sk_"+cfg.DBName[len(cfg.DBName)-12:], "Ttt-123-secret"
	mustExec(t, plain, "CREATE USER "+cfg.User+"@'%' IDENTIFIED BY 'Ttt-123-secret'")
	defer mustExec(t, plain, "DROP USER "+cfg.User+"@'%'")
	mustExec(t, plain, "GRANT INSERT, SELECT ON `"+cfg.DBName+"`.* TO "+cfg.User+"@'%'")
	base, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	copying := sql.OpenDB(mustConnector(t, base, taggedRule(t, "ruled", 0)))
	defer copying.Close()
	mustExec(t, copying, "INSERT INTO ruled (a) SELECT 1")
	defer selecting(InsertSelectTemporary)()
	db := sql.OpenDB(mustConnector(t, base, taggedRule(t, "ruled", 0)))
	defer db.Close()
	for _, query := range []string{"INSERT INTO ruled (a) SELECT 2", "INSERT INTO `" + cfg.DBName + "`.ruled (id, a) SELECT NULL, 2"} {
		_, err = db.Exec(query)
		var denied *PrivilegeError
		var refused *mysql.MySQLError
		if !errors.As(err, &denied) || !errors.As(err, &refused) || !errors.Is(err, ErrUnsupportedStatement) ||
			!strings.Contains(err.Error(), "GRANT CREATE TEMPORARY TABLES ON") {
			t.Errorf("%s: %v", query, err)
		}
	}
	mustExec(t, plain, "GRANT CREATE TEMPORARY TABLES ON `"+cfg.DBName+"`.* TO "+cfg.User+"@'%'")
	db.SetMaxIdleConns(0) // a session has the privileges that held when it chose its database
	mustExec(t, db, "INSERT INTO ruled (a) SELECT 2")
	mustExec(t, db, "INSERT INTO ruled (id, a) SELECT 0, 3")
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0"); n != 3 {
		t.Errorf("%d rows", n)
	}
}
