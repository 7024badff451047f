package workerid_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
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

func TestFileStore_namespacesAreApart(t *testing.T) {
	testserver.NeedsFlock(t)
	dir := t.TempDir()
	a, b := workerid.NewFileStore(dir, "a"), workerid.NewFileStore(dir, "b")
	r := workerid.Record{Owner: "x", ReservedUntil: 1}
	for _, s := range []workerid.Store{a, b} {
		if ok, err := s.CompareAndSet(t.Context(), 0, workerid.Record{}, r); !ok || err != nil {
			t.Errorf("have: %v, %v\nwant: true", ok, err)
		}
	}
}

// A value that is not a record is reported by name, skipped by List, and never replaced.
func TestFileStore_foreignValue(t *testing.T) {
	testserver.NeedsFlock(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "orders", "0003.json")
	for name, text := range map[string]string{
		"empty":          "",
		"text":           "not json",
		"other json":     `{"name":"x"}`,
		"list":           `[1,2]`,
		"version":        `{"shardkey":2,"owner":"x","reserved_until":5,"holder":"","since":1}`,
		"no owner":       `{"shardkey":1,"owner":"","reserved_until":5,"holder":"","since":1}`,
		"negative":       `{"shardkey":1,"owner":"x","reserved_until":-5,"holder":"","since":1}`,
		"more after":     `{"shardkey":1,"owner":"x","reserved_until":5,"holder":"","since":1} x`,
		"unknown field":  `{"shardkey":1,"owner":"x","reserved_until":5,"holder":"","since":1,"z":1}`,
		"number too big": `{"shardkey":1,"owner":"x","reserved_until":99999999999999999999,"holder":"","since":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			mustWrite(t, file, text)
			s := workerid.NewFileStore(dir, "orders")
			var foreign *workerid.ForeignRecordError
			_, err := s.Get(t.Context(), 3)
			if !errors.As(err, &foreign) || foreign.WorkerID != 3 || !errors.Is(err, spi.ErrStore) {
				t.Errorf("Get\nhave: %v\nwant: a ForeignRecordError of worker ID 3", err)
			}
			ok, err := s.CompareAndSet(t.Context(), 3, workerid.Record{}, workerid.Record{Owner: "me", ReservedUntil: 9})
			if ok || !errors.As(err, &foreign) {
				t.Errorf("CompareAndSet\nhave: %v, %v\nwant: a ForeignRecordError", ok, err)
			}
			entries, err := s.List(t.Context())
			if err != nil || len(entries) != 1 || !errors.As(entries[0].Err, &foreign) {
				t.Errorf("List\nhave: %v, %v\nwant: one entry with its error", entries, err)
			}
			if have, _ := os.ReadFile(file); string(have) != text {
				t.Errorf("the file\nhave: %q\nwant: %q", have, text)
			}
		})
	}
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
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
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
	if next := mustAcquire(t, a, 9); next.WorkerID() != 1 {
		t.Errorf("the next worker ID\nhave: %d\nwant: 1", next.WorkerID())
	}
	if h := a.Health(); len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0], "not ours") {
		t.Errorf("warnings\nhave: %q\nwant: one that shows the value", h.Warnings)
	}
	if have, _ := os.ReadFile(file); string(have) != "not ours" {
		t.Errorf("the file\nhave: %q\nwant: as it was", have)
	}
}
