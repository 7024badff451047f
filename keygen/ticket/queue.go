package ticket

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// request is a call that waits for n numbers.
type request struct {
	n     int64
	done  chan struct{} // closed when block or err is there
	block block
	err   error
}

// take gets n numbers from memory or waits for them.
func (g *Generator) take(ctx context.Context, n int64) (block, error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return block{}, errClosed()
	}
	if len(g.queue) == 0 && n <= g.left.count {
		defer g.mu.Unlock()
		g.figures.issued += n
		return g.left.cut(n), nil
	}
	r := &request{n: n, done: make(chan struct{})}
	g.queue = append(g.queue, r)
	g.startFetching()
	g.mu.Unlock()
	return g.wait(ctx, r)
}

func errClosed() error { return fmt.Errorf("shardkey: TICKET: %w", spi.ErrClosed) }

func (g *Generator) wait(ctx context.Context, r *request) (block, error) {
	began := g.config.Clock.Now()
	var err error
	select {
	case <-r.done:
		err = r.err
	case <-ctx.Done():
		err = fmt.Errorf("shardkey: TICKET: waiting for a number: %w", ctx.Err())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.waits++
	g.figures.waited += g.config.Clock.Now().Sub(began)
	if err != nil {
		g.queue = slices.DeleteFunc(g.queue, func(q *request) bool { return q == r })
		return block{}, err
	}
	g.figures.issued += r.n
	return r.block, nil
}

// startFetching starts the goroutine that serves the queue until it is empty.
// It belongs to the generator, not to the call that started it.
func (g *Generator) startFetching() {
	if g.done != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.stop, g.done = cancel, make(chan struct{})
	go g.serve(ctx, g.done)
}

func (g *Generator) serve(ctx context.Context, done chan struct{}) {
	defer close(done)
	for {
		requests, n := g.nextRequests()
		if requests == nil {
			return
		}
		began := g.config.Clock.Now()
		b, err := g.pool.fetch(ctx, n)
		g.deliver(requests, b, err, g.config.Clock.Now().Sub(began))
	}
}

// nextRequests takes off the queue what one statement can serve, and says how
// many numbers to ask for. When there is nothing the goroutine ends.
func (g *Generator) nextRequests() (requests []*request, n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	taken := 0
	for _, r := range g.queue {
		if n+r.n > maxKeys {
			break
		}
		n += r.n
		taken++
	}
	if taken == 0 {
		g.stop()
		g.stop, g.done = nil, nil
		return nil, 0
	}
	requests, g.queue = g.queue[:taken:taken], g.queue[taken:]
	return requests, max(n, g.config.Batch)
}

func (g *Generator) deliver(requests []*request, b block, err error, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.fetches++
	g.figures.fetchTime = took
	if g.closed {
		err = errClosed()
	} else {
		g.figures.failing = err
	}
	for _, r := range requests {
		if r.err = err; err == nil {
			r.block = b.cut(r.n)
		}
		close(r.done)
	}
	if err == nil && b.count > 0 {
		g.left = b
	}
}
