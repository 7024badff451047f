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

// args is the next question for n places: ARGV of reserve.lua.
func (g *generator) args(now time.Time, n int, run string) []any {
	g.mu.Lock()
	defer g.mu.Unlock()
	return []any{n, int64(g.memory.floor), g.memory.reach(now), g.epoch.UnixMilli(), now.UnixMilli(), run}
}

// reach is where the time line must be by now. Our own clock counts as a
// stopwatch only; the system's does not step in that.
func (m *memory) reach(now time.Time) int64 {
	if m.local.IsZero() {
		return 0
	}
	return m.line + max(0, now.Sub(m.local).Milliseconds())
}

// answered remembers a reply to a question for n places asked at start.
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
		f.Warnings = []string{fmt.Sprintf("the server %s forgot the state %s, %d times: "+
			"keys continued after it, but see that it keeps its data", g.server.addr, g.stateKey, m.lost)}
	}
	if r.kind == "ok" && n > 0 {
		m.floor = max(m.floor, r.first+position(n)-1)
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
