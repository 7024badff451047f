package driver

import (
	"container/list"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// planCache keeps the plans made with one rule, by text. Texts with
// placeholders are a program's own and repeat; texts without are often
// made for one execution. Each kind has its own bounds, so that the second never
// pushes out the first.
type planCache struct {
	bound   lru
	literal lru
	tables  sync.Map     // *rule.Table → *table
	turns   sync.Map     // generator's name → turns
	parses  atomic.Int64 // texts parsed so far
	// verified are those that the second reader has read: for a program of more texts
	// than there are plans, which would have it read them again and again.
	verified verifiedTexts
	counts   *counts
}

// Bounds of the cache, in plans and in bytes of text and plan together. A
// longer text is planned at each execution: that is cheap beside sending it.
const (
	maxBoundPlans   = 4096
	maxLiteralPlans = 256
	maxPlansBytes   = 16 << 20
	maxPlanBytes    = 256 << 10
	// A long text without placeholders was made for one execution.
	maxLiteralBytes = 8 << 10
	// maxVerified texts take some 5 MB.
	maxVerified = 1 << 18
)

func newPlanCache(c *counts) *planCache {
	return &planCache{
		counts:  c,
		bound:   lru{maxPlans: maxBoundPlans, maxBytes: maxPlansBytes},
		literal: lru{maxPlans: maxLiteralPlans, maxBytes: maxPlansBytes / 8},
	}
}

// planKey is a text as a session reads it.
type planKey struct {
	text    string
	mode    rewrite.Mode
	charset rewrite.Charset
}

func (c *planCache) table(r *rule.Table) *table {
	if t, ok := c.tables.Load(r); ok {
		return t.(*table)
	}
	of, _ := c.turns.LoadOrStore(r.GeneratorName, make(turns, 1))
	t, _ := c.tables.LoadOrStore(r, newTable(r, c.counts.table(r), of.(turns)))
	return t.(*table)
}

func (c *planCache) get(key planKey) *plan {
	if len(key.text) > maxPlanBytes {
		return nil
	}
	if p := c.bound.get(key); p != nil || len(key.text) > maxLiteralBytes {
		return p
	}
	return c.literal.get(key)
}

// holds reports whether the cache takes a plan.
func (c *planCache) holds(key planKey, p *plan) bool {
	return len(key.text)+p.Size() <= maxPlanBytes && (p.Params() > 0 || len(key.text) <= maxLiteralBytes)
}

// put adds a plan for which holds is true.
func (c *planCache) put(key planKey, p *plan) {
	size := len(key.text) + p.Size()
	if p.Params() > 0 {
		c.bound.put(key, p, size)
	} else {
		c.literal.put(key, p, size)
	}
}

// remove forgets a plan that turned out to be out of date.
func (c *planCache) remove(key planKey) {
	c.bound.remove(key)
	c.literal.remove(key)
}

// size is how many plans there are, and how large they are together.
func (c *planCache) size() (entries, bytes int) {
	for _, l := range []*lru{&c.bound, &c.literal} {
		l.mu.Lock()
		entries, bytes = entries+len(l.entries), bytes+l.bytes
		l.mu.Unlock()
	}
	return entries, bytes
}

// verifiedTexts knows texts by a hash of 64 bits, whose seed nobody can know. When
// there are too many it forgets all. Many goroutines use it.
type verifiedTexts struct {
	mu     sync.Mutex
	hashes map[uint64]struct{}
}

var verifiedSeed = maphash.MakeSeed()

func (v *verifiedTexts) has(key planKey) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, ok := v.hashes[maphash.Comparable(verifiedSeed, key)]
	return ok
}

func (v *verifiedTexts) add(key planKey) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.hashes == nil:
		v.hashes = map[uint64]struct{}{}
	case len(v.hashes) >= maxVerified:
		clear(v.hashes)
	}
	v.hashes[maphash.Comparable(verifiedSeed, key)] = struct{}{}
}

// lru is a map bounded in entries and bytes that forgets the least recently
// used. Its zero value with bounds is ready. Many goroutines use it.
type lru struct {
	maxPlans, maxBytes int

	mu      sync.Mutex
	entries map[planKey]*list.Element
	order   list.List // of *lruEntry, the newest in front
	bytes   int
}

type lruEntry struct {
	key  planKey
	plan *plan
	size int
}

func (l *lru) get(key planKey) *plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.entries[key]
	if !ok {
		return nil
	}
	l.order.MoveToFront(e)
	return e.Value.(*lruEntry).plan
}

func (l *lru) put(key planKey, p *plan, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[planKey]*list.Element{}
	}
	l.drop(l.entries[key])
	l.entries[key] = l.order.PushFront(&lruEntry{key, p, size})
	l.bytes += size
	for len(l.entries) > l.maxPlans || l.bytes > l.maxBytes {
		l.drop(l.order.Back())
	}
}

func (l *lru) remove(key planKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(l.entries[key])
}

func (l *lru) drop(e *list.Element) {
	if e == nil {
		return
	}
	entry := l.order.Remove(e).(*lruEntry)
	delete(l.entries, entry.key)
	l.bytes -= entry.size
}
