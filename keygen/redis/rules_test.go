package redis

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/workerid"
)

// A call for more keys than the script makes at once does not run further ahead
// of the clock than one that the script makes: what a server that lost its state
// begins behind rests on it.
func TestGenerator_largeCallStaysWithinTheMargin(t *testing.T) {
	g := open(t, testserver.Redis(t))
	mustKeys(t, g, 5*maxBatch)
	const margin = (64 + 65) * time.Millisecond // MARGIN in reserve.lua
	if have := *g.Health().Borrowed; have > margin {
		t.Errorf("\nhave: keys %v ahead of the clock\nwant: %v at most", have, margin)
	}
}

// What a generator knows of its time line is the newest answer's, and the last
// position of all that it had.
func TestMemory_isOfTheNewestAnswer(t *testing.T) {
	w := &world{t: t, now: 1_790_000_000_000}
	g := newOffline(t, w, map[string]any{"addr": "sim:1"})
	first := position(w.now << layout.SequenceBits)
	older := w.Now()
	w.now += 10
	newer := w.Now()
	w.now += 10
	g.answered(newer, request{n: 5}, reply{kind: "ok", first: first + 100, now: 2000, time: 2100})
	g.answered(older, request{n: 300}, reply{kind: "ok", first: first, now: 1000, time: 1100})
	want := memory{floor: first + 299, server: 2000, line: 2100, local: time.UnixMilli(w.now)}
	if g.memory != want {
		t.Errorf("\nhave: %+v\nwant: %+v", g.memory, want)
	}
	w.now += 700
	if have := g.request(w.Now(), 1, ""); have.floor != want.floor || have.reach != 2800 {
		t.Errorf("\nhave: floor %d, reach %d\nwant: %d, 2800", have.floor, have.reach, want.floor)
	}
}

// The keys of a call that fit into one millisecond are in one, wherever the last
// call ended.
func TestScript_callStaysInAMillisecond(t *testing.T) {
	w := newWorld(t, testserver.Redis(t), reserveSource, 1)
	w.now += 60_000                                                   // a new state begins as far ahead of the clock as it may
	for i, n := range []int{1, 1023, 1000, 30, 1000, 1024, 2, 1024} { // all at one time
		r, err := w.gens[0].ask(t.Context(), scripter{w: w}, n, "")
		if used := int(r.first % 1024); err != nil || r.kind != "ok" || used+n > 1024 {
			t.Errorf("call %d, of %d keys\nhave: %s, the first at %d of 1024 (%v)\nwant: all in one millisecond", i, n, r.kind, used, err)
		}
	}
}

// A swap whose answer is lost is not sent again: the second one would find what
// the first had done, and say no.
func TestStore_swapIsSentOnce(t *testing.T) {
	var sent atomic.Int32
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			sent.Add(1)
			_, _ = conn.Read(make([]byte, 1)) // the question is there, and the answer does not come
			_ = conn.Close()
		}
	}()
	s := newStore(offlineServer(t, l.Addr().String()), unique(t))
	defer s.Close()
	if swapped, err := s.CompareAndSet(context.Background(), 1, workerid.Record{}, workerid.Record{Owner: "o", ReservedUntil: 1}); swapped || err == nil {
		t.Errorf("\nhave: %v, %v\nwant: an error", swapped, err)
	}
	if have := sent.Load(); have != 1 {
		t.Errorf("\nhave: tried %d times\nwant: once", have)
	}
}

func offlineServer(t *testing.T, addr string) *server {
	t.Helper()
	s, err := newServer(props(t, map[string]any{"addr": addr}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
