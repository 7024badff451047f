package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/shardkey/shardkey/spi"
)

// ForeignStateError says that a Redis key that should hold our state holds
// something else; it is left as it is. [spi.ErrStore] is in its chain.
type ForeignStateError struct {
	Server string // host:port
	Key    string // the Redis key
	Field  string // what is wrong there: "type" or a field of the hash
	Value  string // its value
}

func (e *ForeignStateError) Error() string {
	if e.Field == "epoch" {
		return fmt.Sprintf("shardkey: REDIS: the state %q at %s belongs to keys of another epoch, %s ms after 1970: keys of two epochs repeat each other; use that epoch, or another namespace and shard-id", e.Key, e.Server, e.Value)
	}
	return fmt.Sprintf("shardkey: REDIS: %q at %s is not what this program has written (%s is %q): use another namespace, or delete it when nobody needs it", e.Key, e.Server, e.Field, e.Value)
}

// Unwrap gives the error that e is a case of.
func (e *ForeignStateError) Unwrap() error { return spi.ErrStore }

// serverError is a failure of the server, with what to do about it.
type serverError struct {
	server string
	advice string
	cause  error
}

func (e *serverError) Error() string {
	msg := fmt.Sprintf("shardkey: REDIS at %s: %v", e.server, e.cause)
	if e.advice != "" {
		msg += "; " + e.advice
	}
	return msg
}

func (e *serverError) Unwrap() []error { return []error{spi.ErrStore, e.cause} }

// wrapError makes the error of a call of the server.
func wrapError(server string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, goredis.ErrClosed):
		return spi.ErrClosed
	}
	return &serverError{server: server, advice: advice(err), cause: err}
}

// advice says the way out of an error of the server, by the word it begins
// with.
func advice(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	msg := err.Error()
	for _, a := range []struct{ word, advice string }{
		{"WRONGPASS", "set the properties username and password"},
		{"NOAUTH", "set the properties username and password"},
		{"invalid password", "set the properties username and password"},
		{"NOPERM", "the user needs eval, evalsha, script, time, type, hmget and hset on the keys of the namespace"},
		{"MOVED", "addr names one node of a cluster: name several, with commas"},
		{"READONLY", "addr names a replica: name the master"},
		{"OOM", "the server's maxmemory is reached"},
		{"MISCONF", "the server cannot write its data to disk"},
		{"x509", "set the property tls to the PEM file of the server's authority"},
		{"tls:", "see whether the server speaks TLS, and the property tls"},
		{"DB index", "set the property db to a database that the server has"},
		{"connection refused", "see that the server runs at this address"},
	} {
		if strings.Contains(msg, a.word) {
			return a.advice
		}
	}
	return ""
}

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
