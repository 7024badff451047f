package main

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/examples/internal/embedded"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

func TestRun_embedded(t *testing.T) {
	dsn, stop, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	checkRun(t, dsn)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestRun_onServer(t *testing.T) {
	if testserver.Each(t, TestRun_onServer) {
		return
	}
	checkRun(t, testserver.Database(t))
}

// checkRun runs the program, which fails if a library reports a wrong key.
func checkRun(t *testing.T, dsn string) {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), &out, dsn); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, library := range libraries {
		if want := library.name + " reports the keys of its 5 orders\n"; !strings.Contains(out.String(), want) {
			t.Errorf("have: %s\nwant: %q in it", out.String(), want)
		}
	}
}
