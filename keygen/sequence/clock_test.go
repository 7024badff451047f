package sequence

import (
	"context"
	"sync"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// stepClock stands still until it is stepped. Sleeps are real: they are a few
// milliseconds between deadlocks.
type stepClock struct {
	mu  sync.Mutex
	now time.Duration
}

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Unix(0, 0).Add(c.now)
}

func (c *stepClock) Sleep(ctx context.Context, d time.Duration) error {
	return spi.SystemClock.Sleep(ctx, d)
}

func (c *stepClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
}
