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
	"time"

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
	must.Do(t, err)
	c := must.Get(driver.NewConnector(base, mustParse(t, "failover", text)))(t)
	db := sql.OpenDB(c)
	t.Cleanup(func() { db.Close() })
	return &keyProcess{db, c}
}

func (p *keyProcess) keys(t *testing.T, table string, n int) []any {
	t.Helper()
	return must.Get(driver.NextKeys(context.Background(), p.db, table, n))(t, table)
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
	must.Do(t, must.Open(t, "mysql", servers.Source.DSN()).QueryRow("SELECT @@GLOBAL.gtid_executed").Scan(&all))
	var timeout bool
	err := must.Open(t, "mysql", servers.Replica.DSN()).QueryRow("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 300)", all).Scan(&timeout)
	if err != nil || timeout {
		t.Fatalf("the replica is behind: %v", err)
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
	seen := newKeyCount()
	for _, table := range tables {
		seen.add(table, p.keys(t, table, 25), nil)
	}
	mustRun(t, servers.Source.DSN(), "SET GLOBAL super_read_only = ON")
	catchUp(t, servers)
	must.Do(t, servers.Promote())
	address.point(servers.Replica.Addr())
	for range 40 {
		for _, table := range tables {
			seen.add(table, p.keys(t, table, 25), nil)
		}
	}
	seen.check(t, tables)
	for _, g := range p.connector.Stats().Generators {
		must.Do(t, g.Health.Err, g.Name)
	}
}

// An asynchronous replica without the last claims and leases takes over. Running processes
// continue, new ones start, and all keys are unique.
func TestFailover_lossy(t *testing.T) {
	servers := engines.StartReplication(t, false)
	mustRun(t, servers.Source.DSN(), failoverTables...)
	address := newMovedAddress(t, servers.Source.Addr())
	tables := []string{"t_segment", "t_lease"}
	seen := newKeyCount()
	first := newKeyProcess(t, address.Addr().String()) // its lease is on the replica
	for _, table := range tables {
		seen.add(table, first.keys(t, table, 25), nil)
	}
	catchUp(t, servers)
	mustRun(t, servers.Replica.DSN(), "STOP REPLICA")
	old := []*keyProcess{first, newKeyProcess(t, address.Addr().String()), newKeyProcess(t, address.Addr().String())}
	for range 20 {
		for _, p := range old {
			for _, table := range tables {
				seen.add(table, p.keys(t, table, 25), nil)
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
			seen.add("t_segment", p.keys(t, "t_segment", 25), nil)
		}
		for range 20 { // within a millisecond
			for _, p := range all {
				seen.add("t_lease", p.keys(t, "t_lease", 5), nil)
			}
		}
	}
	seen.check(t, tables)
}

// keyCount counts the keys of processes by table, and the duplicates.
type keyCount struct {
	mu       sync.Mutex
	more     sync.Cond
	seen     map[string]map[any]bool
	total    map[string]int
	repeated map[string]int
	failed   map[string]int // number of calls by error
}

func newKeyCount() *keyCount {
	c := &keyCount{seen: map[string]map[any]bool{}, total: map[string]int{}, repeated: map[string]int{}, failed: map[string]int{}}
	c.more.L = &c.mu
	return c
}

func (c *keyCount) add(table string, keys []any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed[table]++
		return
	}
	if c.seen[table] == nil {
		c.seen[table] = map[any]bool{}
	}
	for _, k := range keys {
		if c.seen[table][k] {
			c.repeated[table]++
		}
		c.seen[table][k] = true
	}
	c.total[table] += len(keys)
	c.more.Broadcast()
}

// check fails the test if a key came twice.
func (c *keyCount) check(t *testing.T, tables []string) {
	t.Helper()
	for _, table := range tables {
		t.Logf("%s: %d keys, %d calls without keys", table, c.total[table], c.failed[table])
		must.Equal(t, c.repeated[table], 0, table, "keys for the second time")
	}
}

// await returns when each table has n more keys.
func (c *keyCount) await(n int, tables []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, table := range tables {
		for end := c.total[table] + n; c.total[table] < end; {
			c.more.Wait()
		}
	}
}

// make generates keys for the tables, a few hundred per second each, until ctx ends.
func (c *keyCount) make(ctx context.Context, p *keyProcess, tables []string) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, table := range tables {
			keys, err := driver.NextKeys(ctx, p.db, table, 10)
			c.add(table, keys, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Seven processes generate keys, with leases of 16 worker IDs and from segments, on a server that
// is killed. Its asynchronous replica, which contains one of the leases, takes over. Seven more
// processes start at once. All keys must be unique.
func TestFailover_load(t *testing.T) {
	const processes, before, after, gap = 7, 20_000, 60_000, 1_000_000
	servers := engines.StartReplication(t, false)
	mustRun(t, servers.Source.DSN(), failoverTables...)
	address := newMovedAddress(t, servers.Source.Addr())
	tables := []string{"t_segment", "t_lease"}
	start := func() *keyProcess {
		return openKeyProcess(t, fmt.Sprintf(`
rules:
- !SHARDING
  tables:
    t_segment: {keyGenerateStrategy: {column: id, keyGeneratorName: segment}}
    t_lease: {keyGenerateStrategy: {column: id, keyGeneratorName: lease}}
  keyGenerators:
    segment: {type: LEAF_SEGMENT, props: {leaf.key: order, dsn: %q, min-step: 1000, max-step: 1000, failover-gap: %d}}
    lease: {type: SNOWFLAKE, props: {layout: js53, worker-id-assigner: ids}}
  workerIdAssigners:
    ids: {type: SQL, props: {dsn: %[1]q}}
`, fmt.Sprintf("root@tcp(%s)/ids", address.Addr()), gap))
	}
	first := start()
	for _, table := range tables {
		first.keys(t, table, 10)
	}
	catchUp(t, servers)
	mustRun(t, servers.Replica.DSN(), "STOP REPLICA")

	count := newKeyCount()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	stop := sync.OnceFunc(func() { cancel(); running.Wait() })
	defer stop()
	run := func(p *keyProcess) { running.Go(func() { count.make(ctx, p, tables) }) }
	run(first)
	for range processes - 1 {
		run(start())
	}
	count.await(before, tables)
	servers.Source.Kill()
	mustRun(t, servers.Replica.DSN(), "RESET REPLICA ALL", "SET PERSIST super_read_only = OFF", "SET PERSIST read_only = OFF")
	address.point(servers.Replica.Addr())
	for range processes {
		run(start())
	}
	count.await(after, tables)
	stop()
	count.check(t, tables)
}
