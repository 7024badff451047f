package main

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/examples/internal/embedded"
	"github.com/shardkey/shardkey/internal/testserver"
)

func TestRunEmbedded(t *testing.T) {
	dsn, stop, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	checkRun(t, dsn)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestRunOnServer(t *testing.T) {
	if testserver.Each(t, TestRunOnServer) {
		return
	}
	checkRun(t, testserver.Database(t))
}

func checkRun(t *testing.T, dsn string) {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), &out, dsn); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
	for _, want := range []string{
		"6 rows, 6 keys\n", "shard 0  snowflake  worker id 0\n", "shard 1  snowflake  worker id 0\n", "1 worker id leased for the process\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("have: %s\nwant: %q in it", out.String(), want)
		}
	}
}
