package engines_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/engines"
)

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
	for _, table := range tables {
		t.Logf("%s: %d keys, %d of them for the second time; %d calls without keys", table, count.total[table], count.repeated[table], count.failed[table])
		if n := count.repeated[table]; n > 0 {
			t.Errorf("%s: %d keys came twice", table, n)
		}
	}
}
