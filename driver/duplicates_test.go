package driver

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	testmust "github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// same is a generator that returns the keys 7, 8, … in each call.
var same = integers(func(_ context.Context, _ spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i := range keys {
		keys[i] = int64(7 + i)
	}
	return keys, nil
})

// openLogged opens a rule for a new database, with its log.
func openLogged(t *testing.T, dsn string, r *rule.Rule, options ...Option) (*sql.DB, *Connector, *testmust.Log) {
	t.Helper()
	var log testmust.Log
	base := must(mysql.NewConnector(must(mysql.ParseDSN(dsn))(t)))(t)
	db, c := openFake(t, base, r, append(options, WithLogger(log.Logger()))...)
	return db, c, &log
}

// checkDuplicates checks how many duplicates were counted, and that the first was logged.
func checkDuplicates(t *testing.T, c *Connector, log *testmust.Log, want int64, what ...any) {
	t.Helper()
	equal(t, c.Stats().Tables[0].Duplicates, want, what...)
	equal(t, strings.Count(log.String(), `level=ERROR msg="shardkey: generated key exists already"`), int(min(want, 1)), what...)
}

// A generated key that is in the table already is counted and logged, whatever the statement is. A value
// of another unique column isn't, even if it equals the generated key.
func TestDuplicates(t *testing.T) {
	onEach(t, testDuplicates)
}

func testDuplicates(t *testing.T) {
	for _, tt := range []struct {
		name, key, statement string
		args                 []any
		want                 int64
	}{
		{"primary key", "id BIGINT PRIMARY KEY, a INT", "INSERT INTO t (a) VALUES (?)", []any{1}, 1},
		{"literal", "id BIGINT PRIMARY KEY, a INT", "INSERT INTO t (a) VALUES (1)", nil, 1},
		{"last row", "id BIGINT PRIMARY KEY, a INT", "INSERT INTO t (id, a) VALUES (99, 1), (NULL, 1)", nil, 1},
		{"several columns", "id BIGINT, a INT, PRIMARY KEY (a, id)", "INSERT INTO t (a) VALUES (1)", nil, 1},
		{"several columns, the key first", "id BIGINT, a INT, PRIMARY KEY (id, a)", "INSERT INTO t (a) VALUES (1)", nil, 1},
		{"unique index", "id BIGINT, a INT, UNIQUE `an index` (id)", "INSERT INTO t (a) VALUES (1)", nil, 1},
		{"text", "id VARCHAR(20) PRIMARY KEY, a INT", "INSERT INTO t (a) VALUES (1)", nil, 1},
		{"query", "id BIGINT PRIMARY KEY, a INT", "INSERT INTO t (a) SELECT 1 UNION ALL SELECT 2", nil, 1},
		{"update", "id BIGINT PRIMARY KEY, a INT, b INT UNIQUE", "INSERT INTO t (id, a) VALUES (3, 1), (NULL, 1) ON DUPLICATE KEY UPDATE id = id + 1", nil, 0},
		{"explicit key", "id BIGINT PRIMARY KEY, a INT", "INSERT INTO t (id, a) VALUES (NULL, 1), (70, 2)", nil, 0},
		{"other column", "id BIGINT PRIMARY KEY, a INT UNIQUE", "INSERT INTO t (a) VALUES (70)", nil, 0},
		{"other column with the key's value", "id BIGINT PRIMARY KEY, a INT UNIQUE", "INSERT INTO t (id, a) VALUES (NULL, 8), (NULL, 1)", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, c, log := openLogged(t, testserver.Database(t), generatorRule(t, same, "t.id"))
			mustExec(t, db, "CREATE TABLE t ("+tt.key+")")
			switch {
			case tt.want > 0:
				mustExec(t, db, "INSERT INTO t (id, a) VALUES (7, 1)")
			default:
				mustExec(t, db, "INSERT INTO t (id, a) VALUES (70, 70), (71, 8), (3, 3), (4, 4)")
			}
			_, err := db.Exec(tt.statement, tt.args...)
			if tt.name != "update" && !strings.Contains(fmt.Sprint(err), "1062") {
				t.Fatalf("have: %v\nwant: error 1062", err)
			}
			checkDuplicates(t, c, log, tt.want)
		})
	}
}

// All entry points report a duplicate, and the log has one line for many.
func TestDuplicates_entryPoints(t *testing.T) {
	onEach(t, testDuplicatesEntryPoints)
}

func testDuplicatesEntryPoints(t *testing.T) {
	db, c, log := openLogged(t, testserver.Database(t), generatorRule(t, same, "t.id"))
	mustExec(t, db, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	mustExec(t, db, "INSERT INTO t (a) VALUES (1)")
	for i, door := range doors {
		_, err := door.exec(t.Context(), db, "INSERT INTO t (a) VALUES (?)", 1)
		fails(t, err, door.name)
		checkDuplicates(t, c, log, int64(i+1), door.name)
	}
	if testserver.Has(t, testserver.MariaDB, "RETURNING") {
		fails(t, drain(db.Query("INSERT INTO t (a) VALUES (?) RETURNING id", 1)))
		checkDuplicates(t, c, log, int64(len(doors)+1), "RETURNING")
	}
}

// The line shows what the key contains and what to do, but no value of the row.
func TestDuplicates_log(t *testing.T) {
	onEach(t, testDuplicatesLog)
}

func testDuplicatesLog(t *testing.T) {
	db, c, log := openLogged(t, testserver.Database(t), generatorRule(t, decodable{integers(returns(int64(123456789)))}, "t.id"))
	mustExec(t, db, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	mustExec(t, db, "INSERT INTO t (a) VALUES (54321)")
	_, err := db.Exec("INSERT INTO t (a) VALUES (54321)")
	contains(t, fmt.Sprint(err), "1062")
	checkDuplicates(t, c, log, 1)
	for _, want := range []string{"table=t ", "column=id", "generator=script", "worker_id=5", " key_time=2026-05-04T03:02:01.000Z", "sequence=3", "fix="} {
		contains(t, log.String(), want)
	}
	for _, value := range []string{"123456789", "54321"} {
		if strings.Contains(log.String(), value) {
			t.Errorf("the log has %s, a value of the row: %s", value, log)
		}
	}
}

// decodable is a generator whose keys have parts.
type decodable struct{ ints }

func (decodable) DecodeKey(int64) (spi.KeyParts, error) {
	return spi.KeyParts{Time: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), WorkerID: 5, Sequence: 3}, nil
}
