//go:build linux

package chaos

import (
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	_ "github.com/shardkey/shardkey/keygen/etcd"
	_ "github.com/shardkey/shardkey/keygen/redis"
	"github.com/shardkey/shardkey/keygen/snowflake"
	_ "github.com/shardkey/shardkey/keygen/workerid"
	_ "github.com/shardkey/shardkey/keygen/zookeeper"
)

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
	db := must.Get(sql.Open("mysql", server.DSN()))(t)
	defer db.Close()
	must.Get(db.Exec("CREATE DATABASE chaos"))(t)
	return server
}
