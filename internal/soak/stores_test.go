package soak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
	_ "github.com/shardkey/shardkey/keygen/etcd"
	_ "github.com/shardkey/shardkey/keygen/redis"
	_ "github.com/shardkey/shardkey/keygen/workerid"
	_ "github.com/shardkey/shardkey/keygen/zookeeper"
)

// store is a kind of assigner under test: where its server is (empty for one
// without) and the properties that reach it at an address.
type store struct {
	typ    string
	server func(testing.TB) string
	props  func(where string) map[string]any
}

var stores = []store{
	{"FILE", directory, func(dir string) map[string]any { return map[string]any{"path": dir} }},
	{"SQL", mariaDB, func(addr string) map[string]any { return map[string]any{"dsn": at(addr)} }},
	{"REDIS", testserver.Redis, func(addr string) map[string]any { return map[string]any{"addr": addr} }},
	{"ETCD", testserver.Etcd, func(addr string) map[string]any { return map[string]any{"endpoints": addr} }},
	{"ZOOKEEPER", testserver.ZooKeeper, func(addr string) map[string]any { return map[string]any{"servers": addr} }},
}

// directory is FILE's store; it has no address.
func directory(t testing.TB) string { return t.TempDir() }

// sqlDSN is the DSN of the database under test, whose address is the proxy's.
var sqlDSN *mysql.Config

func mariaDB(t testing.TB) string {
	config, err := mysql.ParseDSN(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	if config.Net != "tcp" {
		t.Skipf("the server is at %s, and cutting it off needs TCP", config.Net)
	}
	sqlDSN = config
	return config.Addr
}

func at(addr string) string {
	config := sqlDSN.Clone()
	config.Addr = addr
	return config.FormatDSN()
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
