//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package workerid

import (
	"errors"
	"os"
	"slices"
	"syscall"
)

// openPlain are flags for opening our files. They refuse links, and don't wait for a FIFO.
const openPlain = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// isOddFile reports whether the error means that something other than our file has its name.
func isOddFile(err error) bool {
	all := []error{syscall.EISDIR, syscall.ENOTEMPTY, syscall.EEXIST, syscall.ELOOP, syscall.EMLINK, syscall.ENXIO}
	return slices.ContainsFunc(all, func(e error) bool { return errors.Is(err, e) })
}

var errNoFlock error // there is flock

// flock takes the file's exclusive lock, or returns errLocked at once. The lock belongs to the open
// file, so two stores in one process exclude each other too.
func flock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return errLocked
	}
	return err
}
