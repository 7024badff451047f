package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// command runs a command in this directory and returns its output. It disables cgo, with which
// sqlc would compile PostgreSQL's parser.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if slices.Contains(args, "tool") {
		cmd.Env = append(cmd.Env, "GOWORK=off") // go.work doesn't allow -modfile
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// build generates the code into a temporary directory, and builds the program with it.
func build(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	command(t, "go", "tool", "-modfile=../../internal/test/tools/go.mod", "sqlc", "generate",
		"-f", filepath.Join(dir, "sqlc.yaml"))
	generated, err := filepath.Glob(filepath.Join(dir, "orders", "*.go"))
	if err != nil || len(generated) == 0 {
		t.Fatalf("sqlc generated nothing: %v", err)
	}
	overlay := map[string]string{}
	for _, file := range generated {
		here, err := filepath.Abs(filepath.Join("orders", filepath.Base(file)))
		if err != nil {
			t.Fatal(err)
		}
		overlay[here] = file
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	replaced := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(replaced, text, 0o600); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "program")
	command(t, "go", "build", "-tags", "sqlc", "-overlay", replaced, "-o", program, ".")
	return program
}

// TestRun runs the program with the server in the process, and with each real server.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("sqlc is built first")
	}
	program := build(t)
	check := func(t *testing.T, args ...string) {
		if out := command(t, program, args...); strings.Count(out, "\n") != 4 {
			t.Errorf("have: %s\nwant: four orders", out)
		}
	}
	t.Run("embedded", func(t *testing.T) { check(t) })
	t.Run("servers", func(t *testing.T) { onServer(t, check) })
}

func onServer(t *testing.T, check func(*testing.T, ...string)) {
	self := func(t *testing.T) { onServer(t, check) }
	if testserver.Each(t, self) {
		return
	}
	check(t, "-dsn", testserver.Database(t))
}
