package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/testserver"
)

// transactionSides opens a database through a rule and one with AUTO_INCREMENT, each on one
// connection that knows nothing of its tables yet.
func transactionSides(t *testing.T) (ours, plain *sql.Conn) {
	t.Helper()
	var made int64
	open := func(db *sql.DB, auto string) *sql.Conn {
		for _, table := range []string{"t0", "t1", "t2", "t3"} {
			mustExec(t, db, "CREATE TABLE "+table+" (id BIGINT NOT NULL"+auto+" PRIMARY KEY, u INT UNIQUE)")
		}
		c := must(db.Conn(context.Background()))(t)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	through, _ := openScripted(t, scriptRule(t, counted(&made), "t0.id", "t1.id", "t2.id", "t3.id"), "multiStatements=true")
	_, direct := openScripted(t, scriptRule(t, counted(&made), "t0.id"), "multiStatements=true")
	return open(through, ""), open(direct, " AUTO_INCREMENT")
}

// What SET TRANSACTION sets for the next transaction is there for the statement that the
// program sends next, and for no other.
func TestTransaction_oneShotReachesInsert(t *testing.T) {
	if testserver.Each(t, TestTransaction_oneShotReachesInsert) {
		return
	}
	ctx := context.Background()
	for _, c := range [][]string{
		{"SET TRANSACTION READ ONLY", "INSERT INTO t0 (u) VALUES (1)", "COMMIT", "INSERT INTO t1 (u) VALUES (1)"},
		{"SET TRANSACTION READ ONLY", "INSERT INTO t0 VALUES (NULL, 1)", "INSERT INTO t1 VALUES (NULL, 1)"},
		{"INSERT INTO t0 (u) VALUES (1)", "!INSERT INTO t0 (u) VALUES (1)", "SET TRANSACTION READ ONLY", "INSERT INTO t0 (u) VALUES (LAST_INSERT_ID())"},
		{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY", "SET @a = 1", "SELECT 1", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "SELECT COUNT(*) FROM t3", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY; SET @a = 1", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET SESSION TRANSACTION READ ONLY", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ WRITE", "INSERT INTO t0 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "BEGIN", "COMMIT", "INSERT INTO t0 VALUES (NULL, 1)", "INSERT INTO t1 VALUES (NULL, 1)"},
		{"SET autocommit = 0", "SET TRANSACTION READ ONLY", "INSERT INTO t0 VALUES (NULL, 1)", "ROLLBACK", "INSERT INTO t1 VALUES (NULL, 1)"},
		{"SET TRANSACTION READ ONLY", "INSERT INTO t0 (u) VALUES (1); INSERT INTO t1 (u) VALUES (1)", "INSERT INTO t2 VALUES (NULL, 1)"},
		{"SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "INSERT INTO t0 VALUES (NULL, 1)", "INSERT INTO t0 (u) VALUES (LAST_INSERT_ID() * 0)"},
	} {
		t.Run(strings.Join(c, "; "), func(t *testing.T) {
			ours, plain := transactionSides(t)
			for _, query := range c {
				query, fails := strings.CutPrefix(query, "!")
				_, have := ours.ExecContext(ctx, query)
				_, want := plain.ExecContext(ctx, query)
				if mysqlNumber(have) != mysqlNumber(want) || fails && want == nil {
					t.Errorf("%s\nhave: %v\nwant: %v", query, have, want)
				}
			}
		})
	}
}

// An isolation level for the next transaction is the INSERT's, and not that of a question to
// the server.
func TestTransaction_isolationReachesInsert(t *testing.T) {
	if testserver.Each(t, TestTransaction_isolationReachesInsert) {
		return
	}
	ctx := context.Background()
	ours, plain := transactionSides(t)
	for _, c := range []*sql.Conn{ours, plain} {
		for _, query := range []string{"SET autocommit = 0", "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "INSERT INTO t0 VALUES (NULL, 1)"} {
			must(c.ExecContext(ctx, query))(t)
		}
	}
	level := func(c *sql.Conn) (level string) {
		t.Helper()
		query := "SELECT trx_isolation_level FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = CONNECTION_ID()"
		noError(t, c.QueryRowContext(ctx, query).Scan(&level))
		return level
	}
	equal(t, level(ours), level(plain))
}

// Random sequences of statements around SET TRANSACTION have the same errors as without
// shardkey.
func TestTransaction_sameAsPlain(t *testing.T) {
	if testserver.Each(t, TestTransaction_sameAsPlain) {
		return
	}
	ctx, r := context.Background(), rand.New(rand.NewPCG(4, 17))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	refused := 0
	for range 12 {
		ours, plain := transactionSides(t)
		var sent []string
		for range 14 {
			table := pick("t0", "t1", "t2", "t3")
			query := pick("SET TRANSACTION READ ONLY", "SET TRANSACTION READ WRITE", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET @a = 1", "SELECT 1",
				"SELECT COUNT(*) FROM t3", "COMMIT", "BEGIN", "SET @@session.autocommit = "+pick("0", "1"), "DO LAST_INSERT_ID(7)", "SELECT LAST_INSERT_ID()",
				"SELECT * FROM nosuch", "no statement", "UPDATE t0 SET u = u", "DELETE FROM t1")
			if r.IntN(2) == 0 {
				value := fmt.Sprint(r.IntN(5))
				query = pick("INSERT INTO "+table+" (u) VALUES ("+value+")", "INSERT INTO "+table+" VALUES (NULL, "+value+")",
					"INSERT IGNORE INTO "+table+" (u) VALUES ("+value+"), (NULL)", "INSERT INTO "+table+" (u) SELECT NULL")
			}
			sent = append(sent, query)
			_, have := ours.ExecContext(ctx, query)
			if errors.Is(have, ErrUnsupportedStatement) {
				refused++
				continue
			}
			_, want := plain.ExecContext(ctx, query)
			if mysqlNumber(have) != mysqlNumber(want) {
				t.Fatalf("%q\nhave: %v\nwant: %v", sent, have, want)
			}
		}
	}
	if refused > 12 {
		t.Errorf("have: %d statements refused\nwant: few", refused)
	}
}

// mysqlNumber is the number of a server's error, 0 for none and −1 for another error.
func mysqlNumber(err error) int {
	if err == nil {
		return 0
	}
	for number := range slices.Values([]uint16{1062, 1064, 1136, 1146, 1568, 1792}) {
		if base.IsServerError(err, number) {
			return int(number)
		}
	}
	return -1
}
