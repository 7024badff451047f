//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package workerid

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// hostile returns a store in a directory to which other users have added files.
func hostile(t *testing.T) (s *fileStore, dir string) {
	t.Helper()
	path := t.TempDir()
	s = newFileStore(path, "x")
	t.Cleanup(func() { _ = s.Close() })
	dir = filepath.Join(path, "x")
	must.Do(t, os.Mkdir(dir, 0o755))
	return s, dir
}

func mustWrite(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must.Do(t, os.WriteFile(name, []byte(text), 0o644))
}

var fresh = Record{Owner: "a", ReservedUntil: 1, Holder: "h"}

func TestFileStore_followsNoLinks(t *testing.T) {
	for _, suffix := range []string{"tmp", "lock", "json"} {
		for _, there := range []bool{true, false} {
			s, dir := hostile(t)
			victim := filepath.Join(t.TempDir(), "victim")
			if there {
				mustWrite(t, victim, "precious")
			}
			must.Do(t, os.Symlink(victim, filepath.Join(dir, "0000."+suffix)))
			swapped, err := s.CompareAndSet(t.Context(), 0, Record{}, fresh)
			if (err == nil && swapped) != (suffix == "tmp") {
				t.Errorf("%s is a link\nhave: %v, %v", suffix, swapped, err)
			}
			if text, err := os.ReadFile(victim); there && string(text) != "precious" || !there && err == nil {
				t.Errorf("%s is a link: the file behind it is %q, %v", suffix, text, err)
			}
			if info, err := os.Lstat(filepath.Join(dir, "0000.json")); suffix == "tmp" && (err != nil || !info.Mode().IsRegular()) {
				t.Errorf("the record is %v, %v", info, err)
			}
		}
	}
}

func TestFileStore_linkAsNamespace(t *testing.T) {
	path, elsewhere := t.TempDir(), t.TempDir()
	must.Do(t, os.Symlink(elsewhere, filepath.Join(path, "x")))
	s := newFileStore(path, "x")
	if swapped, err := s.CompareAndSet(t.Context(), 0, Record{}, fresh); err == nil || swapped {
		t.Errorf("\nhave: %v, %v\nwant: an error", swapped, err)
	}
	if files, _ := os.ReadDir(elsewhere); len(files) > 0 {
		t.Errorf("written elsewhere: %v", files)
	}
}

// Users without write access to the directory can't open its files, and so can't lock them.
func TestFileStore_modes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	for dirMode, want := range map[os.FileMode]os.FileMode{0o750: 0o600, 0o707: 0o600, 0o775: 0o660, 0o777: 0o660, 0: 0o600} {
		path := t.TempDir()
		dir := filepath.Join(path, "x")
		if dirMode != 0 {
			must.Do(t, errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, dirMode)))
		}
		s := newFileStore(path, "x")
		must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 0, Record{}, fresh))(t), true)
		for _, suffix := range []string{"json", "lock"} {
			info, err := os.Stat(filepath.Join(dir, "0000."+suffix))
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("directory %v, %s\nhave: %v, %v\nwant: %v", dirMode, suffix, info.Mode(), err, want)
			}
		}
		if info, err := os.Stat(dir); dirMode == 0 && (err != nil || info.Mode().Perm() != 0o700) {
			t.Errorf("a new directory is %v, %v", info.Mode(), err)
		}
	}
}

func TestFileStore_longRecord(t *testing.T) {
	s, dir := hostile(t)
	mustWrite(t, filepath.Join(dir, "0003.json"), strings.Repeat("x", 4*maxRecord))
	var foreign *ForeignRecordError
	if _, err := s.Get(t.Context(), 3); !errors.As(err, &foreign) || len(foreign.Value) > maxRecord {
		t.Errorf("\nhave: %d bytes\nwant: %d at most", len(foreign.Value), maxRecord)
	}
}

// Unusual files stop no process: other worker IDs are leased. Health reports the files, and they
// are logged once.
func TestFileStore_unusualFiles(t *testing.T) {
	makeDir := func(name string) error { return os.MkdirAll(filepath.Join(name, "full"), 0o755) }
	unreadable := func(name string) error { return os.WriteFile(name, nil, 0) }
	for what, c := range map[string]struct {
		suffix string
		make   func(name string) error
		root   bool // unusual for root, too
	}{
		"record is a link":      {"json", func(name string) error { return os.Symlink("/dev/zero", name) }, true},
		"record is a directory": {"json", makeDir, true},
		"record is a FIFO":      {"json", func(name string) error { return syscall.Mkfifo(name, 0o666) }, true},
		"record is something":   {"json", func(name string) error { return os.WriteFile(name, []byte("x"), 0o600) }, true},
		"record is unreadable":  {"json", unreadable, true}, // or empty
		"lock is a link":        {"lock", func(name string) error { return os.Symlink("elsewhere", name) }, true},
		"lock is a directory":   {"lock", makeDir, true},
		"lock is a FIFO":        {"lock", func(name string) error { return syscall.Mkfifo(name, 0o666) }, true},
		"lock is unreadable":    {"lock", unreadable, false},
		"temporary is full":     {"tmp", makeDir, true},
		"temporary is a link":   {"tmp", func(name string) error { return os.Symlink("elsewhere", name) }, false}, // it is removed
	} {
		t.Run(what, func(t *testing.T) {
			if !c.root && c.suffix == "lock" && os.Getuid() == 0 {
				t.Skip("the superuser may read anything")
			}
			path := t.TempDir()
			must.Do(t, os.Mkdir(filepath.Join(path, "orders"), 0o755))
			const odd = 2
			for id := range odd {
				must.Do(t, c.make(filepath.Join(path, "orders", "000"+strconv.Itoa(id)+"."+c.suffix)))
			}
			var log strings.Builder
			a := assign(newFileStore(path, "orders"), config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			a.renew = nil
			seen := map[int64]bool{}
			for range 6 {
				l, err := a.acquire(t.Context(), 7)
				if err != nil || seen[l.workerID] || c.root && l.workerID < odd {
					t.Fatalf("have: %v, after %v\nwant: another worker ID", err, seen)
				}
				seen[l.workerID] = true
			}
			must.Is(t, must.Err(a.acquire(t.Context(), 5)), spi.ErrNoWorkerID, "when only odd ones are left")
			if n := strings.Count(log.String(), "worker ID skipped"); c.root && (n != odd || len(a.Health().Warnings) != odd) {
				t.Errorf("have: %d log lines, %q\nwant: each of them once", n, a.Health().Warnings)
			}
		})
	}
}

// A directory without write access is an error of the store, not of one worker ID.
func TestFileStore_directoryThatCannotBeWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("the superuser may write anything")
	}
	path := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(path, "orders"), 0o500))
	a := assign(newFileStore(path, "orders"), config{})
	if _, err := a.acquire(t.Context(), 7); !errors.Is(err, os.ErrPermission) || errors.Is(err, spi.ErrNoWorkerID) {
		t.Errorf("have: %v\nwant: the permission error", err)
	}
}

// A record that doesn't fit on the disk is an error, and the old one stays. The test runs itself in a
// process whose files may have 10 bytes.
func TestFileStore_fullDisk(t *testing.T) {
	const full = "SHARDKEY_TEST_FULL"
	next := Record{Owner: "b", ReservedUntil: 2, Holder: "h"}
	if path := os.Getenv(full); path != "" {
		signal.Ignore(syscall.SIGXFSZ)
		must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 10, Max: 10}))
		swapped, err := newFileStore(path, "x").CompareAndSet(t.Context(), 0, fresh, next)
		if swapped || !errors.Is(err, syscall.EFBIG) {
			t.Errorf("have: %v, %v\nwant: EFBIG", swapped, err)
		}
		return
	}
	s, _ := hostile(t)
	must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 0, Record{}, fresh))(t), true)
	child := exec.Command(os.Args[0], "-test.run=^TestFileStore_fullDisk$")
	child.Env = append(os.Environ(), full+"="+s.path)
	if text, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	must.Equal(t, must.Get(s.Get(t.Context(), 0))(t), fresh)
	must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 0, fresh, next))(t), true, "when there is room")
}

// syncs replaces fsync. It records the synced file and the record at that time, and fails on
// demand.
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

// A record is synced before it replaces the old one, and its directory entry before it is
// acknowledged. New directories are synced, too.
func TestFileStore_syncsBeforeItConfirms(t *testing.T) {
	dir := t.TempDir()
	s := newFileStore(filepath.Join(dir, "a", "b"), "orders")
	seen := syncs(t, s, func(string) error { return nil })
	first, second := Record{Owner: "1", ReservedUntil: 1}, Record{Owner: "2", ReservedUntil: 2}
	for _, step := range []struct{ prev, next Record }{{Record{}, first}, {first, second}} {
		must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 0, step.prev, step.next))(t), true)
	}
	want := []string{
		filepath.Base(dir) + " with ", "a with ", "b with ", // a in the test's directory, b in a, orders in b
		"0000.tmp with ", "orders with 1",
		"0000.tmp with 1", "orders with 2",
	}
	must.EqualSlices(t, *seen, want)
}

func TestFileStore_failedSyncIsNotConfirmed(t *testing.T) {
	first, second := Record{Owner: "1", ReservedUntil: 1}, Record{Owner: "2", ReservedUntil: 2}
	full := errors.New("no space left")
	for name, stands := range map[string]string{"0000.tmp": "1", "orders": "2"} {
		s := newFileStore(t.TempDir(), "orders")
		must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 0, Record{}, first))(t), true)
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
		must.Equal(t, must.Get(s.Get(t.Context(), 0))(t).Owner, stands, "sync of", name, "fails: the record")
	}
}

// Users may remove lock files. If a process finds that its lock file is gone, or that another file
// has its name, before it replaces the record, it no longer has the lock.
func TestFileStore_lockRemovedWhileHeld(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		s := newFileStore(t.TempDir(), "orders")
		first := Record{Owner: "1", ReservedUntil: 1}
		must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 0, Record{}, first))(t), true)
		syncs(t, s, func(name string) error {
			lock := s.file(0, "lock")
			switch {
			case name != "0000.tmp":
				return nil
			case replaced:
				return errors.Join(os.Rename(lock, lock+"2"), os.WriteFile(lock, nil, 0o600))
			}
			return os.Remove(lock)
		})
		if ok, err := s.CompareAndSet(t.Context(), 0, first, Record{Owner: "2", ReservedUntil: 2}); ok || err == nil {
			t.Errorf("replaced: %v\nhave: %v, %v\nwant: an error", replaced, ok, err)
		}
		fsync = (*os.File).Sync
		if r, err := s.Get(t.Context(), 0); err != nil || r != first {
			t.Errorf("replaced: %v\nhave: %v, %v\nwant: the record as it was", replaced, r, err)
		}
	}
}

// A process that stops while it holds a worker ID's lock blocks no other worker ID.
func TestFileStore_lockedByAnother(t *testing.T) {
	dir := t.TempDir()
	s := newFileStore(dir, "orders")
	r := Record{Owner: "x", ReservedUntil: 1}
	mustWrite(t, filepath.Join(dir, "orders", "0000.lock"), "")
	f := must.Get(os.Open(filepath.Join(dir, "orders", "0000.lock")))(t)
	must.Do(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	if ok, err := s.CompareAndSet(t.Context(), 0, Record{}, r); ok || err != nil {
		t.Errorf("the locked one\nhave: %v, %v\nwant: false", ok, err)
	}
	must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 1, Record{}, r))(t), true, "another one")
	_ = f.Close()
	must.Equal(t, must.Get(s.CompareAndSet(t.Context(), 0, Record{}, r))(t), true, "after the lock's end")
}
