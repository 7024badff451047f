package driver

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// planCache caches the plans made with one rule, by statement, and drops the least recently used.
// Statements with placeholders are usually repeated. Statements without placeholders are often
// executed once, so they are cached from the second execution. A planCache is safe for concurrent
// use.
type planCache struct {
	tables sync.Map     // *rule.Table → *table
	turns  sync.Map     // generator's name → turns
	parses atomic.Int64 // the number of parsed statements
	counts *counts

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

func newPlanCache(c *counts) *planCache {
	return &planCache{counts: c, most: maxPlans, entries: map[planKey]*list.Element{}, seen: map[uint64]struct{}{}}
}

// planKey is a statement with the sql_mode and character set that it is read with.
type planKey struct {
	text    string
	mode    sqltoken.Mode
	charset sqltoken.Charset
}

var planSeed = maphash.MakeSeed()

func (k planKey) hash() uint64 { return maphash.Comparable(planSeed, k) }

func (c *planCache) table(r *rule.Table) *keyedTable {
	if t, ok := c.tables.Load(r); ok {
		return t.(*keyedTable)
	}
	of, _ := c.turns.LoadOrStore(r.GeneratorName, make(searchLock, 1))
	t, _ := c.tables.LoadOrStore(r, newTable(r, c.counts.table(r), of.(searchLock)))
	return t.(*keyedTable)
}

// size returns the approximate size of a plan in bytes, without its key.
func (p *plan) size() int {
	n := 1000 * (1 + len(p.Inserts))
	for i := range p.Inserts {
		in := &p.Inserts[i]
		n += len(in.Rows) * (int(unsafe.Sizeof(rewrite.Row{})) + 8*(1+len(in.Table.Recorded)))
	}
	if p.NumArgs > 0 {
		n += len(p.key.text)
	}
	return n
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

// followUp is what follows an execution of a plan, or its preparation.
type followUp uint8

const (
	done          followUp = iota // the result or the error is the caller's
	replan                        // plan again: the rule was replaced, or the server refused an upsert's guard
	replanColumns                 // plan again if the columns have changed, which may have caused the error
)

const (
	columnDenied = 1143
	notSupported = 1235
)

// failed decides what follows a server error about a statement that wasn't executed. Several
// statements in one string aren't planned again, since the first of them ran. failed returns the
// error for the caller, which explains that the table lacks the key column.
func (p *plan) failed(err error) (followUp, error) {
	if p.Statements > 1 {
		return done, p.explainColumn(err)
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
			return replanColumns, err
		}
	case base.IsServerError(err, columnDenied, notUpdatable, notInsertableTo, notSupported):
		// notSupported comes from Vitess, for a sharding column.
		if p.unguard() {
			return replan, err
		}
	}
	return done, p.explainColumn(err)
}

// explainColumn adds to the server's error about an unknown column that the rule names the column,
// unless the program does.
func (p *plan) explainColumn(err error) error {
	const unknownColumn = 1054
	var my *mysql.MySQLError
	if !errors.As(err, &my) || my.Number != unknownColumn {
		return err
	}
	for i := range p.Inserts {
		in := &p.Inserts[i]
		if column := in.Table.Key; session.ContainsName(my.Message, column+"'") && !session.ContainsName(p.key.text, column) {
			return fmt.Errorf("shardkey: table %s lacks column %s, which the rule names as its key column; "+
				"correct the rule or the table: %w", nameOf(in), column, err)
		}
	}
	return err
}

// unguard removes a plan with guarded upserts and turns the guard off for their tables. It returns
// false if the plan has no guarded upsert.
func (p *plan) unguard() (guarded bool) {
	for i := range p.Inserts {
		if p.Inserts[i].ReportsExistingKey {
			p.targets[i].table.unguarded.Store(true)
			guarded = true
		}
	}
	if guarded {
		p.rules.plans.remove(p.key)
	}
	return guarded
}

// columnsChanged reads the columns of a plan's tables again and reports whether they have changed.
// If so, it removes the plan.
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

// columnsHold reports whether the tables still have the columns that a plan depends on.
func (p *plan) columnsHold(ctx context.Context, s *session.Session) (bool, error) {
	s = s.Before(p.readsCounts)
	for t, old := range p.columns {
		columns, _, err := s.Columns(ctx, t)
		if err != nil || !slices.Equal(columns, old) {
			return false, err
		}
	}
	return true, nil
}

// SecondParserStats counts the statements that the second parser has read; see Config.Verify.
type SecondParserStats struct {
	Agreed  int64 `json:"agreed"`  // both parsers agreed
	Unknown int64 `json:"unknown"` // TiDB's parser doesn't support the statement
	Refused int64 `json:"refused"` // the parsers disagreed, and the statement was refused
}

// reader compares a plan with another parser's result. known reports whether that parser supports
// the statement.
type reader func(text string, opts rewrite.Options, p *rewrite.Plan) (known bool, err error)

// secondParser is nil in a build without a second parser.
var secondParser reader

// verifier calls the second parser for one connector.
type verifier struct {
	read                     reader // nil: statements aren't verified
	agreed, unknown, refused atomic.Int64
}

func (v *verifier) set(mode string) {
	if mode != "off" {
		v.read = secondParser
	}
}

func (v *verifier) stats() SecondParserStats {
	return SecondParserStats{Agreed: v.agreed.Load(), Unknown: v.unknown.Load(), Refused: v.refused.Load()}
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
		return err
	case known:
		v.agreed.Add(1)
	default:
		v.unknown.Add(1)
	}
	return nil
}
