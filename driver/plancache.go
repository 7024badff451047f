package driver

import (
	"container/list"
	"hash/maphash"
	"sync"

	"github.com/shardkey/shardkey/driver/internal/fill"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
)

// planCache caches the plans made with one rule, by statement, and drops the least recently used.
// Statements with placeholders are usually repeated. Statements without placeholders are often
// executed once, so they are cached from the second execution. A planCache is safe for concurrent
// use.
type planCache struct {
	tables sync.Map // *rule.Table → *keyedTable
	locks  sync.Map // generator's name → fill.Lock
	env    *env

	mu      sync.Mutex
	entries map[planKey]*list.Element
	order   list.List // of *planEntry, most recently used first
	bytes   int
	most    int // the maximum of entries
	// seen has hashes of the statements that were planned. Their seed is random. When the map is
	// full, it is cleared.
	seen map[uint64]struct{}
}

type planEntry struct {
	key  planKey
	plan *plan
	size int
}

// Limits of the cache, in plans and in bytes of statements and plans. A longer statement is planned
// at each execution, which is cheap compared with sending it.
const (
	maxPlans      = 4096
	maxPlansBytes = 16 << 20
	maxPlanBytes  = 256 << 10
	// A long statement without placeholders is usually executed once.
	maxLiteralBytes = 8 << 10
	// maxSeen entries take about 5 MB.
	maxSeen = 1 << 18
)

func newPlanCache(e *env) *planCache {
	return &planCache{env: e, most: maxPlans, entries: map[planKey]*list.Element{}, seen: map[uint64]struct{}{}}
}

// planKey is a statement with the sql_mode and character set that it is read with.
type planKey struct {
	text    string
	mode    sqltoken.Mode
	charset sqltoken.Charset
	// commented: comments may surround the statement.
	commented bool
}

var planSeed = maphash.MakeSeed()

func (k planKey) hash() uint64 { return maphash.Comparable(planSeed, k) }

func (c *planCache) table(r *rule.Table) *keyedTable {
	if t, ok := c.tables.Load(r); ok {
		return t.(*keyedTable)
	}
	t, _ := c.tables.LoadOrStore(r, c.newTable(r))
	return t.(*keyedTable)
}

func (c *planCache) newTable(r *rule.Table) *keyedTable {
	of, _ := c.locks.LoadOrStore(r.GeneratorName, fill.NewLock())
	return &keyedTable{Table: fill.NewTable(r, c.env.counts.table(r), of.(fill.Lock), c.env.logger)}
}

// unlistedTable returns the table for INSERTs into one that isn't in the rule. They may have explicit
// keys, but get none.
func (c *planCache) unlistedTable(e *rule.UnlistedTableError) *keyedTable {
	r := *e.Like
	r.Sharding, r.ShardBits = nil, nil
	t := c.newTable(&r)
	t.Unlisted = e
	return t
}

func (c *planCache) get(key planKey) *plan {
	if len(key.text) > maxPlanBytes {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*planEntry).plan
}

// isSeen reports whether a statement was planned before.
func (c *planCache) isSeen(key planKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.seen[key.hash()]
	return ok
}

func (c *planCache) see(key planKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= maxSeen {
		clear(c.seen)
	}
	c.seen[key.hash()] = struct{}{}
}

// holds reports whether a plan is small enough for the cache.
func (c *planCache) holds(key planKey, p *plan) bool {
	return len(key.text)+p.size() <= maxPlanBytes && (p.NumArgs > 0 || len(key.text) <= maxLiteralBytes)
}

// put adds a plan. The caller has checked it with holds.
func (c *planCache) put(key planKey, p *plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.entries[key])
	size := len(key.text) + p.size()
	c.entries[key] = c.order.PushFront(&planEntry{key, p, size})
	c.bytes += size
	for len(c.entries) > c.most || c.bytes > maxPlansBytes {
		c.drop(c.order.Back())
	}
}

// remove removes an outdated plan.
func (c *planCache) remove(key planKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.entries[key])
}

func (c *planCache) drop(e *list.Element) {
	if e == nil {
		return
	}
	entry := c.order.Remove(e).(*planEntry)
	delete(c.entries, entry.key)
	c.bytes -= entry.size
}

// size returns the number of plans and their total size in bytes.
func (c *planCache) size() (entries, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries), c.bytes
}
