package workerid

import "sync"

// here are the leases that this process holds, in all stores, so that an error can
// say whose the worker ids are that are taken.
var here sync.Map // of leaseName

// leaseName tells a lease from all others that processes hold at the same time. A
// record keeps it as long as its holder has it.
type leaseName struct {
	workerID int64
	holder   string
	since    int64
}

func nameOf(workerID int64, r Record) leaseName { return leaseName{workerID, r.Holder, r.Since} }

// isHere reports whether the entry is a lease of this process.
func (e Entry) isHere() bool {
	_, ok := here.Load(nameOf(e.WorkerID, e.Record))
	return ok
}
