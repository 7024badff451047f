package fill

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// Counts are the counters of a table. An atomic addition that all connections share takes
// longer than generating a key. So an INSERT of one row needs only one.
type Counts struct {
	single  atomic.Int64 // INSERTs of one row with a generated key
	batches atomic.Int64 // INSERTs of several such rows
	rows    atomic.Int64 // rows of batches
	calls   atomic.Int64 // successful calls of the generator for keys that no INSERT got
	unsent  atomic.Int64 // such keys
	errors  atomic.Int64 // failed calls of the generator
	// Duplicates counts INSERTs that the server refused for a generated key.
	Duplicates atomic.Int64
	generate   histogram
}

// timedOneIn is the sampling rate of durations, since reading the clock takes longer than
// generating a key.
const timedOneIn = 64

// start returns the time if a call of the generator is sampled, otherwise zero.
func (c *Counts) start() (start time.Time) {
	if (c.single.Load()+c.batches.Load()+c.calls.Load()+c.errors.Load())%timedOneIn == 0 {
		start = time.Now()
	}
	return start
}

// inserted counts an INSERT with generated keys for this number of rows, and keys that no row gets.
func (c *Counts) inserted(rows, unsent int) {
	if unsent > 0 {
		c.unsent.Add(int64(unsent))
	}
	if rows == 1 {
		c.single.Add(1)
		return
	}
	c.batches.Add(1)
	c.rows.Add(int64(rows))
}

// notInserted counts a call of the generator for n keys that no INSERT gets.
func (c *Counts) notInserted(n int) {
	c.calls.Add(1)
	c.unsent.Add(int64(n))
}

// Totals are the values of Counts at one moment.
type Totals struct {
	Keys, Statements, Rows, Errors, Duplicates int64

	// Generate are the durations of calls of the generator: the upper bounds of buckets, the number of
	// durations in each bucket and above all bounds, and their sum.
	Generate struct {
		Bounds []time.Duration
		Counts []int64
		Sum    time.Duration
	}
}

// Totals returns the counts.
func (c *Counts) Totals() (t Totals) {
	single, rows := c.single.Load(), c.rows.Load()
	t.Statements, t.Rows, t.Keys = single+c.batches.Load(), single+rows, single+rows+c.unsent.Load()
	t.Errors, t.Duplicates = c.errors.Load(), c.Duplicates.Load()
	t.Generate.Bounds, t.Generate.Sum = slices.Clone(bounds[:]), time.Duration(c.generate.sum.Load())
	for i := range c.generate.counts {
		t.Generate.Counts = append(t.Generate.Counts, c.generate.counts[i].Load())
	}
	return t
}

// bounds are the bounds of all histograms. A key from memory takes less than a microsecond. A key
// that waits for a store takes milliseconds.
var bounds = [...]time.Duration{
	250 * time.Nanosecond, time.Microsecond, 5 * time.Microsecond, 25 * time.Microsecond,
	100 * time.Microsecond, 500 * time.Microsecond, 2 * time.Millisecond, 10 * time.Millisecond,
	50 * time.Millisecond, 250 * time.Millisecond, time.Second, 5 * time.Second,
}

// histogram counts durations in buckets.
type histogram struct {
	counts [len(bounds) + 1]atomic.Int64
	sum    atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	i, _ := slices.BinarySearchFunc(bounds[:], d, cmp.Compare[time.Duration])
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}
