package ticket

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shardkey/shardkey/internal/guard"
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

// generator hands out numbers of ticket servers. Its methods are called by many
// goroutines at once. Close it when it is no longer needed.
type generator struct {
	config config

	mu      sync.Mutex
	left    block      // fetched and not yet used
	queue   []*request // calls that wait, in order
	stop    context.CancelFunc
	done    chan struct{} // closed when the fetching goroutine ends; nil while there is none
	closed  bool
	figures stats.Figures // Err is that of the last fetch

	pool *pool // used by the fetching goroutine alone; Close waits for that
}

// newGenerator makes a generator. It checks the settings and does not connect:
// the first key does. The error is a [*spi.PropError].
func newGenerator(c config) (*generator, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	var members []*member
	for _, dsn := range c.DSNs {
		s, err := newServer(c, dsn)
		if err != nil {
			return nil, err
		}
		members = append(members, &member{source: s, server: s})
	}
	c.DSNs = nil // they may hold passwords
	return newWithMembers(c, members), nil
}

func newWithMembers(c config, members []*member) *generator {
	g := &generator{config: c}
	g.pool = &pool{members: members, timeout: c.Timeout, offsets: c.Offsets, clock: c.Clock, observe: g.observe}
	return g
}

// GenerateKeys returns n numbers, as int64.
func (g *generator) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	if n < 1 || n > maxKeys {
		return nil, badCount(n)
	}
	return spi.BoxedKeys(ctx, g, column, n)
}

// GenerateInt64Keys fills keys with ascending numbers, a step of
// the property increment apart. At most 2^24 are returned at once.
//
// The error has [spi.ErrStore] in its chain when no server gave a number,
// [spi.ErrClosed] after Close, and ctx's error when that ended a wait; the wait
// ends at once then.
func (g *generator) GenerateInt64Keys(ctx context.Context, _ spi.Column, keys []int64) error {
	switch n := len(keys); {
	case n == 0:
		return nil
	case n > maxKeys:
		return badCount(n)
	}
	b, err := g.take(ctx, int64(len(keys)))
	if err != nil {
		return err
	}
	for i := range keys {
		keys[i] = b.first + int64(i)*b.stride
	}
	return nil
}

func badCount(n int) error {
	return fmt.Errorf("shardkey: TICKET: %d keys asked for; ask for 1 to %d", n, maxKeys)
}

// Close ends the fetch in flight and closes the connections. Calls that
// wait return [spi.ErrClosed]. It is idempotent.
func (g *generator) Close() error {
	g.mu.Lock()
	already := g.closed
	g.closed = true
	for _, r := range g.queue {
		r.err = errClosed()
		close(r.done)
	}
	g.queue, g.left = nil, block{}
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
	return g.pool.close()
}

// request is a call that waits for n numbers.
type request struct {
	n     int64
	done  chan struct{} // closed when block or err is there
	block block
	err   error
}

// take gets n numbers from memory or waits for them.
func (g *generator) take(ctx context.Context, n int64) (block, error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return block{}, errClosed()
	}
	if len(g.queue) == 0 && n <= g.left.count {
		defer g.mu.Unlock()
		g.figures.Issued += n
		return g.left.cut(n), nil
	}
	r := &request{n: n, done: make(chan struct{})}
	g.queue = append(g.queue, r)
	g.startFetching()
	g.mu.Unlock()
	return g.wait(ctx, r)
}

func errClosed() error { return fmt.Errorf("%w: TICKET", spi.ErrClosed) }

func (g *generator) wait(ctx context.Context, r *request) (block, error) {
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
	g.figures.Wait(g.config.Clock.Now().Sub(began))
	if err != nil {
		g.queue = slices.DeleteFunc(g.queue, func(q *request) bool { return q == r })
		return block{}, err
	}
	g.figures.Issued += r.n
	return r.block, nil
}

// startFetching starts the goroutine that serves the queue until it is empty.
// It belongs to the generator, not to the call that started it.
func (g *generator) startFetching() {
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
		requests, n := g.nextRequests()
		if requests == nil {
			return
		}
		began := g.config.Clock.Now()
		var b block
		err := guard.Call("the fetch", func() (err error) { b, err = g.pool.fetch(ctx, n); return err })
		g.deliver(requests, b, err, g.config.Clock.Now().Sub(began))
	}
}

// nextRequests takes off the queue what one statement can serve, and says how
// many numbers to ask for. When there is nothing the goroutine ends.
func (g *generator) nextRequests() (requests []*request, n int64) {
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

func (g *generator) deliver(requests []*request, b block, err error, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.Fetch(took)
	if g.closed {
		err = errClosed()
	} else {
		g.figures.Err = err
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

// observe records a server's outcome. The pool calls it without the mutex.
func (g *generator) observe(m *member, err error) {
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
	g.figures.Error(kindOf(err), err, now)
}

// Health reports the generator's figures. Err is set while one of the servers
// is skipped, even if others serve.
func (g *generator) Health() spi.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.figures.Snapshot()
	h.Err = g.trouble()
	h.Waits, h.Fetches = stats.Add(h.Waits, 0), stats.Add(h.Fetches, 0)
	h.SegmentLeft = new(g.left.count)
	if g.config.Batch > 1 { // else each call fetches what it needs
		h.SegmentSize = g.config.Batch
	}
	return h
}

func (g *generator) trouble() error {
	if g.closed {
		return errClosed()
	}
	if g.figures.Err != nil {
		return g.figures.Err
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

// Ready tells whether there are numbers in memory, and else fetches some for the
// next keys. Its errors are those of GenerateInt64Keys.
func (g *generator) Ready(ctx context.Context) error {
	r := &request{done: make(chan struct{})}
	g.mu.Lock()
	switch {
	case g.closed:
		g.mu.Unlock()
		return errClosed()
	case g.left.count > 0:
		g.mu.Unlock()
		return nil
	}
	g.queue = append(g.queue, r)
	g.startFetching()
	g.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = slices.DeleteFunc(g.queue, func(q *request) bool { return q == r })
	err := fmt.Errorf("shardkey: TICKET: waiting for the first number: %w", ctx.Err())
	if cause := g.trouble(); cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// Describe returns table, servers, increment and batch in one line.
func (g *generator) Describe() string {
	var names []string
	for _, m := range g.pool.members {
		names = append(names, m.server.name)
	}
	at := strings.Join(names, ", ")
	if at == "" {
		at = "no server"
	}
	return fmt.Sprintf("%s %s at %s, increment %d, batch %d", typeName, g.config.Table, at, g.config.Increment, g.config.Batch)
}
