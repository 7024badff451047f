//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
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

func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		script string
		want   int
	}{
		{"exit 0", 0},
		{"exit 7", 7},
		{"kill -TERM $$", 128 + 15},
	} {
		have, err := exitCode(exec.Command("sh", "-c", test.script).Run())
		if have != test.want || err != nil {
			t.Errorf("%s\nhave: %d, %v\nwant: %d", test.script, have, err, test.want)
		}
	}
	if have, err := exitCode(exec.Command("/no/such/program").Run()); have != 1 || err == nil {
		t.Errorf("no such program\nhave: %d, %v\nwant: 1 and an error", have, err)
	}
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
	socket := must.Get(testserver.Background("sock"))(t)
	t.Cleanup(func() {
		if err := endBackground(); err != nil {
			t.Error(err)
		}
		if testserver.Answers(socket) {
			t.Error("the supervisor answers after its end")
		}
	})
	for range 2 {
		must.Do(t, startBackground())
	}
	must.FailWith(t, serveBackground(), "already", "a second one")
	addr := testserver.Redis(t)
	if other := testserver.Redis(t); other != addr {
		t.Errorf("servers at %s and %s\nwant: one", addr, other)
	}
	code, err := run([]string{"sh", "-c", "test $SHARDKEY_TEST_SUPERVISOR = " + socket})
	if code != 0 || err != nil {
		t.Errorf("run does not use it\nhave: %d, %v", code, err)
	}
	must.Do(t, errors.Join(endBackground(), endBackground()))
	if testserver.Answers(socket) {
		t.Error("the supervisor answers after its end")
	}
}
