package uuid

import (
	"sync/atomic"
	"unsafe"
)

// counter counts UUIDs without making goroutines meet: each one mostly adds to
// a cell of its own, which the address of its stack chooses. (A cell chosen at
// random is as often as not in another processor's cache.)
type counter [16]struct {
	n atomic.Int64
	_ [56]byte // a cache line each
}

// add adds n; local is a variable on the caller's stack, of which only the
// address matters.
func (c *counter) add(local *byte, n int) {
	const golden = 0x9e3779b97f4a7c15                     // spreads neighbours
	stack := uint64(uintptr(unsafe.Pointer(local))) >> 11 // stacks have 2 KiB or more
	c[stack*golden>>60].n.Add(int64(n))
}

func (c *counter) sum() (n int64) {
	for i := range c {
		n += c[i].n.Load()
	}
	return n
}
