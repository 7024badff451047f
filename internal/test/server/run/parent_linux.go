package main

import (
	"runtime"
	"syscall"
)

// endWithParent has the kernel send SIGTERM when the process that started this
// one, as "go run", dies without telling.
func endWithParent() {
	runtime.LockOSThread() // the setting is the thread's
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0)
}
