//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package workerid

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

// hostile is a store in a directory in which others have put something.
func hostile(t *testing.T) (s *fileStore, dir string) {
	t.Helper()
	path := t.TempDir()
	s = newFileStore(path, "x")
	t.Cleanup(func() { _ = s.Close() })
	dir = filepath.Join(path, "x")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func mustWrite(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
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
			if err := os.Symlink(victim, filepath.Join(dir, "0000."+suffix)); err != nil {
				t.Fatal(err)
			}
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
	if err := os.Symlink(elsewhere, filepath.Join(path, "x")); err != nil {
		t.Fatal(err)
	}
	s := newFileStore(path, "x")
	if swapped, err := s.CompareAndSet(t.Context(), 0, Record{}, fresh); err == nil || swapped {
		t.Errorf("\nhave: %v, %v\nwant: an error", swapped, err)
	}
	if files, _ := os.ReadDir(elsewhere); len(files) > 0 {
		t.Errorf("written elsewhere: %v", files)
	}
}

// What is no regular file is not waited for, and its worker id is left alone.
func TestFileStore_noRegularFile(t *testing.T) {
	for what, make := range map[string]func(string) error{
		"FIFO":      func(name string) error { return syscall.Mkfifo(name, 0o666) },
		"directory": func(name string) error { return os.Mkdir(name, 0o777) },
		"link":      func(name string) error { return os.Symlink("/dev/zero", name) },
	} {
		s, dir := hostile(t)
		if err := make(filepath.Join(dir, "0003.json")); err != nil {
			t.Fatal(err)
		}
		entries, err := s.List(t.Context())
		var foreign *ForeignRecordError
		if err != nil || len(entries) != 1 || !errors.As(entries[0].Err, &foreign) || foreign.WorkerID != 3 {
			t.Errorf("%s\nhave: %v, %v\nwant: a foreign record of worker id 3", what, entries, err)
		}
		if swapped, err := s.CompareAndSet(t.Context(), 3, Record{}, fresh); swapped || err == nil {
			t.Errorf("%s: replaced, %v", what, err)
		}
		if err := make(filepath.Join(dir, "0004.lock")); err != nil {
			t.Fatal(err)
		}
		if swapped, err := s.CompareAndSet(t.Context(), 4, Record{}, fresh); swapped || !errors.Is(err, errNotRegular) {
			t.Errorf("%s as lock\nhave: %v, %v\nwant: %v", what, swapped, err, errNotRegular)
		}
		if swapped, err := s.CompareAndSet(t.Context(), 5, Record{}, fresh); !swapped || err != nil {
			t.Errorf("%s: another worker id\nhave: %v, %v\nwant: leased", what, swapped, err)
		}
	}
}

// Who may not write the directory may not open what is in it, and so holds no lock
// of it.
func TestFileStore_modes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	for dirMode, want := range map[os.FileMode]os.FileMode{0o700: 0o600, 0o755: 0o600, 0o775: 0o660, 0o770: 0o660, 0: 0o600} {
		path := t.TempDir()
		dir := filepath.Join(path, "x")
		if dirMode != 0 {
			if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, dirMode)); err != nil {
				t.Fatal(err)
			}
		}
		s := newFileStore(path, "x")
		if swapped, err := s.CompareAndSet(t.Context(), 0, Record{}, fresh); !swapped || err != nil {
			t.Fatal(swapped, err)
		}
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

// Odd files stop no process: the others' worker ids are leased, and what is odd is in Health and
// logged once.
func TestFileStore_oddFilesStopNobody(t *testing.T) {
	makeDir := func(name string) error { return os.MkdirAll(filepath.Join(name, "full"), 0o755) }
	unreadable := func(name string) error { return os.WriteFile(name, nil, 0) }
	for what, c := range map[string]struct {
		suffix string
		make   func(name string) error
		root   bool // odd for the superuser too
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
		"temporary is a link":   {"tmp", func(name string) error { return os.Symlink("elsewhere", name) }, false}, // is removed
	} {
		t.Run(what, func(t *testing.T) {
			if !c.root && c.suffix == "lock" && os.Getuid() == 0 {
				t.Skip("the superuser may read anything")
			}
			path := t.TempDir()
			if err := os.Mkdir(filepath.Join(path, "orders"), 0o755); err != nil {
				t.Fatal(err)
			}
			const odd = 2
			for id := range odd {
				if err := c.make(filepath.Join(path, "orders", "000"+strconv.Itoa(id)+"."+c.suffix)); err != nil {
					t.Fatal(err)
				}
			}
			var log strings.Builder
			a := assign(newFileStore(path, "orders"), config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			a.manual = true
			seen := map[int64]bool{}
			for range 6 {
				l, err := a.acquire(t.Context(), 7)
				if err != nil || seen[l.workerID] || c.root && l.workerID < odd {
					t.Fatalf("have: %v, after %v\nwant: another worker id", err, seen)
				}
				seen[l.workerID] = true
			}
			if _, err := a.acquire(t.Context(), 5); !errors.Is(err, spi.ErrNoWorkerID) {
				t.Errorf("when only odd ones are left\nhave: %v\nwant: spi.ErrNoWorkerID", err)
			}
			if n := strings.Count(log.String(), "a worker id is left alone"); c.root && (n != odd || len(a.Health().Warnings) != odd) {
				t.Errorf("have: %d log lines, %q\nwant: each of them once", n, a.Health().Warnings)
			}
		})
	}
}

// A lease whose lock file becomes something else is over, and another worker id is taken.
func TestFileStore_lockThatBecomesOdd(t *testing.T) {
	path := t.TempDir()
	a := assign(newFileStore(path, "orders"), config{})
	a.manual = true
	l, err := a.acquire(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(path, "orders", "0000.lock")
	if err := errors.Join(os.Remove(lock), os.Symlink("elsewhere", lock)); err != nil {
		t.Fatal(err)
	}
	if err := l.keep(t.Context()); !errors.Is(err, spi.ErrLeaseLost) || l.Limit() != noLimit {
		t.Errorf("have: %v\nwant: spi.ErrLeaseLost", err)
	}
	if next, err := a.acquire(t.Context(), 7); err != nil || next.workerID == l.workerID {
		t.Errorf("have: %v, %v\nwant: another worker id", next, err)
	}
}

// A directory that cannot be written is no oddity of one worker id.
func TestFileStore_directoryThatCannotBeWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("the superuser may write anything")
	}
	path := t.TempDir()
	if err := os.Mkdir(filepath.Join(path, "orders"), 0o500); err != nil {
		t.Fatal(err)
	}
	a := assign(newFileStore(path, "orders"), config{})
	if _, err := a.acquire(t.Context(), 7); !errors.Is(err, os.ErrPermission) || errors.Is(err, spi.ErrNoWorkerID) {
		t.Errorf("have: %v\nwant: the permission error", err)
	}
}
