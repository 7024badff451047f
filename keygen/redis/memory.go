package redis

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// memory is what a generator knows of its server, for when the server itself
// does not know any more.
type memory struct {
	floor  position  // the last position it had from there
	server int64     // the server's clock, in milliseconds since 1970, …
	local  time.Time // … when ours said this
	// lostAt is where the server's clock must have been when the state was
	// first seen lost; 0 while it is not lost.
	lostAt int64
}

// request is the next question for reserve.lua.
func (g *Generator) request(now time.Time, n int, run string) request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return request{key: g.stateKey, n: n, floor: g.memory.floor, resume: g.memory.resume(now), epoch: g.epoch, caller: now, run: run}
}

func (g *Generator) resume(now time.Time) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.memory.resume(now)
}

// resume is where the server's clock must be by now, unless it went back. Our
// own clock counts as a stopwatch only; the system's does not step in that.
func (m *memory) resume(now time.Time) int64 {
	switch {
	case m.lostAt != 0:
		return m.lostAt
	case m.local.IsZero():
		return 0
	}
	return m.server + max(0, now.Sub(m.local).Milliseconds())
}

// answered remembers a reply to a question asked at start.
func (g *Generator) answered(start time.Time, req request, r reply) {
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.health.Fetches++
	g.health.FetchTime = now.Sub(start)
	m := &g.memory
	switch r.kind {
	case "lost":
		if m.lostAt == 0 {
			m.lostAt = req.resume
		}
		return
	case "ok":
		if req.n > 0 {
			m.floor = max(m.floor, r.first+position(req.n)-1)
			g.health.Borrowed = max(0, time.Duration(m.floor.ms()-r.now)*time.Millisecond)
			g.health.Err = nil
		}
	case "wait":
	default:
		return
	}
	m.lostAt = 0
	if r.now < m.server && !start.Before(m.local) {
		g.health.ClockSteps++
	}
	m.server, m.local = r.now, now
}

func (g *Generator) issued(n int) {
	g.mu.Lock()
	g.health.Issued += int64(n)
	g.mu.Unlock()
}

func (g *Generator) waited(d time.Duration) {
	g.mu.Lock()
	g.health.Waits++
	g.health.Waited += d
	g.mu.Unlock()
}

// failed counts an error. That a caller gave up is no illness of ours.
func (g *Generator) failed(err error) {
	kind := errorKind(err)
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.health.Errors == nil {
		g.health.Errors = map[string]int64{}
	}
	g.health.Errors[kind]++
	g.health.LastError, g.health.LastErrorTime = err, now
	if kind != "cancelled" && kind != "closed" {
		g.health.Err = err
	}
}

func errorKind(err error) string {
	for _, k := range []struct {
		err  error
		kind string
	}{
		{context.Canceled, "cancelled"}, {spi.ErrClosed, "closed"}, {spi.ErrClockBack, "clock-back"},
		{spi.ErrTimeOverflow, "time-overflow"}, {spi.ErrStore, "store"},
	} {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	return "other"
}

// Health is a snapshot. Err is the last call's error.
func (g *Generator) Health() spi.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.health
	h.Errors = maps.Clone(h.Errors)
	return h
}
