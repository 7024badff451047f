package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// Some rows need a key of a certain kind: one that belongs to the actual table that the
// INSERT names, or one whose lowest bits are the shard of another column. Generators know
// nothing of either. Such keys are drawn: the generator makes more keys than are needed,
// those that belong are kept, and the others are given up.

const (
	// maxBatch bounds the keys of one call of the generator, so that other callers of the
	// generator have their turns in between.
	maxBatch = 1024
	// maxFree is how many keys may be drawn for one statement while others draw.
	maxFree = 256
	// maxInVain bounds the keys that are drawn in vain, beyond a few for each target.
	maxInVain = 4096
	perTarget = 8
)

// turns lets one draw of many keys at a time have a generator. So however many goroutines draw,
// an ordinary caller of the generator has at most one of them before it.
type turns chan struct{}

// lot is rows that need a key of the same kind.
type lot[K any] struct {
	belongs func(key K) bool
	rows    []int // those without a key, in order
}

// draw is the rows of one statement by the kinds of keys that they need.
type draw[K any] struct {
	lots    []lot[K]
	targets int // about one of so many keys belongs to a lot
	// lotOf finds the lot of a key where that is quicker than to ask each lot; -1 for none.
	lotOf func(key K) int
	name  string // of the table, for errors
	// only is the actual table that alone decides on the keys.
	only *shard

	oneLot [1]lot[K] // room for lots and their rows: a statement often has one
	oneRow [1]int
}

// add adds a row to the last lot.
func (d *draw[K]) add(row int) {
	last := &d.lots[len(d.lots)-1]
	last.rows = append(last.rows, row)
}

// start begins another lot.
func (d *draw[K]) start(belongs func(K) bool, targets int) {
	of := lot[K]{belongs: belongs}
	if d.lots == nil {
		d.lots, of.rows = d.oneLot[:0], d.oneRow[:0]
	}
	d.lots, d.targets = append(d.lots, of), max(d.targets, targets)
}

// longest returns the number of rows of the largest lot.
func (d *draw[K]) longest() (n int) {
	for i := range d.lots {
		n = max(n, len(d.lots[i].rows))
	}
	return n
}

// keep gives a key to a row that needs it, if there is one.
func (d *draw[K]) keep(key K, to []K) bool {
	if d.lotOf != nil {
		i := d.lotOf(key)
		return i >= 0 && d.lots[i].keep(key, to)
	}
	for i := range d.lots {
		if d.lots[i].keep(key, to) {
			return true
		}
	}
	return false
}

func (l *lot[K]) keep(key K, to []K) bool {
	if len(l.rows) == 0 || l.belongs != nil && !l.belongs(key) {
		return false
	}
	to[l.rows[0]], l.rows = key, l.rows[1:]
	return true
}

// batch is how many keys to draw: enough for the rest of the rows, if keys are spread
// evenly, and an odd number. After an even one the next draw would begin at the same remainder,
// so that the rows of one table would not spread when tables are doubled.
func (d *draw[K]) batch() int { return min(d.longest()*d.targets|1, maxBatch) }

// inVainError is the error for keys of which none was kept.
type inVainError struct {
	table string
	drawn int // 0: see isHopeless
}

func (e *inVainError) Error() string {
	if e.drawn == 0 {
		return fmt.Sprintf("none of an earlier draw belonged to %s, and the worker ID is the same", e.table)
	}
	return fmt.Sprintf("none of the last %d keys belongs to %s", e.drawn, e.table)
}

func (e *inVainError) Unwrap() error { return spi.ErrNoFittingKey }

// run fills to.
func (d *draw[K]) run(ctx context.Context, of turns, to []K, from source[K]) error {
	held := false
	defer func() {
		if held {
			<-of
		}
	}()
	drawn, inVain := 0, 0
	for left := len(to); left > 0; {
		n := d.batch()
		if inVain > 0 {
			n = min(max(n, inVain), maxBatch)
		}
		if !held && drawn+n > maxFree {
			select {
			case of <- struct{}{}:
				held = true
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		keys, err := from.make(ctx, n)
		if err != nil {
			return err
		}
		drawn, inVain = drawn+n, inVain+n
		for _, key := range keys {
			if !d.keep(key, to) {
				continue
			}
			inVain = 0
			if left--; left == 0 {
				return nil
			}
		}
		if inVain >= maxInVain+perTarget*d.targets {
			return &inVainError{d.name, inVain}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// source makes keys to choose from, which are its own until the next call.
type source[K any] interface {
	make(ctx context.Context, n int) ([]K, error)
}

// intSource makes the keys of a generator of int64s.
type intSource struct {
	table       *table
	first, last int64 // of all that were made
	made        bool
	batch       [maxBatch]int64
}

func (s *intSource) make(ctx context.Context, n int) ([]int64, error) {
	keys := s.batch[:n]
	if err := s.table.ints.GenerateInt64Keys(ctx, s.table.column(), keys); err != nil {
		return nil, err
	}
	if !s.made {
		s.made, s.first = true, keys[0]
	}
	s.last = keys[n-1]
	return keys, nil
}

var sources = sync.Pool{New: func() any { return new(intSource) }}

// valueSource makes the keys of another generator.
type valueSource struct{ table *table }

func (s valueSource) make(ctx context.Context, n int) ([]any, error) {
	return s.table.makeValues(ctx, n)
}

// drawInts draws the n keys of the rows, and counts them. One key goes into one, unless that
// is nil.
func (t *table) drawInts(ctx context.Context, d *draw[int64], n int, one *[1]int64) (keys rewrite.Keys, err error) {
	start := t.counts.start()
	defer t.generated(start, n, &err)
	if n == 1 && one != nil {
		keys.Ints = one[:]
	} else {
		keys.Ints = make([]int64, n)
	}
	if d.only != nil && d.only.isHopeless(ctx) {
		return keys, &inVainError{table: d.name}
	}
	from := sources.Get().(*intSource)
	from.table, from.made = t, false
	defer func() {
		from.table = nil
		sources.Put(from)
	}()
	err = d.run(ctx, t.turns, keys.Ints, from)
	var inVain *inVainError // not one of the generator's own
	if d.only != nil && errors.As(err, &inVain) {
		d.only.noteHopeless(from.first, from.last)
	}
	return keys, err
}

// drawValues is drawInts for keys of another type than int64.
func (t *table) drawValues(ctx context.Context, d *draw[any], n int) (keys rewrite.Keys, err error) {
	start := t.counts.start()
	defer t.generated(start, n, &err)
	keys.Values = make([]any, n)
	return keys, d.run(ctx, t.turns, keys.Values, valueSource{t})
}

// workerOf returns the worker that made a key. ok is false for a generator whose keys don't show
// it: later keys of such a generator may belong anywhere.
func (t *table) workerOf(key int64) (worker int64, ok bool) {
	if decoder, is := t.rule.Generator.(spi.KeyDecoder); is {
		parts, err := decoder.DecodeKey(key)
		return parts.WorkerID, err == nil
	}
	return 0, false
}

// noteHopeless remembers that a draw for the table was in vain, if one worker made its keys: as
// long as the generator has this worker ID, none of its keys belongs to the table.
func (x *shard) noteHopeless(first, last int64) {
	worker, ok := x.table.workerOf(first)
	if other, _ := x.table.workerOf(last); ok && other == worker {
		x.hopeless.Store(&worker)
	}
}

// isHopeless reports whether an earlier draw for the table was in vain, and another one would
// be. It looks at one key to see that the worker is still the same, unless another draw has the
// generator.
func (x *shard) isHopeless(ctx context.Context) bool {
	noted := x.hopeless.Load()
	if noted == nil {
		return false
	}
	t := x.table
	select {
	case t.turns <- struct{}{}:
		defer func() { <-t.turns }()
	default:
		return true
	}
	var key [1]int64
	if err := t.ints.GenerateInt64Keys(ctx, t.column(), key[:]); err != nil {
		return false // the draw fails too, and returns the error
	}
	if worker, _ := t.workerOf(key[0]); worker == *noted && !x.belongs(key[0]) {
		return true
	}
	x.hopeless.CompareAndSwap(noted, nil)
	return false
}
