package snowflake

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// tableWrites returns the keys of several tables that are written with one generator.
type tableWrites func(t *testing.T, cfg config, tables, keys int) [][]int64

// inTurn writes rows to each table in turn. After each table, the clock advances by step, and after
// each turn by pause.
func inTurn(rows func(turn, table int) int, step func() time.Duration, pause time.Duration) tableWrites {
	return func(t *testing.T, cfg config, tables, least int) [][]int64 {
		g, clock := fixed(t, cfg)
		mustKeys(t, g, 1) // of another table
		if cfg.ClockBack == clockBackBorrow {
			clock.step(-time.Hour)
		}
		keys := make([][]int64, tables)
		for turn := 0; len(keys[tables-1]) < least; turn++ {
			for i := range keys {
				keys[i] = append(keys[i], tableKeys(t, g, i, rows(turn, i))...)
				clock.step(step())
			}
			clock.step(pause)
		}
		return keys
	}
}

// interleaved writes batches of 1 to 3 rows to tables in a random order, as goroutines that share a
// generator do. A seed instead of goroutines makes each run the same.
func interleaved(t *testing.T, cfg config, tables, least int) [][]int64 {
	g, clock := fixed(t, cfg)
	keys, rows := make([][]int64, tables), make([]int, tables)
	rnd := rand.New(rand.NewPCG(1, 2))
	for done := 0; done < tables; {
		i := rnd.IntN(tables)
		if len(keys[i]) >= least {
			continue
		}
		rows[i] = 1 + rows[i]%3
		keys[i] = append(keys[i], tableKeys(t, g, i, rows[i])...)
		clock.step(300 * time.Microsecond)
		if len(keys[i]) >= least {
			done++
		}
	}
	return keys
}

func tableKeys(t *testing.T, g *generator, table, n int) []int64 {
	keys := make([]int64, n)
	err := g.GenerateInt64Keys(t.Context(), spi.Column{Table: fmt.Sprint("t_", table), Name: "id"}, keys)
	if err != nil {
		t.Error(err)
	}
	return keys
}

func every(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

func irregular() func() time.Duration {
	rnd := rand.New(rand.NewPCG(1, 2))
	return func() time.Duration { return time.Duration(rnd.IntN(4000)) * time.Microsecond }
}

// unevenness returns the largest distance of a remainder's number of keys from an even share.
func unevenness(keys []int64, n int64) (most float64) {
	count := make([]int, n)
	for _, key := range keys {
		count[key%n]++
	}
	even := float64(len(keys)) / float64(n)
	for _, have := range count {
		most = max(most, float64(have)/even-1, 1-float64(have)/even)
	}
	return most
}

// With max-vibration-offset n-1, the keys of each table spread evenly over the remainders modulo n,
// however the tables that share a generator are written.
func TestGenerator_spreadsKeysOfEachTable(t *testing.T) {
	one := func(int, int) int { return 1 }
	long := Layout{TimeBits: 41, WorkerBits: 10, SequenceBits: 12, Tick: 10 * ms}
	keys, moduli, tables := 12800, []int64{2, 7, 16, 60, 64}, []int{1, 2, 3, 8}
	if os.Getenv("SHARDKEY_SOAK") != "" { // takes minutes
		moduli, tables = nil, []int{1, 2, 3, 4, 5, 6, 7, 8}
		for n := int64(2); n <= 64; n++ {
			moduli = append(moduli, n)
		}
	}
	t.Logf("%-34s largest distance from even, by number of tables %v", "", tables)
	for _, tt := range []struct {
		name  string
		cfg   config
		write tableWrites
	}{
		{"one by one, 1 ms apart", config{}, inTurn(one, every(ms), 0)},
		{"one by one, 2 ms apart", config{}, inTurn(one, every(2*ms), 0)},
		{"one by one, 3 ms apart", config{}, inTurn(one, every(3*ms), 0)},
		{"one by one, 0.2 ms apart", config{}, inTurn(one, every(ms/5), 0)},
		{"one by one, up to 4 ms apart", config{}, inTurn(one, irregular(), 0)},
		{"all in one ms", config{}, inTurn(one, every(0), 2*ms)},
		{"second table in every second turn", config{}, inTurn(func(turn, i int) int { return (turn+1)%(i%2+1) ^ 1 }, every(0), ms)},
		{"nth table in every nth turn", config{}, inTurn(func(turn, i int) int { return max(0, 1-turn%(i+1)) }, every(0), ms)},
		{"batches of 3", config{}, inTurn(func(int, int) int { return 3 }, every(2*ms), 0)},
		{"order and items", config{}, inTurn(func(_, i int) int { return 1 + i*3 }, every(0), 3*ms)},
		{"interleaved", config{}, interleaved},
		{"saturated", config{}, inTurn(one, every(0), 0)},
		{"borrowed", config{ClockBack: clockBackBorrow}, inTurn(one, every(2*ms), 0)},
		{"ring", config{RingSize: 200}, inTurn(one, every(2*ms), 0)},
		{"ring, all in one ms", config{RingSize: 200}, inTurn(one, every(0), 2*ms)},
		{"ring, saturated", config{RingSize: 200}, inTurn(one, every(0), 0)},
		{"js53", config{Layout: js53}, inTurn(one, every(20*ms), 0)},
		{"tick of 10 ms", config{Layout: long}, inTurn(one, every(4*ms), 0)},
	} {
		var line strings.Builder
		for _, count := range tables {
			most := 0.0
			for _, n := range moduli {
				cfg := tt.cfg
				cfg.WorkerID, cfg.MaxVibrationOffset = 3, n-1
				for i, own := range tt.write(t, cfg, count, keys) {
					bad := unevenness(own, n)
					if most = max(most, bad); bad > 0.2 {
						t.Errorf("%s, table %d of %d, modulo %d\nhave: up to %.0f %% from even\nwant: 20 %% at most",
							tt.name, i, count, n, bad*100)
					}
				}
			}
			fmt.Fprintf(&line, "%4.0f %%", most*100)
		}
		t.Logf("%-34s %s", tt.name, &line)
	}
}

// Columns have no influence on which keys are unique: a key of one column is no other column's.
func TestGenerator_keysOfColumnsDiffer(t *testing.T) {
	for _, ring := range []int{1, 200} {
		g := mustNew(t, config{WorkerID: 3, MaxVibrationOffset: 15, RingSize: ring, Epoch: DefaultEpoch.Add(time.Duration(ring) * ms)})
		keys := make([][]int64, 8)
		var all sync.WaitGroup
		for i := range keys {
			all.Go(func() {
				for j := range 4000 {
					keys[i] = append(keys[i], tableKeys(t, g, (i+j)%5, 1+j%3)...)
				}
			})
		}
		all.Wait()
		every := slices.Concat(keys...)
		slices.Sort(every)
		must.Equal(t, len(slices.Compact(every)), 8*(4000*2-1), "different keys")
		must.Equal(t, g.Health().Issued, int64(8*(4000*2-1)), "issued")
	}
}
