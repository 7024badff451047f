package workerid_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

func TestFileStore_conforms(t *testing.T) {
	testserver.NeedsFlock(t)
	workeridtest.TestStore(t, func(t testing.TB) workeridtest.Namespace {
		dir := filepath.Join(t.TempDir(), "made", "when", "absent")
		return workeridtest.Namespace{
			Open: func() (workerid.Store, workerid.Info) { return workerid.Open(workerid.NewFileStore(dir, "orders")) },
			PutForeign: func(id int64) {
				mustWrite(t, filepath.Join(dir, "orders", fmt.Sprintf("%04d.json", id)), "not ours")
			},
		}
	})
}

func TestFileStore_pathIsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	mustWrite(t, file, "x")
	a := workerid.Assign(t, workerid.NewFileStore(file, "orders"), workerid.Config{})
	_, err := a.AcquireWorkerID(t.Context(), 7)
	if !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), file) {
		t.Errorf("have: %v\nwant: spi.ErrStore that names %s", err, file)
	}
}

func mustWrite(t testing.TB, file, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.Do(t, os.WriteFile(file, []byte(text), 0o644))
}

// A foreign value in place of a live lease's record ends the lease. The process leases another
// worker ID, and Health reports the damaged one.
func TestFileStore_foreignValueEndsTheLease(t *testing.T) {
	testserver.NeedsFlock(t)
	dir := t.TempDir()
	a := workerid.Assign(t, workerid.NewFileStore(dir, "orders"), workerid.Config{})
	l := mustAcquire(t, a, 9)
	file := filepath.Join(dir, "orders", "0000.json")
	mustWrite(t, file, "not ours")
	err := l.Renew(t.Context(), l.Limit())
	var foreign *workerid.ForeignRecordError
	if !errors.Is(err, spi.ErrLeaseLost) || !errors.As(err, &foreign) {
		t.Errorf("Renew\nhave: %v\nwant: spi.ErrLeaseLost by a ForeignRecordError", err)
	}
	must.Equal(t, mustAcquire(t, a, 9).WorkerID(), 1, "the next worker ID")
	if h := a.Health(); len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0], "not ours") {
		t.Errorf("warnings\nhave: %q\nwant: one that shows the value", h.Warnings)
	}
	if have, _ := os.ReadFile(file); string(have) != "not ours" {
		t.Errorf("the file\nhave: %q\nwant: as it was", have)
	}
}
