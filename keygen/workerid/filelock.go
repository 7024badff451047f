package workerid

import (
	"context"
	"errors"
	"os"
	"time"
)

// errLocked says that another process holds the lock.
var errLocked = errors.New("locked")

// lock takes the lock of a worker id, which ends with the process at the
// latest. Both results are nil when others have held it for too long.
func (s *fileStore) lock(ctx context.Context, workerID int64) (unlock func(), err error) {
	for waited := time.Duration(0); waited < lockPatience; waited += lockPoll {
		f, err := tryLock(s.file(workerID, "lock"))
		if err == nil {
			return func() { _ = f.Close() }, nil // closing unlocks
		}
		if !errors.Is(err, errLocked) {
			return nil, err
		}
		if err := pause(ctx, lockPoll); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// tryLock opens and locks a file, and makes sure that it is still the one of
// that name: people remove lock files.
func tryLock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	locked, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	if named, err := os.Stat(name); err != nil || !os.SameFile(locked, named) {
		_ = f.Close()
		return nil, errLocked // look again, at the new one
	}
	return f, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
