package segment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/shardkey/shardkey/internal/panics"
)

// request is a call that waits for n numbers. A request with n = 0 prefetches a segment.
type request struct {
	n    int64
	done chan struct{} // closed when run or err is set
	run  run
	err  error
	gone bool // its caller has stopped waiting
}

// reserve returns n numbers that only the caller has, 1 ≤ n ≤ 2^24.
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

// await waits until the request is served, from memory or by a fetch, or until ctx ends.
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

// fromMemory serves a request from the current segment. If that has too few numbers, it uses the
// next segment, which becomes the current one. A prefetch request is served if there is a next
// segment.
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

// enqueue adds a request to the queue. A goroutine serves the queue until it is empty. The
// goroutine doesn't use the context of the call that started it, because that may end while others
// wait.
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
		err := panics.Call("the fetch", func() (err error) {
			got, err = g.fetch(ctx, func(step int64) int64 { return g.size(step, requests) })
			return err
		})
		g.deliver(requests, got, err, g.clock.Now().Sub(began))
	}
}

// nextRequests removes the requests for one fetch from the queue. If there are none, the goroutine
// ends.
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

// size returns how many numbers to claim for the requests. base is the step of the claim. The
// result is the sum of the requests, and at least a step. If there already is a next segment, the
// result is only the sum, because the rest couldn't be kept.
func (g *generator) size(base int64, requests []*request) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.base = base
	low, high := g.bounds()
	g.step = clamp(cmp.Or(g.step, base), low, high)
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

func (g *generator) bounds() (low, high int64) {
	return cmp.Or(g.minStep, min(max(g.base, 1), g.maxStep)), g.maxStep
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

func (g *generator) keep(s *segment, ahead bool) {
	switch rest := s.left() > 0 && g.next == nil; {
	case rest && ahead:
		g.next = s
	case rest:
		g.promote(s)
	default:
		g.figures.Issued += s.retire()
		if s.count >= g.step { // it was used up at once
			g.adapt(0)
		}
	}
}

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

// adapt sets the step of later fetches. took is how long the last segment lasted.
func (g *generator) adapt(took time.Duration) {
	low, high := g.bounds()
	g.step = adaptStep(g.step, took, low, high)
}

// firstCheck returns the offset of the first check of a new segment. If the segment would be used
// up within the reserve at the last segment's rate, the first key checks it. If there is no last
// segment, it is checked after a tenth.
func (g *generator) firstCheck(s *segment) int64 {
	if g.rate.last == 0 {
		return s.count / 10
	}
	return (s.count - g.rate.lead(g.rate.last, g.settings.reserve, s.count)) / 2
}

// prefetch fetches the next segment if it is time, and otherwise sets the next check. If several
// callers arrive at once, one does this and the others continue.
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

// postpone delays the next prefetch after one has failed, by an eighth of the remaining numbers.
// Calls that find no numbers in memory try at once.
func (g *generator) postpone() {
	if s := g.current.Load(); g.ahead {
		left := s.left()
		s.check.Store(s.count - left + left/8 + 1)
	}
}
