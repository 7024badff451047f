package driver

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// keyStrings are strings for a key, as literals and as arguments.
var keyStrings = []string{
	"", " ", "\t\n", "0", "00", "-0", "+0", " 0 ", "0 x", "0abc", "abc", "7abc", "0x10", "0b1", "1e0", "0e5", "0e", "e5", ".", "-", "+", "--0", "+-0",
	"0.4", "0.5", "-0.4", "-0.5", "1.5", "2.5", "0.49999999999999999999", "5e-1", "4e-1", "49e-2", "1e-400", "-1e-99999999999", "0.0.1", "0,5",
	"9223372036854775808", "0000000000000000000000000000000000000007",
	"00000000000000000000000000000000000000000000000000", "2020-01-01", "0000-00-00", "00:00:01", "NaN", "Inf", "true", "NULL", "é", "0é", "7é", "0\x00", "\v0\f", "\t0\r\n", "0E+", "0 e", "0\u00a0",
}

// keyLiterals are other literals for a key.
var keyLiterals = []string{
	"0", "-0", "00", "0.4", "-0.4", "0.5", "1.5", "0.0", "0.49999999999999999999", "0e0", "4e-1", "5e-1", "15e-1", "25e-1", "4.9999999999999999999e-1",
	"TRUE", "FALSE", "x'00'", "x'30'", "x''", "0x00", "0x30", "0x0000000000000000", "b'0'", "b''", "b'1'", "0b0", "_latin1'0'", "_latin1'abc'",
	"N'0'", "N''", "_utf8mb4'0x'", "_binary'0'", "'0' COLLATE utf8mb4_bin", "'' ''", "'0' '1'", "'' '0'", "DATE'2020-01-01'", "- 0", "+0",
	"NULL", "(0)", "('abc')", "1-1", "2*3-6", "7 DIV 8", "7/1.", "1/3", "-0.2*2", "5 % 5", "-5+2", "1.5*3", "2.5*1", "CAST('0' AS SIGNED)", "CAST('abc' AS SIGNED)",
	"CAST(2.5e0 AS SIGNED)", "CAST(x'30' AS UNSIGNED)", "CAST(NULL AS SIGNED)", "CONVERT('7', UNSIGNED)", "CAST((SELECT 4.5e0) AS SIGNED INTEGER)",
	"1.0*2.5e0", "(SELECT 4.5e0)", "CASE WHEN 1 THEN x'30' ELSE 0 END", "DATE_ADD('2020-01-01', INTERVAL 1 DAY)", "CONCAT('x', 'y')", "@nothing", "NOT 1", "-'0'",
}

// keyValues are other arguments for a key.
var keyValues = []any{
	nil, 0, int8(-1), uint64(0), uint64(7), false, true, 0.0, 0.3, -0.4, 0.5, -0.5, 0.6, 1.5, 2.5, float32(0.25),
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
	onEachAndOldest(t, testExplicitKey_asAutoIncrement)
}

func testExplicitKey_asAutoIncrement(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 4))
	for _, params := range bothWays {
		t.Run(params, func(t *testing.T) {
			made := 0
			ours, plain := openScripted(t, scriptRule(t, kindsOf(&made, func(i int) any { return int64(firstGenerated + i) }), "ruled.id"), params)
			mustExec(t, plain, "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, a INT)")
			mustExec(t, plain, "CREATE TABLE auto (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)")
			try := keyTrial{t: t, ours: pinned(t, ours), plain: pinned(t, plain), refused: map[string]int{}}
			try.reset(try.plain)
			for _, in := range [][2]string{{"STRICT_TRANS_TABLES", ""}, {"STRICT_TRANS_TABLES", " IGNORE"}, {"", ""}, {"STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO", ""}} {
				try.mode = in[0]
				try.set("SET sql_mode = '" + try.mode + "'")
				each := func(key string, args ...any) {
					try.run(fmt.Sprintf(keyForms[random.IntN(len(keyForms))], in[1], key), args...)
				}
				for _, s := range keyStrings {
					each("?", s)
				}
				for _, v := range keyValues {
					each("?", v)
				}
				if params == bothWays[1] {
					continue // the same as a statement without arguments
				}
				for _, s := range keyStrings {
					each("'" + s + "'")
				}
				for _, key := range keyLiterals {
					each(key)
				}
			}
			// Most explicit keys are accepted.
			if n := try.refused["understood"]; n > 0 || try.refused["all"]*4 > try.tried {
				t.Errorf("%d of %d statements are refused, %d of them by mistake", try.refused["all"], try.tried, n)
			}
		})
	}
}

// TestExplicitKey_inAStringColumn checks that a string column keeps explicit keys that are no
// integers, although the generator returns integers.
func TestExplicitKey_inAStringColumn(t *testing.T) {
	onEachAndOldest(t, testExplicitKey_inAStringColumn)
}

func testExplicitKey_inAStringColumn(t *testing.T) {
	ours, plain := openScripted(t, scriptRule(t, kindsOf(new(int), func(i int) any { return int64(firstGenerated + i) }), "ruled.id"))
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
		want := "abc 0e é  def 0abc ghi ."
		equal(t, column(t, plain, "SELECT id FROM ruled WHERE a <> 3 ORDER BY a"), want, mode)
		_ = conn.Close()
	}
}

const firstGenerated = 1_000_000_000

// keyTrial runs statements on a table with AUTO_INCREMENT and on a sharded table.
type keyTrial struct {
	t           *testing.T
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
	for _, conn := range []*sql.Conn{k.ours, k.plain} {
		if _, err := conn.ExecContext(k.t.Context(), query); err != nil {
			k.t.Fatal(err)
		}
	}
}

func (k *keyTrial) run(query string, args ...any) {
	k.t.Helper()
	k.tried++
	have := k.outcome(k.ours, "ruled", query, args)
	if have == "refused" {
		k.refused["all"]++
		if !strings.Contains(query, "(17, 0)") && len(args) == 1 && !maybeZero(args[0]) {
			k.refused["understood"]++
			k.t.Errorf("%s, %q: %#v: refused", k.mode, query, args)
		}
		return
	}
	if want := k.outcome(k.plain, "auto", query, args); have != want {
		k.t.Errorf("%s: %q %#v\nhave: %s\nwant: %s", k.mode, query, args, have, want)
	}
}

// maybeZero reports whether the server's conversion of an argument in the first row depends on
// more than the session.
func maybeZero(arg any) bool {
	switch v := arg.(type) {
	case string:
		return strings.ContainsAny(v, "eEé\u00a0\v\f")
	case float64:
		return math.Abs(v) == 0.5
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
		huge = huge || key >= 2*firstGenerated
	}
	if _, err := conn.ExecContext(ctx, "DELETE FROM "+table); err != nil {
		k.t.Fatal(err)
	}
	if huge && table == "auto" {
		k.reset(conn)
	}
	return outcome
}

// reset resets AUTO_INCREMENT to the first key.
func (k *keyTrial) reset(conn *sql.Conn) {
	if _, err := conn.ExecContext(k.t.Context(), fmt.Sprint("ALTER TABLE auto AUTO_INCREMENT = ", firstGenerated)); err != nil {
		k.t.Fatal(err)
	}
}

func (k *keyTrial) class(key int64) string {
	if key >= firstGenerated && key < 2*firstGenerated {
		return "generated"
	}
	return fmt.Sprint(key)
}

func ids(t *testing.T, conn *sql.Conn, table string) (keys []int64) {
	t.Helper()
	rows := must(conn.QueryContext(t.Context(), "SELECT id FROM "+table+" ORDER BY a"))(t)
	defer rows.Close()
	for rows.Next() {
		var key int64
		noError(t, rows.Scan(&key))
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

var expressionCases = []expressionCase{
	{"INSERT INTO T (id, a) VALUES (0 + 0, 1)", nil, "key", "key"},
	{"INSERT INTO T (id, a) VALUES (CAST(@nothing AS SIGNED), 1), (5 + 5, 2), (NULL, 3)", nil, "key 10 key", "key <nil> key"},
	{"INSERT INTO T (a, id) VALUES (?, CAST(NULLIF(?, 0) AS SIGNED)), (?, CAST(NULLIF(?, 0) AS SIGNED)), (?, ?)", []any{1, 0, 2, 77, 3, nil}, "key 77 key", "key <nil> key"},
	{"INSERT INTO T SET id = 7 - 7, a = ?", []any{1}, "key", "key"},
	{"INSERT INTO T SET a = 6, id = CAST(a + 1 AS SIGNED)", nil, "7", "<nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST((SELECT NULL) AS SIGNED), 1), (CAST((SELECT 3) AS UNSIGNED) + 0, 2)", nil, "key 3", "key <nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST((@n := @n + 1) AS SIGNED), 1), (CAST((@n := @n + 1) AS SIGNED), 2)", nil, "1 2", "<nil> <nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST(counted() AS SIGNED), 1), (CAST(counted() AS SIGNED), 2)", nil, "1 2", "<nil> <nil>"},
	{"INSERT INTO T (id, a) VALUES (0.4 + 0, 1), (0.6 + 0, 2), (-0.4 + 0, 3), (-5 + 0, 4)", nil, "key 1 key -5", "key <nil> key <nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST(CONCAT('90071992547409', '93') AS SIGNED), 1), (CAST(CONCAT('0', '') AS SIGNED), 2)", nil, "9007199254740993 key", "<nil> key"},
	{"INSERT INTO T (id, a) VALUES (CAST(1e15 + 2 AS SIGNED), 1), (CAST(0e0 + 0 AS SIGNED), 2), (CAST('9223372036854775807' AS UNSIGNED), 3)", nil, "1000000000000002 key 9223372036854775807", "<nil> key <nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST(CASE WHEN 1 THEN 0 END AS SIGNED), 1), (CONVERT(IF(1, 10, 0), SIGNED), 2)", nil, "key 10", "key <nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST(-'0' AS SIGNED), 1), (CAST(NOT 1 AS SIGNED), 2), (-(5), 3)", nil, "key key -5", "key key <nil>"},
	{"INSERT IGNORE INTO T (id, a) VALUES (0 + 0, 1), (5, 2), (5 + 0, 3)", nil, "key 5", "key 5 <nil>"},
	{"REPLACE INTO T (id, a) VALUES (0 + 0, 1), (5 + 0, 2), (5, 3)", nil, "key 5", "key <nil> 5"},
	{"INSERT INTO T (id, a) VALUES (CAST(DEFAULT(a) AS SIGNED), 1)", nil, "key", "key"},
}

// TestExpression_givesTheKey checks that a row gets a generated key if its expression is NULL or
// 0, as with AUTO_INCREMENT, and that the expression is evaluated once.
func TestExpression_givesTheKey(t *testing.T) { onEachAndOldest(t, testExpression_givesTheKey) }

func testExpression_givesTheKey(t *testing.T) {
	for _, params := range bothWays {
		t.Run(params, func(t *testing.T) {
			ours, plain, _ := openFilled(t, params)
			mustExec(t, plain, "CREATE TABLE auto (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT DEFAULT 0)")
			mustExec(t, plain, "ALTER TABLE ruled MODIFY a INT DEFAULT 0")
			mustExec(t, plain, "CREATE FUNCTION counted() RETURNS INT NO SQL BEGIN SET @n = @n + 1; RETURN @n; END")
			for _, c := range expressionCases {
				c.run(t, ours.Conn, "ruled")
				c.run(t, plain.Conn, "auto")
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
		must(conn.ExecContext(ctx, query))(t)
	}
	var reported Keys
	query := strings.Replace(c.query, "INTO T ", "INTO "+table+" ", 1)
	res, err := conn.ExecContext(WithKeys(ctx, &reported), query, c.args...)
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

// TestExpressionKey_text checks that a string key is generated if an expression is NULL or empty,
// but not if it is blank.
func TestExpressionKey_text(t *testing.T) { onEachAndOldest(t, testExpressionKey_text) }

func testExpressionKey_text(t *testing.T) {
	for _, params := range bothWays {
		t.Run(params, func(t *testing.T) {
			made := 0
			ours, plain := openScripted(t, scriptRule(t, kindsOf(&made, textKey), "ruled.id"), params)
			mustExec(t, plain, "CREATE TABLE ruled (id VARCHAR(40) PRIMARY KEY, a INT)")
			var reported Keys
			ctx := WithKeys(t.Context(), &reported)
			must(ours.ExecContext(ctx, "INSERT INTO ruled (id, a) VALUES (CONCAT('ä', ?), 1), (CONCAT(''), 2), (NULLIF(?, 'x'), 3), (CONCAT(' '), 4)", "b", "x"))(t)
			equal(t, fmt.Sprint(reported.Values()), "[<nil> key-2 key-3 <nil>]")
			equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE a = 1 AND id = 'äb' OR a IN (2, 3) AND id LIKE 'key-%' OR a = 4 AND id = ' '"), 4)
		})
	}
}
