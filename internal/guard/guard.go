// Package guard turns panics of code that is not ours (a program's own clock,
// logger, store, generator) into errors. Without it, one that happens in a
// goroutine of ours ends the process, and one that happens while callers wait
// for each other leaves them waiting.
package guard

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// PanicError is the error for a panic.
type PanicError struct {
	What  string // what panicked, as "worker-ID assigner SQL"
	Value any    // the panic's value
}

func (e *PanicError) Error() string { return fmt.Sprintf("shardkey: %s panicked: %v", e.What, e.Value) }

// Unwrap returns the panic's value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Recover is to be deferred: it sets *err when the function panics.
func Recover(err *error, what string) {
	if p := recover(); p != nil {
		*err = &PanicError{what, p}
	}
}

// Call calls f and returns its error, or the one for its panic.
func Call(what string, f func() error) (err error) {
	defer Recover(&err, what)
	return f()
}

// Value returns what f returns, and otherwise where it panics.
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

// clock is spi.Clock.
type clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// Clock is a program's own clock whose panics are answers: the zero time, which
// all that lives by a clock refuses, and an error of Sleep. Two of them are
// equal when their clocks are.
type Clock struct{ clock clock }

// NewClock guards a clock.
func NewClock(c clock) Clock {
	if guarded, ok := c.(Clock); ok {
		return guarded
	}
	return Clock{c}
}

// Unwrap returns the program's own clock.
func (c Clock) Unwrap() any { return c.clock }

// Now is the clock's time, or the zero time.
func (c Clock) Now() (now time.Time) {
	defer func() {
		if recover() != nil {
			now = time.Time{}
		}
	}()
	return c.clock.Now()
}

// Sleep sleeps as the clock does.
func (c Clock) Sleep(ctx context.Context, d time.Duration) (err error) {
	defer Recover(&err, "the clock")
	return c.clock.Sleep(ctx, d)
}

// NewLogger guards a logger: a panic of its handler is an error of the handler,
// which package slog drops. A line may be lost by it, and nothing else.
func NewLogger(l *slog.Logger) *slog.Logger {
	if _, ok := l.Handler().(*handler); ok {
		return l
	}
	return slog.New(&handler{l.Handler()})
}

type handler struct{ slog.Handler }

// Enabled is called before each INSERT: it has one deferred function, and no closure.
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
