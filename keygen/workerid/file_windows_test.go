package workerid_test

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/keygen/workerid"
)

// The error names the alternative, and the directory isn't made.
func TestFileStore_needsFlock(t *testing.T) {
	a := workerid.Assign(t, workerid.NewFileStore(t.TempDir()+"/absent", "orders"), workerid.Config{})
	if _, err := a.AcquireWorkerID(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "flock; use SQL") {
		t.Errorf("have: %v\nwant: FILE needs flock", err)
	}
}
