package engines_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/engines"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
)

func open(t *testing.T, driverName, dsn string) *sql.DB {
	t.Helper()
	db := must.Get(sql.Open(driverName, dsn))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

// mustRun runs statements on a database.
func mustRun(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	must.Do(t, engines.Run(dsn, statements...))
}

func mustExec(t *testing.T, db *sql.DB, query string, args ...any) sql.Result {
	t.Helper()
	res := must.Get(db.Exec(query, args...))(t, query)
	return res
}

// count returns the number that a query returns.
func count(t *testing.T, dsn, query string) (n int) {
	t.Helper()
	must.Do(t, open(t, "mysql", dsn).QueryRow(query).Scan(&n), query)
	return n
}

// awaitRows waits until a query of a number returns want.
func awaitRows(t *testing.T, s *testserver.Server, query string, want int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	db := open(t, "mysql", s.DSN())
	for {
		var have int
		err := db.QueryRow(query).Scan(&have)
		if err == nil && have == want {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s\nhave: %d, %v\nwant: %d", query, have, err, want)
		}
	}
}

// column returns the values of a query's column, separated by spaces.
func column(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows := must.Get(db.Query(query))(t, query)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s sql.NullString
		must.Do(t, rows.Scan(&s))
		all = append(all, s.String)
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
	return strings.Join(all, " ")
}

// openRuled opens a database whose table ruled gets keys of SNOWFLAKE.
func openRuled(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	cfg := must.Get(mysql.ParseDSN(dsn))(t)
	base := must.Get(mysql.NewConnector(cfg))(t)
	connector := must.Get(driver.NewConnector(base, mustParse(t, t.Name(), `
rules:
- !SHARDING
  tables:
    ruled: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 5}}
`)))(t)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func mustParse(t *testing.T, name, text string) *rule.Rule {
	t.Helper()
	r := must.Get(rule.Parse(name+".yaml", []byte(text)))(t)
	return r
}
