package guard

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

var errBoom = errors.New("boom")

func TestCall_panicIsAnError(t *testing.T) {
	for _, value := range []any{"boom", errBoom, nil} {
		err := Call("the store", func() error { panic(value) })
		var p *PanicError
		if !errors.As(err, &p) || !strings.Contains(err.Error(), "the store panicked") || value == errBoom && !errors.Is(err, errBoom) {
			t.Errorf("panic(%v)\nhave: %v", value, err)
		}
	}
	if err := Call("it", func() error { return errBoom }); err != errBoom {
		t.Errorf("\nhave: %v\nwant: the function's own error", err)
	}
	if got := Value(func() string { panic("boom") }, error.Error); !strings.Contains(got, "boom") {
		t.Errorf("\nhave: %q\nwant: what the second function makes of it", got)
	}
}

type badClock struct{}

func (*badClock) Now() time.Time                             { panic("boom") }
func (*badClock) Sleep(context.Context, time.Duration) error { panic(errBoom) }

func TestClock_panics(t *testing.T) {
	own := &badClock{}
	c := NewClock(own)
	if !c.Now().IsZero() || !errors.Is(c.Sleep(t.Context(), time.Hour), errBoom) {
		t.Error("a panicking clock has a time, or sleeps")
	}
	if any(NewClock(c)) != any(NewClock(own)) {
		t.Error("two guards of one clock differ")
	}
}

type badHandler struct{ at string }

func (h badHandler) Enabled(context.Context, slog.Level) bool {
	return h.at != "Enabled" || panics()
}
func (h badHandler) Handle(context.Context, slog.Record) error {
	panics()
	return nil
}
func (h badHandler) WithAttrs([]slog.Attr) slog.Handler { panics(); return h }
func (h badHandler) WithGroup(string) slog.Handler      { panics(); return h }

func panics() bool { panic("boom") }

func TestLogger_panicLosesTheLineOnly(t *testing.T) {
	for _, at := range []string{"Enabled", "Handle"} {
		l := NewLogger(slog.New(badHandler{at}))
		l.Warn("x")
		l.With("a", 1).WithGroup("g").Warn("y")
		if NewLogger(l) != l {
			t.Error("guarded twice")
		}
	}
}
