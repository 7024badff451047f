package machine

// A process that was saved, with its virtual machine or alone, and started again
// from what was saved, perhaps several times, does not notice: its memory is what it
// was. Generation and Identity are what differs from outside.
//
// Linux tells its programs little: the generation id of virtual machines
// (vmgenid) goes into the kernel's random numbers and is given to no program, and
// boot id, machine id, process id and the process's memory are the snapshot's.
// What is left is a counter in the memory of the VMClock device, where the
// hypervisor has one (https://uapi-group.org/specifications/specs/vmclock/), for
// machines, and boot id and start time for processes that were saved alone
// (https://criu.org), which the kernel that they run on again has started itself.

// Generation changes when this virtual machine was started from a snapshot, and
// where the hypervisor does not tell that apart, when it was moved to another
// host. It is 0 where nothing tells. It costs one load from memory.
func Generation() uint64 {
	if counter := vmClock(); counter != nil {
		return counter.Load()
	}
	return 0
}

// Identity changes when this process was saved and is started again by itself, as
// containers are. It is "" where nothing tells. It costs two small files of /proc,
// some 20 µs.
func Identity() string { return identity() }
