package workerid

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// syncs replaces fsync for a test: it notes what is synced and which record stands in
// its place at that time, and fails where the test wants it.
func syncs(t *testing.T, s *fileStore, fail func(name string) error) *[]string {
	t.Helper()
	t.Cleanup(func() { fsync = (*os.File).Sync })
	var seen []string
	fsync = func(f *os.File) error {
		r, err := s.read(0)
		if err != nil {
			return err
		}
		seen = append(seen, fmt.Sprintf("%s with %s", filepath.Base(f.Name()), r.Owner))
		return fail(filepath.Base(f.Name()))
	}
	return &seen
}

// A record is on the disk before it takes the old one's place, and its place is before
// it is confirmed; so are the directories that it needs.
func TestFileStore_syncsBeforeItConfirms(t *testing.T) {
	dir := t.TempDir()
	s := newFileStore(filepath.Join(dir, "a", "b"), "orders")
	seen := syncs(t, s, func(string) error { return nil })
	first, second := Record{Owner: "1", ReservedUntil: 1}, Record{Owner: "2", ReservedUntil: 2}
	for _, step := range []struct{ prev, next Record }{{Record{}, first}, {first, second}} {
		if ok, err := s.CompareAndSet(t.Context(), 0, step.prev, step.next); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	want := []string{
		"b with ", "a with ", filepath.Base(dir) + " with ", // orders in b, b in a, a in the test's
		"0000.tmp with ", "orders with 1",
		"0000.tmp with 1", "orders with 2",
	}
	if !slices.Equal(*seen, want) {
		t.Errorf("have: %q\nwant: %q", *seen, want)
	}
}

func TestFileStore_failedSyncIsNotConfirmed(t *testing.T) {
	first, second := Record{Owner: "1", ReservedUntil: 1}, Record{Owner: "2", ReservedUntil: 2}
	full := errors.New("no space left")
	for name, stands := range map[string]string{"0000.tmp": "1", "orders": "2"} {
		s := newFileStore(t.TempDir(), "orders")
		if ok, err := s.CompareAndSet(t.Context(), 0, Record{}, first); !ok || err != nil {
			t.Fatal(ok, err)
		}
		syncs(t, s, func(synced string) error {
			if synced == name {
				return full
			}
			return nil
		})
		if ok, err := s.CompareAndSet(t.Context(), 0, first, second); ok || !errors.Is(err, full) {
			t.Errorf("sync of %s fails\nhave: %v, %v\nwant: its error", name, ok, err)
		}
		fsync = (*os.File).Sync
		if r, err := s.Get(t.Context(), 0); err != nil || r.Owner != stands {
			t.Errorf("sync of %s fails: the record\nhave: %s, %v\nwant: %s", name, r.Owner, err, stands)
		}
	}
}

// People remove lock files: whoever finds its own gone before it replaces the record
// is not alone any more.
func TestFileStore_lockRemovedWhileHeld(t *testing.T) {
	s := newFileStore(t.TempDir(), "orders")
	first := Record{Owner: "1", ReservedUntil: 1}
	if ok, err := s.CompareAndSet(t.Context(), 0, Record{}, first); !ok || err != nil {
		t.Fatal(ok, err)
	}
	syncs(t, s, func(name string) error {
		if name == "0000.tmp" {
			return os.Remove(s.file(0, "lock"))
		}
		return nil
	})
	if ok, err := s.CompareAndSet(t.Context(), 0, first, Record{Owner: "2", ReservedUntil: 2}); ok || err == nil {
		t.Errorf("have: %v, %v\nwant: an error", ok, err)
	}
	if r, err := s.Get(t.Context(), 0); err != nil || r != first {
		t.Errorf("have: %v, %v\nwant: the record as it was", r, err)
	}
}
