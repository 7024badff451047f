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

// reloaded notes that the rule's file was loaded, or why it could not be.
func (c *counts) reloaded(err error) {
	if err == nil {
		c.reloadError.Store(nil)
		return
	}
	c.reloadErrors.Add(1)
	c.reloadError.Store(new(err.Error()))
}

// tableCounts are the keys of one table. What all connections count on takes longer to
// add to than a key to make: an INSERT of one row adds to two of them.
type tableCounts struct {
	calls      atomic.Int64 // of the generator, the current ones too
	errors     atomic.Int64 // calls that failed
	moreKeys   atomic.Int64 // those after the first of each call
	statements atomic.Int64
	moreRows   atomic.Int64 // those after the first of each statement
	generate   histogram
}

// timedOneIn is of how many calls one is timed: the clock takes longer to read than
// a key to make.
const timedOneIn = 64

// start is called before a call of the generator, and returns the time if the call is to
// be timed, otherwise zero.
func (t *tableCounts) start() (start time.Time) {
	if t.calls.Add(1)%timedOneIn == 1 {
		start = time.Now()
	}
	return start
}

// made is called after a call for n keys.
func (t *tableCounts) made(start time.Time, n int, err error) {
	if err != nil {
		t.errors.Add(1)
	} else if n != 1 {
		t.moreKeys.Add(int64(n - 1))
	}
	if !start.IsZero() {
		t.generate.add(time.Since(start))
	}
}

// filled counts an execution with keys for so many rows.
func (t *tableCounts) filled(rows int) {
	if t.statements.Add(1); rows != 1 {
		t.moreRows.Add(int64(rows - 1))
	}
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
