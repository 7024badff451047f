package uuid

import (
	"fmt"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Describe tells version and format.
func (g *Generator) Describe() string {
	return fmt.Sprintf("UUID version %d, format %s", g.cfg.Version, g.cfg.Format)
}

// Health tells how many keys were made, and for version 7 how far the newest
// one is ahead of the clock.
func (g *Generator) Health() spi.Health {
	h := spi.Health{WorkerID: -1, Issued: g.issued.sum()}
	last := g.last.Load()
	if now, err := g.now(); err == nil && last > now {
		h.Borrowed = time.Duration((last-now)>>12) * time.Millisecond
	}
	return h
}
