//go:build linux

package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/engines"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	_ "github.com/shardkey/shardkey/keygen/etcd"
	_ "github.com/shardkey/shardkey/keygen/redis"
	"github.com/shardkey/shardkey/keygen/snowflake"
	_ "github.com/shardkey/shardkey/keygen/workerid"
	_ "github.com/shardkey/shardkey/keygen/zookeeper"
)

var engineList = []engine{
	{name: "VITESS", start: startVitess},
	{name: "SPIDER", start: startSpider},
	{name: "GALERA", start: startGalera},
	{name: "SEMISYNC", start: startSemiSync, rounds: true},
	{name: "HAPROXY", start: startCutting},
}

// startVitess starts a keyspace of four shards, and a keyspace of one with the leases.
func startVitess(t *testing.T) *cluster {
	shards := []string{"-40", "40-80", "80-c0", "c0-"}
	v := engines.StartVitess(t, testserver.KindMySQL,
		engines.Keyspace{Name: "app", Shards: shards, VSchema: `{"sharded": true, "vindexes": {"xxhash": {"type": "xxhash"}, "hash": {"type": "hash"}}, "tables": {
			"by_token": {"column_vindexes": [{"column": "token", "name": "xxhash"}]},
			"by_key": {"column_vindexes": [{"column": "id", "name": "hash"}]},
			"numbers": {"column_vindexes": [{"column": "n", "name": "xxhash"}]}}}`},
		engines.Keyspace{Name: "whole", Shards: []string{"0"}, VSchema: `{"tables": {"shardkey_worker": {}}}`})
	mustRun(t, v.DSN("app"), tables()...)
	c := &cluster{dsns: []string{v.DSN("app")}, leases: v.DSN("whole"), pause: 2 * time.Second, faults: []engineFault{
		killed("mysqld", time.Second, v.SQL), killed("vtcombo", 0, v.Gate), stopped("mysqld", 5*time.Second, v.SQL), stopped("vtcombo", 5*time.Second, v.Gate),
	}}
	for _, shard := range shards {
		c.stores = append(c.stores, v.ShardDSN("app", shard))
	}
	return c
}

// startSpider starts two heads and three back ends. One back end has the leases.
func startSpider(t *testing.T) *cluster {
	s := engines.StartSpider(t, 2, 3)
	for _, table := range []struct{ name, columns, by string }{
		{"by_token", "id BIGINT NOT NULL, token BIGINT NOT NULL, a INT, PRIMARY KEY (token), KEY (id)", "HASH (token)"},
		{"by_key", "id BIGINT NOT NULL, token BIGINT NOT NULL, a INT, PRIMARY KEY (id)", "HASH (id)"},
	} {
		must.Do(t, s.CreateTable(table.name, table.columns, table.by))
	}
	c := &cluster{pause: 2 * time.Second, leases: s.BackEnds[0].DSN() + "app", faults: []engineFault{
		killed("head", 0, s.Heads...), killed("back end", time.Second, s.BackEnds...), stopped("back end", 4*time.Second, s.BackEnds...),
	}}
	for _, head := range s.Heads {
		mustRun(t, head.DSN()+"app", tables()[2:]...)
		c.dsns = append(c.dsns, head.DSN()+"app")
	}
	for _, b := range s.BackEnds {
		c.stores = append(c.stores, b.DSN()+"app")
	}
	return c
}

// startGalera starts three nodes behind haproxy, which sends each connection to one of them,
// including the connections for leases.
func startGalera(t *testing.T) *cluster {
	g := engines.StartGalera(t, 3)
	mustRun(t, g.Proxy.DSN(), "CREATE DATABASE app")
	mustRun(t, g.Nodes[0].DSN()+"app", tables()...)
	c := &cluster{dsns: []string{g.Proxy.DSN() + "app"}, leases: g.Proxy.DSN() + "app", conflicts: true, pause: 2 * time.Second,
		stores: []string{g.Nodes[0].DSN() + "app?wsrep_sync_wait=15"}}
	// A cluster ends if two of three nodes are down, so each node returns before the next one
	// stops. haproxy checks that a node accepts connections, but not that it is synced. So the
	// test disables a node in haproxy while that node catches up.
	back := func(node *testserver.Server, resume func() error) error {
		return errors.Join(g.AwaitWithout(node), g.Proxy.Enable(node, false), resume(), g.AwaitAll(), g.Proxy.Enable(node, true))
	}
	c.faults = []engineFault{
		{"node killed", func(rng *rand.Rand) error {
			node := oneOf(rng, g.Nodes)
			node.Kill()
			return back(node, func() error { node.Start(); return nil })
		}},
		{"node stopped", func(rng *rand.Rand) error {
			node := oneOf(rng, g.Nodes)
			node.Pause()
			return back(node, func() error { node.Resume(); return nil })
		}},
		{"node cut off", func(rng *rand.Rand) error {
			node := oneOf(rng, g.Nodes)
			return errors.Join(g.Isolate(node, true), back(node, func() error { return g.Isolate(node, false) }))
		}},
	}
	c.after = func() error {
		for _, table := range writtenTables {
			var first map[record]int
			for i, node := range g.Nodes {
				rows, err := readTable(node.DSN()+"app?wsrep_sync_wait=15", table)
				if err != nil {
					return fmt.Errorf("node %d: %w", i, err)
				}
				have := map[record]int{}
				for _, r := range rows {
					have[r]++
				}
				if i == 0 {
					first = have
				}
				if !maps.Equal(first, have) {
					return fmt.Errorf("%s: node %d has %d other rows than the %d of the first", table, i, len(have), len(first))
				}
			}
		}
		return nil
	}
	return c
}

// startSemiSync starts a semi-synchronous source with a replica, behind haproxy. The source is
// killed once, and the replica takes over with everything that it has received.
func startSemiSync(t *testing.T) *cluster {
	r := engines.StartReplication(t, true)
	h := engines.StartHAProxy(t, r.Source, r.Replica)
	must.Do(t, h.Enable(r.Replica, false))
	mustRun(t, r.Source.DSN(), "CREATE DATABASE app")
	mustRun(t, r.Source.DSN()+"app", tables()...)
	c := &cluster{dsns: []string{h.DSN() + "app"}, leases: h.DSN() + "app", pause: 2 * time.Second, stores: []string{r.Replica.DSN() + "app"}}
	c.once = true
	c.faults = []engineFault{{"failover", func(*rand.Rand) error {
		wait(round() / 2)
		r.Source.Kill()
		if err := r.Promote(); err != nil {
			return err
		}
		return errors.Join(h.Enable(r.Source, false), h.Enable(r.Replica, true))
	}}}
	return c
}

// startCutting starts a server behind haproxy, which cuts all connections every 0.4 s.
func startCutting(t *testing.T) *cluster {
	server := testserver.StartMySQL(t)
	h := engines.StartHAProxy(t, server)
	mustRun(t, server.DSN(), "CREATE DATABASE app")
	mustRun(t, server.DSN()+"app", tables()...)
	return &cluster{dsns: []string{h.DSN() + "app"}, leases: h.DSN() + "app", stores: []string{server.DSN() + "app"},
		pause: 400 * time.Millisecond, faults: []engineFault{{"connections cut", func(*rand.Rand) error { return h.Cut() }}},
		after: func() error { return noStatements(server.DSN()) }}
}

// noStatements waits until a server has no prepared statements. Connections that were cut end
// soon.
func noStatements(dsn string) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	for began := time.Now(); ; wait(100 * time.Millisecond) {
		var name string
		var n int
		err := db.QueryRowContext(context.Background(), "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'").Scan(&name, &n)
		if err == nil && n == 0 {
			return nil
		}
		if time.Since(began) > recovery {
			return fmt.Errorf("%d prepared statements are left, %v", n, err)
		}
	}
}

// subject is a generator under test, with or without a lease assigner.
type subject struct {
	name   string
	server func(testing.TB) *testserver.Server // nil without a server
	// orders returns the instructions for a process. where is the address of the server, or the
	// directory that the processes share.
	orders func(where string, process int) orders
	layout snowflake.Layout // layout of its keys
	// clocks means that processes also get wrong clocks. It isn't set for LEAF_SNOWFLAKE: after a
	// process that was an hour ahead, its address has no worker ID for an hour. It isn't set for
	// REDIS, which uses its own clock only to measure durations.
	clocks bool
}

// lease and renew are short, so that a test of seconds contains many leases.
const (
	lease = time.Second
	renew = 300 * time.Millisecond
)

// fewWorkers has so few worker IDs that they often change their holder.
var fewWorkers = snowflake.Layout{TimeBits: 41, WorkerBits: 4, SequenceBits: 18}

var subjects = []subject{
	leased("FILE", nil, "path", "%s"),
	leased("SQL", startMariaDB, "dsn", "root@tcp(%s)/chaos"),
	leased("REDIS", func(t testing.TB) *testserver.Server { return testserver.StartRedis(t) }, "addr", "%s"),
	leased("ETCD", func(t testing.TB) *testserver.Server { return testserver.StartEtcd(t) }, "endpoints", "%s"),
	leased("ZOOKEEPER", func(t testing.TB) *testserver.Server { return testserver.StartZooKeeper(t) }, "servers", "%s"),
	{
		name:   "REDIS_KEYS",
		layout: snowflake.Layout{TimeBits: 41, WorkerBits: 12, SequenceBits: 10},
		// The server loses its data when it restarts. Keys must be unique anyway.
		server: func(t testing.TB) *testserver.Server { return testserver.StartRedis(t, "--appendonly", "no") },
		orders: func(addr string, _ int) orders {
			return orders{Generator: part{"REDIS", map[string]any{"addr": addr, "timeout": "300ms"}}}
		},
	},
	{
		name:   "LEAF_SNOWFLAKE",
		layout: snowflake.Classic,
		server: func(t testing.TB) *testserver.Server { return testserver.StartZooKeeper(t) },
		orders: func(addr string, process int) orders {
			return orders{Generator: part{"LEAF_SNOWFLAKE", map[string]any{
				"leaf.key": "orders", "leaf.zk.list": addr, "ip": "10.1.2.3", "port": fmt.Sprint(8080 + process),
				"lease": lease.String(), "renew": renew.String(), "session-timeout": "2s", "timeout": "1s",
			}}}
		},
	},
}

// leased returns SNOWFLAKE with the worker IDs of an assigner. property is the property with the
// address of the store.
func leased(assigner string, server func(testing.TB) *testserver.Server, property, format string) subject {
	return subject{
		name: assigner, server: server, layout: fewWorkers, clocks: true,
		orders: func(where string, _ int) orders {
			return orders{
				Generator: part{"SNOWFLAKE", map[string]any{
					"layout": fewWorkers.String(), "clock-back": "borrow", "worker-id-assigner": "leases",
				}},
				Assigner: part{assigner, map[string]any{
					property: fmt.Sprintf(format, where), "namespace": fmt.Sprintf("chaos-%d", os.Getpid()),
					"lease": lease.String(), "renew": renew.String(),
					"max-clock-ahead": "24h", // keys are unique with any clocks
				}},
			}
		},
	}
}

func startMariaDB(t testing.TB) *testserver.Server {
	server := testserver.StartMariaDB(t)
	mustRun(t, server.DSN(), "CREATE DATABASE chaos")
	return server
}
