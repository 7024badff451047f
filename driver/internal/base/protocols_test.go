package base

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// columnTypes are column types of all servers. A server that lacks one is skipped for it.
var columnTypes = []string{
	"BIT(8)", "BIT(64)", "TINYINT UNSIGNED", "INT", "BIGINT", "BIGINT UNSIGNED", "INT UNSIGNED ZEROFILL",
	"DECIMAL(10,2)", "DECIMAL(30,0)", "FLOAT", "DOUBLE", "DATE", "TIME", "TIME(3)", "DATETIME(6)", "TIMESTAMP(3) NULL", "YEAR",
	"CHAR(5)", "VARCHAR(40) CHARACTER SET latin1", "VARCHAR(40) CHARACTER SET ucs2", "TEXT", "BINARY(5)", "BLOB",
	"ENUM('a','b','7','x y','')", "SET('a','b','7')", "JSON", "POINT", "UUID", "INET6",
}

// protocolValues are arguments of all types that go-sql-driver accepts.
func protocolValues() []driver.Value {
	values := []driver.Value{
		nil, true, false, int64(0), int64(1), int64(-1), int64(7), int64(12), int64(127), int64(128), int64(255), int64(256), int64(-129), int64(2026),
		int64(70), int64(69), int64(20260203), int64(101112), int64(20260203101112), int64(838_59_59), int64(math.MaxInt32), int64(1 << 53), int64(1<<53 + 1),
		int64(math.MaxInt64), int64(math.MinInt64), uint64(0), uint64(1), uint64(1<<63 - 1), uint64(1 << 63), uint64(math.MaxUint64),
		0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1.005, 0.1, 1e15, 1e16, 1e20, 1e-7, 1e300, math.Copysign(0, -1), 12.345, 2026.0, 101112.5,
		float32(0.1), float32(16777217), []byte{}, []byte("7"), []byte("abc"), []byte("ключ"), []byte{0xff}, []byte{0, 1}, []byte(nil), []byte(`{"a": 1}`),
		json.RawMessage(`{"a": 1}`), json.RawMessage("7"), json.RawMessage(nil),
	}
	for _, text := range []string{
		"", " ", "0", "1", "7", "007", " 7", "7 ", " 7 ", "\t7", "7\n", "+7", "-7", "- 7", "7a", "a", "A", "b", "x y", "a,b", "abc", "abcdefghijklmnopqrstuvwxyz",
		"1e2", "1E2", "1e400", "1.5e1", ".5e1", "e", "1e", "1.5", "1.4999999999999999999", "2.5", ".5", "5.", "0.005", "-0", "-0.0", "0x41", "0b1", "x'41'",
		"127", "128", "255", "256", "-129", "65536", "2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616",
		"99999999999999999999999999999999", "00000000000000000000000000000000000007", "true", "TRUE", "NULL", "null", "nan", "inf", "Infinity",
		"2026-02-03", "2026-02-30", "2026-00-00", "0000-00-00", "2026-02-03 10:11:12", "2026-02-03T10:11:12Z", "2026-02-03 10:11:12.345678", "2026-02-03 10:11:12+02:00",
		"2026-02-03 24:00:00", "20260203", "20260203101112", "26-2-3", "2026/02/03", "10:11:12", "10:11", "101112", "838:59:59", "839:00:00", "-10:11:12", "1 10:11:12", "10:11:12.3456",
		"2026", "70", "69", "99", "1900", "1901", "2155", "2156", "ключ", "é", "ß", "日本語", "emoji 😀", "😀", "\x00", "a\x00b", "'", "\"", "\\", "\\'", "%_", "\n", "\r\n", "\x1a",
		"\xff", "a\xffb", "\xed\xa0\x80", "\u200b7", "\u00a07", "７", `{"a": 1}`, `{"a":`, `[1, 2]`, `"x"`, "POINT(1 1)",
		"123e4567-e89b-12d3-a456-426614174000", "::1", "127.0.0.1", strings.Repeat("7", 500), strings.Repeat("7", 450) + "e1", strings.Repeat("x", 300),
	} {
		values = append(values, text)
	}
	for _, at := range []time.Time{
		{}, time.Date(2026, 2, 3, 10, 11, 12, 0, time.UTC), time.Date(2026, 2, 3, 10, 11, 12, 345_678_900, time.UTC), time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("", -3600)), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(2026, 7, 1, 12, 0, 0, 1, time.FixedZone("", 7200)),
	} {
		values = append(values, at)
	}
	return values
}

// TestProtocols compares what the server stores for an argument in the text of a query with what it
// stores for an argument of a prepared statement: for each type of argument, in each type of column. For
// an argument of which areSameInText reports true, both are the same.
func TestProtocols(t *testing.T) {
	testserver.Each(t, func(t *testing.T) {
		t.Parallel()
		dsn := testserver.Database(t)
		excluded := map[string]int{}
		for _, session := range []struct{ charset, mode string }{
			{"utf8mb4", ""}, {"latin1", "NO_ZERO_DATE,NO_ZERO_IN_DATE,STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES"},
		} {
			params := "&charset=" + session.charset + "&sql_mode=%27" + strings.ReplaceAll(session.mode, ",", "%2C") + "%27"
			text, prepared := openProtocol(t, dsn+"?interpolateParams=true"+params), openProtocol(t, dsn+"?interpolateParams=false"+params)
			for _, typ := range columnTypes {
				compareProtocols(t, text, prepared, typ, session.mode, excluded)
			}
		}
		t.Log("arguments that differ and stay in the text:", excluded)
		if excluded["[]uint8"] == 0 || excluded["float64"] == 0 {
			t.Errorf("have: %v\nwant: differences of []byte and float64, or areSameInText excludes too much", excluded)
		}
	})
}

func openProtocol(t *testing.T, dsn string) *sql.DB {
	db := must.Get(sql.Open("mysql", dsn))(t)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// compareProtocols inserts all values into a column, and counts the differences that areSameInText
// excludes by the argument's type.
func compareProtocols(t *testing.T, text, prepared *sql.DB, typ, mode string, excluded map[string]int) {
	for _, table := range []string{"in_text", "in_prepared"} {
		for _, query := range []string{"DROP TABLE IF EXISTS " + table, "CREATE TABLE " + table + " (id INT PRIMARY KEY, v " + typ + ")"} {
			if _, err := text.Exec(query); err != nil {
				return // the server lacks the type
			}
		}
	}
	values := protocolValues()
	have, want := storeAll(t, prepared, "in_prepared", values), storeAll(t, text, "in_text", values)
	for i, v := range values {
		const notInCharset = "error 3988" // Do sends the query again
		switch same := areSameInText([]driver.NamedValue{{Value: v}}); {
		case have[i] == want[i], have[i] == notInCharset && same:
		case !same:
			excluded[fmt.Sprintf("%T", v)]++
		default:
			t.Errorf("%s, sql_mode %q, %T %.60q\nhave: %s (prepared)\nwant: %s (in the text)", typ, mode, v, fmt.Sprint(v), have[i], want[i])
		}
	}
}

// storeAll inserts each value into a table, and returns what the server stored, or its error.
func storeAll(t *testing.T, db *sql.DB, table string, values []driver.Value) []string {
	stored := make([]string, len(values))
	tx, err := db.Begin() // one commit for all values
	must.Do(t, err)
	defer tx.Rollback()
	for i, v := range values {
		if _, err := tx.Exec(fmt.Sprintf("INSERT INTO %s (id, v) VALUES (%d, ?)", table, i), v); err != nil {
			var refused *mysql.MySQLError
			if !errors.As(err, &refused) {
				t.Fatalf("%T %.60q: %v", v, fmt.Sprint(v), err)
			}
			stored[i] = fmt.Sprint("error ", refused.Number)
		}
	}
	rows := must.Get(tx.Query("SELECT id, HEX(v), v FROM " + table))(t)
	defer rows.Close()
	for rows.Next() {
		var id int
		var hex sql.NullString
		var shown any
		must.Do(t, rows.Scan(&id, &hex, &shown))
		if bytes, ok := shown.([]byte); ok {
			shown = string(bytes)
		}
		if shown != nil && reflect.TypeOf(shown).Kind() == reflect.Float32 {
			shown = fmt.Sprint(shown)
		}
		stored[id] = fmt.Sprint(hex.String, " ", shown)
	}
	must.Do(t, rows.Err())
	return stored
}

// TestNull_fixesNoType executes a statement with NULL and then with a value: for values of all types,
// in each type of column. The server stores what it stores if the statement is executed at first with
// the value, so a cached statement may serve NULL and then another type; see SameTypesOrNull.
func TestNull_fixesNoType(t *testing.T) {
	testserver.Each(t, func(t *testing.T) {
		t.Parallel()
		db := openProtocol(t, testserver.Database(t)+"?sql_mode=%27%27")
		pairs := 0
		for _, typ := range columnTypes {
			must.Err(db.Exec("DROP TABLE IF EXISTS t"))
			if _, err := db.Exec("CREATE TABLE t (id INT PRIMARY KEY, v " + typ + ")"); err != nil {
				continue // the server lacks the type
			}
			pairs += compareNull(t, db, typ)
		}
		t.Log(pairs, "pairs")
	})
}

// compareNull executes a statement of its own for each value, with and without NULL before.
func compareNull(t *testing.T, db *sql.DB, typ string) (pairs int) {
	tx := must.Get(db.Begin())(t)
	defer tx.Rollback()
	values := protocolValues()
	for i := 0; i < len(values); i += 4 {
		var stored [2]string
		for null := range stored {
			st := must.Get(tx.Prepare("INSERT INTO t (id, v) VALUES (1, ?)"))(t)
			if null == 1 {
				must.Err(st.Exec(nil))
				must.Err(tx.Exec("DELETE FROM t"))
			}
			if _, err := st.Exec(values[i]); err != nil {
				stored[null] = err.Error()
			} else {
				must.Do(t, tx.QueryRow("SELECT COALESCE(CONCAT(HEX(v), ' ', v), HEX(v), 'NULL') FROM t").Scan(&stored[null]))
			}
			must.Err(tx.Exec("DELETE FROM t"))
			must.Do(t, st.Close())
		}
		if pairs++; stored[0] != stored[1] {
			t.Errorf("%s, %T %.60q\nhave: %s (after NULL)\nwant: %s", typ, values[i], fmt.Sprint(values[i]), stored[1], stored[0])
		}
	}
	return pairs
}
