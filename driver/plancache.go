package driver

import (
	"container/list"
	"hash/maphash"
	"sync"

	"github.com/shardkey/shardkey/driver/internal/fill"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
)

// planCache has the plans that were made with one rule, and the tables of the rule.
//
// A plan is keyed by its statement, sql_mode and character set ([planKey]), and it also depends on the
// columns that it lists. It ends when another rule comes into use, when it expires, when its tables'
// columns have changed, or when more recently used plans take its place. Statements with placeholders
// are usually repeated. Statements without placeholders are often executed once, so they are cached from
// the second execution. A planCache is safe for concurrent use.
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

func (key planKey) hash() uint64 { return maphash.Comparable(planSeed, key) }

func (cache *planCache) table(r *rule.Table) *keyedTable {
	if t, ok := cache.tables.Load(r); ok {
		return t.(*keyedTable)
	}
	t, _ := cache.tables.LoadOrStore(r, cache.newTable(r))
	return t.(*keyedTable)
}

func (cache *planCache) newTable(r *rule.Table) *keyedTable {
	of, _ := cache.locks.LoadOrStore(r.GeneratorName, fill.NewLock())
	return &keyedTable{Table: fill.NewTable(r, cache.env.counts.table(r), of.(fill.Lock), cache.env.logger)}
}

// unlistedTable returns the table for INSERTs into one that isn't in the rule. They may have explicit
// keys, but get none.
func (cache *planCache) unlistedTable(e *rule.UnlistedTableError) *keyedTable {
	r := *e.Like
	r.Sharding, r.ShardBits = nil, nil
	t := cache.newTable(&r)
	t.Unlisted = e
	return t
}

func (cache *planCache) get(key planKey) *plan {
	if len(key.text) > maxPlanBytes {
		return nil
	}
	cache.mu.Lock()
	defer cache.mu.Unlock()
	e, ok := cache.entries[key]
	if !ok {
		return nil
	}
	cache.order.MoveToFront(e)
	return e.Value.(*planEntry).plan
}

// isSeen reports whether a statement was planned before.
func (cache *planCache) isSeen(key planKey) bool {
	cache.mu.Lock()
	defer cache.mu.Unlock()
	_, ok := cache.seen[key.hash()]
	return ok
}

func (cache *planCache) see(key planKey) {
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if len(cache.seen) >= maxSeen {
		clear(cache.seen)
	}
	cache.seen[key.hash()] = struct{}{}
}

// holds reports whether a plan is small enough for the cache.
func (cache *planCache) holds(key planKey, p *plan) bool {
	return len(key.text)+p.size() <= maxPlanBytes && (p.NumArgs > 0 || len(key.text) <= maxLiteralBytes)
}

// put adds a plan. The caller has checked it with holds.
func (cache *planCache) put(key planKey, p *plan) {
	cache.mu.Lock()
	defer cache.mu.Unlock()
	cache.drop(cache.entries[key])
	size := len(key.text) + p.size()
	cache.entries[key] = cache.order.PushFront(&planEntry{key, p, size})
	cache.bytes += size
	for len(cache.entries) > cache.most || cache.bytes > maxPlansBytes {
		cache.drop(cache.order.Back())
	}
}

// remove removes an outdated plan.
func (cache *planCache) remove(key planKey) {
	cache.mu.Lock()
	defer cache.mu.Unlock()
	cache.drop(cache.entries[key])
}

func (cache *planCache) drop(e *list.Element) {
	if e == nil {
		return
	}
	entry := cache.order.Remove(e).(*planEntry)
	delete(cache.entries, entry.key)
	cache.bytes -= entry.size
}

// size returns the number of plans and their total size in bytes.
func (cache *planCache) size() (entries, bytes int) {
	cache.mu.Lock()
	defer cache.mu.Unlock()
	return len(cache.entries), cache.bytes
}
