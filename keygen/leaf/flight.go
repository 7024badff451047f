package leaf

import (
	"context"
	"time"
)

// flight is one fetch of a segment. Those that wait for it share its outcome.
type flight struct {
	done   chan struct{} // closed when it has landed
	err    error         // read after done
	cancel context.CancelFunc
}

// baseAge is how old the row's step may be when the next fetch starts. An
// operator may change it; reading it each time would be a statement more.
const baseAge = 10 * time.Minute

// startFlight starts a fetch unless one is under way. It belongs to the
// generator, not to the call that started it: that one's context may end while
// others wait.
func (g *Generator) startFlight() {
	if g.flight != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.config.Timeout)
	g.flight = &flight{done: make(chan struct{}), cancel: cancel}
	go g.fly(ctx, g.flight)
}

func (g *Generator) fly(ctx context.Context, f *flight) {
	began := g.config.Clock.Now()
	s, err := g.fetch(ctx)
	took := g.config.Clock.Now().Sub(began)
	f.cancel()

	g.mu.Lock()
	g.flight = nil
	f.err = err
	g.note(took, err)
	switch {
	case err != nil:
		g.postpone()
	case !g.closed:
		g.pace.fetched(took)
		g.next = s
	}
	g.mu.Unlock()
	close(f.done)
}

// fetch claims a segment: of the step's size, or as large as those that wait
// want together.
func (g *Generator) fetch(ctx context.Context) (*segment, error) {
	if err := g.readBase(ctx); err != nil {
		return nil, err
	}
	g.mu.Lock()
	_, high := g.bounds()
	n, least := clamp(g.waiting, g.step, high), g.least
	g.mu.Unlock()
	first, err := g.store.claim(ctx, n, least)
	if err != nil {
		return nil, err
	}
	g.claimed(first + n)
	s := &segment{first: first, size: n}
	s.check.Store(noCheck)
	return s, nil
}

// readBase reads the row's step when it is not known or old.
func (g *Generator) readBase(ctx context.Context) error {
	g.mu.Lock()
	now := g.config.Clock.Now()
	fresh := g.base > 0 && now.Sub(g.baseAt) < baseAge
	g.mu.Unlock()
	if fresh {
		return nil
	}
	base, err := g.store.baseStep(ctx)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.step == 0 {
		g.step = base
	}
	g.base, g.baseAt = base, now
	low, high := g.bounds()
	g.step = clamp(g.step, low, high)
	return nil
}

// claimed notes the end of an interval: later ones must not begin below it.
func (g *Generator) claimed(end int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.least = max(g.least, end)
}

// postpone puts the next attempt off, after a fetch ahead of use failed, by an
// eighth of what is left. Calls that find the buffers empty try at once.
func (g *Generator) postpone() {
	s := g.current.Load()
	if left := s.left(); left > 0 {
		s.check.Store(s.size - left + left/8 + 1)
	}
}
