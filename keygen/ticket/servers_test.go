package ticket

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// Two servers of offsets 1 and 2, one of them stopped in the middle, then back.
func TestPool_serverStopsInTheMiddle(t *testing.T) {
	if testserver.Each(t, TestPool_serverStopsInTheMiddle) {
		return
	}
	t.Parallel()
	a, dsnA := ticketServer(t, 2, 1)
	_, dsnB := ticketServer(t, 2, 2)
	clock := &stepClock{}
	g := newGen(t, config{DSNs: []string{dsnA, dsnB}, Clock: clock})
	var keys ledger
	take := func(n int) (odd, even int) {
		for i := range n {
			own := mustKeys(t, g, 1+i%3)
			keys.add(t, own...)
			if own[0]%2 == 1 {
				odd++
			} else {
				even++
			}
		}
		return odd, even
	}
	for step, want := range []struct {
		do        func()
		odd, even int
	}{
		{func() {}, 10, 10},
		{a.Kill, 0, 20},
		{a.Start, 0, 20}, // in its pause
		{func() { clock.step(maxPause) }, 10, 10},
		{a.Stop, 0, 20},
		{func() { a.Start(); clock.step(maxPause) }, 10, 10},
	} {
		want.do()
		if odd, even := take(20); odd != want.odd || even != want.even {
			t.Errorf("step %d\nhave: %d of the first server, %d of the second\nwant: %d, %d", step, odd, even, want.odd, want.even)
		}
		if failing := g.Health().Err != nil; failing != (want.odd == 0) {
			t.Errorf("step %d\nhave: health %v\nwant: an error while one is down", step, g.Health().Err)
		}
	}
}

func TestPool_everythingDown(t *testing.T) {
	if testserver.Each(t, TestPool_everythingDown) {
		return
	}
	t.Parallel()
	a, dsn := ticketServer(t, 1, 1)
	g := newGen(t, config{DSNs: []string{dsn}})
	first := mustKeys(t, g, 1)[0]
	a.Stop()
	for range 3 {
		err := g.GenerateInt64Keys(t.Context(), column, make([]int64, 1))
		if !errors.Is(err, spi.ErrStore) || g.Health().Err == nil {
			t.Errorf("\nhave: %v, health %v\nwant: spi.ErrStore twice", err, g.Health().Err)
		}
	}
	a.Start()
	if k := mustKeys(t, g, 1)[0]; k <= first || g.Health().Err != nil {
		t.Errorf("\nhave: %d, health %v\nwant: above %d, well", k, g.Health().Err, first)
	}
}

func TestPool_settings(t *testing.T) {
	if testserver.Each(t, TestPool_settings) {
		return
	}
	t.Parallel()
	_, one := ticketServer(t, 2, 1)
	_, alsoOne := ticketServer(t, 2, 1)
	repaired, three := ticketServer(t, 2, 3)
	tests := []struct {
		name   string
		config config
		says   string
	}{
		{"same offset", config{DSNs: []string{one, alsoOne}}, "give each server its own"},
		{"same server twice", config{DSNs: []string{one, one}}, "give each server its own"},
		{"increment of the server is larger", config{DSNs: []string{one}}, "auto_increment_increment is 2, not 1"},
		{"increment of the server is smaller", config{DSNs: []string{one}, Increment: 4}, "auto_increment_increment is 2, not 4"},
		{"offset beyond the increment", config{DSNs: []string{three}, Increment: 2}, "auto_increment_offset 3 is above"},
		{"another offset", config{DSNs: []string{one}, Increment: 2, Offsets: []int64{2}}, "auto_increment_offset is 1, not 2"},
		{"the second is wrong", config{DSNs: []string{one, three}}, "auto_increment_offset 3 is above"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGen(t, tt.config)
			for range 4 { // whichever server's turn it is
				keys, err := g.GenerateKeys(t.Context(), column, 1)
				if !errors.Is(err, errSettings) || !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("\nhave: %v %v\nwant: errSettings that says %q", keys, err, tt.says)
				}
			}
		})
	}
	t.Run("changed while live", func(t *testing.T) {
		_, a := ticketServer(t, 2, 1)
		changed, b := ticketServer(t, 2, 2)
		g := newGen(t, config{DSNs: []string{a, b}})
		mustKeys(t, g, 1)
		mustKeys(t, g, 1)
		changed.Stop()
		mustKeys(t, g, 1)
		changed.Start()
		mustExec(t, openDB(t, changed.DSN()), "SET GLOBAL auto_increment_increment = 3")
		g.pool.members[1].up() // its pause is over
		failed := 0
		for range 6 {
			if _, err := g.GenerateKeys(t.Context(), column, 1); errors.Is(err, errSettings) {
				failed++
			}
		}
		if failed < 5 {
			t.Errorf("\nhave: %d of 6 calls refused\nwant: all from when it is seen", failed)
		}
	})
	t.Run("first of two repaired while live", func(t *testing.T) {
		a, first := ticketServer(t, 2, 1)
		g := newGen(t, config{DSNs: []string{first, one}})
		if _, err := g.GenerateKeys(t.Context(), column, 1); !errors.Is(err, errSettings) {
			t.Fatalf("\nhave: %v\nwant: errSettings", err)
		}
		mustExec(t, openDB(t, a.DSN()), "SET GLOBAL auto_increment_offset = 2")
		mustKeys(t, g, 1)
		mustKeys(t, g, 1)
	})
	t.Run("second repaired while live", func(t *testing.T) {
		g := newGen(t, config{DSNs: []string{one, three}})
		if _, err := g.GenerateKeys(t.Context(), column, 1); !errors.Is(err, errSettings) {
			t.Fatalf("\nhave: %v\nwant: errSettings", err)
		}
		mustExec(t, openDB(t, repaired.DSN()), "SET GLOBAL auto_increment_offset = 2")
		var keys ledger
		keys.add(t, mustKeys(t, g, 5)...)
		keys.add(t, mustKeys(t, g, 5)...)
	})
}
