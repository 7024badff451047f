//go:build unix

package rule_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shardkey/shardkey/rule"
)

// Opening a named pipe would wait for its writer.
func TestLoad_refusesNamedPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := rule.Load(path); err == nil || !strings.Contains(err.Error(), "found a named pipe") {
		t.Errorf("have: %v\nwant: an error", err)
	}
}
