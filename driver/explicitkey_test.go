package driver

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
)

// keyStrings are strings for a key, written and bound.
var keyStrings = []string{
	"", " ", "\t\n", "0", "00", "-0", "+0", " 0 ", "0 x", "0abc", "abc", "7abc", "0x10", "0b1", "1e0", "0e5", "0e", "e5", ".", "-", "+", "--0", "+-0",
	"0.4", "0.5", "-0.4", "-0.5", "1.5", "2.5", "0.49999999999999999999", "5e-1", "4e-1", "49e-2", "1e-400", "-1e-99999999999", "0.0.1", "0,5",
	"9223372036854775808", "0000000000000000000000000000000000000007",
	"00000000000000000000000000000000000000000000000000", "2020-01-01", "0000-00-00", "00:00:01", "NaN", "Inf", "true", "NULL", "é", "0é", "7é", "0\x00", "\v0\f", "\t0\r\n", "0E+", "0 e", "0\u00a0",
}

// keyLiterals are other keys that a statement has itself.
var keyLiterals = []string{
	"0", "-0", "00", "0.4", "-0.4", "0.5", "1.5", "0.0", "0.49999999999999999999", "0e0", "4e-1", "5e-1", "15e-1", "25e-1", "4.9999999999999999999e-1",
	"TRUE", "FALSE", "x'00'", "x'30'", "x''", "0x00", "0x30", "0x0000000000000000", "b'0'", "b''", "b'1'", "0b0", "_latin1'0'", "_latin1'abc'",
	"N'0'", "N''", "_utf8mb4'0x'", "_binary'0'", "'0' COLLATE utf8mb4_bin", "'' ''", "'0' '1'", "'' '0'", "DATE'2020-01-01'", "- 0", "+0",
	"NULL", "(0)", "('abc')", "1-1", "2*3-6", "7 DIV 8", "7/1.", "1/3", "-0.2*2", "5 % 5", "-5+2", "1.5*3", "2.5*1", "CAST('0' AS SIGNED)", "CAST('abc' AS SIGNED)",
	"CAST(2.5e0 AS SIGNED)", "CAST(x'30' AS UNSIGNED)", "CAST(NULL AS SIGNED)", "CONVERT('7', UNSIGNED)", "CAST((SELECT 4.5e0) AS SIGNED INTEGER)",
	"1.0*2.5e0", "(SELECT 4.5e0)", "CASE WHEN 1 THEN x'30' ELSE 0 END", "DATE_ADD('2020-01-01', INTERVAL 1 DAY)", "CONCAT('x', 'y')", "@nothing", "NOT 1", "-'0'",
}

// keyValues are other arguments.
var keyValues = []any{
	nil, 0, int8(-1), uint64(0), uint64(7), false, true, 0.0, 0.3, -0.4, 0.5, -0.5, 0.6, 1.5, 2.5, float32(0.25),
	[]byte(nil), []byte{}, []byte("0"), []byte("abc"), sql.RawBytes("0"), sql.RawBytes(""), sql.RawBytes(nil), json.RawMessage("0"), json.RawMessage("{}"), json.RawMessage(nil),
	json.Number("0"), json.Number("0.4"), sql.NullString{String: "", Valid: true}, sql.NullString{}, time.Time{}, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), new(string),
}

// keyForms are INSERTs whose explicit key is %s; each inserts one more row at most.
var keyForms = []string{
	"INSERT%s INTO T (id, a) VALUES (%s, 1)",
	"INSERT%s INTO T SET a = 1, id = %s",
	"INSERT%s INTO T VALUES (%s, 1)",
	"REPLACE%.0s INTO T (a, id) VALUES (1, %s)",
	"INSERT%s INTO T (id, a) VALUES (%s, 1) ON DUPLICATE KEY UPDATE a = 2",
	"INSERT%s INTO T (id, a) VALUES (17, 0), (%s, 1)",
}

// TestExplicitKey_asAutoIncrement gives keys that are no integers, in every sql_mode that
// matters: the row has the key that it has with AUTO_INCREMENT, or a generated one where
// that generates one, or the error is the same, or the statement is refused. The last is
// for keys of which it is not certain what the server makes of them.
func TestExplicitKey_asAutoIncrement(t *testing.T) {
	if testserver.Each(t, TestExplicitKey_asAutoIncrement) {
		return
	}
	random := rand.New(rand.NewPCG(17, 4))
	for _, params := range bothWays {
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
				continue // a statement without arguments is the same
			}
			for _, s := range keyStrings {
				each("'" + s + "'")
			}
			for _, key := range keyLiterals {
				each(key)
			}
		}
		// Most are understood.
		if n := try.refused["understood"]; n > 0 || try.refused["all"]*4 > try.tried {
			t.Errorf("%s: %d of %d statements are refused, %d of them by mistake", params, try.refused["all"], try.tried, n)
		}
	}
}

// TestExplicitKey_inAStringColumn: a column that holds strings keeps those that are no
// integers, although the generator makes integers.
func TestExplicitKey_inAStringColumn(t *testing.T) {
	if testserver.Each(t, TestExplicitKey_inAStringColumn) {
		return
	}
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

// keyTrial runs statements on a table with AUTO_INCREMENT and on one of ours.
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

// maybeZero reports whether it depends on more than the session what the server makes of
// an argument in the first row.
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

// outcome is the error of a statement, or the keys that it leaves in a table and its
// LastInsertId.
func (k *keyTrial) outcome(conn *sql.Conn, table, query string, args []any) string {
	k.t.Helper()
	ctx := k.t.Context()
	res, err := conn.ExecContext(ctx, strings.Replace(query, "INTO T ", "INTO "+table+" ", 1), args...)
	said := ""
	var failed *mysql.MySQLError
	switch {
	case errors.Is(err, ErrUnsupportedStatement):
		said = "refused"
	case errors.As(err, &failed):
		said = fmt.Sprint("error ", failed.Number)
	case err != nil:
		said = "error " + err.Error()
	default:
		id, err := res.LastInsertId()
		if err != nil {
			k.t.Error(err)
		}
		if k.class(id) != "generated" { // of a key that the server converts, ours may be 0
			id = 0
		}
		said = fmt.Sprint("id ", k.class(id), " keys")
	}
	if err != nil {
		return said // a row that it left is seen with the next statement
	}
	huge := false
	for _, key := range ids(k.t, conn, table) {
		said += " " + k.class(key)
		huge = huge || key >= 2*firstGenerated
	}
	if _, err := conn.ExecContext(ctx, "DELETE FROM "+table); err != nil {
		k.t.Fatal(err)
	}
	if huge && table == "auto" {
		k.reset(conn)
	}
	return said
}

// reset lets the table with AUTO_INCREMENT count from the first key again.
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
