package workerid

import (
	"bytes"
	"os"
	"time"
)

// identity changes when this process was saved alone and is started again from that, as containers
// are (https://criu.org): the kernel on which it continues has started it then. It is "" if that
// is unknown. It reads two small files of /proc, which takes some 20 µs.
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

// uptime is how long the machine has run, the time for which it was suspended included; false if
// that is unknown. It is the first field of /proc/uptime, in seconds:
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
