package redis

import (
	"fmt"
	"time"
)

// memory is what a generator knows of its shard's time line, for when the
// server has lost it.
type memory struct {
	floor  position  // the last position it had from there
	server int64     // the server's clock, in milliseconds since 1970, and
	line   int64     // the time line's now, …
	local  time.Time // … when ours said this
	lost   int64     // how often the server had forgotten
}

// request is the next question for reserve.lua.
func (g *generator) request(now time.Time, n int, run string) request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return request{
		key: g.stateKey, n: n, floor: g.memory.floor, reach: g.memory.reach(now),
		epoch: g.epoch.UnixMilli(), caller: now, run: run,
	}
}

// reach is where the time line must be by now. Our own clock counts as a
// stopwatch only; the system's does not step in that.
func (m *memory) reach(now time.Time) int64 {
	if m.local.IsZero() {
		return 0
	}
	return m.line + max(0, now.Sub(m.local).Milliseconds())
}

// answered remembers a reply to a question asked at start.
func (g *generator) answered(start time.Time, req request, r reply) {
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
		f.Warnings = []string{fmt.Sprintf("the server %s forgot the state %s, %d times: "+
			"keys went on after it, but see that it keeps its data", g.server.addr, g.stateKey, m.lost)}
	}
	if r.kind == "ok" && req.n > 0 {
		m.floor = max(m.floor, r.first+position(req.n)-1)
		f.Borrowed = new(max(0, time.Duration(m.floor.ms()-r.now)*time.Millisecond))
		f.Err = nil
	}
	if start.Before(m.local) {
		return // an older question's answer than the last
	}
	if r.now < m.server {
		f.ClockSteps = new(*f.ClockSteps + 1)
	}
	m.server, m.line, m.local = r.now, r.time, now
}
