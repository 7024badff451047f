package snowflake

import (
	"context"
	"sync"
	"time"
)

// handClock is a clock that a test sets. A sleep moves it forward. It ends a test
// that goes on asking for ever.
type handClock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
	asked int
}

// mostAsked is far more often than any test asks a clock.
const mostAsked = 1 << 22

// ask counts a question. mu is held.
func (c *handClock) ask() {
	if c.asked++; c.asked > mostAsked {
		panic("the clock is asked for ever")
	}
}

func newHandClock() *handClock {
	return &handClock{now: DefaultEpoch.AddDate(10, 0, 0)}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ask()
	return c.now
}

func (c *handClock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ask()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	return nil
}

func (c *handClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
