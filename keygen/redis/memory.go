package redis

import (
	"fmt"
	"time"
)

// memory is what a generator remembers of its shard's time line, in case the server loses it.
type memory struct {
	floor  position  // the last position from the server
	server int64     // the server's clock, in milliseconds since 1970, …
	line   int64     // … and the current position of the time line, …
	local  time.Time // … when the local clock had this time
	lost   int64     // number of times that the server had lost its state
}

// args returns the arguments of reserve.lua for n positions.
func (g *generator) args(now time.Time, n int, run string) []any {
	g.mu.Lock()
	defer g.mu.Unlock()
	return []any{n, int64(g.memory.floor), g.memory.reach(now), g.epoch.UnixMilli(), now.UnixMilli(), run}
}

// reach returns the minimum current position of the time line. It uses only differences of the
// local clock. Differences of the system clock are monotonic.
func (m *memory) reach(now time.Time) int64 {
	if m.local.IsZero() {
		return 0
	}
	return m.line + max(0, now.Sub(m.local).Milliseconds())
}

// answered records the reply to a request for n positions that was sent at start.
func (g *generator) answered(start time.Time, n int, r reply) {
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	f, m := &g.figures, &g.memory
	f.Fetches, f.FetchTime = new(*f.Fetches+1), now.Sub(start)
	if r.kind != "ok" && r.kind != "wait" {
		return
	}
	if r.lost {
		m.lost++
		f.Warnings = []string{fmt.Sprintf("the server %s has lost the state %s %d times. "+
			"Keys continued after it, but make the server's data durable", g.server.addr, g.stateKey, m.lost)}
	}
	if r.kind == "ok" && n > 0 {
		m.floor = max(m.floor, r.first+position(n)-1)
		f.Borrowed = new(max(0, time.Duration(m.floor.ms()-r.now)*time.Millisecond))
		f.Err = nil
	}
	if start.Before(m.local) {
		return // a reply to an older request than the last
	}
	if r.now < m.server {
		f.ClockSteps = new(*f.ClockSteps + 1)
	}
	m.server, m.line, m.local = r.now, r.time, now
}
