package driver

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/test/differential"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/spi"
)

// Explicit keys from a query are kept, or replaced by generated ones, like explicit keys in
// VALUES.
func TestInsertSelect_keepsGivenKeys(t *testing.T) {
	onEachAndOldest(t, testInsertSelect_keepsGivenKeys)
}

func testInsertSelect_keepsGivenKeys(t *testing.T) {
	integers := []any{7001, 7002, 7003, 7004, 7005, 7006, 7007, 7008, 7009, 7010}
	texts := []any{"g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8", "g9", "ga"}
	for _, c := range []struct {
		column string
		made   []any
		given  []string
	}{
		{"VARCHAR(32)", integers, []string{"NULL", "'0'", "'abc'", "'0x'", "'0.4'", "' 0 '", "'0e3'", "'.'", "'-1'"}},
		{"VARBINARY(32)", integers, []string{"NULL", "'0'", "'abc'", "'00'", "'-0'"}},
		{"BIGINT", integers, []string{"NULL", "0", "'0'", "0.4", "5", "-9223372036854775808"}},
		{"DECIMAL(20,2)", integers, []string{"NULL", "0", "0.00", "5"}},
		{"CHAR(8)", texts, []string{"NULL", "''", "'x '", "'   '"}},
		{"VARCHAR(8) CHARACTER SET latin1", texts, []string{"NULL", "''", "'  '", "'ö'"}},
		{"BINARY(4)", texts, []string{"NULL", "''", "'abcd'", "X'00'"}},
		{"VARBINARY(4)", texts, []string{"NULL", "''", "'ab'", "X'00'"}},
	} {
		read := func(query func(key string) string) string {
			ours, plain := openScripted(t, generatorRule(t, listed(c.made...), "ruled.id"))
			mustExec(t, plain, "CREATE TABLE ruled (a INT, id "+c.column+" NOT NULL)")
			mustExec(t, ours, "INSERT INTO ruled (a) VALUES (-1)") // now the kind of the keys is known
			for i, key := range c.given {
				if _, err := ours.Exec(strings.ReplaceAll(query(key), "$", fmt.Sprint(i))); err != nil {
					t.Errorf("%s %s: %v", c.column, key, err)
				}
			}
			return column(t, plain, "SELECT CONCAT(a, ':', HEX(id)) FROM ruled ORDER BY a")
		}
		want := read(func(key string) string { return "INSERT INTO ruled (id, a) VALUES (" + key + ", $)" })
		have := read(func(key string) string { return "INSERT INTO ruled (id, a) SELECT " + key + ", $" })
		if have != want || want == "" {
			t.Errorf("%s %s\nhave: %s\nwant: %s", c.column, c.given, have, want)
		}
	}
}

// manySource creates a table src of 60 rows, and makes INSERT … SELECT insert 25 at a time.
func manySource(t *testing.T, ours, plain *sql.DB) {
	t.Helper()
	ConnectorOf(ours).rules.Load().rowsAtOnce = 25
	mustExec(t, plain, "CREATE TABLE digit (n INT)")
	mustExec(t, plain, "INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
	mustExec(t, plain, "CREATE TABLE src AS SELECT a.n + 10 * b.n AS a FROM digit a, digit b WHERE b.n < 6")
}

// If a later INSERT fails, no row is inserted, and the transaction around it doesn't change.
func TestInsertSelect_isAtomic(t *testing.T) { onEach(t, testInsertSelect_isAtomic) }

func testInsertSelect_isAtomic(t *testing.T) {
	ours, plain := one(t)
	manySource(t, ours, plain)
	mustExec(t, plain, "ALTER TABLE ruled ADD UNIQUE (a)")
	const all, bad = "INSERT INTO ruled (a) SELECT a FROM src ORDER BY a", "INSERT INTO ruled (a) SELECT IF(a = 55, 3, a) FROM src ORDER BY a"
	for _, around := range []struct {
		name          string
		before, after []string
	}{
		{"autocommit", nil, nil},
		{"transaction", []string{"BEGIN", "INSERT INTO ruled (a) VALUES (-1)"}, []string{"COMMIT"}},
		{"autocommit off", []string{"SET autocommit = 0", "INSERT INTO ruled (a) VALUES (-1)"}, []string{"COMMIT", "SET autocommit = 1"}},
		{"XA", []string{"XA START 'x'", "INSERT INTO ruled (a) VALUES (-1)"}, []string{"XA END 'x'", "XA COMMIT 'x' ONE PHASE"}},
		{"LOCK TABLES", []string{"LOCK TABLES ruled WRITE, src READ"}, []string{"UNLOCK TABLES"}},
		{"chained", []string{"SET completion_type = CHAIN"}, []string{"SET completion_type = DEFAULT"}},
	} {
		t.Run(around.name, func(t *testing.T) {
			for _, query := range []string{all, bad} {
				mustExec(t, plain, "DELETE FROM ruled")
				for _, s := range around.before {
					mustExec(t, ours, s)
				}
				last := number(t, ours, "SELECT LAST_INSERT_ID()")
				res, err := ours.Exec(query)
				want := int64(len(around.before) / 2 * min(1, strings.Count(fmt.Sprint(around.before), "VALUES")))
				if query == bad {
					if !base.IsServerError(err, 1062) {
						t.Errorf("%s: %v", around.name, err)
					}
					equal(t, number(t, ours, "SELECT LAST_INSERT_ID()"), last, around.name, "LAST_INSERT_ID() was", "and is")
				} else {
					want += 60
					noError(t, err, around.name)
					id, _ := res.LastInsertId()
					if n, _ := res.RowsAffected(); n != 60 || id != number(t, ours, "SELECT MIN(id) FROM ruled WHERE a >= 0") {
						t.Errorf("%s: %d rows, id %d", around.name, n, id)
					}
				}
				for _, s := range around.after {
					mustExec(t, ours, s)
				}
				equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), want, around.name, query, "rows")
				equal(t, number(t, ours, "SELECT @@autocommit"), 1, around.name, "autocommit is")
			}
		})
	}
	keysInOrder(t, plain)
}

// keysInOrder tests that greater values of a have greater keys.
func keysInOrder(t *testing.T, db *sql.DB) {
	t.Helper()
	if testserver.Has(t, testserver.Newest, "window functions") {
		equal(t, number(t, db, "SELECT COUNT(*) FROM (SELECT LAG(id) OVER (ORDER BY a) AS before_it, id FROM ruled) AS r WHERE before_it >= id"), 0, "keys are not in the order of their rows")
	}
}

// The results of many INSERTs are combined to the result of one statement.
func TestInsertSelect_reportsOfManyInserts(t *testing.T) {
	onEachAndOldest(t, testInsertSelect_reportsOfManyInserts)
}

func testInsertSelect_reportsOfManyInserts(t *testing.T) {
	ours, plain := one(t, strictMode)
	manySource(t, ours, plain)
	mustExec(t, plain, "ALTER TABLE ruled ADD UNIQUE (a)")
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT a FROM src WHERE a < 30")
	for _, c := range []struct {
		query    string
		affected int64
		known    int
	}{
		{"INSERT IGNORE INTO ruled (a) SELECT a FROM src ORDER BY a", 30, 30},
		{"INSERT INTO ruled (a) SELECT a + 30 FROM src ORDER BY a ON DUPLICATE KEY UPDATE a = ruled.a + 1000000", 30 + 2*30, 30},
		{"REPLACE INTO ruled (a) SELECT a + 60 FROM src ORDER BY a", 60 + 30, 60},
		{"REPLACE INTO ruled (a) SELECT a DIV 2 FROM src ORDER BY a", 0, 30},
		{"REPLACE INTO ruled (a) SELECT a % 30 + 9000000 FROM src ORDER BY a", 60 + 30, 30},
		{"INSERT INTO ruled (id, a) SELECT IF(a % 2, NULL, a + 7000000), a + 3000000 FROM src ORDER BY a", 60, 60},
	} {
		t.Run(c.query, func(t *testing.T) {
			var keys Keys
			res := must(ours.ExecContext(WithKeys(t.Context(), &keys), c.query))(t)
			if n, _ := res.RowsAffected(); c.affected != 0 && n != c.affected {
				t.Errorf("rows affected\nhave: %d\nwant: %d", n, c.affected)
			}
			first, known := int64(0), 0
			var in strings.Builder
			for _, key := range keys.Values() {
				if key == nil {
					continue
				}
				known++
				if first == 0 && session.InsertID(key) < 7000000 {
					first = session.InsertID(key)
				}
				fmt.Fprintf(&in, ",%d", key)
			}
			if len(keys.Values()) != 60 || known != c.known {
				t.Errorf("%d keys, %d of them known", len(keys.Values()), known)
			}
			equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id IN (0"+in.String()+")"), int64(strings.Count(in.String(), ",")), "of", strings.Count(in.String(), ","), "keys are in the table")
			id, _ := res.LastInsertId()
			last := number(t, ours, "SELECT LAST_INSERT_ID()")
			if replaces := strings.HasPrefix(c.query, "REPLACE"); id == 0 || last == 0 || id > 7000000 || !replaces && (id != first || id != last) {
				t.Errorf("id %d, LAST_INSERT_ID() %d, first %d", id, last, first)
			}
		})
	}
	// The server counts the rows of each INSERT separately.
	_, err := ours.Exec("INSERT INTO ruled (id, a) SELECT a + 8000000, IF(a = 55, 'x', a) + 5000000 FROM src ORDER BY a")
	if _, wrong := ours.Exec("INSERT INTO ruled (id, a) SELECT a + 8000000, IF(a = 55, 99999999999, a + 5000000) FROM src ORDER BY a"); wrong == nil || !strings.HasSuffix(wrong.Error(), "at row 56") {
		t.Errorf("have: %v, %v", err, wrong)
	}
}

// Rows that are too large for the memory are refused, and none is inserted.
func TestInsertSelect_tooManyBytes(t *testing.T) {
	ours, plain := one(t)
	mustExec(t, plain, "ALTER TABLE ruled ADD s MEDIUMTEXT")
	mustExec(t, plain, "CREATE TABLE src (a INT)")
	mustExec(t, plain, "INSERT INTO src VALUES (1), (2), (3), (4), (5), (6)")
	_, err := ours.Exec("INSERT INTO ruled (a, s) SELECT a, REPEAT('x', 12000000) FROM src")
	if !errors.As(err, new(*StatementError)) || !errors.Is(err, ErrUnsupportedStatement) || !strings.Contains(err.Error(), "LIMIT") {
		t.Errorf("have: %v", err)
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 0, "rows")
	mustExec(t, ours, "INSERT INTO ruled (a, s) SELECT a, REPEAT('x', 12000000) FROM src LIMIT 5")
	equal(t, number(t, plain, "SELECT SUM(LENGTH(s)) FROM ruled"), 60000000, "bytes")
}

// Dates that a time.Time can't represent don't change.
func TestInsertSelect_keepsDatesWithParseTime(t *testing.T) {
	onEachAndOldest(t, testInsertSelect_keepsDatesWithParseTime)
}

func testInsertSelect_keepsDatesWithParseTime(t *testing.T) {
	for _, params := range []string{"parseTime=false", "parseTime=true&loc=Europe%2FBerlin"} {
		ours, plain := one(t, params, "sql_mode=%27ALLOW_INVALID_DATES%27")
		mustExec(t, plain, "ALTER TABLE ruled ADD d DATE, ADD dt DATETIME(6), ADD s VARCHAR(40)")
		mustExec(t, plain, "CREATE TABLE src (a INT, d DATE, dt DATETIME(6))")
		mustExec(t, plain, `INSERT INTO src VALUES (1, '2024-02-30', '2024-03-31 02:30:00.000001'), (2, '2024-00-00', '0001-01-01 00:00:00'),
			(3, '0000-00-00', '0000-00-00 00:00:00'), (4, NULL, NULL), (5, '9999-12-31', '9999-12-31 23:59:59.999999')`)
		mustExec(t, ours, "INSERT INTO ruled (a, d, dt, s) SELECT a, d, dt, dt AS again FROM src ORDER BY dt DESC, a")
		const read = "SELECT GROUP_CONCAT(CONCAT_WS('|', a, d, dt%s) ORDER BY a) FROM "
		want, have := column(t, plain, fmt.Sprintf(read, ", dt")+"src"), column(t, plain, fmt.Sprintf(read, ", s")+"ruled")
		if have != want || !strings.Contains(have, "02:30:00.000001") {
			t.Errorf("%s\nhave: %s\nwant: %s", params, have, want)
		}
		equal(t, column(t, plain, "SELECT GROUP_CONCAT(a ORDER BY id) FROM ruled"), "5,1,2,3,4", params, "the order is")
		_, duplicate := ours.Exec("INSERT INTO ruled (dt, s) SELECT dt, dt FROM src")
		_, argument := ours.Exec("INSERT INTO ruled (dt, s) SELECT dt, ? FROM src", "x")
		alias, _ := one(t, params, "columnsWithAlias=true")
		mustExec(t, alias, "ALTER TABLE ruled ADD d DATE")
		mustExec(t, alias, "CREATE TABLE src (d DATE)")
		_, qualified := alias.Exec("INSERT INTO ruled (d) SELECT d FROM src")
		for _, err := range []error{duplicate, argument, qualified} { // MySQL 5.6 can't name these columns
			if refused := !testserver.Has(t, testserver.Newest, "WITH") && params != "parseTime=false"; refused != errors.Is(err, ErrUnsupportedStatement) || !refused && err != nil {
				t.Errorf("%s: %v", params, err)
			}
		}
		for _, query := range []string{"INSERT INTO ruled (a, dt) SELECT dt FROM src", "INSERT INTO ruled (a) SELECT a, dt FROM src"} {
			if _, err := ours.Exec(query); !base.IsServerError(err, 1136) {
				t.Errorf("%s: %s: %v", params, query, err)
			}
		}
	}
}

// The query reads current rows and locks them, like INSERT … SELECT.
func TestInsertSelect_locksWhatItReads(t *testing.T) {
	onEachAndOldest(t, testInsertSelect_locksWhatItReads)
}

func testInsertSelect_locksWhatItReads(t *testing.T) {
	ours, plain := one(t)
	mustExec(t, plain, "CREATE TABLE src (id INT PRIMARY KEY, a INT)")
	mustExec(t, plain, "INSERT INTO src VALUES (1, 1)")
	mustExec(t, plain, "CREATE TABLE auto (id BIGINT PRIMARY KEY AUTO_INCREMENT, a INT)")
	read := func(db *sql.DB, query string) (outcome string) {
		tx := must(db.Begin())(t)
		defer tx.Rollback()
		var n int
		noError(t, tx.QueryRow("SELECT COUNT(*) FROM src").Scan(&n))
		mustExec(t, plain, fmt.Sprintf("INSERT INTO src VALUES (%d, 2)", number(t, plain, "SELECT MAX(id) + 1 FROM src")))
		if res, err := tx.Exec(query); err != nil {
			outcome = err.Error() // innodb_snapshot_isolation of MariaDB
		} else {
			more, _ := res.RowsAffected()
			outcome = fmt.Sprintf("%d rows more", more-int64(n))
		}
		if _, err := plain.Exec("SELECT a FROM src WHERE id = 1 FOR UPDATE NOWAIT"); err != nil {
			outcome += ", locked"
		}
		return outcome
	}
	want, have := read(plain, "INSERT INTO auto (a) SELECT a FROM src"), read(ours, "INSERT INTO ruled (a) SELECT a FROM src")
	if have != want || want == "0 rows more" {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
}

// The rows of the query stay locked until they are inserted, even a single row.
func TestInsertSelect_holdsWhatItReads(t *testing.T) { onEach(t, testInsertSelect_holdsWhatItReads) }

func testInsertSelect_holdsWhatItReads(t *testing.T) {
	testserver.Needs(t, testserver.Newest, "NOWAIT")
	var other *sql.DB
	locked := error(nil)
	generating := script(func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		_, locked = other.Exec("SELECT a FROM src WHERE a = 1 FOR UPDATE NOWAIT")
		return keysOfInts(n, 1), nil
	})
	ours, plain := openScripted(t, generatorRule(t, generating, "ruled.id"))
	other = plain
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	mustExec(t, plain, "CREATE TABLE src (a INT PRIMARY KEY)")
	mustExec(t, plain, "INSERT INTO src VALUES (1)")
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT a FROM src")
	const noWait, timeout = 3572, 1205 // error numbers of MySQL and MariaDB
	if !base.IsServerError(locked, noWait, timeout) {
		t.Errorf("while the key was generated\nhave: %v\nwant: a locked row", locked)
	}
	mustExec(t, plain, "SELECT a FROM src WHERE a = 1 FOR UPDATE NOWAIT")
}

// If the context ends when the keys are generated, no row is inserted, and the pool works.
func TestInsertSelect_canceledBeforeRows(t *testing.T) {
	onEach(t, testInsertSelect_canceledBeforeRows)
}

func testInsertSelect_canceledBeforeRows(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ending := script(func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		cancel()
		return keysOfInts(n, 1), nil
	})
	ours, plain := openScripted(t, generatorRule(t, ending, "ruled.id"))
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	manySource(t, ours, plain)
	const query = "INSERT INTO ruled (a) SELECT a FROM src"
	isError(t, errOf(ours.ExecContext(ctx, query)), context.Canceled)
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 0, "rows after the context ended")
	mustExec(t, ours, query)
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 60, "rows")
}

// A slow query stops when its context ends. The test ends long before the query would.
func TestInsertSelect_canceledInQuery(t *testing.T) { onEach(t, testInsertSelect_canceledInQuery) }

func testInsertSelect_canceledInQuery(t *testing.T) {
	ours, plain := openFilled(t)
	for _, d := range doors {
		if d.name == "Tx" {
			continue // the server holds its locks until it notices that the client is gone
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := d.exec(ctx, ours, "INSERT INTO ruled (a) SELECT SLEEP(1000)")
		cancel()
		isError(t, err, context.DeadlineExceeded, d.name)
	}
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT 1")
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 1, "rows")
}

// All rows are inserted with any sql_select_limit, and session variables don't change, even after
// an error.
func TestInsertSelect_leavesTheSession(t *testing.T) {
	onEachAndOldest(t, testInsertSelect_leavesTheSession)
}

func testInsertSelect_leavesTheSession(t *testing.T) {
	ours, plain := one(t, strictMode)
	mustExec(t, plain, "ALTER TABLE ruled ADD s VARCHAR(20) CHARACTER SET utf8mb4")
	mustExec(t, plain, "CREATE TABLE src (a INT, s VARCHAR(20) CHARACTER SET utf8mb4)")
	mustExec(t, plain, "INSERT INTO src VALUES (1, 'é日😀'), (2, 'ß'), (3, 'x')")
	const variables = "SELECT CONCAT_WS(' ', @@character_set_client, @@character_set_connection, COALESCE(@@character_set_results, 'NULL'), @@sql_select_limit, @@autocommit) LIMIT 1"
	for _, set := range []string{
		"SET NAMES latin1", "SET NAMES gbk", "SET NAMES binary", "SET character_set_results = NULL", "SET character_set_connection = ucs2", "SET NAMES utf8mb3",
		"SET sql_select_limit = 1", "SET sql_select_limit = 0", "SET autocommit = 0",
	} {
		mustExec(t, plain, "DELETE FROM ruled")
		mustExec(t, ours, set)
		before := column(t, ours, variables)
		mustExec(t, ours, "INSERT INTO ruled (a, s) SELECT a, s FROM src ORDER BY a")
		for _, bad := range []string{"INSERT INTO ruled (a, s) SELECT nope FROM src", "INSERT INTO ruled (a, s) SELECT 'x', s FROM src", "INSERT INTO ruled (a) SELECT a, s FROM src"} {
			fails(t, errOf(ours.Exec(bad)), set, bad)
		}
		equal(t, column(t, ours, variables), before, set, "the session's variables")
		mustExec(t, ours, "COMMIT")
		mustExec(t, ours, "SET NAMES utf8mb4, sql_select_limit = DEFAULT, autocommit = 1")
		equal(t, column(t, ours, "SELECT GROUP_CONCAT(s ORDER BY id) FROM ruled"), "é日😀,ß,x", set)
	}
}

// A function in the query runs once for each row, also with parseTime.
func TestInsertSelect_readsOnce(t *testing.T) { onEachAndOldest(t, testInsertSelect_readsOnce) }

func testInsertSelect_readsOnce(t *testing.T) {
	for _, params := range []string{"parseTime=false", "parseTime=true"} {
		ours, plain := one(t, params)
		mustExec(t, plain, "ALTER TABLE ruled ADD d DATETIME")
		mustExec(t, plain, "CREATE TABLE calls (n INT)")
		mustExec(t, plain, "CREATE TABLE src (a INT)")
		mustExec(t, plain, "INSERT INTO src VALUES (1), (2)")
		mustExec(t, plain, "CREATE FUNCTION f() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO calls VALUES (1); RETURN 1; END")
		for query, want := range map[string]int64{
			"INSERT INTO ruled (a) SELECT f()":                                    1,
			"INSERT INTO ruled (a, d) SELECT f(), NOW()":                          1,
			"INSERT INTO ruled (a, d) SELECT f(), NOW() FROM src":                 2,
			"INSERT INTO ruled (a, d) SELECT f(), NOW() UNION ALL SELECT 1, NULL": 1,
		} {
			if params == "parseTime=true" && strings.Contains(query, "UNION") && !testserver.Has(t, testserver.Newest, "UNION in brackets") {
				continue // it is refused
			}
			mustExec(t, plain, "DELETE FROM calls")
			mustExec(t, ours, query)
			equal(t, number(t, plain, "SELECT COUNT(*) FROM calls"), want, params, query, "calls")
		}
	}
}

// An INSERT has at most as many placeholders and bytes as the server accepts.
func TestInsertSelect_manyAndWideRows(t *testing.T) { onEach(t, testInsertSelect_manyAndWideRows) }

func testInsertSelect_manyAndWideRows(t *testing.T) {
	_, plain := one(t)
	cfg := must(mysql.ParseDSN(testserver.Database(t)))(t)
	cfg.DBName = column(t, plain, "SELECT DATABASE()")
	cfg.MaxAllowedPacket = 1 << 16
	noError(t, RegisterRule("wide rows", taggedRule(t, "ruled", 0)))
	ours := mustOpen(t, "shardkey", cfg.FormatDSN()+"&shardkeyRule=wide%20rows")
	var columns []string
	for i := range 60 {
		columns = append(columns, fmt.Sprintf("c%d", i))
	}
	list := strings.Join(columns, ", ")
	mustExec(t, plain, "ALTER TABLE ruled ADD "+strings.Join(columns, " INT, ADD ")+" INT, ADD s MEDIUMTEXT")
	mustExec(t, plain, "CREATE TABLE src ("+strings.Join(columns, " INT, ")+" INT, s MEDIUMTEXT)")
	mustExec(t, plain, "INSERT INTO src ("+list+", s) VALUES ("+strings.Repeat("1, ", 60)+"REPEAT('x', 300000))")
	for range 11 {
		mustExec(t, plain, "INSERT INTO src ("+list+", s) SELECT "+list+", 'y' FROM src")
	}
	res := mustExec(t, ours, "INSERT INTO ruled ("+list+", s) SELECT "+list+", s FROM src")
	if n, _ := res.RowsAffected(); n != 2048 {
		t.Errorf("%d rows are reported", n)
	}
	equal(t, number(t, plain, "SELECT SUM(LENGTH(s)) + SUM(c59) FROM ruled WHERE id > 0"), 300000+2047+2048)
}

// A user with the privileges to read the query and insert into the target needs no others.
func TestInsertSelect_leastPrivileges(t *testing.T) {
	onEachAndOldest(t, testInsertSelect_leastPrivileges)
}

func testInsertSelect_leastPrivileges(t *testing.T) {
	plain := mustOpen(t, "mysql", testserver.Database(t))
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	mustExec(t, plain, "CREATE TABLE src AS SELECT 1 AS a")
	ours, _ := openAs(t, plain, "INSERT ON ruled", "SELECT ON src")
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT a FROM src")
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0"), 1, "rows")
	// Without SELECT on the table, the keys stay unknown, and a warning is logged.
	mustExec(t, plain, "ALTER TABLE ruled ADD UNIQUE (a)")
	var log bytes.Buffer
	ConnectorOf(ours).rules.Load().logger = slog.New(slog.NewTextHandler(&log, nil))
	mustExec(t, ours, "INSERT IGNORE INTO ruled (a) SELECT a FROM src UNION ALL SELECT 2")
	equal(t, strings.Count(log.String(), "keys of an INSERT are unknown"), 1, log.String())
}

// columnTypesOf lists columns of every type, each with expressions of values. The servers convert
// values that don't fit.
var columnTypesOf = []struct{ column, values string }{
	{"n1 TINYINT", "-128|127|0"}, {"n2 TINYINT UNSIGNED", "255|0|7"}, {"n3 SMALLINT", "-32768|32767|1"}, {"n4 MEDIUMINT UNSIGNED", "16777215|0|9"},
	{"n5 INT", "-2147483648|2147483647|0"}, {"n6 BIGINT", "-9223372036854775808|9223372036854775807|-1"}, {"n7 BIGINT UNSIGNED", "18446744073709551615|9223372036854775808|0"},
	{"z INT(7) UNSIGNED ZEROFILL", "42|0|4294967295"}, {"bo BOOLEAN", "TRUE|FALSE|2"},
	{"de DECIMAL(65,30)", "12345678901234567890123456789012345.123456789012345678901234567891|-0.000000000000000000000000000001|0"},
	{"d0 DECIMAL(20)", "-99999999999999999999|5|0"}, {"f FLOAT", "0.1|-3.4028234e38|16777217"}, {"d DOUBLE", "0.1|-1.7976931348623157e308|5e-324"},
	{"b1 BIT(1)", "1|0|1"}, {"b9 BIT(9)", "b'101010101'|0|511"}, {"b64 BIT(64)", "18446744073709551615|0|1"},
	{"da DATE", "'2024-02-29'|'0000-00-00'|'2024-00-00'"}, {"ti TIME", "'-838:59:59'|'00:00:00'|'23:59:59'"}, {"t6 TIME(6)", "'-101:02:03.000001'|'838:59:58.999999'|'00:00:00.5'"},
	{"dt DATETIME", "'9999-12-31 23:59:59'|'0000-00-00 00:00:00'|'2024-03-31 02:30:00'"}, {"d3 DATETIME(3)", "'1000-01-01 00:00:00.001'|'2024-10-00 00:00:00'|'2024-10-27 02:30:00.999'"},
	{"d6 DATETIME(6)", "'2024-02-29 23:59:59.000001'|'2024-03-31 02:30:00'|'0001-01-01 00:00:00'"},
	{"ts TIMESTAMP(6) NULL", "'2024-06-30 23:59:59.123456'|'1970-01-02 00:00:00'|'2037-12-31 23:59:59'"}, {"t1 TIMESTAMP NULL", "'2024-06-30 12:00:00'|0|'2001-09-09 01:46:40'"},
	{"y YEAR", "1901|0|2155"}, {"c CHAR(9)", "'a b  '|''|'it''s'"}, {"v VARCHAR(30)", `'日本😀 '|''|'\\n\0"'`},
	{"bi BINARY(4)", "X'00FF27'|''|X'5C000000'"}, {"vb VARBINARY(9)", "X'0027FF5C'|''|'12'"},
	{"tt TINYTEXT", "'é'|''|'x'"}, {"tx TEXT", "REPEAT('日', 9000)|''|'x'"}, {"mt MEDIUMTEXT", "REPEAT('é', 33000)|''|'1'"}, {"lt LONGTEXT", "REPEAT('t', 66000)|''|'0'"},
	{"tb TINYBLOB", "X'FF00'|''|'x'"}, {"bl BLOB", "REPEAT(X'80', 60000)|''|X'00'"}, {"mb MEDIUMBLOB", "REPEAT(X'00FF', 33000)|''|X'C3'"}, {"lb LONGBLOB", "REPEAT(X'DEADBEEF', 17000)|''|X'5C27'"},
	{"e ENUM('x','é','1','','2')", "'é'|''|3"}, {"el ENUM('ö','1') CHARACTER SET latin1", "'ö'|2|'1'"}, {"s SET('a','é','c')", "'a,é'|''|7"},
	{"j JSON", `'{"a": [1, "é", null, 1.5]}'|'"x"'|'[]'`}, {"g GEOMETRY", "ST_GeomFromText('LINESTRING(0 0,1 1)')|ST_GeomFromText('POINT(1 2)', 4326)|Point(1, 2)"},
	{"l1 VARCHAR(30) CHARACTER SET latin1", "'ÄÖ€'|''|CONVERT(X'8190FF' USING latin1)"}, {"l2 VARCHAR(30) CHARACTER SET latin2", "'ŁĄ'|''|'x'"}, {"as1 VARCHAR(30) CHARACTER SET ascii", "'a\\\\b'|''|'~'"},
	{"u3 VARCHAR(30) CHARACTER SET utf8mb3", "'日本'|''|'€'"}, {"u2 VARCHAR(30) CHARACTER SET ucs2", "'日本é'|''|'x'"}, {"u16 TEXT CHARACTER SET utf16", "'日本😀'|''|'x'"}, {"u32 TEXT CHARACTER SET utf32", "'日本😀'|''|'x'"},
	{"gb VARCHAR(30) CHARACTER SET gbk", "'中文'|''|'x\\\\'"}, {"sj VARCHAR(30) CHARACTER SET sjis", "'表示'|''|'x'"}, {"cp VARCHAR(30) CHARACTER SET cp932", "'ソ表'|''|'x'"}, {"bg VARCHAR(30) CHARACTER SET big5", "'中功'|''|'x'"},
	{"kr VARCHAR(30) CHARACTER SET euckr", "'한국'|''|'x'"}, {"ko VARCHAR(30) CHARACTER SET koi8r", "'ключ'|''|'x'"}, {"he CHAR(30) CHARACTER SET hebrew", "'שלום'|''|'x'"}, {"gr TEXT CHARACTER SET greek", "'κλειδί'|''|'x'"},
}

// equalColumn compares a column of the tables a and r: numbers and times by value, others by
// their bytes.
func equalColumn(name, typ string) string {
	switch {
	case strings.HasPrefix(typ, "JSON"):
		return fmt.Sprintf("CAST(a.%[1]s AS CHAR) <=> CAST(r.%[1]s AS CHAR)", name)
	case strings.HasPrefix(typ, "GEOMETRY"):
		return fmt.Sprintf("ST_AsText(a.%[1]s) <=> ST_AsText(r.%[1]s) AND ST_SRID(a.%[1]s) <=> ST_SRID(r.%[1]s)", name)
	case strings.Contains(typ, "CHAR"), strings.Contains(typ, "TEXT"), strings.Contains(typ, "BLOB"), strings.Contains(typ, "BIN"), strings.HasPrefix(typ, "ENUM"), strings.HasPrefix(typ, "SET"):
		return fmt.Sprintf("HEX(a.%[1]s) <=> HEX(r.%[1]s)", name)
	}
	return fmt.Sprintf("a.%[1]s <=> r.%[1]s AND CAST(a.%[1]s AS CHAR) <=> CAST(r.%[1]s AS CHAR)", name)
}

var rowsAndDates = regexp.MustCompile(` at row [0-9]+|'[0-9]{4}-[^']*'`)

// Rows of every type are stored as by the plain driver's INSERT … SELECT into a table with
// AUTO_INCREMENT. Errors are the same, too.
func TestInsertSelect_storesAsAutoIncrement(t *testing.T) {
	onEachAndOldest(t, testInsertSelect_storesAsAutoIncrement)
}

func testInsertSelect_storesAsAutoIncrement(t *testing.T) {
	var declared, names []string
	columnTypesOf := slices.DeleteFunc(slices.Clone(columnTypesOf), func(c struct{ column, values string }) bool {
		return c.column == "j JSON" && !testserver.Has(t, testserver.Newer, "JSON")
	})
	for _, c := range columnTypesOf {
		declared = append(declared, c.column)
		names = append(names, c.column[:strings.IndexByte(c.column, ' ')])
	}
	columns := strings.Join(names, ", ")
	var differ strings.Builder
	for i, name := range names {
		fmt.Fprintf(&differ, ", IF(%s, NULL, '%s')", equalColumn(name, strings.TrimPrefix(declared[i], name+" ")), name)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i, params := range []string{
		"", "parseTime=true&interpolateParams=true&loc=Europe%2FBerlin", "interpolateParams=true&charset=latin1", "parseTime=true&charset=gbk",
	} {
		ours, plain := one(t, params, "sql_mode=%27%27")
		plain.SetMaxOpenConns(1)
		mustExec(t, plain, "SET NAMES utf8mb4")
		mustExec(t, plain, "DROP TABLE ruled")
		const table = " (id BIGINT NOT NULL %sPRIMARY KEY, k INT, %s) CHARACTER SET utf8mb4 ROW_FORMAT=DYNAMIC"
		mustExec(t, plain, "CREATE TABLE ruled"+fmt.Sprintf(table, "", strings.Join(declared, ", ")))
		mustExec(t, plain, "CREATE TABLE auto"+fmt.Sprintf(table, "AUTO_INCREMENT ", strings.Join(declared, ", ")))
		mustExec(t, plain, "CREATE TABLE src"+fmt.Sprintf(table, "AUTO_INCREMENT ", strings.Join(declared, ", ")))
		for k := range 8 {
			values := make([]string, len(columnTypesOf))
			for j, c := range columnTypesOf {
				if all := strings.Split(c.values, "|"); k < 3 {
					values[j] = all[k]
				} else if values[j] = all[random.IntN(3)]; random.IntN(4) == 0 {
					values[j] = "NULL"
				}
			}
			mustExec(t, plain, fmt.Sprintf("INSERT INTO src (k, %s) VALUES (%d, %s)", columns, k, strings.Join(values, ", ")))
		}
		run := func(db *sql.DB, query string, mode string) string {
			ctx := context.Background()
			conn := must(db.Conn(t.Context()))(t)
			defer conn.Close()
			variables := "SELECT CONCAT_WS(' ', @@character_set_client, @@character_set_connection, @@character_set_results, @@sql_select_limit, @@autocommit)"
			mustExec(t, conn, "SET sql_mode = '"+mode+"'")
			var before, after string
			noError(t, conn.QueryRowContext(ctx, variables).Scan(&before))
			if i%2 == 1 {
				mustExec(t, conn, "BEGIN")
			}
			res, err := conn.ExecContext(ctx, query)
			if i%2 == 1 {
				mustExec(t, conn, "COMMIT")
			}
			if scanErr := conn.QueryRowContext(ctx, variables).Scan(&after); scanErr != nil || before != after {
				t.Errorf("%s: the session was %s and is %s, %v", params, before, after, scanErr)
			}
			if err != nil {
				// The row numbers in errors, and the handling of zero dates, depend on the query
				// plan.
				return rowsAndDates.ReplaceAllString(strings.ReplaceAll(err.Error(), "ruled", "auto"), "")
			}
			n, _ := res.RowsAffected()
			return fmt.Sprint(n, " rows")
		}
		for mode, all := range map[string][]string{"": {"TRUE"}, "TRADITIONAL": {"k = 0", "k = 1", "k = 2"}, "STRICT_ALL_TABLES": {"k <> 2"}} {
			for _, which := range all {
				mustExec(t, plain, "DELETE FROM auto")
				mustExec(t, plain, "DELETE FROM ruled")
				query := "INSERT INTO %s (k, " + columns + ") SELECT k, " + columns + " FROM src WHERE " + which + " ORDER BY k"
				want, have := run(plain, fmt.Sprintf(query, "auto"), mode), run(ours, fmt.Sprintf(query, "ruled"), mode)
				equal(t, have, want, params, mode, which)
				mustExec(t, plain, "SET sql_mode = ''")
				equal(t, number(t, plain, "SELECT COUNT(*) FROM auto"), number(t, plain, "SELECT COUNT(*) FROM auto a JOIN ruled r ON a.k = r.k"), params, mode, which, "rows")
				equal(t, column(t, plain, "SELECT CONCAT_WS(' ', 'row', a.k"+differ.String()+") AS differs FROM auto a JOIN ruled r ON a.k = r.k HAVING differs LIKE '% % %'"), "", params, mode, which, "what differs")
			}
		}
	}
}

// An INSERT … SELECT needs few round trips: those of its transaction, and one for each statement
// that the connection has cached.
func TestInsertSelect_roundTrips(t *testing.T) { onEachAndOldest(t, testInsertSelect_roundTrips) }

func testInsertSelect_roundTrips(t *testing.T) {
	r := snowflakeRule(t, "t")
	cfg := must(mysql.ParseDSN(testserver.Database(t) + "?sql_mode=%27%27"))(t)
	plain := mustOpen(t, "mysql", cfg.FormatDSN())
	mustExec(t, plain, "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT, d DATETIME)")
	mustExec(t, plain, "CREATE TABLE src (n INT PRIMARY KEY, d DATETIME)")
	mustExec(t, plain, "INSERT INTO src VALUES (1, '2024-01-02'), (2, NULL), (3, NULL)")
	mustExec(t, plain, "CREATE TABLE many (n INT)")
	const digits = "(SELECT 0 AS n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"
	mustExec(t, plain, "INSERT INTO many SELECT 10 * a.n + b.n + 1 FROM "+digits+" a, "+digits+" b WHERE a.n < 3")
	const one = "INSERT INTO t (n, d) SELECT n, d FROM src WHERE n = ?"
	for _, c := range []struct {
		name          string
		before, query string
		change        func(*mysql.Config, *Config)
		want          int
	}{
		{"alone", "", one, nil, 4},                 // begin, SELECT, INSERT, commit
		{"in a transaction", "BEGIN", one, nil, 4}, // begin, which fails, SAVEPOINT, SELECT, INSERT
		{"without autocommit", "SET autocommit = 0", one, nil, 4},
		{"dates", "", one, func(base *mysql.Config, _ *Config) { base.ParseTime = true }, 5},
		{"in a strict mode", "SET sql_mode = 'STRICT_ALL_TABLES'", one, nil, 5}, // SHOW COUNT(*) WARNINGS
		{"in latin1", "SET NAMES latin1", one, nil, 6},
		{"not cached", "", one, func(_ *mysql.Config, c *Config) { c.Statements = "off" }, 6},
		{"two INSERTs", "", "INSERT INTO t (n) SELECT n + 0 * ? FROM many", nil, 7},                // each is prepared
		{"four INSERTs", "", "INSERT INTO t (n) SELECT m.n + 0 * ? FROM many m JOIN src", nil, 10}, // two are the same
	} {
		t.Run(c.name, func(t *testing.T) {
			of, config, w := cfg.Clone(), Config{}, &wire{}
			of.DialFunc = w.dial
			if c.change != nil {
				c.change(of, &config)
			}
			base := must(mysql.NewConnector(of))(t)
			db, connector := openFake(t, base, r, config)
			connector.rules.Load().rowsAtOnce = 25
			db.SetMaxOpenConns(1)
			if c.before != "" {
				mustExec(t, db, c.before)
			}
			for range 3 {
				w.roundTrips()
				mustExec(t, db, c.query, 1)
			}
			equal(t, w.roundTrips(), c.want, "round trips")
			mustExec(t, db, "ROLLBACK")
		})
	}
}

// In a strict sql_mode, a warning of the query is the error that INSERT … SELECT returns. Otherwise
// the rows are the same.
func TestInsertSelect_warnings(t *testing.T) { onEachAndOldest(t, testInsertSelect_warnings) }

func testInsertSelect_warnings(t *testing.T) {
	ours, plain := one(t)
	plain.SetMaxOpenConns(1)
	mustExec(t, plain, "ALTER TABLE ruled ADD s VARCHAR(60)")
	mustExec(t, plain, "CREATE TABLE auto (id BIGINT PRIMARY KEY AUTO_INCREMENT, a INT, s VARCHAR(60))")
	mustExec(t, plain, "CREATE TABLE src (k INT, s VARCHAR(20), d DATE)")
	mustExec(t, plain, "INSERT INTO src VALUES (1, 'abc', '2024-01-01'), (2, '7x', '2024-01-02')")
	mustExec(t, plain, "CREATE FUNCTION warns() RETURNS INT BEGIN SIGNAL SQLSTATE '01000'; RETURN 5; END")
	oldest := !testserver.Has(t, testserver.Newer, "JSON")
	expressions := []string{
		"1/0", "k % 0", "5 DIV 0", "CAST('abc' AS SIGNED)", "CAST(s AS SIGNED)", "'5x' + 0", "CAST('x' AS DECIMAL(5,2)) + 0e0", "CAST(123456 AS DECIMAL(5,2)) + 0e0",
		"STR_TO_DATE('x','%Y')", "CAST('2026-13-01' AS DATE)", "DATE(s)", "DATE_ADD('9999-12-31', INTERVAL k DAY)", "CAST('900:00:00' AS TIME)", "SEC_TO_TIME(1e9)", "TIMEDIFF('x', 'y')",
		"CAST(k AS CHAR(0))", "LOG(0)", "LENGTH(REPEAT('x', 100000000))", "CAST(COUNT(*) + SUM(s = 0) AS SIGNED)", "k = 'x'", "LEAST(1, 'x')", "ROUND('x')", "FORMAT('x', 2)", "'x' | 1", "1e300 | 0", "-3.25e20 | 0", "CAST('-3' AS UNSIGNED)", "(SELECT 1/0)", "TO_DAYS('x')",
		"EXTRACT(YEAR FROM 'x')", "CONVERT(X'FF' USING utf8mb4)", "CONVERT('日' USING latin1)", "UNCOMPRESS('x')", "5", "s", "REPEAT('x', 70)", "INET_ATON('x')",
		"JSON_EXTRACT('{', '$.a')", "JSON_SET('{}', '$.*', 1)", "JSON_KEYS('x')", "JSON_EXTRACT('{}', 'a')", "SFORMAT('{', 1)", "UNCOMPRESS('abcdefgh')",
		"COLUMN_GET(COLUMN_CREATE('a', 'x'), 'a' AS INT)", "(WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2000) SELECT MAX(x) FROM n)",
		"warns()", "BINARY 'a' = 'a'", "CONVERT('x' USING utf8)",
	}
	outcome := func(db *sql.DB, table, mode, verb, expression string) string {
		mustExec(t, db, "SET sql_mode = '"+mode+"'")
		mustExec(t, db, "DELETE FROM "+table)
		_, err := db.Exec(verb + " INTO " + table + " (s) SELECT " + expression + " FROM src")
		if my, ok := errors.AsType[*mysql.MySQLError](err); ok {
			return fmt.Sprint(my.Number, " ", string(my.SQLState[:]))
		}
		return fmt.Sprint(err, column(t, db, "SELECT GROUP_CONCAT(CONCAT(' ', COALESCE(s, 'NULL')) ORDER BY s) FROM "+table))
	}
	for _, mode := range []string{"", "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO", "TRADITIONAL"} {
		for _, verb := range []string{"INSERT", "INSERT IGNORE", "REPLACE"} {
			for _, e := range expressions {
				if oldest && strings.Contains(e, "= 0") {
					continue // MySQL 5.6 only warns
				}
				equal(t, outcome(ours, "ruled", mode, verb, e), outcome(plain, "auto", mode, verb, e), mode, verb, e)
			}
		}
	}
	equal(t, number(t, ours, "SELECT @@autocommit"), 1, "autocommit is")
}

// Warnings of earlier statements, and those that the server doesn't keep, aren't taken for others.
func TestInsertSelect_otherWarnings(t *testing.T) { onEachAndOldest(t, testInsertSelect_otherWarnings) }

func testInsertSelect_otherWarnings(t *testing.T) {
	ours, plain := one(t)
	mustExec(t, plain, "CREATE TABLE src (a INT)")
	mustExec(t, plain, "INSERT INTO src VALUES (1), (2), (3)")
	mustExec(t, ours, "SET sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO'")
	for _, around := range [][2]string{{"DO 0", "DO 0"}, {"BEGIN", "COMMIT"}, {"SET autocommit = 0", "SET autocommit = 1"}} {
		for _, query := range []string{"SELECT 5", "SELECT ? + 5", "SELECT 5 UNION ALL SELECT 6", "SELECT a FROM src"} {
			mustExec(t, ours, around[0])
			mustExec(t, ours, "SELECT a / 0 FROM src")
			args := []any{1}[:strings.Count(query, "?")]
			if _, err := ours.Exec("INSERT INTO ruled (a) "+query, args...); err != nil {
				t.Errorf("%s: %s: %v", around[0], query, err)
			}
			mustExec(t, ours, around[1])
		}
	}
	for most, isRefused := range map[string]bool{"0": true, "1": false, "64": false} {
		mustExec(t, ours, "SET max_error_count = "+most)
		_, err := ours.Exec("INSERT INTO ruled (a) SELECT a / 0 FROM src")
		if refused := errors.Is(err, ErrUnsupportedStatement); refused != isRefused || !refused && !base.IsServerError(err, 1365) {
			t.Errorf("max_error_count %s: %v", most, err)
		}
		mustExec(t, ours, "INSERT INTO ruled (a) SELECT a FROM src")
	}
}

// copiedTypes lists columns of a query, each with two values.
var copiedTypes = []struct{ column, first, second string }{
	{"ti TINYINT", "-5", "0"}, {"bu BIGINT UNSIGNED", "18446744073709551615", "20240229"}, {"de DECIMAL(20,4)", "20240229.5", "-0.5"}, {"fl FLOAT", "0.1", "16777217"}, {"db DOUBLE", "0.1", "1e20"},
	{"b1 BIT(1)", "1", "0"}, {"b16 BIT(16)", "261", "57"}, {"ye YEAR", "2024", "0"}, {"da DATE", "'2024-02-29'", "'1999-12-31'"}, {"t0 TIME", "'12:34:57'", "'-101:02:03'"}, {"t3 TIME(3)", "'12:34:56.789'", "'00:00:00.5'"},
	{"dt DATETIME", "'2024-02-29 12:34:56'", "'1999-12-31 23:59:59'"}, {"d6 DATETIME(6)", "'2024-02-29 12:34:56.789012'", "'1999-12-31 23:59:59.999999'"}, {"ts TIMESTAMP(3) NULL", "'2024-02-29 12:34:56.789'", "'2001-09-09 01:46:40'"},
	{"en ENUM('x','é','1','')", "'é'", "'1'"}, {"el ENUM('ö','5') CHARACTER SET latin1", "'ö'", "'5'"}, {"se SET('a','é','c')", "'a,é'", "'c'"}, {"vc VARCHAR(30)", "'é'", "'12'"}, {"l1 VARCHAR(30) CHARACTER SET latin1", "'ö'", "'7'"},
	{"tx TEXT", "'[1]'", "'2024-02-29 01:02:03.5'"}, {"vb VARBINARY(9)", "X'C3A9'", "'12'"}, {"bi BINARY(4)", "X'00000041'", "'5'"}, {"bl BLOB", "X'FF00'", "'7'"}, {"ge GEOMETRY", "Point(1, 2)", "Point(0, 0)"},
	{"js JSON", `'"5"'`, `'{"a": [1, "é", 1.5]}'`},
}

var copiedExpressions = []string{
	"COALESCE(b1, b1)", "IFNULL(b16, b16)", "MAX(b16)", "(SELECT b1)", "CASE WHEN k > 0 THEN b1 END", "IF(k > 0, b1, NULL)", "NULLIF(b16, 1)", "b1 + 0", "x'41'", "0x39", "b'1'", "UNHEX('39')",
	"NULL", "1.50", "1.5e0", "SQRT(2)", "COUNT(*)", "AVG(ti)", "SUM(fl)", "MAX(en)", "MIN(da)", "GREATEST(en, 'a')", "COALESCE(da, 0)", "TIMEDIFF('12:00:00', '10:30:00.25')", "MAKETIME(1, 2, 3)", "FROM_UNIXTIME(86400.5)",
	"STR_TO_DATE('01,5,2013', '%d,%m,%Y')", "MD5('x')", "CONCAT(1, 2)", "UNIX_TIMESTAMP('2024-01-01 00:00:00.5')", "GROUP_CONCAT(ti)",
}

// A value of each type gets into a column of each type as with the plain driver, or is refused. The
// CAST that the refusal advises is accepted.
func TestInsertSelect_eachTypeIntoEach(t *testing.T) {
	onEachAndOldest(t, testInsertSelect_eachTypeIntoEach)
}

func testInsertSelect_eachTypeIntoEach(t *testing.T) {
	hasJSON := testserver.Has(t, testserver.Newer, "JSON")
	var declared, expressions []string
	first, second := []string{"0"}, []string{"1"}
	for _, c := range copiedTypes {
		if name, typ, _ := strings.Cut(c.column, " "); typ != "JSON" || hasJSON {
			declared, expressions = append(declared, c.column), append(expressions, name)
			first, second = append(first, c.first), append(second, c.second)
		}
	}
	columns := []string{
		"INT", "DECIMAL(30,8)", "DOUBLE", "BIT(16)", "YEAR", "DATE", "TIME(6)", "DATETIME(6)", "ENUM('x','é','1','5','2')", "SET('a','é','c','1','5')", "VARCHAR(60)", "TEXT", "VARBINARY(60)", "BLOB",
	}
	if hasJSON {
		columns = append(columns, "JSON")
	}
	ours, plain := one(t)
	plain.SetMaxOpenConns(1)
	mustExec(t, plain, "SET sql_mode = ''")
	mustExec(t, plain, "DROP TABLE ruled")
	for table, key := range map[string]string{"ruled": "", "auto": "AUTO_INCREMENT"} {
		mustExec(t, plain, "CREATE TABLE "+table+" (id BIGINT NOT NULL "+key+" PRIMARY KEY) CHARACTER SET utf8mb4")
		for i, typ := range columns {
			mustExec(t, plain, fmt.Sprintf("ALTER TABLE %s ADD c%d %s", table, i, typ))
		}
	}
	mustExec(t, plain, "CREATE TABLE src (k INT, "+strings.Join(declared, ", ")+") CHARACTER SET utf8mb4")
	mustExec(t, plain, "INSERT INTO src VALUES ("+strings.Join(first, ", ")+"), ("+strings.Join(second, ", ")+")")
	outcome := func(db *sql.DB, table, column, expression string, k int) string {
		mustExec(t, db, "BEGIN")
		defer mustExec(t, db, "ROLLBACK")
		_, err := db.Exec(fmt.Sprintf("INSERT INTO %s (%s) SELECT %s AS v FROM src WHERE k = %d", table, column, expression, k))
		var value sql.NullString
		switch {
		case errors.Is(err, ErrUnsupportedStatement):
			return err.Error()
		case err != nil:
			return "error"
		case strings.Contains(column, "c13"): // BLOB
			column = "HEX(" + column + ")"
		}
		noError(t, db.QueryRow("SELECT CAST("+column+" AS CHAR) FROM "+table).Scan(&value))
		return fmt.Sprint(value)
	}
	cast := regexp.MustCompile(`CAST\(… AS (.*)\)$`)
	refused, all := 0, 0
	for i, mode := range []string{"", "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE"} {
		mustExec(t, plain, "SET sql_mode = '"+mode+"'")
		mustExec(t, ours, "SET sql_mode = '"+mode+"'")
		for row, e := range append(expressions, copiedExpressions...) {
			for j, typ := range columns {
				if (row+j+i)%2 == 0 {
					continue // in the other mode
				}
				column, k := fmt.Sprint("c", j), (j/2+i)%2
				want, have := outcome(plain, "auto", column, e, k), outcome(ours, "ruled", column, e, k)
				if advice := cast.FindStringSubmatch(have); advice != nil {
					refused++
					e := "CAST(" + e + " AS " + advice[1] + ")"
					want, have = outcome(plain, "auto", column, e, k), outcome(ours, "ruled", column, e, k)
					if have == "error" && mode != "" {
						continue // MariaDB only warns about a string that isn't a number
					}
				}
				all++
				equal(t, have, want, mode, row, e, "row", k, "into", typ)
			}
		}
	}
	if refused == 0 || refused > all/3 {
		t.Errorf("%d of %d are refused", refused, all)
	}
}

// The servers send an expression of type BIT as bits, as digits, or as latin1 text in UTF-8.
func TestInsertSelect_bitExpressions(t *testing.T) {
	onEachAndOldest(t, testInsertSelect_bitExpressions)
}

func testInsertSelect_bitExpressions(t *testing.T) {
	ours, plain := one(t)
	mustExec(t, plain, "CREATE TABLE src (n INT, b BIT(16), b64 BIT(64))")
	mustExec(t, plain, "INSERT INTO src VALUES (1, 255, -1), (2, 489, 255), (3, 12597, 5), (4, 0, -9)")
	mustExec(t, plain, "CREATE TABLE auto (id BIGINT PRIMARY KEY AUTO_INCREMENT, d DECIMAL(20), b BIT(64))")
	mustExec(t, plain, "ALTER TABLE ruled ADD d DECIMAL(20), ADD b BIT(64)")
	for _, query := range []string{
		"b", "b64", "IF(n > 0, b, NULL)", "IF(n > 0, b64, NULL)", "CASE WHEN n > 0 THEN b END", "COALESCE(b, b)", "GREATEST(b64, b64)", "(SELECT b)", "CASE WHEN n > 1 THEN b64 END",
	} {
		for n := range 5 {
			where := fmt.Sprintf("SELECT %s FROM src WHERE n = %d OR %d = 0 ORDER BY n", query, n, n)
			for _, column := range []string{"d", "b"} {
				outcome := func(db *sql.DB, table string) string {
					mustExec(t, db, "DELETE FROM "+table)
					if _, err := db.Exec("INSERT INTO " + table + " (" + column + ") " + where); err != nil {
						return fmt.Sprint(errors.Is(err, ErrUnsupportedStatement))
					}
					return differential.ReadAll(t, plain, "SELECT "+column+" + 0 FROM "+table+" ORDER BY id")
				}
				if have := outcome(ours, "ruled"); have != "true" { // refused
					equal(t, have, outcome(plain, "auto"), where, column)
				}
			}
		}
	}
}

// MariaDB has types that it doesn't convert to each other. INSERT … SELECT then fails as in the
// server, in a lax sql_mode too.
func TestInsertSelect_typesWithoutConversion(t *testing.T) {
	onEach(t, testInsertSelect_typesWithoutConversion)
}

func testInsertSelect_typesWithoutConversion(t *testing.T) {
	testserver.Needs(t, testserver.MariaDB, "UUID and INET6")
	ours, plain := one(t)
	plain.SetMaxOpenConns(1)
	columns := []string{"INT", "DOUBLE", "DATE", "TIME", "YEAR", "BIT(8)", "VARCHAR(60)", "TEXT", "ENUM('x')", "UUID", "INET4", "GEOMETRY"}
	mustExec(t, plain, "CREATE TABLE auto (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
	for i, typ := range columns {
		mustExec(t, plain, fmt.Sprintf("ALTER TABLE auto ADD c%d %s", i, typ))
		mustExec(t, plain, fmt.Sprintf("ALTER TABLE ruled ADD c%d %s", i, typ))
	}
	mustExec(t, plain, "CREATE TABLE src (u UUID, i4 INET4, i6 INET6, pt POINT, c CHAR(9), n INT)")
	mustExec(t, plain, "INSERT INTO src VALUES ('00000000-0000-0000-0000-000000000005', '1.2.3.4', '::1', POINT(1, 1), '7', 1), (NULL, NULL, NULL, NULL, NULL, 2)")
	outcome := func(db *sql.DB, table string, c int, query string, args ...any) string {
		mustExec(t, db, "DELETE FROM "+table)
		_, err := db.Exec(fmt.Sprintf("INSERT INTO %s (c%d) %s", table, c, query), args...)
		var my *mysql.MySQLError
		switch {
		case errors.Is(err, ErrUnsupportedStatement):
			return err.Error()
		case errors.As(err, &my):
			return fmt.Sprint("error ", my.Number)
		}
		noError(t, err)
		return fmt.Sprintf("%q", column(t, db, fmt.Sprintf("SELECT HEX(c%d) FROM %s", c, table)))
	}
	for _, mode := range []string{"", "STRICT_ALL_TABLES"} {
		mustExec(t, plain, "SET sql_mode = '"+mode+"'")
		mustExec(t, ours, "SET sql_mode = '"+mode+"'")
		for i, typ := range columns {
			for _, e := range []string{"u", "i4", "i6", "pt", "c", "COALESCE(u, u)", "IF(n, u, NULL)"} {
				for _, query := range []string{"SELECT " + e + " FROM src WHERE n = ?", "WITH q AS (SELECT " + e + " AS x FROM src WHERE n = ?) SELECT x FROM q"} {
					for n := range 3 {
						equal(t, outcome(ours, "ruled", i, query, n), outcome(plain, "auto", i, query, n), mode, query, n, typ)
					}
				}
			}
		}
	}
}

// Statements of unusual forms do the same as with AUTO_INCREMENT.
func TestInsertSelect_forms(t *testing.T) { onEachAndOldest(t, testInsertSelect_forms) }

func testInsertSelect_forms(t *testing.T) {
	isMariaDB := testserver.Has(t, testserver.MariaDB, "RETURNING")
	run := func(db *sql.DB, c copiedForm) string {
		mustExec(t, db, "DELETE FROM ruled")
		mustExec(t, db, "DELETE FROM logged")
		mustExec(t, db, "INSERT INTO ruled VALUES (500, 10, 1, NULL)")
		if c.trigger != "" {
			mustExec(t, db, "CREATE TRIGGER tr "+c.trigger)
			defer mustExec(t, db, "DROP TRIGGER tr")
		}
		mustExec(t, db, "SET sql_mode = '"+c.mode+"'")
		mustExec(t, db, "DO LAST_INSERT_ID(77)")
		defer mustExec(t, db, "SET sql_mode = ''")
		res, err := db.Exec(c.query)
		var my *mysql.MySQLError
		switch {
		case errors.Is(err, ErrUnsupportedStatement):
			return "refused: " + err.Error()
		case errors.As(err, &my):
			return fmt.Sprint("error ", my.Number)
		case err != nil:
			return err.Error()
		}
		n, _ := res.RowsAffected()
		id, _ := res.LastInsertId()
		if strings.Contains(c.query, "RETURNING") {
			n, id = 0, 0
		}
		named := func(id int64) string {
			if id == 0 || id == 77 {
				return fmt.Sprint(id)
			}
			return "of " + column(t, db, fmt.Sprintf("SELECT u FROM ruled WHERE id = %d", id))
		}
		return fmt.Sprint(n, " rows, id ", named(id), ", last ", named(number(t, db, "SELECT LAST_INSERT_ID()")), ", logged ",
			column(t, db, "SELECT n FROM logged"), ", ", column(t, db, "SELECT CONCAT_WS('|', IF(id < 400, id, 'generated'), u, a, QUOTE(s)) FROM ruled ORDER BY u"))
	}
	ours, _ := openScripted(t, snowflakeRule(t, "ruled"), "sql_mode=%27%27")
	base := mustOpen(t, "mysql", testserver.Database(t)+"?sql_mode=%27%27")
	for db, integers := range map[*sql.DB]string{ours: "BIGINT", base: "BIGINT AUTO_INCREMENT"} {
		db.SetMaxOpenConns(1)
		mustExec(t, db, "CREATE TABLE ruled (id "+integers+" PRIMARY KEY, u INT UNIQUE, a INT, s VARCHAR(9))")
		mustExec(t, db, "CREATE TABLE logged (n BIGINT)")
		mustExec(t, db, "CREATE TABLE src (u INT, a INT, e ENUM('x','5'), b BIT(9), h VARBINARY(9), d DATE, s VARCHAR(9))")
		mustExec(t, db, "INSERT INTO src VALUES (1, 1, '5', 261, '7', '2024-02-29', ''), (2, 2, 'x', 3, 'x', NULL, 'x')")
	}
	for _, c := range copiedForms {
		if c.mariaDB && !isMariaDB {
			continue
		}
		want, have := run(base, c), run(ours, c)
		if have != want && !(c.refused && strings.HasPrefix(have, "refused")) {
			t.Errorf("%s %q %s\nhave: %s\nwant: %s", c.trigger, c.mode, c.query, have, want)
		}
	}
}

type copiedForm struct {
	query, mode, trigger string
	mariaDB, refused     bool
}

const readsLastID = "AFTER INSERT ON ruled FOR EACH ROW INSERT INTO logged VALUES (LAST_INSERT_ID())"

var copiedForms = []copiedForm{
	{query: "INSERT DELAYED INTO ruled (u, a) SELECT u, a FROM src", mariaDB: true},
	{query: "INSERT INTO ruled (u, a) SELECT u, a FROM src ORDER BY u FOR UPDATE RETURNING u", mariaDB: true},
	{query: "INSERT INTO ruled (u, a) SELECT u, a FROM src ORDER BY u", trigger: readsLastID},
	{query: "INSERT INTO ruled (u, a) SELECT HIGH_PRIORITY u, a FROM src ORDER BY u"},
	{query: "INSERT INTO ruled (u, a) SELECT j.x, 1 FROM JSON_TABLE('[1,2]', '$[*]' COLUMNS (x INT PATH '$')) AS j"},
	{query: "INSERT INTO ruled (u) SELECT u INTO @x FROM src LIMIT 1", refused: true},
	{query: "INSERT INTO ruled (u) (SELECT u FROM src LIMIT 1 INTO @x)", refused: true},
	{query: "INSERT INTO ruled (u, a) SELECT 10, 1 ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(ruled.id)"},
	{query: "INSERT INTO ruled (u, a) SELECT 10, 1 ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(ruled.id), a = 5"},
	{query: "INSERT INTO ruled (u, a) SELECT 11, 1 ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(ruled.id), a = 5"},
	{query: "INSERT INTO ruled (u, a) SELECT 10, 1 ON DUPLICATE KEY UPDATE a = 5"},
	{query: "INSERT INTO ruled (u, a) SELECT 10, 1 ON DUPLICATE KEY UPDATE a = 1"},
	{query: "INSERT INTO ruled (u, a) SELECT 9, 1 UNION ALL SELECT 10, 1 ON DUPLICATE KEY UPDATE a = 5"},
	{query: "REPLACE INTO ruled (u, a) SELECT 5, a FROM src"},
	{query: "INSERT INTO ruled (u, s) SELECT u, s FROM src", mode: "EMPTY_STRING_IS_NULL", mariaDB: true},
	{query: "INSERT INTO ruled (u, s) SELECT u, s FROM src WHERE u = 1", mode: "EMPTY_STRING_IS_NULL", mariaDB: true},
	// Explicit keys.
	{query: "INSERT INTO ruled (id, u) SELECT x'41', 1", refused: true},
	{query: "INSERT INTO ruled (id, u) SELECT 0x39, 1", refused: true},
	{query: "INSERT INTO ruled (id, u) SELECT CAST(x'41' AS UNSIGNED), 1"},
	{query: "INSERT INTO ruled (id, u) SELECT x'41', 1", mode: "NO_AUTO_VALUE_ON_ZERO", refused: true},
	{query: "INSERT INTO ruled (id, u) SELECT x'41', 1", mode: "STRICT_ALL_TABLES", refused: true},
	{query: "INSERT IGNORE INTO ruled (id, u) SELECT x'41', 1", mode: "STRICT_ALL_TABLES", refused: true},
	{query: "INSERT INTO ruled (id, u) SELECT e, u FROM src", refused: true},
	{query: "INSERT INTO ruled (id, u) SELECT e, u FROM src", mode: "NO_AUTO_VALUE_ON_ZERO", refused: true},
	{query: "INSERT INTO ruled (id, u) SELECT e + 0, u FROM src"},
	{query: "INSERT INTO ruled (id, u) SELECT b, u FROM src"},
	{query: "INSERT INTO ruled (id, u) SELECT b, u FROM src", mode: "STRICT_ALL_TABLES"},
	{query: "INSERT INTO ruled (id, u) SELECT COALESCE(b, b), u FROM src WHERE u = 2", refused: true},
	{query: "INSERT INTO ruled (id, u) SELECT h, u FROM src", refused: true},
	{query: "INSERT INTO ruled (id, u) SELECT d, u FROM src WHERE u = 1", mode: "STRICT_ALL_TABLES", refused: true},
	{query: "INSERT INTO ruled (id, u) SELECT d, u FROM src WHERE u = 2", mode: "STRICT_ALL_TABLES"},
	{query: "INSERT INTO ruled (id, u) SELECT CAST(h AS CHAR), u FROM src WHERE u = 1"},
	{query: "INSERT INTO ruled (id, u) SELECT '0x', u FROM src WHERE u = 1"},
}

// An INSERT … RETURNING that fails while its rows are read leaves LAST_INSERT_ID() as it was.
func TestInsertSelect_returningFails(t *testing.T) { onEach(t, testInsertSelect_returningFails) }

func testInsertSelect_returningFails(t *testing.T) {
	if !hasReturning(t) {
		t.Skip("the server has no RETURNING")
	}
	ours, plain := one(t)
	mustExec(t, plain, "ALTER TABLE ruled ADD UNIQUE (a)")
	mustExec(t, plain, "INSERT INTO ruled (id, a) VALUES (7001, 5)")
	for query, args := range map[string][]any{
		"INSERT INTO ruled (a) SELECT 5 RETURNING *":                                   {},
		"INSERT INTO ruled (a) SELECT 1 UNION ALL SELECT 5 RETURNING id":               {},
		"INSERT INTO ruled (a) WITH c AS (SELECT ? AS x) SELECT x FROM c RETURNING *":  {5},
		"INSERT INTO ruled (a) SELECT 5 ON DUPLICATE KEY UPDATE id = NULL RETURNING *": {},
	} {
		mustExec(t, ours, "DO LAST_INSERT_ID(77)")
		fails(t, drain(ours.Query(query, args...)), query)
		equal(t, number(t, ours, "SELECT LAST_INSERT_ID()"), 77, query)
	}
}

// An explicit key isn't reported if its row may have been dropped.
func TestInsertSelect_keysOfDroppedRows(t *testing.T) { onEach(t, testInsertSelect_keysOfDroppedRows) }

func testInsertSelect_keysOfDroppedRows(t *testing.T) {
	ours, plain := one(t)
	mustExec(t, plain, "ALTER TABLE ruled ADD UNIQUE (a)")
	mustExec(t, plain, "INSERT INTO ruled (id, a) VALUES (7001, 1)")
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (0)") // the kind of the keys is known
	for query, want := range map[string]string{
		"INSERT IGNORE INTO ruled (id, a) SELECT 8000, 1 UNION ALL SELECT 8001, 2":                            "[<nil> <nil>]",
		"INSERT INTO ruled (id, a) SELECT 8002, 1 ON DUPLICATE KEY UPDATE a = 1":                              "[<nil>]",
		"REPLACE INTO ruled (id, a) SELECT 8003, 5 UNION ALL SELECT 8004, 5":                                  "[<nil> <nil>]",
		"INSERT IGNORE INTO ruled (id, a) SELECT 8005, 6 UNION ALL SELECT 8006, 7":                            "[8005 8006]",
		"INSERT IGNORE INTO ruled (id, a) SELECT 8007, 1 UNION ALL SELECT 8008, 1 UNION ALL SELECT NULL, 100": "[<nil> <nil> 2]",
		"INSERT IGNORE INTO ruled (id, a) SELECT 8009, 1 RETURNING id":                                        "[<nil>]",
		"INSERT INTO ruled (id, a) SELECT 8010, 1 ON DUPLICATE KEY UPDATE a = 1 RETURNING id":                 "[<nil>]",
		"INSERT IGNORE INTO ruled (id, a) SELECT 9223372036854775808, 9":                                      "[<nil>]",
		"INSERT INTO ruled (id, a) SELECT 8012.0, 10":                                                         "[8012]",
		"INSERT INTO ruled (id, a) SELECT 8011, 8 RETURNING id":                                               "[8011]",
	} {
		if strings.Contains(query, "RETURNING") && !hasReturning(t) {
			continue
		}
		var keys Keys
		mustExec(t, plain, "DELETE FROM ruled WHERE a > 1")
		noError(t, drain(ours.QueryContext(WithKeys(t.Context(), &keys), query)))
		equal(t, fmt.Sprint(keys.Values()), want, query)
	}
}

// An explicit key of the query is reported as the column stores it, and not at all if the column
// can't store it.
func TestInsertSelect_keysThatChange(t *testing.T) {
	onEachAndOldest(t, testInsertSelect_keysThatChange)
}

func testInsertSelect_keysThatChange(t *testing.T) {
	ours, plain := one(t, "sql_mode=%27%27")
	for _, c := range []struct {
		key   string
		bound any
		want  string
	}{
		{"7.0", nil, "7 [7]"}, {"8e0", nil, "8 [8]"}, {"'9'", nil, "9 [9]"}, {"-5", nil, "-5 [-5]"}, {"10.5", nil, "0 [<nil>]"},
		{"9223372036854775807", nil, "9223372036854775807 [9223372036854775807]"},
		{"9223372036854775808", nil, "0 [<nil>]"}, {"?", uint64(1 << 63), "0 [<nil>]"}, {"-9223372036854775809", nil, "0 [<nil>]"},
		{"'99999999999999999999'", nil, "0 [<nil>]"}, {"99999999999999999999", nil, "0 [<nil>]"}, {"1e30", nil, "0 [<nil>]"},
	} {
		mustExec(t, plain, "DELETE FROM ruled")
		args := []any{c.bound}[:strings.Count(c.key, "?")]
		var keys Keys
		res := must(ours.ExecContext(WithKeys(t.Context(), &keys), "INSERT INTO ruled (a, id) SELECT 1, "+c.key, args...))(t)
		id, _ := res.LastInsertId()
		equal(t, fmt.Sprint(id, " ", keys.Values()), c.want, c.key)
	}
}

// An INSERT … SELECT is refused if a SET TRANSACTION would apply to its query. The characteristics
// then apply to the next statement.
func TestInsertSelect_afterSetTransaction(t *testing.T) {
	onEach(t, testInsertSelect_afterSetTransaction)
}

func testInsertSelect_afterSetTransaction(t *testing.T) {
	ours, _ := one(t)
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (1)")
	mustExec(t, ours, "SET TRANSACTION READ ONLY")
	isError(t, errOf(ours.Exec("INSERT INTO ruled (a) SELECT 2")), ErrUnsupportedStatement, "INSERT … SELECT")
	if _, err := ours.Exec("INSERT INTO ruled (a) VALUES (3)"); !base.IsServerError(err, 1792) {
		t.Errorf("the next INSERT: %v", err)
	}
}

// failingRows are rows that can't be closed.
type failingRows struct{ fakedb.Rows }

func (*failingRows) Close() error { return fakedb.Err }

// The error with which the query's rows end is returned. If the session can't be restored, the pool
// closes the connection.
func TestInsertSelect_cleansUp(t *testing.T) {
	rows := fakedb.Rows{Names: []string{"a"}, Values: [][]driver.Value{{int64(1)}}}
	session := fakedb.Rows{Names: strings.Split("abcdefg", ""), Values: [][]driver.Value{{"utf8mb4", "utf8mb4", "latin1", "9223372036854775807", "1000000", "1", "2000-01-02"}}}
	failsToClose := false
	refused := fakedb.Fault{At: "INSERT", Err: fakedb.Err}
	for _, c := range []struct {
		name                    string
		faults                  []fakedb.Fault
		failsToClose            bool
		wantErr, wantConnection bool
	}{
		{"nothing", nil, false, false, true},
		{"Close", nil, true, true, true},
		{"INSERT", []fakedb.Fault{refused}, false, true, true},
		{"ROLLBACK", []fakedb.Fault{refused, {At: "ROLLBACK TO", Skip: 1, Err: fakedb.Err}}, false, true, false},
		{"restore", []fakedb.Fault{{At: "character_set_results = latin1", Err: fakedb.Err}}, false, true, false},
	} {
		s := &fakedb.Server{Query: func(query string) (driver.Rows, error) {
			switch some := rows; {
			case strings.Contains(query, "FROM src") && failsToClose:
				return &failingRows{some}, nil
			case strings.Contains(query, "FROM src"):
				return &some, nil
			case strings.Contains(query, "@@sql_select_limit"):
				some = session
				return &some, nil
			}
			return nil, driver.ErrSkip
		}}
		db, _ := openFake(t, s, generatorRule(t, counted(), "t.id"), Config{Server: "other"})
		mustExec(t, db, "INSERT INTO t (a) SELECT a FROM src")
		s.Faults, failsToClose = c.faults, c.failsToClose
		_, err := db.Exec("INSERT INTO t (a) SELECT a FROM src")
		failsToClose = false
		equal(t, errors.Is(err, fakedb.Err), c.wantErr, c.name, err)
		equal(t, s.Conns == 1, c.wantConnection, c.name, "the connection is kept:")
	}
}

// If the answer to the statement that begins the transaction is damaged, no key is reported.
func TestInsertSelect_damagedBegin(t *testing.T) { onEach(t, testInsertSelect_damagedBegin) }

func testInsertSelect_damagedBegin(t *testing.T) {
	cfg := must(mysql.ParseDSN(testserver.Database(t)))(t)
	var damaged damagingConn
	cfg.Logger = &mysql.NopLogger{}
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		damaged.Conn = c
		return &damaged, err
	}
	ours, _ := openFake(t, must(mysql.NewConnector(cfg))(t), snowflakeRule(t, "ruled"))
	ours.SetMaxOpenConns(1)
	mustExec(t, ours, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT 1")
	damaged.armed = true
	fails(t, errOf(ours.Exec("INSERT INTO ruled (a) SELECT 2")))
	equal(t, damaged.armed, false, "armed:")
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT 3")
	equal(t, column(t, ours, "SELECT a FROM ruled ORDER BY a"), "1 3", "rows")
}

// damagingConn makes an error of the next answer to SET autocommit = 0 when it is armed.
type damagingConn struct {
	net.Conn
	armed, damages bool
}

func (c *damagingConn) Write(b []byte) (int, error) {
	if c.armed && strings.Contains(string(b), "SET autocommit = 0") {
		c.armed, c.damages = false, true
	}
	return c.Conn.Write(b)
}

func (c *damagingConn) Read(b []byte) (int, error) {
	const header = 4
	n, err := c.Conn.Read(b)
	if c.damages && n > header {
		b[header], c.damages = 0xff, false
	}
	return n, err
}
