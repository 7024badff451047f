package workerid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// fileStore keeps each worker ID's record in its own file:
//
//	path/namespace/0017.json   the record, replaced atomically
//	path/namespace/0017.lock   locked (flock) while it is compared and replaced
//
// Other users may have write access to the directory, as in /tmp. The store follows no links, and
// reads and writes only regular files. Only the owner can open its files. If the directory's group
// may write to the directory, the group can open them too.
//
// Each worker ID has its own lock. If a process is stopped while it holds a lock, others skip that
// worker ID.
type fileStore struct {
	path   string // as configured
	dir    string
	closed atomic.Bool
}

// newFileStore returns a store of records in a directory of a local file system. The directory is
// created if it is missing. Many processes of one machine may share it. Several machines must not
// share it, neither by a network file system nor by copying it.
func newFileStore(path, namespace string) *fileStore {
	return &fileStore{path: path, dir: filepath.Join(path, namespace)}
}

// maxRecord is more bytes than any record has.
const maxRecord = 64 << 10

// errNotRegular is the error if a link, a FIFO or a directory is in the place of our file.
var errNotRegular = errors.New("expected a regular file")

// odd converts an error that only a file of this worker ID has to a [ForeignRecordError]: the file
// isn't regular, or belongs to another user. Other worker IDs are available then. If the file
// doesn't exist, the error is about the directory, and all worker IDs have it.
func (s *fileStore) odd(workerID int64, err error) error {
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return err
	}
	_, statErr := os.Lstat(at.Path)
	if errors.Is(err, errNotRegular) || statErr == nil && (errors.Is(err, fs.ErrPermission) || isOddFile(err)) {
		return &ForeignRecordError{WorkerID: workerID, Err: err}
	}
	return err
}

// open opens one of the store's files. It creates the file if flags specify that.
func (s *fileStore) open(name string, flags int) (*os.File, error) {
	f, err := os.OpenFile(name, flags|openPlain, s.mode())
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	return f, nil
}

// mode returns the mode of new files. The user has access, and the group if it may write to the
// directory. A process that can open a lock file can hold its lock.
func (s *fileStore) mode() fs.FileMode {
	if info, err := os.Stat(s.dir); err == nil && info.Mode()&0o020 != 0 {
		return 0o660
	}
	return 0o600
}

// How often to try a lock, and how long before the record counts as busy.
const (
	lockPoll     = 2 * time.Millisecond
	lockPatience = 250 * time.Millisecond
)

func (s *fileStore) info() Info { return Info{Name: "FILE " + s.path, Warnings: s.warnings} }

// warnings returns a warning if the directory is on a file system that other machines share, or
// that a container loses at its end. If the directory doesn't exist yet, its parent is examined.
func (s *fileStore) warnings(context.Context) ([]string, error) {
	for dir := s.dir; ; dir = filepath.Dir(dir) {
		kind, err := fileSystem(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
			continue
		}
		if risk := fileSystemRisks[kind]; err == nil && risk != "" {
			return []string{fmt.Sprintf("FILE %s: the directory is on %s, and keys can repeat; "+
				"use a local file system or a volume, or keep leases in SQL", s.path, risk)}, nil
		}
		return nil, err
	}
}

// fileSystemRisks are file systems that don't suit leases, by their numbers in statfs:
// https://man7.org/linux/man-pages/man2/statfs.2.html
var fileSystemRisks = map[uint32]string{
	0x794c7630: "overlayfs, which a container loses when it ends, and which no other container sees",
	0x6969:     network("NFS"),
	0xff534d42: network("CIFS"),
	0xfe534d42: network("SMB2"),
	0x517b:     network("SMB"),
}

func network(name string) string {
	return name + ", where locks and renames of other machines are not reliable"
}

func (s *fileStore) Close() error {
	s.closed.Store(true)
	return nil
}

func (s *fileStore) List(ctx context.Context) ([]Entry, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, f := range files {
		id, err := strconv.ParseInt(strings.TrimSuffix(f.Name(), ".json"), 10, 64)
		if err != nil || id < 0 || f.Name() != filepath.Base(s.file(id, "json")) {
			continue // not the record of a worker ID
		}
		r, err := s.read(id)
		if err != nil && !isForeign(err) {
			return nil, err
		}
		entries = append(entries, Entry{WorkerID: id, Record: r, Err: err})
	}
	return entries, nil
}

func (s *fileStore) Get(ctx context.Context, workerID int64) (Record, error) {
	if err := s.usable(ctx); err != nil {
		return Record{}, err
	}
	return s.read(workerID)
}

func (s *fileStore) CompareAndSet(ctx context.Context, workerID int64, prev, next Record) (bool, error) {
	if err := s.usable(ctx); err != nil {
		return false, err
	}
	if errNoFlock != nil {
		return false, errNoFlock
	}
	// Another user's link could lead the records elsewhere.
	if err := makeDir(s.dir, os.Lstat); err != nil {
		return false, err
	}
	lock, err := s.lock(ctx, workerID)
	if lock == nil {
		return false, s.odd(workerID, err)
	}
	defer lock.Close() // unlocks
	found, err := s.read(workerID)
	if err != nil || !found.Same(prev) {
		return false, err
	}
	swapped, err := s.replace(workerID, next, lock)
	return swapped, s.odd(workerID, err)
}

func (s *fileStore) usable(ctx context.Context) error {
	if s.closed.Load() {
		return fmt.Errorf("%s: %w", s.path, fs.ErrClosed)
	}
	return ctx.Err()
}

func (s *fileStore) file(workerID int64, suffix string) string {
	return filepath.Join(s.dir, fmt.Sprintf("%04d.%s", workerID, suffix))
}

func (s *fileStore) read(workerID int64) (Record, error) {
	f, err := s.open(s.file(workerID, "json"), os.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Record{}, nil
	case err != nil:
		return Record{}, s.odd(workerID, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return Record{}, err
	}
	return ParseRecord(workerID, string(text))
}

// replace writes a record to a temporary file, syncs it, renames it to the old one's name, and
// syncs the directory. The caller holds the lock. If the lock's file was removed in the meantime,
// another process may hold a lock of that name.
func (s *fileStore) replace(workerID int64, r Record, lock *os.File) (bool, error) {
	temp := s.file(workerID, "tmp")
	if err := s.writeSynced(temp, r.Text()+"\n"); err != nil {
		return false, err
	}
	if err := hasName(lock, s.file(workerID, "lock")); err != nil {
		return false, err
	}
	if err := os.Rename(temp, s.file(workerID, "json")); err != nil {
		return false, err
	}
	err := syncDir(s.dir)
	return err == nil, err
}

// writeSynced writes and syncs a new file. It removes any existing file of that name, which a
// crashed process may have left.
func (s *fileStore) writeSynced(name, text string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	err = f.Chmod(s.mode()) // independent of the umask
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = fsync(f)
	}
	return errors.Join(err, f.Close())
}

// makeDir creates a directory and its parents if they are missing, and syncs the parent of each new
// one. stat is os.Stat, or os.Lstat if dir itself must not be a link.
func makeDir(dir string, stat func(string) (fs.FileInfo, error)) error {
	info, err := stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s: not a directory", dir)
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := makeDir(filepath.Dir(dir), os.Stat); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(fsync(d), d.Close())
}

// fsync is a variable because tests can't cut the power.
var fsync = (*os.File).Sync

var errLocked = errors.New("locked")

// lock takes the lock of a worker ID. It is held until the file is closed or the process ends. Both
// results are nil if another process has held the lock for too long.
func (s *fileStore) lock(ctx context.Context, workerID int64) (*os.File, error) {
	for waited := time.Duration(0); waited < lockPatience; waited += lockPoll {
		f, err := s.tryLock(s.file(workerID, "lock"))
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, errLocked) {
			return nil, err
		}
		if err := spi.SystemClock.Sleep(ctx, lockPoll); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// tryLock opens and locks a file. It checks that the file still has that name, because users may
// remove lock files.
func (s *fileStore) tryLock(name string) (*os.File, error) {
	f, err := s.open(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if s.mode() == 0o660 {
		_ = f.Chmod(0o660) // independent of the umask; only the file's owner can do it
	}
	if err := flock(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	if err := hasName(f, name); err != nil {
		_ = f.Close()
		return nil, err // errLocked makes the caller try again with the new file
	}
	return f, nil
}

// hasName returns errLocked if the lock's file no longer has that name.
func hasName(lock *os.File, name string) error {
	locked, err := lock.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Lstat(name); err != nil || !os.SameFile(locked, named) {
		return errLocked
	}
	return nil
}
