package ticket

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// figures are what [Generator.Health] tells. The generator's mutex guards them.
type figures struct {
	issued    int64
	waits     int64
	waited    time.Duration
	fetches   int64
	fetchTime time.Duration
	errors    map[string]int64
	failing   error // of the last fetch
	last      error
	lastAt    time.Time
}

// observe notes how a server fared. The pool calls it without the mutex.
func (g *Generator) observe(m *member, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	if err == nil {
		m.up()
		return
	}
	now := g.config.Clock.Now()
	m.down(now, err)
	f := &g.figures
	f.last, f.lastAt = err, now
	if f.errors == nil {
		f.errors = map[string]int64{}
	}
	f.errors[kind(err)]++
}

// Health tells how the generator is. Err is set while one of the servers is
// passed over, though others serve.
func (g *Generator) Health() spi.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := &g.figures
	return spi.Health{
		Err:           g.trouble(),
		Issued:        f.issued,
		Waits:         f.waits,
		Waited:        f.waited,
		WorkerID:      -1,
		SegmentLeft:   g.left.count,
		Fetches:       f.fetches,
		FetchTime:     f.fetchTime,
		Errors:        maps.Clone(f.errors),
		LastError:     f.last,
		LastErrorTime: f.lastAt,
	}
}

func (g *Generator) trouble() error {
	if g.closed {
		return errClosed()
	}
	if g.figures.failing != nil {
		return g.figures.failing
	}
	var failed serverErrors
	for _, m := range g.pool.members {
		if m.failed != nil {
			failed = append(failed, m.failed)
		}
	}
	switch len(failed) {
	case 0:
		return nil
	case 1:
		return failed[0]
	}
	return failed
}

// Describe tells table, servers, increment and batch in one line.
func (g *Generator) Describe() string {
	var names []string
	for _, m := range g.pool.members {
		names = append(names, m.server.name)
	}
	at := strings.Join(names, ", ")
	if at == "" {
		at = "no server"
	}
	return fmt.Sprintf("%s %s at %s, increment %d, batch %d", Type, g.config.Table, at, g.config.Increment, g.config.Batch)
}
