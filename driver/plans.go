package driver

import (
	"container/list"
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// planCache keeps the plans made with one rule, by text, and forgets the least recently used
// ones. Texts with placeholders are a program's own and repeat. Texts without are often made
// for one execution: they are kept from their second execution on. Many goroutines use it.
type planCache struct {
	tables sync.Map     // *rule.Table → *table
	turns  sync.Map     // generator's name → turns
	parses atomic.Int64 // texts parsed so far
	counts *counts

	mu      sync.Mutex
	entries map[planKey]*list.Element
	order   list.List // of *planEntry, the newest in front
	bytes   int
	most    int // entries
	// seen are the texts that were planned, by a hash of 64 bits, whose seed nobody can know.
	// When there are too many it forgets all.
	seen map[uint64]struct{}
}

type planEntry struct {
	key  planKey
	plan *plan
	size int
}

// Bounds of the cache, in plans and in bytes of text and plan together. A
// longer text is planned at each execution: that is cheap next to sending it.
const (
	maxPlans      = 4096
	maxPlansBytes = 16 << 20
	maxPlanBytes  = 256 << 10
	// A long text without placeholders was made for one execution.
	maxLiteralBytes = 8 << 10
	// maxSeen texts take some 5 MB.
	maxSeen = 1 << 18
)

func newPlanCache(c *counts) *planCache {
	return &planCache{counts: c, most: maxPlans, entries: map[planKey]*list.Element{}, seen: map[uint64]struct{}{}}
}

// planKey is a text as a session reads it.
type planKey struct {
	text    string
	mode    rewrite.Mode
	charset rewrite.Charset
}

var planSeed = maphash.MakeSeed()

func (k planKey) hash() uint64 { return maphash.Comparable(planSeed, k) }

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
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*planEntry).plan
}

// isSeen reports whether a text was planned before.
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

// holds reports whether the cache has room for a plan.
func (c *planCache) holds(key planKey, p *plan) bool {
	return len(key.text)+p.Size() <= maxPlanBytes && (p.Params() > 0 || len(key.text) <= maxLiteralBytes)
}

// put adds a plan for which holds is true.
func (c *planCache) put(key planKey, p *plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.entries[key])
	size := len(key.text) + p.Size()
	c.entries[key] = c.order.PushFront(&planEntry{key, p, size})
	c.bytes += size
	for len(c.entries) > c.most || c.bytes > maxPlansBytes {
		c.drop(c.order.Back())
	}
}

// remove forgets a plan that turned out to be out of date.
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

// size is how many plans there are, and how large they are together.
func (c *planCache) size() (entries, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries), c.bytes
}

// staleError is an error of the server that may come from outdated columns with
// which a text was planned. Methods that plan read them again; see conn.again.
type staleError struct {
	plan *plan
	error
}

// failed is called with an error of the server about a statement that was not
// executed. It marks one that says that columns are wrong, and returns errReplan
// where the assignment of the key to itself is what the server refuses. An error of a
// string of several statements is returned as it is: its first statements have run.
func (p *plan) failed(err error) error {
	if p.Statements > 1 {
		return err
	}
	const (
		columnNotNull   = 1048
		unknownDatabase = 1049
		unknownColumn   = 1054
		columnCount     = 1136
		unknownTable    = 1146
		notUpdatable    = 1348
		noDefault       = 1364
		notInsertableTo = 1471
	)
	switch {
	case base.IsServerError(err, columnNotNull, unknownDatabase, unknownColumn, columnCount, unknownTable, noDefault):
		if len(p.columns) > 0 {
			return &staleError{p, err}
		}
	case base.IsServerError(err, columnDenied, notUpdatable, notInsertableTo, notSupported):
		// notSupported is from Vitess, about a sharding column.
		if p.unguard() {
			return errReplan
		}
	}
	return err
}

// unguard forgets a plan with guarded upserts, whose tables' upserts are not
// guarded from now on. It returns false when there are none.
func (p *plan) unguard() (guarded bool) {
	for i := range p.Inserts {
		if p.Inserts[i].Guarded {
			p.targets[i].table.unguarded.Store(true)
			guarded = true
		}
	}
	if guarded {
		p.rules.plans.remove(p.key)
	}
	return guarded
}

// columnsChanged reads the columns of a plan's tables again and reports whether
// they have changed. If so, the plan is forgotten.
func (p *plan) columnsChanged(ctx context.Context, s *session.Session) bool {
	for t := range p.columns {
		s.ForgetColumns(t)
	}
	hold, err := p.columnsHold(ctx, s)
	if !hold {
		p.rules.plans.remove(p.key)
	}
	return !hold && err == nil
}

// columnsHold reports whether the columns that a plan depends on are what its
// tables have.
func (p *plan) columnsHold(ctx context.Context, s *session.Session) (bool, error) {
	for t, old := range p.columns {
		columns, _, err := s.Columns(ctx, t)
		if err != nil || !slices.Equal(columns, old) {
			return false, err
		}
	}
	return true, nil
}

// Verification counts the statements that the second parser has read; see Config.Verify.
type Verification struct {
	Agreed  int64 `json:"agreed"`  // both readers understood the same
	Unknown int64 `json:"unknown"` // TiDB's parser does not know the statement
	Refused int64 `json:"refused"` // they disagreed, and the text was not sent
}

// reader holds a plan against another grammar, and reports whether that knows
// the text.
type reader func(text string, opts rewrite.Options, p *rewrite.Plan) (known bool, err error)

// secondReader is nil in a build without one.
var secondReader reader

// verifier calls the second parser for one connector.
type verifier struct {
	read                     reader // nil: texts are not verified
	agreed, unknown, refused atomic.Int64
}

func (v *verifier) set(mode string) {
	if mode != "off" {
		v.read = secondReader
	}
}

func (v *verifier) stats() Verification {
	return Verification{Agreed: v.agreed.Load(), Unknown: v.unknown.Load(), Refused: v.refused.Load()}
}

// verify checks a new plan.
func (v *verifier) verify(text string, opts rewrite.Options, p *rewrite.Plan) error {
	if v.read == nil {
		return nil
	}
	known, err := v.read(text, opts, p)
	switch {
	case err != nil:
		v.refused.Add(1)
		return refusalAt(reasonUnverified, err)
	case known:
		v.agreed.Add(1)
	default:
		v.unknown.Add(1)
	}
	return nil
}
