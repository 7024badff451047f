package examples_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/internal/test/readme"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// TestReadme_useIt builds the program of README.md, and runs it with the tables and the rule of
// that page on each server.
func TestReadme_useIt(t *testing.T) {
	if testserver.Each(t, TestReadme_useIt) {
		return
	}
	p := readme.New(t, "../README.md", testserver.Database(t))
	program := filepath.Join(p.Dir, "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, filepath.Join(p.Dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = p.Dir
	out, err := cmd.Output() // the log is on standard error
	must.Do(t, err)
	p.Check(t, out)
}
