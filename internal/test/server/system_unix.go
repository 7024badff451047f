//go:build unix

package testserver

import (
	"os"
	"syscall"
)

const (
	pauseSignal  = syscall.SIGSTOP
	resumeSignal = syscall.SIGCONT
)

// tryLock locks a file, and fails if another process has the lock.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// awaitLock locks a file as soon as no other process has the lock.
func awaitLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
