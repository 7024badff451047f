package fill

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// Some rows need a key that belongs in the INSERT's actual table, or a key with certain shard bits.
// Generators don't support this, so the driver searches for them. The generator makes more keys than the
// rows need, and the driver keeps the matching keys and discards the others.

const (
	// maxBatch limits the keys of one call of the generator, so that other callers don't wait long.
	maxBatch = 1024
	// maxFree limits the keys that a statement may make while others search too.
	maxFree = 256
	// maxInVain, plus perTarget keys for each target, limits the keys made without a match.
	maxInVain = 4096
	perTarget = 8
)

// Lock lets one large search at a time use a generator. So an ordinary caller of the generator waits
// for at most one large search.
type Lock chan struct{}

// NewLock returns a lock.
func NewLock() Lock { return make(Lock, 1) }

// group is a group of rows that need keys with the same property.
type group[K any] struct {
	belongs func(key K) bool
	rows    []int // rows without a key, in order
}

// search is the rows of one statement, grouped by the property of their keys.
type search[K any] struct {
	groups  []group[K]
	targets int // about one of targets keys matches a group
	// groupOf returns the index of a key's group, −1 for none. It is an optimization and may be nil.
	groupOf func(key K) int
	name    string // the table's name, for errors
	// why returns why no table is known for a key, or nil; it may be nil.
	why func(key any) error

	oneGroup [1]group[K] // buffers for groups and their rows, since most statements have one
	oneRow   [1]int
}

// add adds a row to the last group.
func (s *search[K]) add(row int) {
	last := &s.groups[len(s.groups)-1]
	last.rows = append(last.rows, row)
}

// begin begins another group.
func (s *search[K]) begin(belongs func(K) bool, targets int) {
	of := group[K]{belongs: belongs}
	if s.groups == nil {
		s.groups, of.rows = s.oneGroup[:0], s.oneRow[:0]
	}
	s.groups, s.targets = append(s.groups, of), max(s.targets, targets)
}

// keep assigns a key to a row that it matches, and reports whether there was one.
func (s *search[K]) keep(key K, to []K) bool {
	if s.groupOf != nil {
		i := s.groupOf(key)
		return i >= 0 && s.groups[i].keep(key, to)
	}
	for i := range s.groups {
		if s.groups[i].keep(key, to) {
			return true
		}
	}
	return false
}

func (g *group[K]) keep(key K, to []K) bool {
	if len(g.rows) == 0 || g.belongs != nil && !g.belongs(key) {
		return false
	}
	to[g.rows[0]], g.rows = key, g.rows[1:]
	return true
}

// batch returns the number of keys to make next: enough for the remaining rows if keys are spread
// evenly, rounded to an odd number. After an even number the next call would begin at the same
// remainder. The rows of one table would then not spread when the number of tables is doubled.
func (s *search[K]) batch() int {
	longest := 0
	for i := range s.groups {
		longest = max(longest, len(s.groups[i].rows))
	}
	return min(longest*s.targets|1, maxBatch)
}

// noFitError is the error for a search without a match.
type noFitError struct {
	table string
	made  int // 0 if earlier searches had no match
	why   error
}

func (e *noFitError) Error() string {
	if e.made == 0 {
		return fmt.Sprintf("no key of this worker ID belongs in %s, as earlier attempts showed", e.table)
	}
	text := fmt.Sprintf("none of the last %d keys belongs in %s", e.made, e.table)
	if e.why != nil {
		text += ": " + strings.TrimPrefix(e.why.Error(), "shardkey: ") + "; shard the table by another algorithm, or use another generator"
	}
	return text
}

func (e *noFitError) Unwrap() error { return spi.ErrNoFittingKey }

// run makes keys until each row has one, and stores them in to. The function generate generates n
// candidates, in a slice that is valid until its next call.
func (s *search[K]) run(
	ctx context.Context, of Lock, to []K, generate func(ctx context.Context, n int) ([]K, error),
) error {
	held := false
	defer func() {
		if held {
			<-of
		}
	}()
	made, noFit := 0, 0
	for left := len(to); left > 0; {
		n := s.batch()
		if noFit > 0 {
			n = min(max(n, noFit), maxBatch)
		}
		if !held && made+n > maxFree {
			select {
			case of <- struct{}{}:
				held = true
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		keys, err := generate(ctx, n)
		if err != nil {
			return err
		}
		made, noFit = made+n, noFit+n
		for _, key := range keys {
			if !s.keep(key, to) {
				continue
			}
			noFit = 0
			if left--; left == 0 {
				return nil
			}
		}
		if noFit >= maxInVain+perTarget*s.targets {
			e := &noFitError{table: s.name, made: noFit}
			if s.why != nil {
				e.why = s.why(keys[0])
			}
			return e
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// batches are buffers for candidate keys.
var batches = sync.Pool{New: func() any { return new([maxBatch]int64) }}

// searchInts searches the n keys of the rows. If n is 1, it uses the array one unless
// that is nil.
func (t *Table) searchInts(ctx context.Context, s *search[int64], n int, one *[1]int64) (keys rewrite.Keys, err error) {
	defer t.generated(t.Counts.start(), &err)
	if n == 1 && one != nil {
		keys.Ints = one[:]
	} else {
		keys.Ints = make([]int64, n)
	}
	batch := batches.Get().(*[maxBatch]int64)
	defer batches.Put(batch)
	return keys, s.run(ctx, t.lock, keys.Ints, func(ctx context.Context, n int) ([]int64, error) {
		return batch[:n], t.makeInts(ctx, batch[:n])
	})
}

// searchValues is searchInts for keys of another type than int64.
func (t *Table) searchValues(ctx context.Context, s *search[any], n int) (keys rewrite.Keys, err error) {
	defer t.generated(t.Counts.start(), &err)
	keys.Values = make([]any, n)
	return keys, s.run(ctx, t.lock, keys.Values, t.makeValues)
}

// noFit records that searches for a table had no match, while the generator had a worker ID. The
// worker ID may have changed during the first of them, so the second one proves it.
type noFit struct {
	worker int64
	proved bool
}

// workerID returns the generator's worker ID, nil if it doesn't report one.
func (t *Table) workerID() *int64 {
	if g, ok := t.Rule.Generator.(spi.HealthReporter); ok {
		return g.Health().WorkerID
	}
	return nil
}

func (a *ActualTable) noteNoFit() {
	if worker := a.table.workerID(); worker != nil {
		before := a.noFit.Load()
		a.noFit.Store(&noFit{*worker, before != nil && before.worker == *worker})
	}
}

// fitsNone reports whether no key with the current worker ID belongs in the table.
func (a *ActualTable) fitsNone() bool {
	noted := a.noFit.Load()
	if noted == nil || !noted.proved {
		return false
	}
	worker := a.table.workerID()
	return worker != nil && *worker == noted.worker
}
