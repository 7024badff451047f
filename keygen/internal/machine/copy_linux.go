package machine

import (
	"bytes"
	"encoding/binary"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// vmClock is the counter that changes with each start from a snapshot; nil when
// there is none, or this user may not read the device.
var vmClock = sync.OnceValue(func() *atomic.Uint64 { return mapVMClock("/dev/vmclock0") })

// What is where in the device's memory (linux/vmclock-abi.h); all little-endian.
const (
	vmClockMagic      = "VCLK"
	vmClockVersion    = 8
	vmClockDisruption = 16 // changes with each move to another host, and with each snapshot
	vmClockFlags      = 24
	vmClockGeneration = 104 // changes with each snapshot, where the flag says so
	vmClockEnd        = 112

	vmClockHasGeneration = 1 << 8
)

func mapVMClock(path string) *atomic.Uint64 {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, vmClockEnd)
	if _, err := f.ReadAt(head, 0); err != nil || !bytes.HasPrefix(head, []byte(vmClockMagic)) || head[vmClockVersion] != 1 {
		return nil
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, os.Getpagesize(), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	at := vmClockDisruption
	if binary.LittleEndian.Uint64(head[vmClockFlags:])&vmClockHasGeneration != 0 {
		at = vmClockGeneration
	}
	return (*atomic.Uint64)(unsafe.Pointer(&memory[at])) // for as long as the process lives
}

func identity() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(boot)) + " " + startTime(stat)
}

// startTime is field 22 of a process's stat. Field 2, its name in parentheses, may
// have spaces and parentheses of its own:
// https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
func startTime(stat []byte) string {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return string(fields[19])
}
