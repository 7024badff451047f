package driver

import (
	"database/sql"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	testmust "github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// TestLog_ownQueries checks that each query that the program hasn't sent is logged at level Debug, without
// the values in it.
func TestLog_ownQueries(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
		var log testmust.Log
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))
		server := stockServer()
		server.Result = fakedb.Result{Affected: 1} // of two rows
		db := sql.OpenDB(must(NewConnector(server, generatorRule(t, counted(), "t.id"), WithLogger(logger)))(t))
		db.SetMaxOpenConns(1)
		program := []string{
			"SET TRANSACTION READ WRITE", "INSERT INTO t VALUES (NULL, 1, 2, '3')", "INSERT IGNORE INTO t (id, a) VALUES (NULL, 1), (70007, 1)",
		}
		for _, query := range program {
			mustExec(t, db, query)
		}
		logged, own := strings.Count(log.String(), "shardkey: own query"), 0
		for _, call := range server.Calls {
			if strings.HasPrefix(call, "queryContext ") || strings.HasPrefix(call, "execContext SET TRANSACTION") {
				own++
			}
		}
		own-- // the program's SET TRANSACTION
		if level == slog.LevelInfo {
			own = 0
		}
		equal(t, logged, own, level, "own queries in the log of", len(server.Calls), "calls")
		if strings.Contains(log.String(), "70007") {
			t.Errorf("the log has a value\n%s", &log)
		}
		check(t, db.Close())
	}
}

// TestLog_ownQueriesOfOtherModes: a query that was planned in one sql_mode has no values in the log, although the session
// has another one by now.
func TestLog_ownQueriesOfOtherModes(t *testing.T) { onEach(t, testLog_ownQueriesOfOtherModes) }

func testLog_ownQueriesOfOtherModes(t *testing.T) {
	var log testmust.Log
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	base := must(mysql.MySQLDriver{}.OpenConnector(testserver.Database(t)))(t)
	ours, plain := sql.OpenDB(must(NewConnector(base, generatorRule(t, counted(), "t.id"), WithLogger(logger)))(t)), sql.OpenDB(base)
	defer ours.Close()
	defer plain.Close()
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(20))")
	prepared := must(ours.Prepare(`INSERT INTO t (a) SELECT CONCAT(a, "7secret") FROM t`))(t)
	defer prepared.Close()
	mustExec(t, ours, "SET sql_mode = 'ANSI_QUOTES'")
	mustExec(t, ours, `INSERT INTO t ("a") VALUES ('x')`)
	must(prepared.Exec())(t)
	equal(t, strings.Contains(log.String(), "7secret"), false, log.String())
}
