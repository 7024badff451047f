//go:build unix

package rule_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
)

// Opening a named pipe would wait for its writer.
func TestLoad_refusesNamedPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	must.FailWith(t, must.Err(rule.Load(path)), "found a named pipe")
}
