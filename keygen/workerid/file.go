package workerid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// fileStore keeps each worker ID's record in a file of its own:
//
//	path/namespace/0017.json   the record, replaced atomically
//	path/namespace/0017.lock   locked (flock) while it is compared and replaced
//
// Others may be able to write in the directory, as in /tmp: no link is followed,
// what is no regular file is not read or written, and no file is opened but by its
// owner, or the directory's group where that may write there.
//
// Each worker ID has its own lock, so that a process which is stopped while it
// holds one blocks no other: they skip that worker ID.
type fileStore struct {
	path   string // as configured
	dir    string
	closed atomic.Bool
}

// newFileStore keeps records in a directory of a local file system, which is
// made when absent. Many processes of one machine may share it; machines may
// not, neither by a network file system nor by copying it.
func newFileStore(path, namespace string) *fileStore {
	return &fileStore{path: path, dir: filepath.Join(path, namespace)}
}

// maxRecord is more than any record has, in bytes.
const maxRecord = 64 << 10

// errNotRegular says that a link, a FIFO or a directory stands where a file of
// ours would.
var errNotRegular = errors.New("it is not a regular file")

// odd makes a [ForeignRecordError] of an error that a file of this worker ID alone has: it is no
// regular file, or another user's. Other worker IDs can be had. Where the file is not there
// at all, the error is that of the directory, and all worker IDs have it.
func (s *fileStore) odd(workerID int64, err error) error {
	var at *fs.PathError
	if !errors.As(err, &at) {
		return err
	}
	_, statErr := os.Lstat(at.Path)
	if errors.Is(err, errNotRegular) || statErr == nil && (errors.Is(err, fs.ErrPermission) || isOddFile(err)) {
		return &ForeignRecordError{WorkerID: workerID, Err: err}
	}
	return err
}

// open opens a file of ours, and makes it where flags say so.
func (s *fileStore) open(name string, flags int) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
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

// mode is that of new files: they are this user's, and the group's where the
// directory is as well. Who may open a lock file, may hold the lock.
func (s *fileStore) mode() fs.FileMode {
	if info, err := os.Stat(s.dir); err == nil && info.Mode()&0o020 != 0 {
		return 0o660
	}
	return 0o600
}

// Waiting for a lock: how often to look, and when to call the record busy.
const (
	lockPoll     = 2 * time.Millisecond
	lockPatience = 250 * time.Millisecond
)

var recordFile = regexp.MustCompile(`^([0-9]{4,})\.json$`)

func (s *fileStore) info() Info { return Info{Name: "FILE " + s.path} }

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
		m := recordFile.FindStringSubmatch(f.Name())
		if m == nil {
			continue
		}
		id, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			continue
		}
		r, err := s.read(id)
		var foreign *ForeignRecordError
		if err != nil && !errors.As(err, &foreign) {
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
	if err := s.makeDir(); err != nil {
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

// replace writes a record next to the old one, makes it last, puts it in the old
// one's place and makes that last too. The caller holds the lock. If its file was
// removed in the meantime, another process may hold a lock of that name.
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
	if err := syncDir(s.dir); err != nil {
		return false, err
	}
	return true, nil
}

// writeSynced writes a new file, in place of what a crashed process, or anybody,
// left under that name.
func (s *fileStore) writeSynced(name, text string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := s.open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	err = f.Chmod(s.mode()) // whatever the umask
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = fsync(f)
	}
	return errors.Join(err, f.Close())
}

// makeDir makes the namespace's directory, and its name in its parents last.
func (s *fileStore) makeDir() error {
	var missing []string
	for dir := s.dir; ; dir = filepath.Dir(dir) {
		stat := os.Stat
		if dir == s.dir {
			stat = os.Lstat // anybody's link would lead the records elsewhere
		}
		if info, err := stat(dir); err == nil {
			if !info.IsDir() {
				return fmt.Errorf("%s: not a directory", dir)
			}
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, dir)
	}
	if len(missing) == 0 {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	for _, dir := range missing {
		if err := syncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(fsync(d), d.Close())
}

// fsync is replaced by tests, which cannot cut the power.
var fsync = (*os.File).Sync

// errLocked says that another process holds the lock.
var errLocked = errors.New("locked")

// lock takes the lock of a worker ID, which closing ends, or the process's end.
// Both results are nil when others have held it for too long.
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

// tryLock opens and locks a file, and makes sure that it is still the one of
// that name: people remove lock files.
func (s *fileStore) tryLock(name string) (*os.File, error) {
	f, err := s.open(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Size() == 0 && s.mode() == 0o660 && info.Mode().Perm() == 0o640 {
		_ = f.Chmod(0o660) // made a moment ago, under a umask that takes the group's right to write
	}
	if err := flock(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	if err := hasName(f, name); err != nil {
		_ = f.Close()
		return nil, err // errLocked: look again, at the new one
	}
	return f, nil
}

// hasName returns errLocked when a lock's file is no longer the one of that name.
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
