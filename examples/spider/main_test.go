package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

func TestRun(t *testing.T) {
	if os.Getenv("SHARDKEY_ENGINES") == "" {
		t.Skip("make test-engines runs it")
	}
	t.Setenv("TMPDIR", t.TempDir())
	var out strings.Builder
	if err := run(t.Context(), &out, os.Stderr); err != nil {
		failed(t, err)
	}
	t.Log(out.String())
	if rows := regexp.MustCompile(`(?m)^  .* [012]  .* (\d{18,})   (\d{18,}) `).FindAllString(out.String(), -1); len(rows) != 6 {
		t.Errorf("rows with a key of shardkey\nhave: %d\nwant: 6", len(rows))
	}
	if !regexp.MustCompile(`(?m)^  shardkey +800 +0 +0$`).MatchString(out.String()) {
		t.Error("shardkey's INSERTs are not 800 without an error")
	}
	nothingIsLeft(t)
}

// Who interrupts it gets his machine back as it was.
func TestRun_interrupted(t *testing.T) {
	if os.Getenv("SHARDKEY_ENGINES") == "" {
		t.Skip("make test-engines runs it")
	}
	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := run(ctx, new(strings.Builder), os.Stderr); !errors.Is(err, context.Canceled) {
		failed(t, err)
	}
	nothingIsLeft(t)
}

// failed fails the test, or skips it where a server is not there.
func failed(t *testing.T, err error) {
	t.Helper()
	if testserver.NotInstalled(err) {
		testserver.Missing(t, err)
	}
	t.Fatal(err)
}

func nothingIsLeft(t *testing.T) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
