package main

import (
	"strings"
	"testing"

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// TestRun runs the program, which fails if a library reports a wrong key.
func TestRun(t *testing.T) {
	if testserver.Each(t, TestRun) {
		return
	}
	var out strings.Builder
	if err := run(t.Context(), &out, testserver.Database(t)); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, library := range libraries {
		if want := library.name + " reports the keys of its 5 orders\n"; !strings.Contains(out.String(), want) {
			t.Errorf("have: %s\nwant: %q in it", out.String(), want)
		}
	}
}
