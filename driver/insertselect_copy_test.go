package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
)

// selecting lets connectors fill INSERT … SELECT so until what it returns is called.
func selecting(w InsertSelect) (before func()) {
	former := testedWay
	testedWay = w
	return func() { testedWay = former }
}

// Copying keeps what the tests of the other way ask for.
func TestCopy_asThroughTemporaryTables(t *testing.T) {
	if testserver.Each(t, TestCopy_asThroughTemporaryTables) {
		return
	}
	defer selecting(InsertSelectCopy)()
	for name, test := range map[string]func(*testing.T){
		"keepsGivenKeys": TestInsertSelect_keepsGivenKeys, "lastInsertID": TestInsertSelect_lastInsertID,
		"underLockTables": TestInsertSelect_underLockTables, "zeroDates": TestInsertSelect_zeroDates, "namedReturning": TestInsertSelect_namedReturning,
		"keepsEveryType": TestInsertSelect_keepsEveryType, "manyRows": TestInsertSelect_manyRows, "rolledBack": TestInsertSelect_rolledBack,
		"canceled": TestInsertSelect_canceled, "canceledInQuery": TestInsertSelect_canceledInQuery, "textRowByRow": TestKeys_textRowByRow,
	} {
		t.Run(name, test)
	}
}

// manySource makes a table src of 12,000 rows, more than two INSERTs hold.
func manySource(t *testing.T, plain *sql.DB) {
	t.Helper()
	mustExec(t, plain, "CREATE TABLE digit (n INT)")
	mustExec(t, plain, "INSERT INTO digit VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
	mustExec(t, plain, "CREATE TABLE src AS SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n AS a FROM digit a, digit b, digit c, digit d, digit e WHERE e.n < 2 AND (e.n = 0 OR d.n < 2)")
}

// What fails in a later INSERT leaves nothing, and the transaction around it as it was.
func TestCopy_isAtomic(t *testing.T) {
	if testserver.Each(t, TestCopy_isAtomic) {
		return
	}
	defer selecting(InsertSelectCopy)()
	ours, plain := one(t)
	manySource(t, plain)
	mustExec(t, plain, "ALTER TABLE ruled ADD UNIQUE (a)")
	const all, bad = "INSERT INTO ruled (a) SELECT a FROM src ORDER BY a", "INSERT INTO ruled (a) SELECT IF(a = 11000, 3, a) FROM src ORDER BY a"
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
		for _, query := range []string{all, bad} {
			mustExec(t, plain, "DELETE FROM ruled")
			for _, s := range around.before {
				mustExec(t, ours, s)
			}
			last := number(t, ours, "SELECT LAST_INSERT_ID()")
			res, err := ours.Exec(query)
			want := int64(len(around.before) / 2 * min(1, strings.Count(fmt.Sprint(around.before), "VALUES")))
			if query == bad {
				if !isServerError(err, 1062) {
					t.Errorf("%s: %v", around.name, err)
				}
				if now := number(t, ours, "SELECT LAST_INSERT_ID()"); now != last {
					t.Errorf("%s: LAST_INSERT_ID() was %d and is %d", around.name, last, now)
				}
			} else {
				want += 12000
				if err != nil {
					t.Fatalf("%s: %v", around.name, err)
				}
				id, _ := res.LastInsertId()
				if n, _ := res.RowsAffected(); n != 12000 || id != number(t, ours, "SELECT MIN(id) FROM ruled WHERE a >= 0") {
					t.Errorf("%s: %d rows, id %d", around.name, n, id)
				}
			}
			for _, s := range around.after {
				mustExec(t, ours, s)
			}
			if n := number(t, plain, "SELECT COUNT(*) FROM ruled"); n != want {
				t.Errorf("%s, %s: rows\nhave: %d\nwant: %d", around.name, query, n, want)
			}
			if n := number(t, ours, "SELECT @@autocommit"); n != 1 {
				t.Errorf("%s: autocommit is %d", around.name, n)
			}
		}
	}
	if n := number(t, plain, "SELECT COUNT(*) FROM (SELECT LAG(id) OVER (ORDER BY a) AS before_it, id FROM ruled) AS r WHERE before_it >= id"); n != 0 {
		t.Errorf("%d keys are not in the order of their rows", n)
	}
}

// Reports of many INSERTs are those of one statement.
func TestCopy_reportsOfManyInserts(t *testing.T) {
	if testserver.Each(t, TestCopy_reportsOfManyInserts) {
		return
	}
	defer selecting(InsertSelectCopy)()
	ours, plain := one(t)
	manySource(t, plain)
	mustExec(t, plain, "ALTER TABLE ruled ADD UNIQUE (a)")
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT a FROM src WHERE a < 6000")
	for _, c := range []struct {
		query    string
		affected int64
		known    int
	}{
		{"INSERT IGNORE INTO ruled (a) SELECT a FROM src ORDER BY a", 6000, 6000},
		{"INSERT INTO ruled (a) SELECT a + 6000 FROM src ORDER BY a ON DUPLICATE KEY UPDATE a = ruled.a + 1000000", 6000 + 2*6000, 6000},
		{"REPLACE INTO ruled (a) SELECT a + 12000 FROM src ORDER BY a", 12000 + 6000, 12000},
		{"REPLACE INTO ruled (a) SELECT a DIV 2 FROM src ORDER BY a", 0, 6000},
		{"INSERT INTO ruled (id, a) SELECT IF(a % 2, NULL, a + 7000000), a + 3000000 FROM src ORDER BY a", 12000, 12000},
	} {
		var keys Keys
		res, err := ours.ExecContext(WithKeys(t.Context(), &keys), c.query)
		if err != nil {
			t.Fatalf("%s: %v", c.query, err)
		}
		if n, _ := res.RowsAffected(); c.affected != 0 && n != c.affected {
			t.Errorf("%s: rows affected\nhave: %d\nwant: %d", c.query, n, c.affected)
		}
		first, known := int64(0), 0
		var in strings.Builder
		for i, key := range keys.Values() {
			if key == nil {
				continue
			}
			known++
			if first == 0 && toInt64(key) < 7000000 {
				first = toInt64(key)
			}
			if i%100 == 7 {
				fmt.Fprintf(&in, ",%d", key)
			}
		}
		if len(keys.Values()) != 12000 || known != c.known {
			t.Errorf("%s: %d keys, %d of them known", c.query, len(keys.Values()), known)
		}
		if n := number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id IN (0"+in.String()+")"); n != int64(strings.Count(in.String(), ",")) {
			t.Errorf("%s: %d of %d keys are in the table", c.query, n, strings.Count(in.String(), ","))
		}
		id, _ := res.LastInsertId()
		last := number(t, ours, "SELECT LAST_INSERT_ID()")
		if replaces := strings.HasPrefix(c.query, "REPLACE"); id == 0 || last == 0 || id > 7000000 || !replaces && (id != first || id != last) {
			t.Errorf("%s: id %d, LAST_INSERT_ID() %d, first %d", c.query, id, last, first)
		}
	}
	// The server counts the rows of one INSERT.
	_, err := ours.Exec("INSERT INTO ruled (id, a) SELECT a + 8000000, IF(a = 11003, 'x', a) + 5000000 FROM src ORDER BY a")
	if _, wrong := ours.Exec("INSERT INTO ruled (id, a) SELECT a + 8000000, IF(a = 11003, 99999999999, a + 5000000) FROM src ORDER BY a"); wrong == nil || !strings.HasSuffix(wrong.Error(), "at row 11004") {
		t.Errorf("have: %v, %v", err, wrong)
	}
}

// Rows that are too many for memory go to a file, which has no name and is gone after.
func TestCopy_throughFile(t *testing.T) {
	if testserver.Each(t, TestCopy_throughFile) {
		return
	}
	defer selecting(InsertSelectCopy)()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ours, plain := one(t)
	manySource(t, plain)
	mustExec(t, plain, "ALTER TABLE ruled ADD s VARCHAR(2000)")
	mustExec(t, ours, "INSERT INTO ruled (a, s) SELECT a, REPEAT(CHAR(97 + a % 26), 1000) FROM src")
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled WHERE s = REPEAT(CHAR(97 + a % 26), 1000)"); n != 12000 {
		t.Errorf("%d rows", n)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "nowhere"))
	_, err := ours.Exec("INSERT INTO ruled (a, s) SELECT a, REPEAT('x', 1000) FROM src")
	var refused *InsertSelectError
	if !errors.As(err, &refused) || !errors.Is(err, os.ErrNotExist) || !errors.Is(err, ErrUnsupportedStatement) {
		t.Errorf("have: %v", err)
	}
	mustExec(t, ours, "INSERT INTO ruled (a, s) SELECT 1, 'the connection is of use'")
}

// What copying would change is refused.
func TestCopy_refuses(t *testing.T) {
	if testserver.Each(t, TestCopy_refuses) {
		return
	}
	defer selecting(InsertSelectCopy)()
	ours, plain := one(t)
	for _, c := range []struct{ set, want, back string }{
		{"SET NAMES latin1", "SET NAMES utf8mb4", "SET NAMES utf8mb4"},
		{"SET character_set_results = NULL", "SET NAMES utf8mb4", "SET character_set_results = utf8mb4"},
		{"SET sql_select_limit = 1", "sql_select_limit is 1", "SET sql_select_limit = DEFAULT"},
		{"SET sql_select_limit = 0", "sql_select_limit is 0", "SET sql_select_limit = DEFAULT"},
	} {
		mustExec(t, ours, c.set)
		_, err := ours.Exec("INSERT INTO ruled (a) SELECT 1 UNION SELECT 2")
		var refused *InsertSelectError
		if !errors.As(err, &refused) || !errors.Is(err, ErrUnsupportedStatement) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "`ruled`") {
			t.Errorf("%s: %v", c.set, err)
		}
		mustExec(t, ours, c.back)
		mustExec(t, ours, "INSERT INTO ruled (a) SELECT 1 UNION SELECT 2")
	}
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled"); n != 8 {
		t.Errorf("%d rows", n)
	}
}

// Dates that a time.Time does not have are what they were.
func TestCopy_keepsDatesWithParseTime(t *testing.T) {
	if testserver.Each(t, TestCopy_keepsDatesWithParseTime) {
		return
	}
	defer selecting(InsertSelectCopy)()
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
		if have := column(t, plain, "SELECT GROUP_CONCAT(a ORDER BY id) FROM ruled"); have != "5,1,2,3,4" {
			t.Errorf("%s: the order is %s", params, have)
		}
		_, err := ours.Exec("INSERT INTO ruled (dt, s) SELECT dt, dt FROM src")
		var refused *InsertSelectError
		if is := errors.As(err, &refused); is != strings.Contains(params, "true") {
			t.Errorf("%s: two columns of one name: %v", params, err)
		}
	}
}

// The query reads what is there now, and holds it, as INSERT … SELECT does.
func TestCopy_locksWhatItReads(t *testing.T) {
	if testserver.Each(t, TestCopy_locksWhatItReads) {
		return
	}
	defer selecting(InsertSelectCopy)()
	ours, plain := one(t)
	mustExec(t, plain, "CREATE TABLE src (id INT PRIMARY KEY, a INT)")
	mustExec(t, plain, "INSERT INTO src VALUES (1, 1)")
	mustExec(t, plain, "CREATE TABLE auto (id BIGINT PRIMARY KEY AUTO_INCREMENT, a INT)")
	read := func(db *sql.DB, query string) (outcome string) {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		var n int
		if err := tx.QueryRow("SELECT COUNT(*) FROM src").Scan(&n); err != nil {
			t.Fatal(err)
		}
		mustExec(t, plain, fmt.Sprintf("INSERT INTO src VALUES (%d, 2)", number(t, plain, "SELECT MAX(id) + 1 FROM src")))
		if res, err := tx.Exec(query); err != nil {
			outcome = err.Error() // MariaDB's innodb_snapshot_isolation
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

// Where the server refuses a temporary table, the rows are copied; where neither is
// possible, the error says so.
func TestCopy_whereTemporaryTablesAreRefused(t *testing.T) {
	for _, c := range []struct {
		number  uint16
		again   int // how often a temporary table is tried for two statements
		way     InsertSelect
		server  Server
		charset string
		fails   bool
	}{
		{1235, 1, InsertSelectAuto, ServerAuto, "utf8mb4", false},
		{1044, 2, InsertSelectAuto, ServerAuto, "utf8mb4", false},
		{1142, 2, InsertSelectAuto, ServerOther, "utf8mb4", false},
		{3748, 2, InsertSelectAuto, ServerMySQL, "utf8mb4", false},
		{1787, 2, InsertSelectAuto, ServerMySQL, "utf8mb4", false},
		{1815, 0, InsertSelectAuto, ServerVitess, "utf8mb4", false},
		{1235, 0, InsertSelectAuto, ServerTiDB, "utf8mb4", false},
		{1235, 2, InsertSelectTemporary, ServerTiDB, "utf8mb4", true},
		{1399, 2, InsertSelectTemporary, ServerMySQL, "utf8mb4", true},
		{1235, 0, InsertSelectCopy, ServerMySQL, "utf8mb4", false},
		{4091, 2, InsertSelectAuto, ServerMySQL, "latin1", true},
		{1213, 2, InsertSelectAuto, ServerMySQL, "utf8mb4", true}, // a deadlock is no such refusal
	} {
		refusal := &mysql.MySQLError{Number: c.number, Message: "no temporary tables"}
		base := &lyingBase{
			result: func(query string) (driver.Result, error) {
				if strings.HasPrefix(query, "CREATE TEMPORARY") {
					return nil, refusal
				}
				return lyingResult{0, 1}, nil
			},
			rows: func(query string) (driver.Rows, error) {
				switch {
				case strings.Contains(query, "@@max_allowed_packet"):
					return answer{make([]string, 5), [][]driver.Value{{c.charset, c.charset, c.charset, uint64(1<<64 - 1), int64(1 << 20)}}}.rows(), nil
				case strings.Contains(query, "LAST_INSERT_ID("):
					return answer{[]string{"id"}, [][]driver.Value{{int64(1)}}}.rows(), nil
				case strings.Contains(query, "AS DATE"):
					return answer{[]string{"d"}, [][]driver.Value{{"2000-01-02"}}}.rows(), nil
				case query == "SELECT a FROM src LOCK IN SHARE MODE" || query == "SELECT a FROM src":
					return typedRows{answer{[]string{"a"}, [][]driver.Value{{int64(5)}}}.rows()}, nil
				}
				return nil, errScript
			},
		}
		connector, err := NewConnector(base, taggedRule(t, "ruled", 0), WithServer(c.server), WithInsertSelect(c.way))
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		for range 2 {
			_, err := db.Exec("INSERT INTO ruled (a) SELECT a FROM src")
			var refused *InsertSelectError
			switch {
			case !c.fails && err != nil:
				t.Errorf("%+v: %v", c, err)
			case c.fails && (!errors.Is(err, refusal) || errors.As(err, &refused) != (c.number != 1213) || errors.Is(err, ErrUnsupportedStatement) != (c.number != 1213)):
				t.Errorf("%+v: %v", c, err)
			}
		}
		if n := len(base.sent("CREATE TEMPORARY")); n != c.again {
			t.Errorf("%+v: a temporary table was tried %d times", c, n)
		}
		if n := len(base.sent("VALUES (5,")); (n == 2) == c.fails {
			t.Errorf("%+v: sent %s", c, lines(base.calls))
		}
		_ = db.Close()
	}
}

// typedRows are rows of numbers.
type typedRows struct{ driver.Rows }

func (typedRows) ColumnTypeDatabaseTypeName(int) string { return "INT" }

// A connection whose transaction could not be taken back is not used again.
func TestCopy_ruinedWhereItCannotRollBack(t *testing.T) {
	b := &fakeBase{kind: "direct"}
	r := &copyRun{selectRun: selectRun{session: &session{base: newBaseConn(mustConnect(t, b))}}, outside: true}
	b.refusal = &mysql.MySQLError{Number: 2013, Message: "lost"}
	if r.undo(); r.base.isValid() || r.outside {
		t.Error("the connection is given back")
	}
}

func mustConnect(t *testing.T, b *fakeBase) driver.Conn {
	t.Helper()
	conn, err := b.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
