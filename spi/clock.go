package spi

import (
	"context"
	"time"
)

// Clock is the time that generators and leases live by. Tests give their own.
type Clock interface {
	// Now is the wall clock's time. It may step back and forth.
	Now() time.Time
	// Sleep waits for d or until ctx ends, and then returns ctx's error.
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the machine's clock.
var SystemClock Clock = systemClock{}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
