package leaf

import (
	"context"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/spi"
)

// fetch is one fetch of a segment. Those that wait for it share its outcome.
type fetch struct {
	done   chan struct{} // closed when it has landed
	err    error         // read after done
	cancel context.CancelFunc
}

// baseAge is how old the row's step may be when the next fetch starts. An
// operator may change it; reading it each time would be a statement more.
const baseAge = 10 * time.Minute

// startFetch starts a fetch unless one is in flight. It belongs to the
// generator, not to the call that started it, whose context may end while others
// wait.
func (g *generator) startFetch() {
	if g.fetching != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.config.Timeout)
	g.fetching = &fetch{done: make(chan struct{}), cancel: cancel}
	go g.runFetch(ctx, g.fetching)
}

func (g *generator) runFetch(ctx context.Context, f *fetch) {
	began := g.config.Clock.Now()
	var s *segment
	err := guard.Call("the fetch", func() (err error) { s, err = g.claimSegment(ctx); return err })
	took := g.config.Clock.Now().Sub(began)
	f.cancel()

	g.mu.Lock()
	g.fetching = nil
	f.err = err
	g.note(took, err)
	switch {
	case err != nil:
		g.postpone()
	case !g.closed:
		g.rate.fetched(took)
		g.next = s
	}
	g.mu.Unlock()
	close(f.done)
}

// claimSegment claims a segment: of the step's size, or as large as those that wait
// want together.
func (g *generator) claimSegment(ctx context.Context) (*segment, error) {
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
func (g *generator) readBase(ctx context.Context) error {
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
func (g *generator) claimed(end int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.least = max(g.least, end)
}

// postpone puts the next attempt off, after a fetch ahead of use failed, by an
// eighth of what is left. Calls that find the buffers empty try at once.
func (g *generator) postpone() {
	s := g.current.Load()
	if left := s.left(); left > 0 {
		s.check.Store(s.size - left + left/8 + 1)
	}
}

// patience is how often a call for several numbers tries for a segment's: where
// others are quicker to take one here and one there, it claims its own.
const patience = 4

// reserveSlow serves a call that the current segment could not serve.
func (g *generator) reserveSlow(ctx context.Context, n int64) (int64, error) {
	if n > maxKeys {
		return 0, badCount(n)
	}
	// It counts as waiting until it is served, also while it tries again: the
	// next fetch brings enough for all.
	joined := false
	defer func() {
		if joined {
			g.leave(n)
		}
	}()
	for tries := 0; ; tries++ {
		s, f, err := g.turn(n, tries, &joined)
		switch {
		case err != nil:
			return 0, err
		case f != nil:
			if err := g.wait(ctx, f); err != nil {
				return 0, err
			}
		case s == nil:
			return g.claimAlone(ctx, n)
		default:
			if offset, ok := s.take(n); ok {
				return s.first + offset, nil
			}
		}
	}
}

// turn decides what a call for n numbers does next: take from the segment
// returned, wait for the fetch returned, or, when both are nil, claim numbers
// for itself alone. joined says whether the call counts as waiting.
func (g *generator) turn(n int64, tries int, joined *bool) (*segment, *fetch, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.current.Load()
	switch {
	case g.closed:
		return nil, nil, g.errClosed()
	case n <= s.left():
		return s, nil, nil // another call has fetched the next one
	case g.step > 0 && n > g.step, n > 1 && tries >= patience:
		return nil, nil, nil
	case g.next == nil:
		g.startFetch()
		if !*joined {
			*joined = true
			g.waiting += n
		}
		return nil, g.fetching, nil
	case n > g.next.size:
		return nil, nil, nil
	}
	return g.promote(), nil, nil
}

func (g *generator) errClosed() error {
	return fmt.Errorf("%w: LEAF_SEGMENT %q", spi.ErrClosed, g.config.Key)
}

// promote makes the second buffer the current one.
func (g *generator) promote() *segment {
	old, s, now := g.current.Load(), g.next, g.config.Clock.Now()
	handedOut := old.retire()
	g.figures.Issued += handedOut
	if old.size > 0 {
		took := now.Sub(old.since)
		g.rate.last = perNano(handedOut, took)
		low, high := g.bounds()
		g.step = adaptStep(g.step, took, low, high)
	}
	g.next = nil
	s.since = now
	g.rate.begin(now)
	s.check.Store(g.firstCheck(s))
	g.current.Store(s)
	return s
}

// firstCheck is where a new segment is looked at first. A segment that would
// be used up within the reserve at the last one's rate is looked at by its
// first key, one without a last one after a tenth.
func (g *generator) firstCheck(s *segment) int64 {
	if g.rate.last == 0 {
		return s.size / 10
	}
	lead := g.rate.lead(g.rate.last, g.config.Reserve, s.size)
	return (s.size - lead) / 2
}

// bounds are those of the step.
func (g *generator) bounds() (low, high int64) {
	low, high = g.config.MinStep, g.config.MaxStep
	if low == 0 {
		low = min(max(g.base, 1), high)
	}
	return low, high
}

// look starts the fetch of the next segment when it is due, else says when to
// look again. Of several callers only one does it; the others continue.
func (g *generator) prefetch(s *segment) {
	if !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	if g.closed || g.current.Load() != s || g.next != nil || g.fetching != nil {
		s.check.Store(noCheck)
		return
	}
	offset := s.size - s.left()
	rate := g.rate.observe(s.since, g.config.Clock.Now(), offset)
	lead := g.rate.lead(rate, g.config.Reserve, s.size)
	if s.size-offset <= lead {
		g.startFetch()
		s.check.Store(noCheck)
		return
	}
	s.check.Store(nextCheck(offset, lead, s.size))
}

// wait waits for the fetch to land, or for ctx to end.
func (g *generator) wait(ctx context.Context, f *fetch) error {
	began := g.config.Clock.Now()
	var err error
	select {
	case <-f.done:
		err = f.err
	case <-ctx.Done():
		err = fmt.Errorf("shardkey: LEAF_SEGMENT %q: waiting for the next segment: %w", g.config.Key, ctx.Err())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.Wait(g.config.Clock.Now().Sub(began))
	if g.closed {
		return g.errClosed()
	}
	return err
}

// leave ends the wait of a call for n numbers.
func (g *generator) leave(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting -= n
}

// claimAlone claims n numbers for one call: more than a segment holds, all of
// them following each other.
func (g *generator) claimAlone(ctx context.Context, n int64) (int64, error) {
	g.mu.Lock()
	least := g.least
	g.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, g.config.Timeout)
	defer cancel()
	began := g.config.Clock.Now()
	first, err := g.store.claim(limited, n, least)
	took := g.config.Clock.Now().Sub(began)

	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.Wait(took)
	if ctx.Err() != nil && err != nil {
		return 0, fmt.Errorf("shardkey: LEAF_SEGMENT %q: claiming %d numbers: %w", g.config.Key, n, ctx.Err())
	}
	g.note(took, err)
	if err != nil {
		if g.closed {
			err = g.errClosed()
		}
		return 0, err
	}
	g.least = max(g.least, first+n)
	g.figures.Issued += n
	return first, nil
}
