package workerid

import (
	"bytes"
	"os"
	"syscall"
	"time"
)

// identity returns a string that changes if this process was saved and restored, as containers can
// be (https://criu.org). The kernel that continues it then has another start time for it. It
// returns "" if the identity isn't known. It reads two small files of /proc, which takes about 20
// µs.
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

// startTime returns field 22 of a process's stat file. Field 2, the name in parentheses, may
// contain spaces and parentheses: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
func startTime(stat []byte) string {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return string(fields[19])
}

// fileSystem returns the number of the file system that has a file.
func fileSystem(name string) (uint32, error) {
	var s syscall.Statfs_t
	err := syscall.Statfs(name, &s)
	return uint32(s.Type), err
}

// uptime returns how long the machine has been up, including the time in suspension. ok is false if
// that isn't known. It is the first field of /proc/uptime, in seconds:
// https://man7.org/linux/man-pages/man5/proc_uptime.5.html
func uptime() (time.Duration, bool) {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, false
	}
	seconds, _, _ := bytes.Cut(text, []byte(" "))
	d, err := time.ParseDuration(string(seconds) + "s")
	return d, err == nil
}
