package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// tryWorkers leases a worker id from an assigner, and looks at it with the tool in
// a process of its own.
func tryWorkers(t *testing.T, assigner, dsn string, clock bool) {
	t.Helper()
	file := write(t, `rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: cluster}}
  workerIdAssigners:
    cluster: `+assigner+"\n")
	look := func() workerStore {
		t.Helper()
		c := toolCommand(t, "workers", "-rule", file, "-o", "json")
		c.Env = append(c.Env, "SHARDKEY_DSN="+dsn)
		out, err := c.CombinedOutput()
		var v workerStore
		if err != nil || json.Unmarshal(out, &v) != nil || strings.Contains(string(out), canary) {
			t.Fatalf("have: %s, %v", out, err)
		}
		return v
	}
	if v := look(); len(v.Workers) > 0 || v.Generators[0].Free != 1024 {
		t.Errorf("before\nhave: %+v\nwant: all free", v)
	}
	r, err := rule.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	live, err := r.Open(spi.Host{DSN: spi.NewSecret(dsn)})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if _, err := live.Lookup("", "t_order").Generator.GenerateKeys(t.Context(), spi.Column{}, 1); err != nil {
		t.Fatal(err)
	}
	v := look()
	if len(v.Workers) != 1 || v.Workers[0].State != "held" || v.Workers[0].PID != int64(os.Getpid()) || v.Generators[0].Free != 1023 || (v.ClockAhead != nil) != clock {
		t.Errorf("held\nhave: %+v\nwant: by process %d", v, os.Getpid())
	}
	if err := live.Close(); err != nil {
		t.Fatal(err)
	}
	if v := look(); len(v.Workers) != 1 || v.Workers[0].State != "free" || v.Generators[0].Free != 1024 {
		t.Errorf("given back\nhave: %+v\nwant: free", v)
	}
}

// namespace is one that no other test has used.
func namespace() string { return fmt.Sprintf("tool-%d", time.Now().UnixNano()) }

func TestWorkers_sql(t *testing.T) {
	if testserver.Each(t, TestWorkers_sql) {
		return
	}
	tryWorkers(t, "{type: SQL, props: {}}", testserver.Database(t), true)
}

func TestWorkers_redis(t *testing.T) {
	tryWorkers(t, "{type: REDIS, props: {addr: '"+testserver.Redis(t)+"', namespace: "+namespace()+"}}", "", true)
}

func TestWorkers_etcd(t *testing.T) {
	tryWorkers(t, "{type: ETCD, props: {endpoints: '"+testserver.Etcd(t)+"', namespace: "+namespace()+"}}", "", false)
}

func TestWorkers_zookeeper(t *testing.T) {
	tryWorkers(t, "{type: ZOOKEEPER, props: {servers: '"+testserver.ZooKeeper(t)+"', namespace: "+namespace()+"}}", "", false)
}
