// Package guard converts panics in a program's code (its clock, logger, store or generator) to
// errors. Otherwise a panic in a goroutine of this module would end the process, and a panic while
// callers wait for each other would block them.
package guard

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// PanicError is the error for a panic.
type PanicError struct {
	What  string // the code that panicked, for example "worker-ID assigner SQL"
	Value any    // the panic's value
}

func (e *PanicError) Error() string { return fmt.Sprintf("shardkey: %s panicked: %v", e.What, e.Value) }

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Recover sets *err if the function panics. Defer it.
func Recover(err *error, what string) {
	if p := recover(); p != nil {
		*err = &PanicError{what, p}
	}
}

// Call calls f and returns its error, or a PanicError.
func Call(what string, f func() error) (err error) {
	defer Recover(&err, what)
	return f()
}

// Value returns f's result. If f panics, it returns the result of otherwise.
func Value[T any](f func() T, otherwise func(error) T) (value T) {
	var err error
	defer func() {
		if err != nil {
			value = otherwise(err)
		}
	}()
	defer Recover(&err, "it")
	return f()
}

// clock has the methods of spi.Clock.
type clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// Clock is a program's clock without panics. If it panics, Now returns the zero time, which callers
// refuse, and Sleep returns an error. Two Clocks are equal if their clocks are.
type Clock struct{ clock clock }

// NewClock returns a Clock for c.
func NewClock(c clock) Clock {
	if guarded, ok := c.(Clock); ok {
		return guarded
	}
	return Clock{c}
}

// Unwrap returns the program's clock.
func (c Clock) Unwrap() any { return c.clock }

// Now returns the clock's time, or the zero time.
func (c Clock) Now() (now time.Time) {
	defer func() {
		if recover() != nil {
			now = time.Time{}
		}
	}()
	return c.clock.Now()
}

// Sleep calls the clock's Sleep, and returns an error if it panics.
func (c Clock) Sleep(ctx context.Context, d time.Duration) (err error) {
	defer Recover(&err, "the clock")
	return c.clock.Sleep(ctx, d)
}

// NewLogger returns a logger without panics. If the handler of l panics, its line is lost.
func NewLogger(l *slog.Logger) *slog.Logger {
	if _, ok := l.Handler().(*handler); ok {
		return l
	}
	return slog.New(&handler{l.Handler()})
}

type handler struct{ slog.Handler }

// Enabled is called before each INSERT, so it has one deferred function and no closure.
func (h *handler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	defer noPanic()
	return h.Handler.Enabled(ctx, level)
}

func noPanic() { _ = recover() }

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	return Call("the logger", func() error { return h.Handler.Handle(ctx, r) })
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return Value(func() slog.Handler { return &handler{h.Handler.WithAttrs(attrs)} }, func(error) slog.Handler { return h })
}

func (h *handler) WithGroup(name string) slog.Handler {
	return Value(func() slog.Handler { return &handler{h.Handler.WithGroup(name)} }, func(error) slog.Handler { return h })
}
