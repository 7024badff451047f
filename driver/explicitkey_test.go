package driver

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
	testcases "github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/spi"
)

// keyStrings are strings for a key, as literals and as arguments.
var keyStrings = []string{
	"", " ", "\t\n", "0", "00", "-0", "+0", " 0 ", "0 x", "0abc", "abc", "7abc", "0x10", "0b1", "1e0", "0e5", "0e", "e5", ".", "-", "+", "--0", "+-0",
	"-1", "-3", " -3", "-1x", "-0.6", "-1.5", "-1e3", "-9223372036854775808", "-9223372036854775809", "-18446744073709551616", "-1e30", "-é", "-3é", "- 3", "-x", "-3\t", "-3 x", "-2e", "-0e-", "18446744073709551616", "1e30",
	"0.4", "0.5", "-0.4", "-0.5", "1.5", "2.5", "0.49999999999999999999", "5e-1", "4e-1", "49e-2", "1e-400", "-1e-99999999999", "0.0.1", "0,5",
	"9223372036854775808", "0000000000000000000000000000000000000007",
	"00000000000000000000000000000000000000000000000000", "2020-01-01", "0000-00-00", "00:00:01", "NaN", "Inf", "true", "NULL", "é", "0é", "7é", "0\x00", "\v0\f", "\t0\r\n", "0E+", "0 e", "0\u00a0",
}

// keyLiterals are other literals for a key.
var keyLiterals = []string{
	"-4", "- 4", "--4", "-0.6", "-1.5", "-1e0", "-6e-1", "-4e-1", "-5e-1", "-9223372036854775808", "-9223372036854775809", "-18446744073709551616", "-1e300", "-99999999999999999999999999999999", "-0x01", "-x'01'", "-b'1'", "-TRUE", "(-4)", "N'-4'", "_latin1'-4'", "'-4' COLLATE utf8mb4_bin", "'-' '4'", "-(4)", "1-4", "0-4", "-7 DIV 2", "-1.5*3", "CAST(-4 AS SIGNED)", "-4 MOD 3", "CAST(NULL AS SIGNED) - 1", "18446744073709551616", "1e300", "300", "70000", "18446744073709551615",
	"0", "-0", "00", "0.4", "-0.4", "0.5", "1.5", "0.0", "0.49999999999999999999", "0e0", "4e-1", "5e-1", "15e-1", "25e-1", "4.9999999999999999999e-1",
	"TRUE", "FALSE", "x'00'", "x'30'", "x''", "0x00", "0x30", "0x0000000000000000", "b'0'", "b''", "b'1'", "0b0", "_latin1'0'", "_latin1'abc'",
	"N'0'", "N''", "_utf8mb4'0x'", "_binary'0'", "'0' COLLATE utf8mb4_bin", "'' ''", "'0' '1'", "'' '0'", "DATE'2020-01-01'", "- 0", "+0",
	"NULL", "(0)", "('abc')", "1-1", "2*3-6", "7 DIV 8", "7/1.", "1/3", "-0.2*2", "5 % 5", "-5+2", "1.5*3", "2.5*1", "CAST('0' AS SIGNED)", "CAST('abc' AS SIGNED)",
	"CAST(2.5e0 AS SIGNED)", "CAST(x'30' AS UNSIGNED)", "CAST(NULL AS SIGNED)", "CONVERT('7', UNSIGNED)", "CAST((SELECT 4.5e0) AS SIGNED INTEGER)",
	"1.0*2.5e0", "(SELECT 4.5e0)", "CASE WHEN 1 THEN x'30' ELSE 0 END", "DATE_ADD('2020-01-01', INTERVAL 1 DAY)", "CONCAT('x', 'y')", "@nothing", "NOT 1", "-'0'",
}

// keyValues are other arguments for a key.
var keyValues = []any{
	nil, int8(-1), -4, int64(math.MinInt64), -0.6, -1.5, -3e300, math.Inf(-1), math.Inf(1), 1e300, float32(-2), []byte("-3"), json.Number("-4"), uint64(math.MaxUint64), 300, 70000, 0, int8(-1), uint64(0), uint64(7), false, true, 0.0, 0.3, -0.4, 0.5, -0.5, 0.6, 1.5, 2.5, float32(0.25),
	[]byte(nil), []byte{}, []byte("0"), []byte("abc"), sql.RawBytes("0"), sql.RawBytes(""), sql.RawBytes(nil), json.RawMessage("0"), json.RawMessage("{}"), json.RawMessage(nil),
	json.Number("0"), json.Number("0.4"), sql.NullString{String: "", Valid: true}, sql.NullString{}, time.Time{}, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), new(string),
}

// keyForms are INSERTs in which %s stands for an explicit key. Each inserts at most one other
// row.
var keyForms = []string{
	"INSERT%s INTO T (id, a) VALUES (%s, 1)",
	"INSERT%s INTO T SET a = 1, id = %s",
	"INSERT%s INTO T VALUES (%s, 1)",
	"REPLACE%.0s INTO T (a, id) VALUES (1, %s)",
	"INSERT%s INTO T (id, a) VALUES (%s, 1) ON DUPLICATE KEY UPDATE a = 2",
	"INSERT%s INTO T (id, a) VALUES (17, 0), (%s, 1)",
}

// TestExplicitKey_asAutoIncrement inserts explicit keys that are no integers, in every relevant
// sql_mode. Either the row has the same key as with AUTO_INCREMENT, or a generated one if that
// generates one, or the error is the same, or the statement is refused. A statement may be
// refused only if the server's conversion of the key is uncertain.
func TestExplicitKey_asAutoIncrement(t *testing.T) {
	onEach(t, testExplicitKey_asAutoIncrement)
}

func testExplicitKey_asAutoIncrement(t *testing.T) {
	for _, params := range bothWays {
		t.Run(params, func(t *testing.T) {
			runKeys(t, "BIGINT", firstGenerated, params, keyStrings, keyValues, keyLiterals)
			runKeys(t, "BIGINT UNSIGNED", firstGenerated, params, keyStrings, keyValues, keyLiterals)
		})
	}
}

// TestExplicitKey_ofUnsignedColumns is TestExplicitKey_asAutoIncrement for unsigned columns of all
// sizes, which store 0 for negative numbers in a lax sql_mode.
func TestExplicitKey_ofUnsignedColumns(t *testing.T) {
	onEach(t, testExplicitKey_ofUnsignedColumns)
}

func testExplicitKey_ofUnsignedColumns(t *testing.T) {
	for typ, first := range map[string]int64{"TINYINT": 100, "SMALLINT": 10_000, "MEDIUMINT": 1_000_000, "INT": firstGenerated} {
		runKeys(t, typ+" UNSIGNED", first, bothWays[0],
			[]string{"-3", "-0.7", "-1x", "-129", "-9223372036854775809", "300"},
			[]any{-4, -129, int64(math.MinInt64), -0.7, -1e30, []byte("-5"), 300, 70_000, int64(1 << 40), nil, 7},
			[]string{"-4", "-0.7", "-7e-1", "-129", "-9223372036854775809", "1-4", "CAST(-4 AS SIGNED)", "300", "7", "0"})
	}
}

// runKeys inserts explicit keys into a key column of a type, in each mode. first is the first
// generated key.
func runKeys(t *testing.T, typ string, first int64, params string, texts []string, values []any, literals []string) {
	random := rand.New(rand.NewPCG(17, 4))
	ours, plain := openScripted(t, generatorRule(t, numbered(func(i int) int64 { return first + int64(i%20) }), "ruled.id"), params)
	mustExec(t, plain, "CREATE TABLE ruled (id "+typ+" NOT NULL PRIMARY KEY, a INT)")
	mustExec(t, plain, "CREATE TABLE auto (id "+typ+" NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)")
	try := keyTrial{t: t, typ: typ, first: first, ours: pinned(t, ours), plain: pinned(t, plain), refused: map[string]int{}}
	try.reset(try.plain)
	for _, in := range [][2]string{{"STRICT_TRANS_TABLES", ""}, {"STRICT_TRANS_TABLES", " IGNORE"}, {"", ""}, {"STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO", ""}} {
		try.mode = in[0]
		try.set("SET sql_mode = '" + try.mode + "'")
		each := func(key string, args ...any) {
			try.run(fmt.Sprintf(keyForms[random.IntN(len(keyForms))], in[1], key), args...)
		}
		for _, s := range texts {
			each("?", s)
		}
		for _, v := range values {
			each("?", v)
		}
		if params == bothWays[1] {
			continue // the same as a statement without arguments
		}
		for _, s := range texts {
			each("'" + s + "'")
		}
		for _, key := range literals {
			each(key)
			if typ != "BIGINT" && len(literals) < 20 {
				try.run("INSERT" + in[1] + " INTO T (id, a) SELECT " + key + ", 1")
			}
		}
	}
	// Most explicit keys are accepted.
	if n := try.refused["understood"]; n > 0 || try.refused["all"]*4 > try.tried {
		t.Errorf("%s: %d of %d statements are refused, %d of them by mistake", typ, try.refused["all"], try.tried, n)
	}
}

// TestExplicitKey_inAStringColumn checks that a string column keeps explicit keys that are no
// integers, although the generator returns integers. ” requests a key.
func TestExplicitKey_inAStringColumn(t *testing.T) {
	onEach(t, testExplicitKey_inAStringColumn)
}

func testExplicitKey_inAStringColumn(t *testing.T) {
	ours, plain := openScripted(t, generatorRule(t, numbered(func(i int) int64 { return int64(firstGenerated + i) }), "ruled.id"))
	mustExec(t, plain, "CREATE TABLE ruled (id VARCHAR(40) NOT NULL PRIMARY KEY, a INT)")
	for _, mode := range []string{"STRICT_TRANS_TABLES", ""} {
		conn := pinned(t, ours)
		for _, query := range []string{
			"SET sql_mode = '" + mode + "'", "DELETE FROM ruled",
			"INSERT IGNORE INTO ruled (id, a) VALUES ('abc', 1), ('0e', 2), ('\v0', 3), ('é', 4), ('', 5)",
			"INSERT INTO ruled (id, a) VALUES ('def', 6), ('0abc', 7)",
		} {
			mustExec(t, conn, query)
		}
		mustExec(t, conn, "INSERT INTO ruled (id, a) VALUES (?, 8), (?, 9)", "ghi", ".")
		want := "abc 0e é key def 0abc ghi ."
		equal(t, column(t, plain, "SELECT IF(id LIKE '10000000%', 'key', id) FROM ruled WHERE a <> 3 ORDER BY a"), want, mode)
		_ = conn.Close()
	}
}

// TestExplicitKey_preparedInAnotherMode executes prepared statements whose literal the server
// refuses in the sql_mode of their preparation, and stores as 0 in the next one.
func TestExplicitKey_preparedInAnotherMode(t *testing.T) {
	onEach(t, testExplicitKey_preparedInAnotherMode)
}

func testExplicitKey_preparedInAnotherMode(t *testing.T) {
	ours, plain := openScripted(t, generatorRule(t, numbered(func(i int) int64 { return int64(firstGenerated + i) }), "ruled.id"))
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, a INT)")
	for _, key := range []string{"'abc'", "-4", "'-4'"} {
		conn := pinned(t, ours)
		mustExec(t, conn, "SET sql_mode = 'STRICT_ALL_TABLES'")
		stmt := must(conn.PrepareContext(t.Context(), "INSERT INTO ruled (id, a) VALUES ("+key+", ?)"))(t)
		fails(t, errOf(stmt.Exec(1)), key, "is stored in a strict sql_mode")
		mustExec(t, conn, "SET sql_mode = ''")
		must(stmt.Exec(1))(t)
		check(t, errors.Join(stmt.Close(), conn.Close()))
	}
	equal(t, number(t, plain, fmt.Sprint("SELECT COUNT(*) FROM ruled WHERE id >= ", firstGenerated)), 3, "rows with a generated key")
}

// TestExplicitKey_withoutGenerator checks that explicit keys, and finding out whether a value is
// one, need no generated key.
func TestExplicitKey_withoutGenerator(t *testing.T) {
	for typ, key := range map[string]any{"varchar(36)": "mine", "bigint": 7, "bigint unsigned": "7", "binary(16)": []byte("0123456789abcdef")} {
		s := &fakedb.Server{Columns: [][2]string{{"id", typ}, {"a", "int"}}}
		generator := spi.KeyGenerator(failing)
		if strings.HasPrefix(typ, "bigint") {
			generator = integers(failing)
		}
		db, _ := openFake(t, s, generatorRule(t, generator, "t.id"), Config{Server: "mysql"})
		for _, query := range []string{"INSERT INTO t (id, a) VALUES (?, 1)", "INSERT INTO t VALUES (?, 1) ON DUPLICATE KEY UPDATE a = 2"} {
			res, err := db.Exec(query, key)
			if err != nil {
				t.Errorf("%s: %s: %v", typ, query, err)
				continue
			}
			if id, _ := res.LastInsertId(); strings.HasPrefix(typ, "bigint") && !strings.Contains(query, "DUPLICATE") {
				equal(t, id, 7, typ, query, "LastInsertId")
			}
		}
		mustExec(t, db, fmt.Sprintf("INSERT INTO t (id, a) VALUES ('%v', 1)", key))
		if _, err := db.Exec("INSERT INTO t (id, a) VALUES (?, 1)", nil); !errors.As(err, new(*GeneratorError)) {
			t.Errorf("%s: a missing key\nhave: %v\nwant: the generator's error", typ, err)
		}
	}
}

const firstGenerated = 1_000_000_000

// keyTrial runs statements on a table with AUTO_INCREMENT and on a sharded table.
type keyTrial struct {
	t           *testing.T
	typ         string
	first       int64 // the first generated key
	ours, plain *sql.Conn
	mode        string
	tried       int
	refused     map[string]int
}

func pinned(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn := must(db.Conn(t.Context()))(t)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (k *keyTrial) set(query string) {
	k.t.Helper()
	mustExec(k.t, k.ours, query)
	mustExec(k.t, k.plain, query)
}

func (k *keyTrial) run(query string, args ...any) {
	k.t.Helper()
	k.tried++
	have := k.outcome(k.ours, "ruled", query, args)
	if have == "refused" {
		k.refused["all"]++
		if !strings.Contains(query, "(17, 0)") && len(args) == 1 && !k.isUncertain(args[0]) {
			k.refused["understood"]++
			k.t.Errorf("%s, %q: %#v: refused", k.mode, query, args)
		}
		return
	}
	want := k.outcome(k.plain, "auto", query, args)
	if convertedOtherwise.MatchString(query) || isExpression.MatchString(query) && strings.HasPrefix(have, "error") && (strings.Contains(want, "generated") || strings.HasPrefix(want, "error")) {
		return // an expression doesn't request a key
	}
	if have != want {
		k.t.Errorf("%s: %q %#v\nhave: %s\nwant: %s", k.mode, query, args, have, want)
	}
}

// isExpression matches statements with one of keyLiterals that isn't a literal.
var isExpression = regexp.MustCompile(`CAST|CONVERT|SELECT 4|CASE|DIV|MOD|CONCAT|DATE|@|NOT|-\(|-'0'|-x'|-b'|-TRUE|[\d.] ?[-+*/%] ?[\d.]`)

// convertedOtherwise matches expressions of a float, a date or a hexadecimal literal, which CAST converts
// to an integer in another way than the column; see docs/reference/sql-differences.md.
var convertedOtherwise = regexp.MustCompile(`1\.0\*2\.5e0|-0\.2\*2|THEN x.30|\(SELECT 4\.5e0\)|DATE_ADD`)

func (k *keyTrial) isUnsigned() bool { return strings.HasSuffix(k.typ, "UNSIGNED") }

// isUncertain reports whether the server's conversion of an argument in the first row depends on
// more than the session.
func (k *keyTrial) isUncertain(arg any) bool {
	switch v := arg.(type) {
	case string:
		return strings.ContainsAny(v, "eEé\u00a0\v\f") || k.isUnsigned() && v[0] == '-' && (strings.Contains(v, ".4") || len(v) > 20)
	case float64:
		return math.Abs(v) == 0.5 || k.isUnsigned() && (math.IsInf(v, -1) || v < 0 && v > -0.5)
	case time.Time:
		return true
	}
	return false
}

// outcome returns a statement's error, or the keys in the table and LastInsertId.
func (k *keyTrial) outcome(conn *sql.Conn, table, query string, args []any) string {
	k.t.Helper()
	ctx := k.t.Context()
	res, err := conn.ExecContext(ctx, strings.Replace(query, "INTO T ", "INTO "+table+" ", 1), args...)
	outcome := ""
	var failed *mysql.MySQLError
	switch {
	case errors.Is(err, ErrUnsupportedStatement):
		outcome = "refused"
	case errors.As(err, &failed):
		outcome = fmt.Sprint("error ", failed.Number)
	case err != nil:
		outcome = "error " + err.Error()
	default:
		id, err := res.LastInsertId()
		if err != nil {
			k.t.Error(err)
		}
		if k.class(id) != "generated" { // if the server converts a key, shardkey may report 0
			id = 0
		}
		outcome = fmt.Sprint("id ", k.class(id), " keys")
	}
	if err != nil {
		return outcome // the next outcome includes a row that it has inserted
	}
	huge := false
	for _, key := range ids(k.t, conn, table) {
		outcome += " " + k.class(key)
		huge = huge || key >= 2*k.first || k.first < 1000 && key >= k.first+20
	}
	mustExec(k.t, conn, "DELETE FROM "+table)
	if huge && table == "auto" {
		k.reset(conn)
	}
	return outcome
}

// reset resets AUTO_INCREMENT to the first key.
func (k *keyTrial) reset(conn *sql.Conn) {
	mustExec(k.t, conn, fmt.Sprint("ALTER TABLE auto AUTO_INCREMENT = ", k.first))
}

func (k *keyTrial) class(key int64) string {
	if key >= k.first && key < 2*k.first {
		return "generated"
	}
	return fmt.Sprint(key)
}

func ids(t *testing.T, conn *sql.Conn, table string) (keys []int64) {
	t.Helper()
	rows := must(conn.QueryContext(t.Context(), "SELECT id FROM "+table+" ORDER BY a"))(t)
	defer rows.Close()
	for rows.Next() {
		var text string
		noError(t, rows.Scan(&text))
		key, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			key = math.MaxInt64 // of an unsigned column
		}
		keys = append(keys, key)
	}
	return keys
}

// expressionCase is an INSERT whose keys are expressions, with the expected keys and reports.
// "key" stands for a generated key.
type expressionCase struct {
	query    string
	args     []any
	keys     string // in table a, in row order
	reported string // by WithKeys; nil if the key is unknown
}

// TestExpression_givesTheKey checks that an expression is a row's key, that the server refuses NULL
// and 0, and that the expression is evaluated once.
func TestExpression_givesTheKey(t *testing.T) { onEach(t, testExpression_givesTheKey) }

func testExpression_givesTheKey(t *testing.T) {
	for _, params := range bothWays {
		t.Run(params, func(t *testing.T) {
			ours, plain := openFilled(t, params)
			mustExec(t, plain, "CREATE TABLE auto (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT DEFAULT 0)")
			mustExec(t, plain, "ALTER TABLE ruled MODIFY a INT DEFAULT 0")
			mustExec(t, plain, "CREATE FUNCTION counted() RETURNS INT NO SQL BEGIN SET @n = @n + 1; RETURN @n; END")
			for _, cells := range testcases.Read(t, "testdata/expressions.txt", 4) {
				c := expressionCase{keys: cells[0], reported: cells[1], query: cells[2], args: argsOf(cells[3])}
				if c.run(t, ours.Conn, "ruled"); c.keys != "1690" {
					c.run(t, plain.Conn, "auto")
				}
			}
		})
	}
}

func (c *expressionCase) run(t *testing.T, open func(context.Context) (*sql.Conn, error), table string) {
	t.Helper()
	ctx := t.Context()
	conn := must(open(ctx))(t)
	defer conn.Close()
	// The keys in the cases are below the generated ones.
	for _, query := range []string{"TRUNCATE TABLE " + table, "ALTER TABLE " + table + " AUTO_INCREMENT = 1000", "SET @n = 0, @nothing = NULL"} {
		mustExec(t, conn, query)
	}
	var reported Keys
	query := strings.Replace(c.query, "INTO T ", "INTO "+table+" ", 1)
	res, err := conn.ExecContext(WithKeys(ctx, &reported), query, c.args...)
	if c.keys == "1690" {
		equal(t, sqlerr.Is(err, 1690) && strings.Contains(err.Error(), "leave the column out"), true, query, err)
		n := -1
		noError(t, conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&n))
		equal(t, n, 0, query, "rows")
		return
	}
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return
	}
	rows := must(conn.QueryContext(ctx, "SELECT id FROM "+table+" ORDER BY a"))(t)
	defer rows.Close()
	given := strings.Fields(c.keys)
	var keys []string
	first := int64(0)
	for rows.Next() {
		var id int64
		noError(t, rows.Scan(&id))
		key := fmt.Sprint(id)
		if id != 0 && !slices.Contains(given, key) {
			if key = "key"; first == 0 {
				first = id
			}
		}
		keys = append(keys, key)
	}
	equal(t, strings.Join(keys, " "), c.keys, query)
	if id, _ := res.LastInsertId(); first != 0 && id != first {
		t.Errorf("%s\nLastInsertId\nhave: %d\nwant: %d", query, id, first)
	}
	if table != "ruled" {
		return
	}
	var values []string
	for i, v := range reported.Values() {
		value := fmt.Sprint(v)
		if want := strings.Fields(c.reported); i < len(want) && want[i] == "key" && v != nil && value != "0" {
			value = "key"
		}
		values = append(values, value)
	}
	equal(t, strings.Join(values, " "), c.reported, query, "WithKeys")
}

// TestExpressionKey_text checks that an expression for a string key is left to the server.
func TestExpressionKey_text(t *testing.T) { onEach(t, testExpressionKey_text) }

func testExpressionKey_text(t *testing.T) {
	ours, plain := openScripted(t, generatorRule(t, texts(textKey), "ruled.id"))
	mustExec(t, plain, "CREATE TABLE ruled (id VARCHAR(40) PRIMARY KEY, a INT)")
	var reported Keys
	ctx := WithKeys(t.Context(), &reported)
	must(ours.ExecContext(ctx, "INSERT INTO ruled (id, a) VALUES (CONCAT('ä', ?), 1), (CONCAT(' '), 2), (NULL, 3)", "b"))(t)
	equal(t, fmt.Sprint(reported.Values()), "[<nil> <nil> key-0]")
	equal(t, column(t, plain, "SELECT id FROM ruled ORDER BY a"), "äb   key-0")
}
