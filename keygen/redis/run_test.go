package redis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

// A generator tells the script which process of the server it speaks to: that is
// how a server that has come up without its last writes is known.
func TestGenerator_sendsTheRunOfTheServer(t *testing.T) {
	s := start(t)
	g := open(t, s.Addr())
	mustKeys(t, g, 1)
	c := client(t, s.Addr())
	info, err := c.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	have, err := c.HGet(t.Context(), g.stateKey, "run").Result()
	if err != nil || len(have) != 40 || !strings.Contains(info, "run_id:"+have) {
		t.Errorf("run in the state\nhave: %q, %v\nwant: the server's run_id", have, err)
	}
}

// A restart without the last writes while the server's clock is behind: the time line
// goes on as far ahead of the clock as it was, also for a process that knows nothing
// of it.
func TestSimulation_restartWhileTheClockIsBehind(t *testing.T) {
	addr := testserver.Redis(t)
	for name, c := range map[string]struct {
		source string
		repeat bool
	}{
		"as it is":        {reserveSource, false},
		"without the lag": {strings.Replace(reserveSource, "fresh and lag or", "fresh and 0 or", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.repeat && c.source == reserveSource {
				t.Fatal("the script is as it was")
			}
			w := newWorld(t, addr, c.source, 1)
			w.offset -= 10_000
			w.askAll()
			state := w.redis.HGetAll(t.Context(), w.key).Val()
			w.now += 5000
			w.askAll()
			w.run++
			w.restore(state)
			w.newGenerator()
			w.ask(w.gens[len(w.gens)-1], 1)
			if (w.repeat != nil) != c.repeat {
				t.Errorf("have: %v\nwant: a repeat: %v", fmt.Sprint(w.repeat), c.repeat)
			}
		})
	}
}
