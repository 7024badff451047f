package driver

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

// What filling needs to know of the session and of tables, while both change.

// one opens a database whose pool is one connection.
func one(t *testing.T, params ...string) (ours, plain *sql.DB) {
	t.Helper()
	ours, plain, _ = openFilled(t, params...)
	ours.SetMaxOpenConns(1)
	return ours, plain
}

// keyless counts the rows of ruled whose key no generator made.
func keyless(t *testing.T, db *sql.DB, table string) int64 {
	t.Helper()
	return number(t, db, "SELECT COUNT(*) FROM "+table+" WHERE id IS NULL OR id <= 0 OR id > 999")
}

// Columns are read once, and again when the server says that they are others.
func TestSession_columnsChange(t *testing.T) {
	if testserver.Each(t, TestSession_columnsChange) {
		return
	}
	for _, params := range bothWays {
		ours, plain := one(t, params)
		mustExec(t, plain, "CREATE TABLE src (x INT, y INT)")
		mustExec(t, plain, "INSERT INTO src VALUES (1, 2)")
		mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 1)")
		mustExec(t, ours, "INSERT INTO ruled SELECT NULL, x FROM src")
		mustExec(t, ours, "INSERT INTO ruled VALUES (?, ?)", nil, 1)

		mustExec(t, plain, "ALTER TABLE ruled ADD b INT FIRST") // now (b, id, a)
		mustExec(t, ours, "INSERT INTO ruled VALUES (5, NULL, 1)")
		mustExec(t, ours, "INSERT INTO ruled VALUES (?, ?, ?)", 5, nil, 1)
		if hasReturning(t) {
			mustExec(t, ours, "INSERT INTO ruled VALUES (5, NULL, 1) RETURNING id")
		} else {
			mustExec(t, ours, "INSERT INTO ruled VALUES (5, NULL, 1) /* again */")
		}
		mustExec(t, ours, "INSERT INTO ruled SELECT x, NULL, y FROM src")

		mustExec(t, plain, "ALTER TABLE ruled DROP b, ADD c INT AFTER a, ADD d INT FIRST") // (d, id, a, c)
		mustExec(t, ours, "INSERT INTO ruled SELECT x, NULL, y, 3 FROM src")
		if _, err := ours.Exec("INSERT INTO ruled VALUES (5, NULL, 1)"); err == nil || !strings.Contains(err.Error(), "1136") {
			t.Errorf("three values for four columns: %v", err)
		}
		mustExec(t, plain, "ALTER TABLE ruled DROP c")
		mustExec(t, ours, "INSERT INTO ruled VALUES (5, NULL, 1)")
		if n, bad := number(t, plain, "SELECT COUNT(*) FROM ruled"), keyless(t, plain, "ruled"); n != 9 || bad != 0 {
			t.Errorf("%s: %d rows, %d without key", params, n, bad)
		}
	}
}

// A prepared statement outlives changes of its table's columns.
func TestSession_columnsChangeUnderStatement(t *testing.T) {
	if testserver.Each(t, TestSession_columnsChangeUnderStatement) {
		return
	}
	ours, plain := one(t)
	mustExec(t, plain, "CREATE TABLE src AS SELECT CAST(NULL AS SIGNED) AS x, 2 AS y")
	values := must(ours.Prepare("INSERT INTO ruled VALUES (NULL, ?)"))(t)
	defer values.Close()
	from := must(ours.Prepare("INSERT INTO ruled SELECT src.* FROM src WHERE COALESCE(x, 0) < ?"))(t)
	defer from.Close()
	exec := func(s *sql.Stmt, want bool) {
		t.Helper()
		if _, err := s.Exec(900); (err == nil) != want {
			t.Errorf("%v", err)
		}
	}
	exec(values, true)
	exec(from, true)
	mustExec(t, plain, "ALTER TABLE ruled ADD b INT")
	exec(values, true) // into the columns that it was prepared for
	later(t, ours)
	exec(values, false)
	mustExec(t, plain, "ALTER TABLE src ADD z INT")
	exec(from, true)
	mustExec(t, plain, "ALTER TABLE ruled DROP b")
	exec(values, true)
	if n, bad := number(t, plain, "SELECT COUNT(*) FROM ruled"), keyless(t, plain, "ruled"); n != 5 || bad != 0 {
		t.Errorf("%d rows, %d without key: %s", n, bad, column(t, plain, "SELECT CONCAT(id, ':', a) FROM ruled"))
	}
}

// The current database decides which table a name means.
func TestSession_databaseChanges(t *testing.T) {
	if testserver.Each(t, TestSession_databaseChanges) {
		return
	}
	ours, plain := one(t)
	first := column(t, plain, "SELECT DATABASE()")
	second := first + "_2"
	mustExec(t, plain, "CREATE DATABASE "+second)
	defer mustExec(t, plain, "DROP DATABASE "+second)
	mustExec(t, plain, "CREATE TABLE "+second+".ruled (a INT, id BIGINT)")
	const query = "INSERT INTO ruled VALUES (NULL, NULL)"
	st, err := ours.Prepare("USE " + second)
	if err == nil {
		_ = st.Close() // MariaDB does not prepare it
	}
	mustExec(t, ours, query)
	mustExec(t, ours, "USE "+second)
	mustExec(t, ours, query)
	mustExec(t, ours, "use `"+first+"`")
	mustExec(t, ours, query)
	mustExec(t, ours, "INSERT INTO "+second+".ruled VALUES (NULL, NULL)")
	mustExec(t, ours, "INSERT INTO "+second+".ruled SELECT 1, NULL")
	if n := number(t, plain, "SELECT COUNT(id) FROM ruled"); n != 2 || keyless(t, plain, "ruled") != 0 {
		t.Errorf("%d rows in the first", n)
	}
	if n := number(t, plain, "SELECT COUNT(id) FROM "+second+".ruled"); n != 3 || keyless(t, plain, second+".ruled") != 0 {
		t.Errorf("%d rows in the second", n)
	}
}

// What a written 0 asks for is the sql_mode's affair, also for a text that the
// connection has just executed.
func TestSession_zeroFollowsTheMode(t *testing.T) {
	if testserver.Each(t, TestSession_zeroFollowsTheMode) {
		return
	}
	ours, plain := openScripted(t, scriptRule(t, listed(int64(70), int64(71), int64(72)), "ruled.id"))
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	for _, mode := range []string{"", "NO_AUTO_VALUE_ON_ZERO", ""} {
		mustExec(t, ours, "SET sql_mode = '"+mode+"'")
		mustExec(t, ours, "INSERT INTO ruled (id, a) VALUES (0, 1)")
	}
	if have := column(t, plain, "SELECT id FROM ruled ORDER BY id"); have != "0 71 72" { // 70 told what kind of keys there are
		t.Errorf("have: %s\nwant: 0 71 72", have)
	}
}

// The same text means columns in another order in another database.
func TestSession_columnsOfTheCurrentDatabase(t *testing.T) {
	if testserver.Each(t, TestSession_columnsOfTheCurrentDatabase) {
		return
	}
	ours, plain := one(t)
	first := column(t, plain, "SELECT DATABASE()")
	second := first + "_2"
	mustExec(t, plain, "CREATE DATABASE "+second)
	defer mustExec(t, plain, "DROP DATABASE "+second)
	mustExec(t, plain, "CREATE TABLE "+second+".ruled (a INT, id BIGINT)") // and in the first one (id, a)
	for _, database := range []string{first, second, first} {
		mustExec(t, ours, "USE "+database)
		mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 7)")
	}
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled WHERE a = 7"); n != 2 || keyless(t, plain, "ruled") != 0 {
		t.Errorf("%d rows in the first", n)
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM "+second+".ruled WHERE a IS NULL AND id IS NOT NULL"), 1, "rows in the second")
}

// Without a current database, qualified names work.
func TestSession_withoutDatabase(t *testing.T) {
	if testserver.Each(t, TestSession_withoutDatabase) {
		return
	}
	ours, plain := one(t)
	database := column(t, plain, "SELECT DATABASE()")
	mustExec(t, plain, "CREATE DATABASE "+database+"_3")
	conn := must(ours.Conn(t.Context()))(t)
	for _, query := range []string{"USE " + database + "_3", "DROP DATABASE " + database + "_3",
		"INSERT INTO " + database + ".ruled VALUES (NULL, 1)",
		"INSERT INTO " + database + ".ruled SELECT 0, 1",
		"INSERT INTO `" + database + "`.`ruled` (a) SELECT a FROM " + database + ".ruled",
		"INSERT IGNORE INTO " + database + ".ruled (id, a) SELECT id, 5 FROM " + database + ".ruled UNION SELECT NULL, 6",
		"USE " + database} {
		mustExec(t, conn, query)
	}
	check(t, conn.Close())
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled"); n != 5 || keyless(t, plain, "ruled") != 0 {
		t.Errorf("%d rows", n)
	}
}

// Tables whose columns are not all what they seem.
func TestSession_oddTables(t *testing.T) {
	if testserver.Each(t, TestSession_oddTables) {
		return
	}
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
			"REPLACE INTO ruled VALUES ROW (" + table.values + ")",
			"INSERT INTO ruled SELECT " + table.values,
			"INSERT INTO ruled (a) VALUES (1)",
			"INSERT INTO ruled () VALUES ()",
		} {
			if _, plainErr := plain.Exec(query); plainErr != nil && strings.Contains(plainErr.Error(), "1064") {
				continue // MariaDB has no VALUES ROW, and no SELECT DEFAULT
			} else if plainErr == nil {
				mustExec(t, plain, "DELETE FROM ruled ORDER BY id LIMIT 1")
				continue // the plain table takes it without key
			}
		}
		mustExec(t, plain, "DELETE FROM ruled")
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

func TestSession_temporaryTable(t *testing.T) {
	if testserver.Each(t, TestSession_temporaryTable) {
		return
	}
	ours, plain := one(t)
	mustExec(t, plain, "DROP TABLE ruled")
	mustExec(t, ours, "CREATE TEMPORARY TABLE ruled (a INT, id BIGINT NOT NULL)")
	mustExec(t, ours, "INSERT INTO ruled VALUES (1, NULL), (2, 0)")
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (?)", 3)
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT 4")
	if n := number(t, ours, "SELECT COUNT(*) FROM ruled"); n != 4 || keyless(t, ours, "ruled") != 0 {
		t.Errorf("%d rows", n)
	}
}

// LAST_INSERT_ID() is read everywhere as AUTO_INCREMENT would have left it,
// also where the server could not be told at once.
func TestSession_lastInsertIDIsReadEverywhere(t *testing.T) {
	if testserver.Each(t, TestSession_lastInsertIDIsReadEverywhere) {
		return
	}
	for _, params := range append(bothWays, "multiStatements=true") {
		ours, plain := one(t, params)
		mustExec(t, plain, "ALTER TABLE ruled ADD u INT UNIQUE")
		mustExec(t, plain, "INSERT INTO ruled (id, u) VALUES (-1, 1)")
		mustExec(t, plain, "CREATE TABLE seen (id BIGINT)")
		mustExec(t, plain, "CREATE PROCEDURE p() INSERT INTO seen VALUES (LAST_INSERT_ID())")
		for i, insert := range []string{
			"INSERT IGNORE INTO ruled (a) VALUES (1)",
			"INSERT INTO ruled (id, a) VALUES (?, 1)",
			"INSERT INTO ruled (a) SELECT 1",
			"INSERT INTO ruled (u) VALUES (1), (%d) ON DUPLICATE KEY UPDATE a = a + 1",
			"INSERT IGNORE INTO ruled (u) VALUES (1), (%d)",
			"REPLACE INTO ruled (u) VALUES (%d)",
			"INSERT INTO ruled (a) VALUES (1) RETURNING id",
		} {
			if strings.Contains(insert, "RETURNING") && !hasReturning(t) {
				continue
			}
			for k, read := range []string{
				"INSERT INTO seen VALUES (LAST_INSERT_ID())",
				"INSERT INTO seen SELECT @@last_insert_id",
				"INSERT INTO seen SET id = (SELECT @@identity)",
				"INSERT INTO seen SELECT id FROM ruled WHERE id = LAST_INSERT_ID()",
				"CALL p()",
				"UPDATE seen SET id = LAST_INSERT_ID()",
			} {
				mustExec(t, plain, "DELETE FROM seen")
				if strings.HasPrefix(read, "UPDATE") {
					mustExec(t, plain, "INSERT INTO seen VALUES (0)")
				}
				mustExec(t, ours, "DO LAST_INSERT_ID(88)")
				query := insert
				if strings.Contains(query, "%d") {
					query = fmt.Sprintf(query, 10+100*i+k)
				}
				var args []any
				if strings.Contains(query, "?") {
					args = []any{nil}
				}
				mustExec(t, ours, "SELECT 1")
				mustExec(t, ours, query, args...)
				want := number(t, plain, "SELECT MAX(id) FROM ruled")
				for again := range 2 {
					mustExec(t, ours, read)
					equal(t, number(t, plain, "SELECT MAX(id) FROM seen"), want, params, query, read, "reading", again)
				}
				st := must(ours.Prepare("SELECT LAST_INSERT_ID()"))(t)
				var have int64
				if err := st.QueryRow().Scan(&have); err != nil || have != want {
					t.Errorf("prepared\nhave: %d, %v\nwant: %d", have, err, want)
				}
				_ = st.Close()
			}
		}
	}
}

// What several statements change holds also when one of them fails.
func TestSession_changedByFailingStatements(t *testing.T) {
	if testserver.Each(t, TestSession_changedByFailingStatements) {
		return
	}
	ours, plain := one(t, "multiStatements=true")
	mustExec(t, ours, `INSERT INTO ruled (a) VALUES ("1")`) // the mode is known
	mustExec(t, plain, "INSERT INTO ruled (id, a) VALUES (900, 1)")
	if _, err := ours.Exec("SET sql_mode = 'ANSI_QUOTES'; UPDATE ruled SET id = 900"); err == nil {
		t.Error("no duplicate")
	}
	mustExec(t, ours, `INSERT INTO "ruled" ("a") VALUES (1)`)
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled"); n != 3 || keyless(t, plain, "ruled") != 0 {
		t.Errorf("%d rows", n)
	}
}

// sql_mode set on one connection of a pool is not another's.
func TestSession_modesOfTwoConnections(t *testing.T) {
	if testserver.Each(t, TestSession_modesOfTwoConnections) {
		return
	}
	ours, plain, _ := openFilled(t)
	mustExec(t, plain, "ALTER TABLE ruled ADD s VARCHAR(20)")
	var conns [2]*sql.Conn
	for i := range conns {
		var err error
		if conns[i], err = ours.Conn(context.Background()); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	exec := func(i int, query string) {
		t.Helper()
		mustExec(t, conns[i], query)
	}
	exec(0, "SET sql_mode = 'ANSI_QUOTES'")
	for range 2 {
		exec(0, `INSERT INTO "ruled" (s) VALUES ('"')`)
		exec(1, `INSERT INTO ruled (s) VALUES ("'")`)
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0"), 4, "rows")
}
