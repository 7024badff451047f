//go:build linux

package chaos

import (
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
	_ "github.com/shardkey/shardkey/keygen/etcd"
	_ "github.com/shardkey/shardkey/keygen/redis"
	_ "github.com/shardkey/shardkey/keygen/workerid"
	_ "github.com/shardkey/shardkey/keygen/zookeeper"
)

// store is a kind of assigner under test: what starts its server (nil for one
// without), and the properties that reach it at an address, or in a directory.
type store struct {
	typ    string
	server func(testing.TB, ...string) *testserver.Server
	props  func(where string) map[string]any
}

var stores = []store{
	{"FILE", nil, func(dir string) map[string]any { return map[string]any{"path": dir} }},
	{"SQL", startMariaDB, func(addr string) map[string]any { return map[string]any{"dsn": "root@tcp(" + addr + ")/soak"} }},
	{"REDIS", testserver.StartRedis, func(addr string) map[string]any { return map[string]any{"addr": addr} }},
	{"ETCD", testserver.StartEtcd, func(addr string) map[string]any { return map[string]any{"endpoints": addr} }},
	{"ZOOKEEPER", testserver.StartZooKeeper, func(addr string) map[string]any { return map[string]any{"servers": addr} }},
}

func startMariaDB(t testing.TB, args ...string) *testserver.Server {
	server := testserver.StartMariaDB(t, args...)
	db, err := sql.Open("mysql", server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE DATABASE soak"); err != nil {
		t.Fatal(err)
	}
	return server
}

// lease and renew are short, so that seconds hold many of them.
const (
	lease = time.Second
	renew = 300 * time.Millisecond
)

func (s store) orders(where string) orders {
	props := s.props(where)
	props["namespace"] = fmt.Sprintf("soak-%d", os.Getpid())
	props["lease"], props["renew"] = lease.String(), renew.String()
	return orders{Type: s.typ, Props: props}
}
