package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// endWithParent has the kernel send SIGTERM when the process that started this
// one, as "go run", dies without telling.
func endWithParent() {
	runtime.LockOSThread() // the setting is the thread's
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0)
}
