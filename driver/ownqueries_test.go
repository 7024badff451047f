package driver

import (
	"database/sql"
	"log/slog"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	testmust "github.com/shardkey/shardkey/internal/test/must"
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
