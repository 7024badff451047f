package leaf

import (
	"fmt"
	"maps"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// figures are what [Generator.Health] tells. The generator's mutex guards them.
type figures struct {
	issued    int64 // without the current segment's
	waits     int64
	waitTime  time.Duration
	fetches   int64
	fetchTime time.Duration
	errors    map[string]int64
	failing   error // nil since the last fetch that succeeded
	last      error
	lastAt    time.Time
}

func (f *figures) waited(d time.Duration) {
	f.waits++
	f.waitTime += d
}

// note records the outcome of a fetch, unless Close cut it off.
func (g *Generator) note(took time.Duration, err error) {
	if g.closed {
		return
	}
	f := &g.figures
	f.fetches++
	f.fetchTime = took
	f.failing = err
	if err == nil {
		return
	}
	f.last, f.lastAt = err, g.config.Clock.Now()
	if f.errors == nil {
		f.errors = map[string]int64{}
	}
	f.errors[kind(err)]++
}

// Health tells how the generator is. Err is set as soon as a fetch has failed,
// while the buffers still serve, and until one succeeds.
func (g *Generator) Health() spi.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, s := &g.figures, g.current.Load()
	left := s.left()
	h := spi.Health{
		Err:           f.failing,
		Issued:        f.issued + s.size - left,
		Waits:         f.waits,
		Waited:        f.waitTime,
		WorkerID:      -1,
		SegmentLeft:   left,
		Fetches:       f.fetches,
		FetchTime:     f.fetchTime,
		Errors:        maps.Clone(f.errors),
		LastError:     f.last,
		LastErrorTime: f.lastAt,
	}
	if g.next != nil {
		h.SegmentLeft += g.next.size
	}
	if g.closed {
		h.Err = g.errClosed()
	}
	return h
}

// Describe tells key, place and step in one line.
func (g *Generator) Describe() string {
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
	return fmt.Sprintf("%s %q, leaf_alloc at %s, step %s", Type, g.config.Key, at, step)
}
