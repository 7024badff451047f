package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// memory is what a generator knows of its shard's time line, for when the
// server does not know it any more.
type memory struct {
	floor  position  // the last position it had from there
	server int64     // the server's clock, in milliseconds since 1970, and
	line   int64     // the time line's now, …
	local  time.Time // … when ours said this
	lost   int64     // how often the server had forgotten
}

// request is the next question for reserve.lua.
func (g *Generator) request(now time.Time, n int, run string) request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return request{key: g.stateKey, n: n, floor: g.memory.floor, reach: g.memory.reach(now), epoch: g.epoch, caller: now, run: run}
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
func (g *Generator) answered(start time.Time, req request, r reply) {
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.health.Fetches++
	g.health.FetchTime = now.Sub(start)
	if r.kind != "ok" && r.kind != "wait" {
		return
	}
	m := &g.memory
	if r.lost {
		m.lost++
		g.health.Warnings = []string{fmt.Sprintf("the server %s forgot the state %s, %d times: keys went on behind it, but see that it keeps its data", g.server.name(), g.stateKey, m.lost)}
	}
	if r.kind == "ok" && req.n > 0 {
		m.floor = max(m.floor, r.first+position(req.n)-1)
		g.health.Borrowed = max(0, time.Duration(m.floor.ms()-r.now)*time.Millisecond)
		g.health.Err = nil
	}
	if start.Before(m.local) {
		return // an older question's answer than the last
	}
	if r.now < m.server {
		g.health.ClockSteps++
	}
	m.server, m.line, m.local = r.now, r.time, now
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
		{context.Canceled, "cancelled"}, {context.DeadlineExceeded, "cancelled"}, {spi.ErrClosed, "closed"},
		{spi.ErrTimeOverflow, "time-overflow"}, {spi.ErrStore, "store"},
	} {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	return "other"
}

// Health is a snapshot. Err is the last call's error; Borrowed is how far the
// newest key's time is ahead of the server's clock.
func (g *Generator) Health() spi.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.health
	h.Errors = maps.Clone(h.Errors)
	return h
}
