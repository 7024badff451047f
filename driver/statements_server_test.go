package driver

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
)

// keptTable has a column of each kind.
const keptTable = ` (id BIGINT NOT NULL PRIMARY KEY%s, n INT, u BIGINT UNSIGNED, d DOUBLE, x DECIMAL(20,4), s VARCHAR(200), b BIT(8), y VARBINARY(50), ts DATETIME(6), j JSON, UNIQUE (u))`

// keptTexts depend on their arguments' types as far as statements can.
var keptTexts = []string{
	"INSERT INTO t (n) VALUES (?)", "INSERT INTO t (d, n) VALUES (?, ?)", "INSERT INTO t (x) VALUES (?)", "INSERT INTO t (s) VALUES (?)",
	"INSERT INTO t (b) VALUES (?)", "INSERT INTO t (y) VALUES (?)", "INSERT INTO t (ts) VALUES (?)", "INSERT INTO t (j) VALUES (?)",
	"INSERT INTO t (j) VALUES (JSON_ARRAY(?, ?))", "INSERT INTO t (j) VALUES (JSON_OBJECT('k', ?))", "INSERT INTO t (s) VALUES (HEX(?))",
	"INSERT INTO t (s) VALUES (CASE WHEN ? = '5' THEN 'five' ELSE 'other' END)", "INSERT INTO t (s) VALUES (CONCAT(?, '-', ?))",
	"INSERT INTO t (n) VALUES (? + 1)", "INSERT INTO t (n) VALUES (COALESCE(?, 1))", "INSERT INTO t (s) VALUES (IF(? IS NULL, 'null', 'some'))",
	"INSERT IGNORE INTO t (n, s, d) VALUES (?, ?, ?), (?, ?, ?)", "INSERT INTO t (u, s) VALUES (?, 'a') ON DUPLICATE KEY UPDATE s = CONCAT('b', ?)",
	"REPLACE INTO t (u, n) VALUES (?, 1)", "INSERT INTO t SET s = LEFT(?, 3), n = 5", "INSERT INTO t (s) VALUES (? COLLATE utf8mb4_bin)",
	"INSERT INTO t (j) VALUES (JSON_ARRAY(COALESCE(?, ?)))", "INSERT INTO t (s) VALUES (HEX(IFNULL(?, ?)))", "INSERT INTO t (x) VALUES (? / 3)", "INSERT INTO t (s) VALUES (? || ?)", "INSERT INTO t (s) VALUES (\"?\"), (?)",
}

// keptBetween stand between them: what may change how they are read, and what may not.
var keptBetween = []string{
	"SET sql_mode = ''", "SET sql_mode = DEFAULT", "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'", "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
	"SET div_precision_increment = 8", "SET time_zone = '+03:00'", "SET NAMES utf8mb4", "SET collation_connection = utf8mb4_bin",
	"ALTER TABLE t MODIFY n BIGINT", "ALTER TABLE t MODIFY n INT", "ALTER TABLE t MODIFY s VARCHAR(5)", "ALTER TABLE t MODIFY s VARCHAR(200)",
	"DELETE FROM t WHERE n = 3", "INSERT INTO plain_t VALUES (1)", "ANALYZE TABLE t", "FLUSH TABLES t", "START TRANSACTION", "COMMIT", "ROLLBACK",
	"CREATE TEMPORARY TABLE IF NOT EXISTS other_t (a INT)", "DROP TEMPORARY TABLE IF EXISTS other_t", "UNLOCK TABLES", "LOCK TABLES t WRITE, plain_t WRITE",
}

// TestStatements_sameAsPreparedEachTime runs the same statements through
// go-sql-driver, which prepares each for one execution, on a table with
// AUTO_INCREMENT, and through shardkey, which keeps them.
func TestStatements_sameAsPreparedEachTime(t *testing.T) {
	if testserver.Each(t, TestStatements_sameAsPreparedEachTime) {
		return
	}
	t.Parallel()
	const statements = 1000
	testserver.Ran(t, "cached statements compared with ones prepared each time", fmt.Sprint(2*statements))
	for i, mode := range []string{"auto", "always&interpolateParams=true"} {
		t.Run(mode, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(i), 41))
			dsns := [2]string{testserver.Database(t), testserver.Database(t)}
			var conns [2]*sql.Conn
			for side, dsn := range dsns {
				name, auto, params := "mysql", " AUTO_INCREMENT", "?parseTime=true&time_zone=%27%2B00:00%27"
				if side == 1 {
					name, auto = "shardkey", ""
					params += "&shardkeyRule=" + keptRule(t) + "&shardkeyStatements=" + mode
				}
				conn := must(openFor(t, name, dsn+params).Conn(t.Context()))(t)
				t.Cleanup(func() { conn.Close() })
				conns[side] = conn
				for _, query := range []string{"CREATE TABLE t" + fmt.Sprintf(keptTable, auto), "CREATE TABLE plain_t (a INT)"} {
					mustExec(t, conn, query)
				}
			}
			texts := slices.Clone(keptTexts)
			for n := range statements {
				if n%200 == 0 { // so few at a time that they are kept
					rnd.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
				}
				query := texts[rnd.IntN(8)]
				switch rnd.IntN(12) {
				case 0:
					query = keptBetween[rnd.IntN(len(keptBetween))]
				case 1:
					// By interpolateParams these are another text, which the server may read
					// in another way than one with placeholders.
					if i != 1 {
						query = []string{"SELECT COUNT(*), HEX(?) FROM t WHERE n = ?", "UPDATE t SET s = ? WHERE n = ?", "INSERT INTO plain_t VALUES (?)"}[rnd.IntN(3)]
					}
				}
				args := make([]any, strings.Count(strings.ReplaceAll(query, `"?"`, ""), "?"))
				for i := range args {
					args[i] = keptValue(rnd)
				}
				var seen [2]string
				for side, conn := range conns {
					seen[side] = keptOutcome(t, conn, query, args)
				}
				if seen[0] != seen[1] {
					t.Fatalf("statement %d: %s %v\nhave: %s\nwant: %s", n, query, args, seen[1], seen[0])
				}
			}
		})
	}
}

func keptRule(t *testing.T) string {
	t.Helper()
	r, err := rule.Parse("kept.yaml", []byte(keptRuleText))
	if err == nil {
		err = RegisterRule("kept", r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return "kept"
}

func openFor(t *testing.T, name, dsn string) *sql.DB {
	t.Helper()
	db := must(sql.Open(name, dsn))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

func keptValue(rnd *rand.Rand) any {
	switch rnd.IntN(11) {
	case 0:
		return nil
	case 1:
		return int64(rnd.IntN(7))
	case 2:
		return uint64(rnd.IntN(7)) + 1<<63
	case 3:
		return float64(rnd.IntN(70)) / 8
	case 4:
		return rnd.IntN(2) == 0
	case 5, 6:
		return []string{"5", "text", "", "ü", `{"a": 1}`, "2024-01-02 03:04:05"}[rnd.IntN(6)]
	case 7:
		return [][]byte{[]byte("5"), []byte("b\x01"), {}, nil}[rnd.IntN(4)]
	case 8:
		return time.Date(2024, 2, 3, 4, 5, 6, 7000, time.UTC)
	default:
		return int64(5)
	}
}

// keptOutcome is what a client sees of a statement, and the table's last row.
func keptOutcome(t *testing.T, conn *sql.Conn, query string, args []any) string {
	t.Helper()
	var out string
	if strings.HasPrefix(query, "SELECT") {
		out = keptRows(t, conn, query, args...)
	} else if res, err := conn.ExecContext(t.Context(), query, args...); err != nil {
		// The words of an error may name the type that was guessed at first.
		out, _, _ = strings.Cut(plainError(err)[len("error "):], " ")
	} else {
		n, _ := res.RowsAffected()
		out = fmt.Sprint(n, " rows")
	}
	return out + "; " + keptRows(t, conn, "SELECT n, u, d, x, s, b + 0, HEX(y), ts, j FROM t ORDER BY id DESC LIMIT 2")
}

func keptRows(t *testing.T, conn *sql.Conn, query string, args ...any) string {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), query, args...)
	if err != nil {
		return plainError(err)
	}
	return show(t, rows)
}
