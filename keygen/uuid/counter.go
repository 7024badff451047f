package uuid

import "sync/atomic"

// counter counts UUIDs without making goroutines meet: each one adds to a
// cell that the UUID's own random last byte chooses.
type counter [16]struct {
	n atomic.Int64
	_ [56]byte // a cache line each
}

func (c *counter) add(random byte, n int) {
	c[random%16].n.Add(int64(n))
}

func (c *counter) sum() (n int64) {
	for i := range c {
		n += c[i].n.Load()
	}
	return n
}
