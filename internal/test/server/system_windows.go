package testserver

import (
	"errors"
	"os"
	"syscall"
)

// Windows has neither flock nor signals that pause a process, so no server starts there.
// Tests that need a server use the servers that the environment names.

const (
	pauseSignal  = syscall.Signal(-1)
	resumeSignal = syscall.Signal(-1)
)

func tryLock(*os.File) error { return errors.ErrUnsupported }

func awaitLock(*os.File) error { return errors.ErrUnsupported }

func setAttributes(*syscall.SysProcAttr) {}

func stopped(int) bool { return true }
