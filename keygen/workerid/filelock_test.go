//go:build unix

package workerid_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/shardkey/shardkey/keygen/workerid"
)

// Whoever stops while it holds one worker id's lock hinders nobody else's.
func TestFileStore_lockedByAnother(t *testing.T) {
	dir := t.TempDir()
	s := workerid.NewFileStore(dir, "orders")
	r := workerid.Record{Owner: "x", ReservedUntil: 1}
	mustWrite(t, filepath.Join(dir, "orders", "0000.lock"), "")
	f, err := os.Open(filepath.Join(dir, "orders", "0000.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.CompareAndSet(t.Context(), 0, workerid.Record{}, r); ok || err != nil {
		t.Errorf("the locked one\nhave: %v, %v\nwant: false", ok, err)
	}
	if ok, err := s.CompareAndSet(t.Context(), 1, workerid.Record{}, r); !ok || err != nil {
		t.Errorf("another one\nhave: %v, %v\nwant: true", ok, err)
	}
	_ = f.Close()
	if ok, err := s.CompareAndSet(t.Context(), 0, workerid.Record{}, r); !ok || err != nil {
		t.Errorf("after the lock's end\nhave: %v, %v\nwant: true", ok, err)
	}
}
