package driver

import (
	"database/sql"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
)

// An INSERT … SELECT takes few round trips: those of its transaction, and one for each statement
// that the connection has cached.
func TestInsertSelect_roundTrips(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_roundTrips) {
		return
	}
	r := must(rule.Parse("kept.yaml", []byte(keptRuleText)))(t)
	cfg := must(mysql.ParseDSN(testserver.Database(t)))(t)
	plain := openFor(t, "mysql", cfg.FormatDSN())
	exec := func(db *sql.DB, query string, args ...any) {
		t.Helper()
		mustExec(t, db, query, args...)
	}
	exec(plain, "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT, d DATETIME)")
	exec(plain, "CREATE TABLE src (n INT PRIMARY KEY, d DATETIME)")
	exec(plain, "INSERT INTO src VALUES (1, '2024-01-02'), (2, NULL), (3, NULL)")
	exec(plain, "CREATE TABLE many (n INT)")
	exec(plain, "INSERT INTO many WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 1000) "+
		"SELECT r.n FROM r JOIN r AS s ON s.n <= 6")
	const one = "INSERT INTO t (n, d) SELECT n, d FROM src WHERE n = ?"
	for _, c := range []struct {
		name          string
		before, query string
		change        func(*mysql.Config, *Config)
		want          int
	}{
		{"alone", "", one, nil, 4},                 // begin, SELECT, INSERT, commit
		{"in a transaction", "BEGIN", one, nil, 4}, // begin, which fails, SAVEPOINT, SELECT, INSERT
		{"without autocommit", "SET autocommit = 0", one, nil, 4},
		{"dates", "", one, func(base *mysql.Config, _ *Config) { base.ParseTime = true }, 5},
		{"in latin1", "SET NAMES latin1", one, nil, 6},
		{"not cached", "", one, func(_ *mysql.Config, c *Config) { c.Statements = "off" }, 6},
		{"two INSERTs", "", "INSERT INTO t (n) SELECT n + 0 * ? FROM many", nil, 7},                // prepared each
		{"four INSERTs", "", "INSERT INTO t (n) SELECT m.n + 0 * ? FROM many m JOIN src", nil, 10}, // two are the same
	} {
		of, config, w := cfg.Clone(), Config{}, &wire{}
		of.DialFunc = w.dial
		if c.change != nil {
			c.change(of, &config)
		}
		base := must(mysql.NewConnector(of))(t)
		connector := must(NewConnector(base, r, config))(t)
		db := sql.OpenDB(connector)
		defer db.Close()
		db.SetMaxOpenConns(1)
		if c.before != "" {
			exec(db, c.before)
		}
		for range 3 {
			w.roundTrips()
			exec(db, c.query, 1)
		}
		equal(t, w.roundTrips(), c.want, c.name, "round trips")
		exec(db, "ROLLBACK")
	}
}
