package bench

import (
	"syscall"
	"time"
	"unsafe"
)

// ProcessorTime returns the processor time that a process has used so far, or 0 if it can't be read.
// The process ID 0 is this process.
func ProcessorTime(pid int) time.Duration {
	const scheduled = 2 // CPUCLOCK_SCHED; see MAKE_PROCESS_CPUCLOCK in linux/include/linux/posix-timers.h
	var t syscall.Timespec
	_, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(^pid<<3|scheduled), uintptr(unsafe.Pointer(&t)), 0)
	if err != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
