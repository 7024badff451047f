package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

func TestRun(t *testing.T) {
	if os.Getenv("SHARDKEY_ENGINES") == "" {
		t.Skip("make test-engines runs it")
	}
	for _, over := range []string{"mysql", "mariadb"} {
		t.Run(over, func(t *testing.T) {
			t.Setenv("TMPDIR", openDir(t))
			var out strings.Builder
			if err := run(t.Context(), &out, os.Stderr, over); err != nil {
				failed(t, err)
			}
			t.Log(out.String())
			must.Equal(t, strings.Count(out.String(), "user "), 8, "rows")
			for _, shard := range shards {
				if !strings.Contains(out.String(), " "+shard+" ") {
					t.Errorf("no row is in shard %s", shard)
				}
			}
			nothingIsLeft(t)
		})
	}
}

// An interrupted program ends its servers and removes its files.
func TestRun_interrupted(t *testing.T) {
	if os.Getenv("SHARDKEY_ENGINES") == "" {
		t.Skip("make test-engines runs it")
	}
	t.Setenv("TMPDIR", openDir(t))
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := run(ctx, new(strings.Builder), os.Stderr, "mariadb"); !errors.Is(err, context.Canceled) {
		failed(t, err)
	}
	nothingIsLeft(t)
}

func TestRun_unknownServer(t *testing.T) {
	must.FailWith(t, run(t.Context(), new(strings.Builder), os.Stderr, "oracle"), "oracle")
}

// openDir creates a temporary directory that other users can read. Its name is short enough for
// sockets.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vt")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// failed fails the test, or skips it if a server is missing.
func failed(t *testing.T, err error) {
	t.Helper()
	if testserver.NotInstalled(err) {
		testserver.Missing(t, "vitess", err)
	}
	t.Fatal(err)
}

func nothingIsLeft(t *testing.T) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
