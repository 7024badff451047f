package segment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/internal/sqlstate"
	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.Int64KeyGenerator = (*generator)(nil)
	_ spi.HealthReporter    = (*generator)(nil)
	_ spi.ReadyReporter     = (*generator)(nil)
	_ spi.Describer         = (*generator)(nil)
	_ sqlstate.Keeper       = (*generator)(nil)
	// It isn't a spi.KeyDecoder or spi.KeyRanger, because its numbers contain no time and no worker
	// ID.
)

// maxKeys is the maximum number of keys per call.
const maxKeys = 1 << 24

// settings are the differences between the generator types, except for the claim.
type settings struct {
	words
	state sqlstate.Table // of each server, without its address

	minStep int64 // of a fetch; 0 means the claim's own step
	maxStep int64
	limit   int64 // the most numbers that several calls fetch together
	// ahead means that the next segment is prefetched when the current one would last less than
	// reserve.
	ahead   bool
	reserve time.Duration
	timeout time.Duration // limits the wait for one server
	clock   spi.Clock
	logger  *slog.Logger
	sizes   string // for Describe; if empty, the step
}

// generator hands out the numbers of its servers. Its methods may be called by multiple goroutines
// at once.
type generator struct {
	// current is the segment in use, never nil. A key from memory only needs to load it and to add
	// to its offset.
	current atomic.Pointer[segment]

	settings
	servers []*server // asked only by the fetching goroutine, for which Close waits
	turn    int       // the server that it asks first

	mu      sync.Mutex
	next    *segment   // prefetched segment, or nil
	queue   []*request // waiting calls, in order
	stop    context.CancelFunc
	done    chan struct{} // closed when the fetching goroutine ends; nil if there is none
	step    int64         // numbers of the next fetch; 0 until the claim's step is known
	base    int64         // the claim's step
	rate    rate
	closed  bool
	figures stats.Figures // Issued excludes current and next; Err is the error of the last fetch
}

// newGenerator returns a generator. It connects when the first key is needed.
func newGenerator(s settings, all []*server) *generator {
	g := &generator{settings: s, servers: all}
	g.figures.Waits, g.figures.Segment = new(int64), new(spi.SegmentHealth)
	g.current.Store(newSegment(run{}))
	return g
}

// GenerateKeys returns n keys. Each is an int64.
func (g *generator) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	if n < 1 || n > maxKeys {
		return nil, g.badCount(n)
	}
	return spi.KeysFromInts(ctx, g, column, n)
}

// GenerateInt64Keys sets keys to ascending numbers. Their distance is 1 for LEAF_SEGMENT, and the
// property increment for TICKET. A call can have at most 2^24 keys.
//
// The error wraps [spi.ErrStore] if no server returned numbers, [spi.ErrClosed] after Close, or
// ctx's error if ctx ended a wait. Numbers in memory are returned even if ctx has ended.
func (g *generator) GenerateInt64Keys(ctx context.Context, _ spi.Column, keys []int64) error {
	n := len(keys)
	switch {
	case n == 0:
		return nil
	case n > maxKeys:
		return g.badCount(n)
	case n == 1:
		// Fast path for one key, without a function call.
		s := g.current.Load()
		if offset, ok := s.take(1); ok {
			if offset >= s.check.Load() {
				g.prefetch(s)
			}
			keys[0] = s.at(offset)
			return nil
		}
	}
	r, err := g.reserve(ctx, int64(n))
	if err != nil {
		return err
	}
	for i := range keys {
		keys[i] = r.first + int64(i)*r.stride
	}
	return nil
}

func (g *generator) badCount(n int) error {
	return fmt.Errorf("shardkey: %s: expected a number of keys in 1..%[3]d, found %[2]d", g.title, n, maxKeys)
}

func (g *generator) errClosed() error { return fmt.Errorf("%w: %s", spi.ErrClosed, g.title) }

// Close ends the fetch in flight and closes the connections. Waiting calls return [spi.ErrClosed].
// Close is idempotent.
func (g *generator) Close() error {
	g.mu.Lock()
	already := g.closed
	g.closed = true
	for _, r := range g.queue {
		r.err = g.errClosed()
		close(r.done)
	}
	g.queue = nil
	for _, s := range g.segments() {
		g.figures.Issued += s.retire()
	}
	g.current.Store(newSegment(run{}))
	g.next = nil
	done := g.done
	if g.stop != nil {
		g.stop()
	}
	g.mu.Unlock()
	if done != nil {
		<-done
	}
	if already {
		return nil
	}
	return g.closeServers()
}

func (g *generator) segments() []*segment {
	if g.next == nil {
		return []*segment{g.current.Load()}
	}
	return []*segment{g.current.Load(), g.next}
}

// observe records the outcome of a request to a server, unless Close interrupted it.
func (g *generator) observe(s *server, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	if s.failed = err; err == nil {
		s.pause = 0
		return
	}
	now := g.clock.Now()
	s.pause = min(max(2*s.pause, firstPause), maxPause)
	s.until = now.Add(s.pause)
	g.figures.Error(stats.KindOf(err, kinds...), err, now)
}

// Health returns the generator's figures. Err is set as soon as a fetch has failed, even if there
// are numbers in memory. It is also set while one of several servers is skipped.
func (g *generator) Health() spi.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.figures.Snapshot()
	h.Err = g.trouble()
	for _, s := range g.segments() {
		left := s.left()
		h.Issued += s.count - left
		h.Segment.Left, h.Segment.Size = stats.Add(h.Segment.Left, left), s.count
	}
	for _, s := range g.servers {
		h.Warnings = append(h.Warnings, s.warnings()...)
	}
	return h
}

func (g *generator) trouble() error {
	if g.closed {
		return g.errClosed()
	}
	if g.figures.Err != nil {
		return g.figures.Err
	}
	var err error
	for _, s := range g.servers {
		if s.failed != nil {
			err = both(err, s.failed)
		}
	}
	return err
}

// Ready returns nil if there are numbers in memory. Otherwise it fetches some for the next keys.
// Its errors are those of GenerateInt64Keys.
func (g *generator) Ready(ctx context.Context) error {
	if g.current.Load().left() > 0 {
		return nil
	}
	return g.await(ctx, &request{})
}

// Describe returns the type, the table, the servers and the step in one line.
func (g *generator) Describe() string {
	var names []string
	for _, s := range g.servers {
		names = append(names, s.name)
	}
	sizes := g.sizes
	if sizes == "" {
		sizes = g.describeStep()
	}
	return fmt.Sprintf("%s at %s, %s", g.title, cmp.Or(strings.Join(names, ", "), "no database"), sizes)
}

func (g *generator) describeStep() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.step == 0 {
		return "step not read yet"
	}
	low, high := g.bounds()
	return fmt.Sprintf("step %d in %d..%d", g.step, low, high)
}

// SQLState returns the table of each server.
func (g *generator) SQLState() (tables []sqlstate.Table) {
	for _, s := range g.servers {
		t := g.state
		t.Connector, t.Server, t.DDL = s.connector, s.name, g.ddl
		tables = append(tables, t)
	}
	return tables
}
