package testserver

import (
	"os"
	"path/filepath"
	"strings"
)

const dirPrefix = "shardkey-testserver-"

// makeDir makes a directory for a server. The returned function removes it.
//
// Its owner holds a lock on a file in it, which the kernel gives up when the
// owner dies: directories without an owner are removed on the way. The name is
// short, since a socket's path may have 107 bytes.
func makeDir(name string) (dir string, remove func(), err error) {
	removeAbandoned()
	dir, err = os.MkdirTemp("", dirPrefix+name+"-")
	if err != nil {
		return "", nil, err
	}
	// It gets its name once it is locked: nobody sees it without its owner.
	lock, err := os.Create(lockFile(dir) + ".new")
	if err == nil {
		err = tryLock(lock)
	}
	if err == nil {
		err = os.Rename(lock.Name(), lockFile(dir))
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}, nil
}

func lockFile(dir string) string { return filepath.Join(dir, "lock") }

func removeAbandoned() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range dirs {
		// One without a lock file has just been made.
		lock, err := os.Open(lockFile(dir))
		if err != nil {
			continue
		}
		if tryLock(lock) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}

// Lock waits for the lock on a file, which it creates if there is none. The kernel releases the
// lock when the process dies.
func Lock(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := awaitLock(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// tail returns the last lines of a file, for an error's text.
func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
