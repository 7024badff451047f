package sequence

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/shardkey/shardkey/internal/guard"
)

// request is a call that waits for n numbers. One of 0 is for a segment ahead of use.
type request struct {
	n    int64
	done chan struct{} // closed when run or err is there
	run  run
	err  error
	gone bool // its caller waits no longer
}

// reserve returns n numbers that are the caller's, 1 ≤ n ≤ 2^24.
func (g *generator) reserve(ctx context.Context, n int64) (run, error) {
	s := g.current.Load()
	if offset, ok := s.take(n); ok {
		if offset+n > s.check.Load() {
			g.prefetch(s)
		}
		return run{s.at(offset), n, s.stride}, nil
	}
	r := &request{n: n}
	began := g.clock.Now()
	err := g.await(ctx, r)
	if r.done != nil {
		g.mu.Lock()
		g.figures.Wait(g.clock.Now().Sub(began))
		g.mu.Unlock()
	}
	return r.run, err
}

// await returns when the request is served, from memory or by a fetch, or when ctx ends.
func (g *generator) await(ctx context.Context, r *request) error {
	g.mu.Lock()
	switch {
	case g.closed:
		g.mu.Unlock()
		return g.errClosed()
	case g.fromMemory(r):
		g.mu.Unlock()
		return nil
	}
	g.enqueue(r)
	g.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r.gone = true
	g.queue = slices.DeleteFunc(g.queue, func(q *request) bool { return q == r })
	err := fmt.Errorf("shardkey: %s: waiting for numbers: %w", g.title, ctx.Err())
	if cause := g.trouble(); cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// fromMemory serves a request from the current segment or, when that has too few
// numbers, from the next one, which becomes the current one. A request for a segment
// ahead of use is served when there is a next one.
func (g *generator) fromMemory(r *request) (ok bool) {
	if r.n == 0 {
		return g.next != nil
	}
	if r.run, ok = g.current.Load().cut(r.n); ok || g.next == nil {
		return ok
	}
	if r.run, ok = g.next.cut(r.n); ok {
		g.promote(g.next)
		g.next = nil
	}
	return ok
}

// enqueue leaves the request to the goroutine that serves the queue until it is empty.
// That belongs to the generator, not to the call that started it, whose context may end
// while others wait.
func (g *generator) enqueue(r *request) {
	r.done = make(chan struct{})
	g.queue = append(g.queue, r)
	if g.done != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.stop, g.done = cancel, make(chan struct{})
	go g.serve(ctx, g.done)
}

func (g *generator) serve(ctx context.Context, done chan struct{}) {
	defer close(done)
	for {
		requests := g.nextRequests()
		if requests == nil {
			return
		}
		began := g.clock.Now()
		var got run
		err := guard.Call("the fetch", func() (err error) {
			got, err = g.servers.fetch(ctx, func(step int64) int64 { return g.size(step, requests) })
			return err
		})
		g.deliver(requests, got, err, g.clock.Now().Sub(began))
	}
}

// nextRequests takes off the queue what one fetch serves. When that is nothing the
// goroutine ends.
func (g *generator) nextRequests() (requests []*request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var sum int64
	for len(g.queue) > 0 {
		r := g.queue[0]
		if g.fromMemory(r) {
			close(r.done)
		} else {
			if sum > 0 && sum+r.n > g.limit {
				return requests
			}
			sum += r.n
			requests = append(requests, r)
		}
		g.queue = g.queue[1:]
	}
	if requests == nil {
		g.stop()
		g.stop, g.done = nil, nil
	}
	return requests
}

// size returns how many numbers to claim for the requests, from a server whose claim has
// the step: what they want together, and at least a step's, unless the rest would be
// kept in addition to a next segment.
func (g *generator) size(base int64, requests []*request) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.step == 0 {
		g.step = base
	}
	g.base = base
	low, high := g.bounds()
	g.step = clamp(g.step, low, high)
	var sum, ahead int64
	for _, r := range requests {
		sum += r.n
		if r.n == 0 {
			ahead = g.step
		}
	}
	if g.next != nil {
		return max(sum, 1)
	}
	return max(sum+ahead, g.step)
}

// bounds are those of the step.
func (g *generator) bounds() (low, high int64) {
	low, high = g.minStep, g.maxStep
	if low == 0 {
		low = min(max(g.base, 1), high)
	}
	return low, high
}

func (g *generator) deliver(requests []*request, got run, err error, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.Fetch(took)
	if g.closed {
		err = g.errClosed()
	}
	s, ahead := newSegment(got), false
	for _, r := range requests {
		switch {
		case err != nil:
			r.err = err
		case r.n == 0:
			ahead = true
		case !r.gone:
			r.run, _ = s.cut(r.n)
		}
		close(r.done)
	}
	switch {
	case g.closed:
		return
	case err != nil:
		g.postpone()
	default:
		g.rate.fetched(took)
		g.keep(s, ahead)
	}
	g.figures.Err = err
}

// keep keeps the rest of a segment that was fetched.
func (g *generator) keep(s *segment, ahead bool) {
	switch rest := s.left() > 0 && g.next == nil; {
	case rest && ahead:
		g.next = s
	case rest:
		g.promote(s)
	default:
		g.figures.Issued += s.retire()
		if s.count >= g.step { // it did not last at all
			g.adapt(0)
		}
	}
}

// promote makes a segment the current one.
func (g *generator) promote(s *segment) {
	old, now := g.current.Load(), g.clock.Now()
	handedOut := old.retire()
	g.figures.Issued += handedOut
	if old.count > 0 {
		took := now.Sub(old.since)
		g.rate.last = perNano(handedOut, took)
		g.adapt(took)
	}
	s.since = now
	g.rate.begin(now)
	if g.ahead {
		s.check.Store(g.firstCheck(s))
	}
	g.current.Store(s)
}

// adapt sets the step of later fetches after a segment that lasted as long as took.
func (g *generator) adapt(took time.Duration) {
	low, high := g.bounds()
	g.step = adaptStep(g.step, took, low, high)
}

// firstCheck is where a new segment is looked at first. A segment that would
// be used up within the reserve at the last one's rate is looked at by its
// first key, one without a last one after a tenth.
func (g *generator) firstCheck(s *segment) int64 {
	if g.rate.last == 0 {
		return s.count / 10
	}
	return (s.count - g.rate.lead(g.rate.last, g.settings.reserve, s.count)) / 2
}

// prefetch starts the fetch of the next segment when it is due, and otherwise decides
// when to look again. Of several callers only one does it; the others continue.
func (g *generator) prefetch(s *segment) {
	if !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	if g.closed || g.current.Load() != s || g.next != nil {
		s.check.Store(noCheck)
		return
	}
	offset := s.count - s.left()
	lead := g.rate.lead(g.rate.observe(s.since, g.clock.Now(), offset), g.settings.reserve, s.count)
	if s.count-offset <= lead {
		s.check.Store(noCheck)
		g.enqueue(&request{})
		return
	}
	s.check.Store(nextCheck(offset, lead, s.count))
}

// postpone puts the next attempt off, after a fetch ahead of use failed, by an
// eighth of what is left. Calls that find no numbers in memory try at once.
func (g *generator) postpone() {
	if s := g.current.Load(); g.ahead {
		left := s.left()
		s.check.Store(s.count - left + left/8 + 1)
	}
}
