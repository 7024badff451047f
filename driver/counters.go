package driver

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/rule"
)

// counts are what a connector counts, under all its rules.
type counts struct {
	tables   sync.Map // *tableCounts by tableKey
	planHits atomic.Int64
	// planMisses are the texts that were not in the cache.
	planMisses   atomic.Int64
	generation   atomic.Int64 // rules that have held
	reloadErrors atomic.Int64
	reloadError  atomic.Pointer[string] // nil while all is well
	refused      sync.Map               // *atomic.Int64 by reason
}

// tableKey is a table and what its keys come from.
type tableKey struct{ table, column, generator, typ string }

// table returns the counts of a table of a rule.
func (c *counts) table(r *rule.Table) *tableCounts {
	key := tableKey{strings.ToLower(r.Logical), strings.ToLower(r.Column), strings.ToLower(r.GeneratorName), r.GeneratorType}
	t, ok := c.tables.Load(key)
	if !ok {
		t, _ = c.tables.LoadOrStore(key, new(tableCounts))
	}
	return t.(*tableCounts)
}

// refuse counts a statement that was refused.
func (c *counts) refuse(reason string) {
	n, ok := c.refused.Load(reason)
	if !ok {
		n, _ = c.refused.LoadOrStore(reason, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
}

func (c *counts) refusals() map[string]int64 {
	all := map[string]int64{}
	c.refused.Range(func(reason, n any) bool {
		all[reason.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	return all
}

// tableCounts are the keys of one table.
type tableCounts struct {
	// short are the INSERTs of the short way, each of which is a key, a statement and
	// a row: one addition for all three.
	short                  atomic.Int64
	keys, statements, rows atomic.Int64
	calls                  atomic.Int64 // of the generator, beside those of the short way
	errors                 atomic.Int64
	generate               histogram
}

// timedOneIn is of how many calls one is timed: the clock takes longer to read than
// a key to make.
const timedOneIn = 64

// start is the time when a call of the generator begins, if it is one to be timed,
// else zero.
func (t *tableCounts) start() (start time.Time) {
	if t.calls.Load()%timedOneIn == 0 {
		start = time.Now()
	}
	return start
}

// startOne is start for the short way, whose key is counted before it is made: that is
// one access to what all connections count on.
func (t *tableCounts) startOne() (start time.Time) {
	if t.short.Add(1)%timedOneIn == 0 {
		start = time.Now()
	}
	return start
}

// madeOne is the end of a call for the short way.
func (t *tableCounts) madeOne(start time.Time, err error) {
	if err != nil {
		t.short.Add(-1)
		t.errors.Add(1)
	}
	if !start.IsZero() {
		t.generate.add(time.Since(start))
	}
}

// made is the end of another call, for n keys.
func (t *tableCounts) made(start time.Time, n int, err error) {
	if err == nil {
		t.calls.Add(1)
		t.keys.Add(int64(n))
	} else {
		t.errors.Add(1)
	}
	if !start.IsZero() {
		t.generate.add(time.Since(start))
	}
}

// filled counts an execution with keys for so many rows.
func (t *tableCounts) filled(rows int) {
	t.statements.Add(1)
	t.rows.Add(int64(rows))
}

// bounds are those of all histograms: a key from memory takes less than a
// microsecond, one that waits for a store milliseconds.
var bounds = [...]time.Duration{
	250 * time.Nanosecond, time.Microsecond, 5 * time.Microsecond, 25 * time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond,
	2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 250 * time.Millisecond, time.Second, 5 * time.Second,
}

// histogram is a [Histogram] that is counted on.
type histogram struct {
	counts [len(bounds) + 1]atomic.Int64
	sum    atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	i, _ := slices.BinarySearchFunc(bounds[:], d, cmp.Compare[time.Duration])
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

func (h *histogram) stats() Histogram {
	s := Histogram{Bounds: slices.Clone(bounds[:]), Counts: make([]int64, len(h.counts)), Sum: time.Duration(h.sum.Load())}
	for i := range h.counts {
		s.Counts[i] = h.counts[i].Load()
	}
	return s
}
