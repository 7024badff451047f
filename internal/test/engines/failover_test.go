package engines_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/engines"
	"github.com/shardkey/shardkey/internal/test/must"
)

// movedAddress is an address that forwards new connections to its current target. Existing
// connections stay.
type movedAddress struct {
	net.Listener
	to atomic.Pointer[string]
}

func newMovedAddress(t *testing.T, to string) *movedAddress {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	a := &movedAddress{Listener: l}
	a.to.Store(&to)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go a.pass(in)
		}
	}()
	return a
}

func (a *movedAddress) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", *a.to.Load())
	if err != nil {
		return
	}
	defer out.Close()
	var both sync.WaitGroup
	for _, d := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			_, _ = io.Copy(d[0], d[1])
			d[0].Close()
			d[1].Close()
		})
	}
	both.Wait()
}

func (a *movedAddress) point(to string) { a.to.Store(&to) }

// keyProcess is the part of a process that has a rule. It shares no generators.
type keyProcess struct {
	db        *sql.DB
	connector *driver.Connector
}

// newKeyProcess opens a rule whose stores are at addr, with keys for the tables t_segment,
// t_ticket and t_lease.
func newKeyProcess(t *testing.T, addr string) *keyProcess {
	t.Helper()
	dsn := fmt.Sprintf("root@tcp(%s)/ids", addr)
	return openKeyProcess(t, `
rules:
- !SHARDING
  tables:
    t_segment: {keyGenerateStrategy: {column: id, keyGeneratorName: segment}}
    t_ticket: {keyGenerateStrategy: {column: id, keyGeneratorName: ticket}}
    t_lease: {keyGenerateStrategy: {column: id, keyGeneratorName: lease}}
  keyGenerators:
    segment: {type: LEAF_SEGMENT, props: {leaf.key: order, dsn: "`+dsn+`", failover-gap: 100000}}
    ticket: {type: TICKET, props: {dsns: "`+dsn+`"}}
    lease: {type: SNOWFLAKE, props: {layout: 41-3-19, worker-id-assigner: ids}}
  workerIdAssigners:
    ids: {type: SQL, props: {dsn: "`+dsn+`", lease: 3s, renew: 500ms}}
`)
}

func openKeyProcess(t *testing.T, text string) *keyProcess {
	t.Helper()
	base, err := mysql.NewConnector(&mysql.Config{Net: "tcp", Addr: "127.0.0.1:1", User: "nobody"}) // the test only generates keys
	if err != nil {
		t.Fatal(err)
	}
	c := must.Get(driver.NewConnector(base, mustParse(t, "failover", text)))(t)
	db := sql.OpenDB(c)
	t.Cleanup(func() { db.Close() })
	return &keyProcess{db, c}
}

func (p *keyProcess) keys(t *testing.T, table string, n int) []any {
	t.Helper()
	keys, err := driver.NextKeys(context.Background(), p.db, table, n)
	if err != nil {
		t.Fatalf("%s: %v", table, err)
	}
	return keys
}

var failoverTables = []string{
	"CREATE DATABASE ids",
	"CREATE TABLE ids.leaf_alloc (biz_tag varchar(128) NOT NULL PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int NOT NULL, description varchar(256))",
	"INSERT INTO ids.leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)",
	"CREATE TABLE ids.Tickets64 (id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, stub char(1) NOT NULL DEFAULT '' UNIQUE)",
}

// catchUp waits until the replica has everything from the source.
func catchUp(t *testing.T, servers *engines.Replication) {
	t.Helper()
	var all string
	must.Do(t, open(t, "mysql", servers.Source.DSN()).QueryRow("SELECT @@GLOBAL.gtid_executed").Scan(&all))
	var timeout bool
	err := open(t, "mysql", servers.Replica.DSN()).QueryRow("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 300)", all).Scan(&timeout)
	if err != nil || timeout {
		t.Fatalf("the replica is behind: %v", err)
	}
}

// keySet finds duplicate keys.
type keySet map[string]map[any]bool

func (s keySet) add(t *testing.T, table string, keys []any) {
	t.Helper()
	if s[table] == nil {
		s[table] = map[any]bool{}
	}
	for _, k := range keys {
		if s[table][k] {
			t.Fatalf("%s: key %v came twice", table, k)
		}
		s[table][k] = true
	}
}

// The stores' server becomes read-only, as in a planned switchover, and keeps its connections.
// Keys must continue from the new server.
func TestFailover_switchover(t *testing.T) {
	servers := engines.StartReplication(t, false)
	mustRun(t, servers.Source.DSN(), failoverTables...)
	address := newMovedAddress(t, servers.Source.Addr())
	p := newKeyProcess(t, address.Addr().String())
	tables := []string{"t_segment", "t_ticket", "t_lease"}
	seen := keySet{}
	for _, table := range tables {
		seen.add(t, table, p.keys(t, table, 25))
	}
	mustRun(t, servers.Source.DSN(), "SET GLOBAL super_read_only = ON")
	catchUp(t, servers)
	must.Do(t, servers.Promote())
	address.point(servers.Replica.Addr())
	for range 40 {
		for _, table := range tables {
			seen.add(t, table, p.keys(t, table, 25))
		}
	}
	for _, g := range p.connector.Stats().Generators {
		if g.Health.Err != nil {
			t.Errorf("%s: %v", g.Name, g.Health.Err)
		}
	}
}

// An asynchronous replica without the last claims and leases takes over. Running processes
// continue, new ones start, and all keys are unique.
func TestFailover_lossy(t *testing.T) {
	servers := engines.StartReplication(t, false)
	mustRun(t, servers.Source.DSN(), failoverTables...)
	address := newMovedAddress(t, servers.Source.Addr())
	tables := []string{"t_segment", "t_lease"}
	seen := keySet{}
	first := newKeyProcess(t, address.Addr().String()) // its lease is on the replica
	for _, table := range tables {
		seen.add(t, table, first.keys(t, table, 25))
	}
	catchUp(t, servers)
	mustRun(t, servers.Replica.DSN(), "STOP REPLICA")
	old := []*keyProcess{first, newKeyProcess(t, address.Addr().String()), newKeyProcess(t, address.Addr().String())}
	for range 20 {
		for _, p := range old {
			for _, table := range tables {
				seen.add(t, table, p.keys(t, table, 25))
			}
		}
	}
	servers.Source.Kill()
	mustRun(t, servers.Replica.DSN(), "RESET REPLICA ALL", "SET PERSIST super_read_only = OFF", "SET PERSIST read_only = OFF")
	address.point(servers.Replica.Addr())
	// Three worker IDs were leased. One of the leases is on the replica.
	all := append([]*keyProcess{newKeyProcess(t, address.Addr().String())}, old...)
	for range 400 {
		for _, p := range all {
			seen.add(t, "t_segment", p.keys(t, "t_segment", 25))
		}
		for range 20 { // within a millisecond
			for _, p := range all {
				seen.add(t, "t_lease", p.keys(t, "t_lease", 5))
			}
		}
	}
}
