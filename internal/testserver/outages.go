package testserver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Outages tests how a client bears it that its server is paused, killed and started
// again. The function makes a client that gives up a call after a timeout, with
// [spi.ErrStore], and returns one call of the server.
func Outages(t testing.TB, s *Server, client func(timeout string) (call func(context.Context) error)) {
	t.Helper()
	call, patient := client("1s"), client("1h")
	want := func(when string, err, is error) {
		t.Helper()
		if !errors.Is(err, is) || is == spi.ErrStore && errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s\nhave: %v\nwant: %v", when, err, is)
		}
	}
	want("running", call(t.Context()), nil)
	want("running", patient(t.Context()), nil)

	s.Pause()
	const while = 50 * time.Millisecond // so that the call waits for the server by then
	canceled, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(while, cancel).Stop()
	want("paused, and the caller gives up", patient(canceled), context.Canceled)
	short, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	want("paused, and the caller's time is up", patient(short), context.DeadlineExceeded)
	want("paused", call(t.Context()), spi.ErrStore)
	s.Resume()

	s.Kill()
	err := call(t.Context())
	if want("killed", err, spi.ErrStore); err != nil && !strings.Contains(err.Error(), s.Addr()) {
		t.Errorf("killed\nhave: %v\nwant: the server's address", err)
	}
	s.Start()
	for err = call(t.Context()); errors.Is(err, spi.ErrStore); { // until the client has found it
		err = call(t.Context())
	}
	want("back", err, nil)
}
