package engines_test

import (
	"database/sql"
	"errors"
	"fmt"
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

// sequences is an unsharded keyspace with a sequence.
var sequences = engines.Keyspace{Name: "lookup", Shards: []string{"0"}, VSchema: `{"tables": {"ids": {"type": "sequence"}}}`}

var sharded = engines.Keyspace{Name: "app", Shards: []string{"-80", "80-"}, VSchema: `{"sharded": true, "vindexes": {"xxhash": {"type": "xxhash"}},
	"tables": {"t": {"column_vindexes": [{"column": "id", "name": "xxhash"}], "auto_increment": {"column": "id", "sequence": "lookup.ids"}}}}`}

func TestVitess_shardsRows(t *testing.T) {
	for _, over := range []testserver.Kind{testserver.KindMySQL, testserver.KindMariaDB} {
		t.Run(string(over), func(t *testing.T) {
			v := engines.StartVitess(t, over, sharded, sequences)
			mustRun(t, v.DSN("lookup"), "CREATE TABLE ids (id BIGINT PRIMARY KEY, next_id BIGINT, cache BIGINT) COMMENT 'vitess_sequence'",
				"INSERT INTO ids (id, next_id, cache) VALUES (0, 1, 10)")
			mustRun(t, v.DSN("app"), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t (a) VALUES (1), (2), (3), (4), (5), (6), (7), (8)")
			v.Gate.Kill()
			v.SQL.Kill()
			v.SQL.Start()
			v.Gate.Start()
			all := 0
			for _, shard := range sharded.Shards {
				n := count(t, v.ShardDSN("app", shard), "SELECT COUNT(*) FROM t")
				must.Equal(t, n > 0, true, "rows in shard", shard)
				all += n
			}
			must.Equal(t, all, 8, "rows")
		})
	}
}

func TestReplication_promotes(t *testing.T) {
	for _, semiSync := range []bool{true, false} {
		t.Run(fmt.Sprintf("semiSync=%v", semiSync), func(t *testing.T) {
			r := engines.StartReplication(t, semiSync)
			mustRun(t, r.Source.DSN(), "CREATE DATABASE app", "CREATE TABLE app.t (id BIGINT PRIMARY KEY)", "INSERT INTO app.t VALUES (1), (2), (3)")
			must.Fail(t, engines.Run(r.Replica.DSN(), "CREATE DATABASE other"), "the replica is written to")
			// A commit on a semi-synchronous source is already on the replica. Otherwise wait for
			// it.
			if !semiSync {
				awaitRows(t, r.Replica, "SELECT COUNT(*) FROM app.t", 3)
			}
			r.Source.Kill()
			must.Do(t, r.Promote())
			r.Replica.Kill()
			r.Replica.Start()
			mustRun(t, r.Replica.DSN(), "INSERT INTO app.t VALUES (4)")
			must.Equal(t, count(t, r.Replica.DSN(), "SELECT COUNT(*) FROM app.t"), 4, "rows at the new source")
		})
	}
}

func TestSpider_sharesRowsOut(t *testing.T) {
	s := engines.StartSpider(t, 2, 3)
	for name, by := range map[string][]string{
		"hashed": {"HASH (id)"}, "keyed": {"KEY (id)"}, "ranged": {"RANGE (id)", "(10)", "(20)", "MAXVALUE"},
	} {
		must.Do(t, s.CreateTable(name, "id BIGINT NOT NULL PRIMARY KEY", by[0], by[1:]...))
		for i, head := range s.Heads {
			mustRun(t, head.DSN()+"app", fmt.Sprintf("INSERT INTO %s VALUES (%d), (%d), (%d)", name, 3+i, 13+i, 23+i))
		}
		all := 0
		for _, b := range s.BackEnds {
			n := count(t, b.DSN()+"app", "SELECT COUNT(*) FROM "+name)
			if by[1:] != nil && n != 2 {
				t.Errorf("%s: %d rows at one back end", name, n)
			}
			all += n
		}
		must.Equal(t, all, 6, name, "rows")
	}
}

func TestGalera_nodesComeBack(t *testing.T) {
	g := engines.StartGalera(t, 3)
	mustRun(t, g.Proxy.DSN(), "CREATE DATABASE app", "CREATE TABLE app.t (id BIGINT PRIMARY KEY)", "INSERT INTO app.t VALUES (1)")
	g.Nodes[2].Kill()
	must.Do(t, g.AwaitWithout(g.Nodes[2]))
	mustRun(t, g.Nodes[0].DSN(), "INSERT INTO app.t VALUES (2)")
	g.Nodes[2].Start()
	g.Nodes[0].Stop()
	mustRun(t, g.Nodes[2].DSN(), "INSERT INTO app.t VALUES (3)")
	g.Nodes[0].Start()
	must.Do(t, g.Isolate(g.Nodes[1], true))
	must.Do(t, g.AwaitWithout(g.Nodes[1]))
	must.Fail(t, engines.Run(g.Nodes[1].DSN(), "INSERT INTO app.t VALUES (9)"), "a node that is cut off is written to")
	mustRun(t, g.Nodes[0].DSN(), "INSERT INTO app.t VALUES (4)")
	must.Do(t, errors.Join(g.Isolate(g.Nodes[1], false), g.AwaitAll()))
	for i, node := range g.Nodes {
		must.Equal(t, count(t, node.DSN(), "SELECT COUNT(*) FROM app.t"), 4, "node", i, "rows")
	}
}

func TestHAProxy_cutsAndMoves(t *testing.T) {
	a, b := testserver.StartMariaDB(t, "--server-id=1"), testserver.StartMariaDB(t, "--server-id=2")
	h := engines.StartHAProxy(t, a, b)
	must.Do(t, h.Enable(b, false))
	db := must.Open(t, "mysql", h.DSN())
	conn := must.Get(db.Conn(t.Context()))(t)
	defer conn.Close()
	must.Do(t, conn.PingContext(t.Context()))
	must.Do(t, h.Cut())
	must.Fail(t, conn.PingContext(t.Context()), "a connection that was cut answers")
	must.Do(t, errors.Join(h.Enable(a, false), h.Enable(b, true)))
	awaitRows(t, h.Server, "SELECT @@server_id", 2)
}

// mustRun runs statements on a database.
func mustRun(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	must.Do(t, engines.Run(dsn, statements...))
}

func mustExec(t *testing.T, db *sql.DB, query string, args ...any) sql.Result {
	t.Helper()
	return must.Get(db.Exec(query, args...))(t, query)
}

// count returns the number that a query returns.
func count(t *testing.T, dsn, query string) (n int) {
	t.Helper()
	must.Do(t, must.Open(t, "mysql", dsn).QueryRow(query).Scan(&n), query)
	return n
}

// awaitRows waits until a query of a number returns want.
func awaitRows(t *testing.T, s *testserver.Server, query string, want int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Minute)
	db := must.Open(t, "mysql", s.DSN())
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
	must.Do(t, rows.Err())
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
	return must.Get(rule.Parse(name+".yaml", []byte(text)))(t)
}
