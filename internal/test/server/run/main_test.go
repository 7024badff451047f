//go:build unix

package main

import (
	"errors"
	"os"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// TestMain lets this program be the supervisor that startBackground starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "-serve" {
		main()
	}
	os.Exit(m.Run())
}

// A supervisor in the background is found by later runs, isn't started twice, and is ended
// together with its servers.
func TestBackground(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no server is started")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // the user's own stays
	t.Setenv("SHARDKEY_TEST_REDIS_ADDR", "")
	t.Setenv("SHARDKEY_TEST_SUPERVISOR", "")
	socket := must.Get(testserver.Background())(t)
	t.Cleanup(func() {
		if err := endBackground(socket); err != nil {
			t.Error(err)
		}
		if testserver.Answers(socket) {
			t.Error("the supervisor answers after its end")
		}
	})
	for range 2 {
		must.Do(t, startBackground(socket))
	}
	must.FailWith(t, serveBackground(socket), "already", "a second one")
	addr := testserver.Redis(t)
	if other := testserver.Redis(t); other != addr {
		t.Errorf("servers at %s and %s\nwant: one", addr, other)
	}
	for script, want := range map[string]int{"test $SHARDKEY_TEST_SUPERVISOR = " + socket: 0, "exit 7": 7, "kill -TERM $$": -1} {
		code := must.Get(run(socket, []string{"sh", "-c", script}))(t, script)
		must.Equal(t, code, want, script)
	}
	must.Fail(t, must.Err(run(socket, []string{"/no/such/program"})), "no such program")
	must.Do(t, errors.Join(endBackground(socket), endBackground(socket)))
	if testserver.Answers(socket) {
		t.Error("the supervisor answers after its end")
	}
}
