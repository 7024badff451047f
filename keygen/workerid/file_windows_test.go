package workerid_test

import (
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/keygen/workerid"
)

// The error names the alternative, and the directory isn't made.
func TestFileStore_needsFlock(t *testing.T) {
	a := workerid.Assign(t, workerid.NewFileStore(t.TempDir()+"/absent", "orders"), workerid.Config{})
	must.FailWith(t, must.Err(a.AcquireWorkerID(t.Context(), 1)), "flock; use SQL")
}
