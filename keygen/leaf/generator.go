package leaf

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.Int64KeyGenerator = (*generator)(nil)
	_ spi.HealthReporter    = (*generator)(nil)
	_ spi.ReadyReporter     = (*generator)(nil)
	_ spi.Describer         = (*generator)(nil)
	// Not a spi.KeyDecoder or spi.KeyRanger: a number of a sequence has no
	// time or worker in it.
)

// poolSize is one connection for the segments and one for calls that want more
// numbers than a segment holds.
const poolSize = 2

// maxKeys is the largest number of keys of one call.
const maxKeys = 1 << 24

// generator hands out the numbers of one row of leaf_alloc. Its methods are
// called by many goroutines at once. Close it when it is no longer needed.
type generator struct {
	// current is the segment in use, never nil. Reading it is all that a key
	// from memory needs besides its one addition.
	current atomic.Pointer[segment]

	config config
	store  store

	mu       sync.Mutex
	next     *segment // the second buffer, nil while it is empty
	fetching *fetch   // the fetch in flight, nil when there is none
	waiting  int64    // numbers that waiting calls want together
	least    int64    // the end of the highest interval claimed
	step     int64    // numbers of the next fetch; 0 until the row was read
	base     int64    // the row's own step
	baseAt   time.Time
	rate     rate
	closed   bool
	figures  stats.Figures // Issued without the current segment's
}

// newGenerator makes a generator. It checks the settings and does not connect:
// the first key does. The error is a [*spi.PropError].
func newGenerator(c config) (*generator, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	store, err := newSQLStore(c, poolSize)
	if err != nil {
		return nil, err
	}
	return newWithStore(c.withoutSecrets(), store), nil
}

func newWithStore(c config, store store) *generator {
	g := &generator{config: c, store: store, least: noLeast}
	g.current.Store(emptySegment())
	return g
}

func emptySegment() *segment {
	s := new(segment)
	s.check.Store(noCheck)
	return s
}

// GenerateKeys returns n numbers, as int64.
func (g *generator) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	if n < 1 || n > maxKeys {
		return nil, badCount(int64(n))
	}
	return spi.BoxedKeys(ctx, g, column, n)
}

// GenerateInt64Keys fills keys with numbers that follow each other.
func (g *generator) GenerateInt64Keys(ctx context.Context, _ spi.Column, keys []int64) error {
	if len(keys) == 0 {
		return nil
	}
	if len(keys) == 1 {
		// The common case, without the cost of a call.
		s := g.current.Load()
		if offset, ok := s.take(1); ok {
			if offset >= s.check.Load() {
				g.prefetch(s)
			}
			keys[0] = s.first + offset
			return nil
		}
	}
	first, err := g.reserve(ctx, int64(len(keys)))
	if err != nil {
		return err
	}
	for i := range keys {
		keys[i] = first + int64(i)
	}
	return nil
}

// reserve returns the first of n numbers that follow each other and are the
// caller's, 1 ≤ n ≤ 2^24.
//
// The error has [spi.ErrStore] in its chain when the database gave no segment,
// [spi.ErrClosed] after Close, and ctx's error when that ended a wait; the wait
// ends at once then. Numbers in memory are returned whether ctx has
// ended or not.
func (g *generator) reserve(ctx context.Context, n int64) (first int64, err error) {
	if n < 1 {
		return 0, badCount(n)
	}
	s := g.current.Load()
	offset, ok := s.take(n)
	if !ok {
		return g.reserveSlow(ctx, n)
	}
	if offset+n > s.check.Load() {
		g.prefetch(s)
	}
	return s.first + offset, nil
}

func badCount(n int64) error {
	return fmt.Errorf("shardkey: LEAF_SEGMENT: %d keys asked for; ask for 1 to %d", n, maxKeys)
}

// Close ends the background fetch and closes the connections. Calls that
// wait return [spi.ErrClosed]. It is idempotent.
func (g *generator) Close() error {
	g.mu.Lock()
	g.closed = true
	g.figures.Issued += g.current.Swap(emptySegment()).retire()
	g.next = nil
	f := g.fetching
	g.mu.Unlock()
	if f != nil {
		f.cancel()
		<-f.done
	}
	return g.store.close()
}

// note records the outcome of a fetch, unless Close cut it off.
func (g *generator) note(took time.Duration, err error) {
	if g.closed {
		return
	}
	g.figures.Fetch(took)
	g.figures.Err = err
	if err != nil {
		g.figures.Error(kindOf(err), err, g.config.Clock.Now())
	}
}

// Health reports the generator's figures. Err is set as soon as a fetch has
// failed, while the buffers still serve, and until one succeeds.
func (g *generator) Health() spi.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.current.Load()
	h := g.figures.Snapshot()
	h.Waits, h.Fetches = stats.Add(h.Waits, 0), stats.Add(h.Fetches, 0)
	h.SegmentLeft, h.SegmentSize = new(s.left()), s.size
	h.Issued += s.size - *h.SegmentLeft
	if g.next != nil {
		*h.SegmentLeft += g.next.size
		h.SegmentSize = g.next.size
	}
	if g.closed {
		h.Err = g.errClosed()
	}
	if s, ok := g.store.(*sqlStore); ok {
		if w, _ := s.warning.Load().(string); w != "" {
			h.Warnings = append(h.Warnings, w)
		}
	}
	return h
}

// Ready tells whether there are numbers in memory, and else fetches a segment for
// the next keys. Its errors are those of GenerateInt64Keys.
func (g *generator) Ready(ctx context.Context) error {
	for {
		f, err := g.fetchIfEmpty()
		if f == nil || err != nil {
			return err
		}
		select {
		case <-f.done:
			if f.err != nil {
				return f.err
			}
		case <-ctx.Done():
			err := fmt.Errorf("shardkey: LEAF_SEGMENT %q: waiting for the first segment: %w", g.config.Key, ctx.Err())
			if cause := g.Health().Err; cause != nil {
				err = fmt.Errorf("%w: %w", err, cause)
			}
			return err
		}
	}
}

// fetchIfEmpty starts a fetch where no number is in memory; it is nil when there is
// one.
func (g *generator) fetchIfEmpty() (*fetch, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return nil, g.errClosed()
	case g.next != nil || g.current.Load().left() > 0:
		return nil, nil
	}
	g.startFetch()
	return g.fetching, nil
}

// Describe returns key, place and step in one line.
func (g *generator) Describe() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	low, high := g.bounds()
	at := "no database"
	if s, ok := g.store.(*sqlStore); ok && s.addr != "" {
		at = s.addr
	}
	step := "not read yet"
	if g.step > 0 {
		step = fmt.Sprintf("%d in %d..%d", g.step, low, high)
	}
	return fmt.Sprintf("%s %q, leaf_alloc at %s, step %s", typeName, g.config.Key, at, step)
}
