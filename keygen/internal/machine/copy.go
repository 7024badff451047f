package machine

import "time"

// A process that was saved, with its virtual machine or alone, and started again
// from what was saved, perhaps several times, does not notice: its memory is what it
// was. Boot id, machine id and process id are the snapshot's as well. Identity is what
// differs for a process that was saved alone (https://criu.org): the kernel that it runs
// on again has started it itself.

// Identity changes when this process was saved and is started again by itself, as
// containers are. It is "" where nothing tells. It costs two small files of /proc,
// some 20 µs.
func Identity() string { return identity() }

// Uptime is how long the machine has run, the time that it was suspended included. It is
// false where nothing tells.
func Uptime() (time.Duration, bool) { return uptime() }
