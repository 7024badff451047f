package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/test/differential"
	testmust "github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/spi"
)

// manySource creates a table src of 60 rows.
func manySource(t *testing.T, plain *sql.DB) {
	t.Helper()
	mustExec(t, plain, "CREATE TABLE digit (n INT)")
	mustExec(t, plain, "INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
	mustExec(t, plain, "CREATE TABLE src AS SELECT a.n + 10 * b.n AS a FROM digit a, digit b WHERE b.n < 6")
}

// The program's own arguments stay as they are, also if the statement is sent without keys in the end.
func TestInsertSelect_argumentsStay(t *testing.T) { onEach(t, testInsertSelect_argumentsStay) }

func testInsertSelect_argumentsStay(t *testing.T) {
	ours, plain := one(t)
	manySource(t, plain)
	noError(t, pinned(t, ours).Raw(func(raw any) error {
		conn, ctx := raw.(driver.ExecerContext), context.Background()
		for _, query := range []string{
			"INSERT INTO ruled (a) VALUES (?)", // its arguments are in a buffer, which the next statement must not use
			"INSERT INTO ruled (a) SELECT DISTINCT *, ? FROM src",
		} {
			args := []driver.NamedValue{{Ordinal: 1, Value: int64(7)}}
			_, err := conn.ExecContext(ctx, query, args)
			if wide := strings.Contains(query, "*"); wide {
				equal(t, mysqlNumber(err), 1136, query)
			} else if err != nil && err != driver.ErrSkip {
				return err
			}
			equal(t, args[0].Value, driver.Value(int64(7)), query)
		}
		return nil
	}), "raw")
}

// If a later INSERT fails, no row is inserted, and the transaction around it doesn't change.
func TestInsertSelect_isAtomic(t *testing.T) { onEach(t, testInsertSelect_isAtomic) }

func testInsertSelect_isAtomic(t *testing.T) {
	ours, plain := one(t)
	manySource(t, plain)
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
					if !sqlerr.Is(err, 1062) {
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
	equal(t, number(t, db, "SELECT COUNT(*) FROM (SELECT LAG(id) OVER (ORDER BY a) AS before_it, id FROM ruled) AS r WHERE before_it >= id"), 0, "keys are not in the order of their rows")
}

// ORDER BY of a UNION names the columns of its first SELECT. MariaDB doesn't find them if a common
// table expression gives them other names.
func TestInsertSelect_ordersUnions(t *testing.T) { onEach(t, testInsertSelect_ordersUnions) }

func testInsertSelect_ordersUnions(t *testing.T) {
	ours, plain := one(t)
	mustExec(t, plain, "CREATE TABLE src (a INT)")
	mustExec(t, plain, "INSERT INTO src VALUES (1), (2), (3)")
	for _, query := range []string{
		"SELECT a FROM src UNION SELECT a + 5 FROM src ORDER BY a DESC",
		"SELECT a AS x FROM src UNION ALL SELECT a + ? FROM src ORDER BY x DESC LIMIT 9",
		"(SELECT a FROM src) UNION (SELECT a + 5 FROM src) ORDER BY a DESC",
		"SELECT DISTINCT s.* FROM src AS s UNION SELECT a + 5 FROM src ORDER BY a + 0 DESC -- all",
		"WITH more AS (SELECT a + 5 AS m FROM src) SELECT a FROM src UNION SELECT m FROM more ORDER BY a DESC",
	} {
		mustExec(t, plain, "DELETE FROM ruled")
		mustExec(t, ours, "INSERT INTO ruled (a) "+query, slices.Repeat([]any{5}, strings.Count(query, "?"))...)
		equal(t, column(t, plain, "SELECT a FROM ruled ORDER BY id"), "8 7 6 3 2 1", query, "the order is")
	}
}

// Dates that a time.Time can't represent don't change.
func TestInsertSelect_keepsDatesWithParseTime(t *testing.T) {
	onEach(t, testInsertSelect_keepsDatesWithParseTime)
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
		for _, err := range []error{duplicate, argument, qualified} {
			noError(t, err, params)
		}
		for _, query := range []string{"INSERT INTO ruled (a, dt) SELECT dt FROM src", "INSERT INTO ruled (a) SELECT a, dt FROM src"} {
			if _, err := ours.Exec(query); !sqlerr.Is(err, 1136) {
				t.Errorf("%s: %s: %v", params, query, err)
			}
		}
	}
}

// The query reads current rows and locks them, like INSERT … SELECT.
func TestInsertSelect_locksWhatItReads(t *testing.T) {
	onEach(t, testInsertSelect_locksWhatItReads)
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

// If the context ends when the keys are generated, no row is inserted, and the pool works.
func TestInsertSelect_canceledBeforeRows(t *testing.T) {
	onEach(t, testInsertSelect_canceledBeforeRows)
}

func testInsertSelect_canceledBeforeRows(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ending := integers(func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		cancel()
		return keysOfInts(n, 1), nil
	})
	ours, plain := openScripted(t, generatorRule(t, ending, "ruled.id"))
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	manySource(t, plain)
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
		ctx, cancel := context.WithCancel(t.Context()) // at a deadline, the base may return that of its dial
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err := d.exec(ctx, ours, "INSERT INTO ruled (a) SELECT SLEEP(1000)")
		isError(t, err, context.Canceled, d.name)
	}
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT 1")
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 1, "rows")
}

// All rows are inserted with any sql_select_limit, and session variables don't change, even after
// an error.
func TestInsertSelect_leavesTheSession(t *testing.T) {
	onEach(t, testInsertSelect_leavesTheSession)
}

func testInsertSelect_leavesTheSession(t *testing.T) {
	ours, plain := one(t)
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
func TestInsertSelect_readsOnce(t *testing.T) { onEach(t, testInsertSelect_readsOnce) }

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
			"INSERT INTO ruled (a, d) SELECT f(), NOW() UNION ALL SELECT 1, NULL": 2, // counting runs it too
		} {
			mustExec(t, plain, "DELETE FROM calls")
			mustExec(t, ours, query)
			equal(t, number(t, plain, "SELECT COUNT(*) FROM calls"), want, params, query, "calls")
		}
	}
}

// A user with the privileges to read the query and insert into the target needs no others.
func TestInsertSelect_leastPrivileges(t *testing.T) {
	onEach(t, testInsertSelect_leastPrivileges)
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
	var log testmust.Log
	ConnectorOf(ours).rules.Load().logger = log.Logger()
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
	onEach(t, testInsertSelect_storesAsAutoIncrement)
}

func testInsertSelect_storesAsAutoIncrement(t *testing.T) {
	var declared, names []string
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

// In a strict sql_mode, a warning of the query is the error that INSERT … SELECT returns. Otherwise
// the rows are the same.
func TestInsertSelect_warnings(t *testing.T) { onEach(t, testInsertSelect_warnings) }

func testInsertSelect_warnings(t *testing.T) {
	ours, plain := one(t)
	plain.SetMaxOpenConns(1)
	mustExec(t, plain, "ALTER TABLE ruled ADD s VARCHAR(60)")
	mustExec(t, plain, "CREATE TABLE auto (id BIGINT PRIMARY KEY AUTO_INCREMENT, a INT, s VARCHAR(60))")
	mustExec(t, plain, "CREATE TABLE src (k INT, s VARCHAR(20), d DATE)")
	mustExec(t, plain, "INSERT INTO src VALUES (1, 'abc', '2024-01-01'), (2, '7x', '2024-01-02')")
	mustExec(t, plain, "CREATE FUNCTION warns() RETURNS INT BEGIN SIGNAL SQLSTATE '01000'; RETURN 5; END")
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
				equal(t, outcome(ours, "ruled", mode, verb, e), outcome(plain, "auto", mode, verb, e), mode, verb, e)
			}
		}
	}
	equal(t, number(t, ours, "SELECT @@autocommit"), 1, "autocommit is")
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

// A value of each type gets into a column of each type as with the plain driver.
func TestInsertSelect_eachTypeIntoEach(t *testing.T) {
	onEach(t, testInsertSelect_eachTypeIntoEach)
}

func testInsertSelect_eachTypeIntoEach(t *testing.T) {
	var declared, expressions []string
	first, second := []string{"0"}, []string{"1"}
	for _, c := range copiedTypes {
		name, _, _ := strings.Cut(c.column, " ")
		declared, expressions = append(declared, c.column), append(expressions, name)
		first, second = append(first, c.first), append(second, c.second)
	}
	columns := []string{
		"INT", "DECIMAL(30,8)", "DOUBLE", "BIT(16)", "YEAR", "DATE", "TIME(6)", "DATETIME(6)", "ENUM('x','é','1','5','2')", "SET('a','é','c','1','5')", "VARCHAR(60)", "TEXT", "VARBINARY(60)", "BLOB",
		"JSON",
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
				equal(t, have, want, mode, row, e, "row", k, "into", typ)
			}
		}
	}
}

// The servers send an expression of type BIT as bits, as digits, or as latin1 text in UTF-8.
func TestInsertSelect_bitExpressions(t *testing.T) {
	onEach(t, testInsertSelect_bitExpressions)
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
func TestInsertSelect_forms(t *testing.T) { onEach(t, testInsertSelect_forms) }

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

var copiedForms = []copiedForm{
	{query: "INSERT DELAYED INTO ruled (u, a) SELECT u, a FROM src", mariaDB: true},
	{query: "INSERT INTO ruled (u, a) SELECT u, a FROM src ORDER BY u FOR UPDATE RETURNING u", mariaDB: true},
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

// An INSERT … SELECT … RETURNING returns its rows, also if it is prepared and its keys don't fit its
// placeholders. If it inserted none, LAST_INSERT_ID() is as before.
func TestInsertSelect_returning(t *testing.T) { onEach(t, testInsertSelect_returning) }

func testInsertSelect_returning(t *testing.T) {
	if !hasReturning(t) {
		t.Skip("the server has no RETURNING")
	}
	for _, c := range []struct{ query, want string }{
		{"INSERT INTO ruled (a) SELECT a FROM src WHERE a < ? ORDER BY a RETURNING a", "0 1"},
		{"REPLACE INTO ruled (a) SELECT a FROM src WHERE a < ? ORDER BY a RETURNING a", "0 1"},
		{"INSERT INTO ruled (a) SELECT a FROM src WHERE a < ? ORDER BY a ON DUPLICATE KEY UPDATE a = 9 RETURNING a", "0 1"},
		{"INSERT INTO ruled (a) SELECT a FROM src WHERE a + ? < 0 RETURNING a", ""},
		{"REPLACE INTO ruled (a) SELECT a FROM src WHERE a + ? < 0 RETURNING a", ""},
		{"INSERT INTO ruled (a) SELECT a FROM src WHERE a + ? < 0 ON DUPLICATE KEY UPDATE a = 9 RETURNING a", ""},
	} {
		ours, plain := openScripted(t, generatorRule(t, numbered(func(i int) int64 { return int64(1001 + i*i) }), "ruled.id"))
		ours.SetMaxOpenConns(1)
		mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT UNIQUE)")
		manySource(t, plain)
		for _, prepared := range []bool{false, true} {
			mustExec(t, plain, "DELETE FROM ruled")
			mustExec(t, ours, "DO LAST_INSERT_ID(77)")
			equal(t, returnedBy(t, ours, prepared, c.query, 2), c.want, c.query, prepared)
			want := int64(77)
			if c.want != "" {
				want = number(t, plain, "SELECT MIN(id) FROM ruled")
			}
			equal(t, number(t, ours, "SELECT LAST_INSERT_ID()"), want, c.query, prepared)
		}
	}
}

// returnedBy returns the column of the rows that a statement returns.
func returnedBy(t *testing.T, db *sql.DB, prepared bool, query string, args ...any) string {
	t.Helper()
	do := func() (*sql.Rows, error) { return db.Query(query, args...) }
	if prepared {
		stmt := must(db.Prepare(query))(t)
		defer stmt.Close()
		do = func() (*sql.Rows, error) { return stmt.Query(args...) }
	}
	return columnOf(t, must(do())(t, query))
}

// explicitForms have keys in the query.
var explicitForms = []struct {
	key, where, mode, want string
}{
	{key: "u + 70", want: "71 72"},
	{key: "u", want: "1 2"},
	{key: "-u", want: "-2 -1"},
	{key: "@n := COALESCE(@n, 80) + 1", want: "81 82"}, // evaluated once
	{key: "u / 2", where: "WHERE u = 2", want: "1"},
	{key: "CAST(h AS CHAR)", where: "WHERE u = 1", want: "7"},
	{key: "b", want: "3 261"},
	{key: "d", where: "WHERE u = 1", want: "20240229"},
	{key: "e", where: "WHERE u = 1", want: "2"},
	{key: "?", where: "LIMIT 2", want: "1690"}, // bound nil
	{key: "NULLIF(u, 2)", want: "1690"},
	{key: "u - 1", want: "1690"},
	{key: "u * 0.4", want: "1690"},
	{key: "s", where: "WHERE u = 2", want: "1690"}, // not a number
	{key: "u - 1", mode: "NO_AUTO_VALUE_ON_ZERO", want: "0 1"},
	{key: "NULLIF(u, 2)", mode: "NO_AUTO_VALUE_ON_ZERO", want: "1690"},
}

// A key in the query is explicit. The server evaluates it once, and refuses NULL and 0, even with
// IGNORE. It isn't reported.
func TestInsertSelect_explicitKeys(t *testing.T) { onEach(t, testInsertSelect_explicitKeys) }

func testInsertSelect_explicitKeys(t *testing.T) {
	ours, plain := one(t, "sql_mode=%27%27")
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE src (u INT, e ENUM('x','5'), b BIT(9), h VARBINARY(9), d DATE, s VARCHAR(9))")
	mustExec(t, plain, "INSERT INTO src VALUES (1, '5', 261, '7', '2024-02-29', ''), (2, 'x', 3, 'x', NULL, 'x')")
	for _, form := range []string{"INSERT INTO ruled (a, id) SELECT 7, %s FROM src %s", "INSERT INTO ruled (id, a) SELECT %s AS k, 7 x FROM src %s", "INSERT IGNORE INTO ruled (id) SELECT DISTINCT %s FROM src %s",
		"INSERT INTO ruled (id, a) SELECT q.* FROM (SELECT %s AS x, u FROM src %s) q"} {
		for _, c := range explicitForms {
			query := fmt.Sprintf(form, c.key, c.where)
			mustExec(t, ours, "SET sql_mode = '"+c.mode+"', @n = NULL")
			mustExec(t, ours, "DO LAST_INSERT_ID(77)")
			mustExec(t, plain, "DELETE FROM ruled")
			var keys Keys
			res, err := ours.ExecContext(WithKeys(t.Context(), &keys), query, make([]any, strings.Count(query, "?"))...)
			have := column(t, plain, "SELECT id FROM ruled ORDER BY id")
			if err != nil {
				have = fmt.Sprint(sqlerr.Is(err, 1690) && strings.Contains(err.Error(), "leave the column out"))
				if have == "true" {
					have = "1690"
				} else {
					have = err.Error()
				}
			} else if id, _ := res.LastInsertId(); id != 0 || slices.ContainsFunc(keys.Values(), func(k any) bool { return k != nil }) {
				t.Errorf("%s: id %d, keys %v", query, id, keys.Values())
			}
			if c.key == "?" && strings.Contains(form, "q.*") {
				continue
			}
			equal(t, have, c.want, c.mode, query)
			equal(t, number(t, ours, "SELECT LAST_INSERT_ID()"), 77, query)
		}
	}
}

// However the statement is sent, the error for a key that is NULL says what to do.
func TestInsertSelect_explainsKeys(t *testing.T) { onEach(t, testInsertSelect_explainsKeys) }

func testInsertSelect_explainsKeys(t *testing.T) {
	for _, params := range []string{"", "interpolateParams=true"} {
		ours, plain := one(t, params)
		mustExec(t, plain, "CREATE TABLE src (n INT)")
		mustExec(t, plain, "INSERT INTO src VALUES (3), (NULL)")
		const literal, bound = "INSERT INTO ruled (id, a) SELECT n, 5 FROM src ORDER BY n DESC", "INSERT INTO ruled (id, a) SELECT n, ? FROM src ORDER BY n DESC"
		executions := map[string]func() error{
			"literal": func() error { _, err := ours.Exec(literal); return err },
			"bound":   func() error { _, err := ours.Exec(bound, 5); return err },
			"prepared": func() error {
				stmt := must(ours.Prepare(bound))(t)
				defer stmt.Close()
				_, err := stmt.Exec(5)
				return err
			},
		}
		if testserver.Has(t, testserver.MariaDB, "RETURNING") {
			executions["returning"] = func() error {
				rows, err := ours.Query(bound+" RETURNING id", 5)
				if err != nil {
					return err
				}
				defer rows.Close()
				for rows.Next() {
				}
				return rows.Err()
			}
		}
		for name, execute := range executions {
			err := execute()
			equal(t, sqlerr.Is(err, 1690) && strings.Contains(err.Error(), "leave the column out"), true, params, name, err)
			equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 0, params, name)
		}
	}
}

// The keys of rows from every form of query are in the order of the rows, and reported like those of
// AUTO_INCREMENT, whether the keys are consecutive or not, and when more or fewer rows are inserted
// than counted.
func TestInsertSelect_keys(t *testing.T) { onEach(t, testInsertSelect_keys) }

func testInsertSelect_keys(t *testing.T) {
	for _, gap := range []int{0, 1, 7, 20} { // a gap behind each n keys
		next := 1000
		generator := integers(func(_ context.Context, _ spi.Column, n int) ([]any, error) {
			keys := make([]any, n)
			for i := range keys {
				if next++; gap > 0 && next%gap == 0 {
					next += 3
				}
				keys[i] = int64(next)
			}
			return keys, nil
		})
		ours, plain := openScripted(t, generatorRule(t, generator, "ruled.id"))
		mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT UNIQUE)")
		manySource(t, plain)
		ours.SetMaxOpenConns(1)
		for _, query := range []string{
			"INSERT INTO ruled (a) SELECT a FROM src ORDER BY a DESC",
			"INSERT INTO ruled (a) SELECT a FROM src WHERE a > ? ORDER BY a DESC",
			"INSERT INTO ruled (id, a) SELECT NULL AS id, a FROM src WHERE a > ? ORDER BY a DESC",
			"INSERT INTO ruled (a) SELECT DISTINCT a FROM src WHERE a > ? ORDER BY a DESC",
			"INSERT INTO ruled (a) (SELECT a FROM src WHERE a > ?) ORDER BY a DESC LIMIT 7",
			"INSERT INTO ruled (a) SELECT a FROM src WHERE a > ? GROUP BY a ORDER BY a DESC",
			"INSERT INTO ruled (a) SELECT 5 UNION ALL SELECT 4 UNION ALL SELECT ?",
			"INSERT INTO ruled (a) WITH q AS (SELECT a FROM src WHERE a > ?) SELECT HIGH_PRIORITY a FROM q ORDER BY a DESC -- end",
			"INSERT INTO ruled (a) SELECT a - LAST_INSERT_ID() + LAST_INSERT_ID() FROM src WHERE a > ? ORDER BY a DESC",
		} {
			for round := range 2 {
				mustExec(t, plain, "DELETE FROM ruled")
				var keys Keys
				args := []any{round}[:strings.Count(query, "?")]
				res := must(ours.ExecContext(WithKeys(t.Context(), &keys), query, args...))(t, query)
				n, _ := res.RowsAffected()
				id, _ := res.LastInsertId()
				have := strings.Trim(fmt.Sprint(keys.Values()), "[]")
				equal(t, have, column(t, plain, "SELECT id FROM ruled ORDER BY a DESC"), gap, query)
				equal(t, int64(len(keys.Values())), n, query, "rows")
				equal(t, any(id), keys.Values()[0], query, "LastInsertId")
				equal(t, number(t, ours, "SELECT LAST_INSERT_ID()"), id, query, "LAST_INSERT_ID()")
			}
		}
	}
}

// Rows that appear after they were counted get keys too, up to a limit. Beyond it no row is inserted.
func TestInsertSelect_moreRows(t *testing.T) { onEach(t, testInsertSelect_moreRows) }

func testInsertSelect_moreRows(t *testing.T) {
	var other *sql.DB
	appear := 0
	generating := integers(func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		_, err := other.Exec(fmt.Sprintf("INSERT INTO src SELECT 100 + a FROM src WHERE a < %d", appear))
		return keysOfInts(n, 1), err
	})
	ours, plain := openScripted(t, generatorRule(t, generating, "ruled.id"))
	other = plain
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	manySource(t, plain)
	for _, c := range []struct{ appear, rows int64 }{{0, 60}, {1, 61}, {22, 82}, {23, 0}, {40, 0}} {
		mustExec(t, plain, "DELETE FROM src WHERE a >= 100")
		mustExec(t, plain, "DELETE FROM ruled")
		appear = int(c.appear)
		var keys Keys
		mustExec(t, ours, "DO LAST_INSERT_ID(77)")
		res, err := ours.ExecContext(WithKeys(t.Context(), &keys), "INSERT IGNORE INTO ruled (a) SELECT a FROM src ORDER BY a")
		equal(t, number(t, plain, "SELECT COUNT(DISTINCT id) FROM ruled"), c.rows, c.appear, "rows")
		if c.rows == 0 {
			equal(t, sqlerr.Is(err, 1690) && strings.Contains(err.Error(), "try again"), true, err)
			continue
		}
		noError(t, err)
		id, _ := res.LastInsertId()
		equal(t, id, 1, c.appear)
		equal(t, len(keys.Values()), int(c.rows), c.appear, "keys")
	}
}

// Text keys are listed in the statement.
func TestInsertSelect_textKeys(t *testing.T) { onEach(t, testInsertSelect_textKeys) }

func testInsertSelect_textKeys(t *testing.T) {
	n := 0
	generator := script(func(_ context.Context, _ spi.Column, rows int) (keys []any, _ error) {
		for range rows {
			n++
			keys = append(keys, fmt.Sprintf("it's %05d", n))
		}
		return keys, nil
	})
	ours, plain := openScripted(t, generatorRule(t, generator, "ruled.id"))
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE ruled (id VARCHAR(20) PRIMARY KEY, a INT UNIQUE)")
	manySource(t, plain)
	stmt := must(ours.Prepare("INSERT INTO ruled (a) SELECT a FROM src WHERE a > ? ORDER BY a"))(t)
	defer stmt.Close()
	mustExec(t, ours, "DO LAST_INSERT_ID(77)")
	for _, exec := range []func(context.Context, ...any) (sql.Result, error){
		func(ctx context.Context, args ...any) (sql.Result, error) {
			return ours.ExecContext(ctx, "INSERT INTO ruled (a) SELECT a FROM src WHERE a > ? ORDER BY a", args...)
		},
		stmt.ExecContext,
	} {
		mustExec(t, plain, "DELETE FROM ruled")
		var keys Keys
		res := must(exec(WithKeys(t.Context(), &keys), -1))(t)
		id, _ := res.LastInsertId()
		equal(t, id, 0)
		equal(t, strings.Join(slices.Collect(func(yield func(string) bool) {
			for _, k := range keys.Values() {
				yield(fmt.Sprint(k))
			}
		}), " "), column(t, plain, "SELECT id FROM ruled ORDER BY a"))
		equal(t, number(t, ours, "SELECT LAST_INSERT_ID()"), 77)
		must(ours.ExecContext(WithKeys(t.Context(), &keys), "INSERT IGNORE INTO ruled (a) SELECT a + 59 FROM src ORDER BY a"))(t)
		equal(t, fmt.Sprint(keys.Values()[0]), "<nil>")
		equal(t, fmt.Sprint(keys.Values()[59]), column(t, plain, "SELECT id FROM ruled WHERE a = 118"))
	}
	_, err := ours.Exec("INSERT INTO ruled (a) SELECT x.a FROM src x, src y, src z")
	isError(t, err, ErrUnsupportedStatement)
}

// A statement that the program prepares is prepared with the query that counts its rows. If its keys
// don't fit its placeholders, it is prepared again in the same session, and refused in another.
func TestInsertSelect_prepared(t *testing.T) { onEach(t, testInsertSelect_prepared) }

func testInsertSelect_prepared(t *testing.T) {
	step := 1
	next := 1000
	generator := integers(func(_ context.Context, _ spi.Column, n int) (keys []any, _ error) {
		for i := range n {
			next += 1 + i%step
			keys = append(keys, int64(next))
		}
		return keys, nil
	})
	ours, plain := openScripted(t, generatorRule(t, generator, "ruled.id"))
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	manySource(t, plain)
	conn := must(ours.Conn(t.Context()))(t)
	defer conn.Close()
	for _, query := range []string{"INSERT INTO ruled (a) SELECT a FROM src WHERE a > ? ORDER BY a", "INSERT INTO ruled (a) SELECT a FROM src ORDER BY a"} {
		stmt := must(conn.PrepareContext(t.Context(), query))(t)
		args := []any{-1}[:strings.Count(query, "?")]
		for _, step = range []int{1, 2} {
			mustExec(t, plain, "DELETE FROM ruled")
			must(stmt.Exec(args...))(t, query)
			equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 60, query, step)
		}
		mustExec(t, conn, "SET sql_mode = 'ANSI_QUOTES'")
		_, err := stmt.Exec(args...)
		equal(t, errors.Is(err, ErrUnsupportedStatement), true, query, err)
		step = 1
		must(stmt.Exec(args...))(t, query)
		mustExec(t, conn, "SET sql_mode = ''")
		noError(t, stmt.Close())
	}
}

// An INSERT … SELECT needs a message for the number of rows and one for the statement, and one of a
// single row needs one message.
func TestInsertSelect_roundTrips(t *testing.T) { onEach(t, testInsertSelect_roundTrips) }

func testInsertSelect_roundTrips(t *testing.T) {
	cfg := must(mysql.ParseDSN(testserver.Database(t)))(t)
	plain := mustOpen(t, "mysql", cfg.FormatDSN())
	mustExec(t, plain, "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)")
	mustExec(t, plain, "CREATE TABLE src (n INT)")
	mustExec(t, plain, "INSERT INTO src VALUES (1), (2), (3)")
	w := &wire{}
	cfg.DialFunc = w.dial
	db, _ := openFake(t, must(mysql.NewConnector(cfg))(t), snowflakeRule(t, "t"), Config{})
	db.SetMaxOpenConns(1)
	for query, want := range map[string]int{
		"INSERT INTO t (n) SELECT n FROM src WHERE n < ?":        2,
		"INSERT INTO t (n) SELECT n FROM src":                    2,
		"INSERT INTO t (n) SELECT ? FROM DUAL":                   1,
		"INSERT INTO t (n) SELECT n FROM src ORDER BY n LIMIT 1": 1,
		"INSERT INTO t (id, n) SELECT n + 100 * ?, n FROM src":   1,
		"INSERT IGNORE INTO t (n) SELECT n FROM src WHERE n < ?": 2,
	} {
		mustExec(t, plain, "DELETE FROM t")
		for i := range 4 {
			w.roundTrips()
			mustExec(t, db, query, []any{i + 5}[:strings.Count(query, "?")]...)
		}
		if have := w.roundTrips(); have > want {
			t.Errorf("%s\nhave: %d round trips\nwant: %d", query, have, want)
		}
	}
}

// LAST_INSERT_ID(expr) in the statement, or in a view or function that it uses, can't give two rows the
// same key: the statement is refused, or fails.
func TestInsertSelect_otherCounters(t *testing.T) { onEach(t, testInsertSelect_otherCounters) }

func testInsertSelect_otherCounters(t *testing.T) {
	ours, plain := one(t)
	manySource(t, plain)
	mustExec(t, plain, "CREATE FUNCTION f(n BIGINT) RETURNS BIGINT NO SQL RETURN LAST_INSERT_ID(n)")
	mustExec(t, plain, "CREATE VIEW v AS SELECT LAST_INSERT_ID(a) AS a FROM src")
	for _, query := range []string{
		"INSERT INTO ruled (a) SELECT LAST_INSERT_ID(a) FROM src", "INSERT INTO ruled (a) SELECT a FROM src WHERE @@identity < a",
		"INSERT INTO ruled (a) SELECT a FROM src ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(ruled.id)",
	} {
		isError(t, errOf(ours.Exec(query)), ErrUnsupportedStatement, query)
	}
	for _, query := range []string{"INSERT IGNORE INTO ruled (a) SELECT a FROM v", "INSERT IGNORE INTO ruled (a) SELECT f(a) FROM src"} {
		if _, err := ours.Exec(query); err == nil {
			equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 60, query)
		}
		mustExec(t, plain, "DELETE FROM ruled")
	}
}
