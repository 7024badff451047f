package ticket

import (
	"context"
	"fmt"
	"sync"

	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.Int64KeyGenerator = (*Generator)(nil)
	_ spi.HealthReporter    = (*Generator)(nil)
	_ spi.Describer         = (*Generator)(nil)
	// Not a spi.KeyDecoder or spi.KeyRanger: a number of a sequence has no
	// time or worker in it.
)

// Generator hands out numbers of ticket servers. Its methods are called by many
// goroutines at once. Close it when it is no longer needed.
type Generator struct {
	config Config

	mu      sync.Mutex
	left    block      // fetched and not yet used
	queue   []*request // calls that wait, in order
	stop    context.CancelFunc
	done    chan struct{} // closed when the fetching goroutine ends; nil while there is none
	closed  bool
	figures figures

	pool *pool // used by the fetching goroutine alone; Close waits for that
}

// New makes a generator. It checks the settings and does not connect: the first
// key does. The error is a [*spi.PropError].
func New(c Config) (*Generator, error) {
	if len(c.DSNs) == 0 {
		return nil, &spi.PropError{Name: "dsns", Want: "the ticket servers"}
	}
	return newGenerator(c)
}

func newGenerator(c Config) (*Generator, error) {
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
	return newWithMembers(c, members), nil
}

func newWithMembers(c Config, members []*member) *Generator {
	g := &Generator{config: c}
	g.pool = &pool{members: members, timeout: c.Timeout, offsets: c.Offsets, clock: c.Clock, observe: g.observe}
	return g
}

// GenerateKeys returns n numbers, as int64.
func (g *Generator) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	if n < 1 || n > maxKeys {
		return nil, badCount(n)
	}
	return spi.BoxedKeys(ctx, g, column, n)
}

// GenerateInt64Keys fills keys with ascending numbers, a step of
// [Config.Increment] apart. At most 2^24 are given at once.
//
// The error has [spi.ErrStore] in its chain when no server gave a number,
// [spi.ErrClosed] after Close, and ctx's error when that ended a wait; the wait
// ends at once then.
func (g *Generator) GenerateInt64Keys(ctx context.Context, _ spi.Column, keys []int64) error {
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

// Close ends the fetch under way and gives back the connections. Calls that
// wait return [spi.ErrClosed]. It is idempotent.
func (g *Generator) Close() error {
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
