package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	godruoyi "github.com/godruoyi/go-snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/sony/sonyflake/v2"

	"github.com/shardkey/shardkey/internal/test/must"
	_ "github.com/shardkey/shardkey/keygen/snowflake"
	_ "github.com/shardkey/shardkey/keygen/uuid"
	"github.com/shardkey/shardkey/spi"
)

// BenchmarkKey generates keys one by one, below saturation.
func BenchmarkKey(b *testing.B) {
	for _, s := range slices.Concat(snowflakes, random) {
		for _, goroutines := range []int{1, 2, 16} {
			b.Run(fmt.Sprintf("%s/%d", s.name, goroutines), func(b *testing.B) {
				next := s.open(b)
				b.ReportAllocs()
				b.ResetTimer()
				must.Do(b, AtOnce(goroutines, func(int) error {
					for range b.N/goroutines + 1 {
						if err := next(); err != nil {
							return err
						}
					}
					return nil
				}))
			})
		}
	}
}

// BenchmarkBatch generates keys of shardkey in batches.
func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := must.Get(newGenerator("SNOWFLAKE", props{"layout": wide, "worker-id-assigner": "leases"}))(b)
			defer g.(io.Closer).Close()
			ints := g.(spi.Int64KeyGenerator)
			keys := make([]int64, n)
			b.ReportAllocs()
			for b.Loop() {
				if err := ints.GenerateInt64Keys(context.Background(), spi.Column{}, keys); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
		})
	}
}

// BenchmarkSaturated generates as many keys as layout 41-10-12 permits, in 16 goroutines for a
// second. Timing each call costs more than a key, so the longest call is from another second.
func BenchmarkSaturated(b *testing.B) {
	const most = 4096 * 1000 // keys a second
	for _, s := range saturated {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				keys, cores, _ := saturate(b, s, 16, time.Second, 256)
				_, _, stall := saturate(b, s, 16, time.Second, 1)
				b.ReportMetric(100*keys/most, "%")
				b.ReportMetric(cores, "cores")
				b.ReportMetric(float64(stall.Microseconds()), "µs-stall")
			}
		})
	}
}

// saturate generates keys for d in goroutines. It returns the keys and the processor time per
// second, and the longest time of a batch.
func saturate(t testing.TB, s subject, goroutines int, d time.Duration, batch int) (
	keys, cores float64, stall time.Duration) {
	next := s.open(t)
	time.Sleep(100 * time.Millisecond) // unused ticks of the previous run would count
	var mu sync.Mutex
	cpu, start := ProcessorTime(0), time.Now()
	err := AtOnce(goroutines, func(int) error {
		for last := time.Now(); ; {
			for range batch {
				if err := next(); err != nil {
					return err
				}
			}
			now := time.Now()
			mu.Lock()
			keys, stall = keys+float64(batch), max(stall, now.Sub(last))
			mu.Unlock()
			if last = now; !last.Before(start.Add(d)) {
				return nil
			}
		}
	})
	must.Do(t, err, s.name)
	took := time.Since(start).Seconds()
	return keys / took, (ProcessorTime(0) - cpu).Seconds() / took, stall
}

// Every subject generates keys, so that no benchmark measures an error.
func TestSubjects(t *testing.T) {
	for _, s := range slices.Concat(snowflakes, random, saturated) {
		if keys, _, stall := saturate(t, s, 4, 5*time.Millisecond, 1); keys <= 0 || stall <= 0 {
			t.Errorf("%s\nhave: %v keys\nwant: some", s.name, keys)
		}
	}
}

// subject is a generator to measure.
type subject struct {
	name string
	open open
}

// open opens a generator until the end of the test. next generates a key, and is safe for concurrent
// use.
type open = func(testing.TB) (next func() error)

// wide is the layout for measurements below saturation.
const wide = "40-1-22"

// snowflakes are the generators of integer keys, below saturation.
var snowflakes = []subject{
	{"bwmarrin/snowflake", openBwmarrin(1, 22)},
	{"shardkey SNOWFLAKE", openShardkey("SNOWFLAKE", props{"layout": wide, "worker-id": "1"})},
	{"shardkey SNOWFLAKE, leased",
		openShardkey("SNOWFLAKE", props{"layout": wide, "worker-id-assigner": "leases"})},
	{"shardkey SNOWFLAKE_RING", openShardkey("SNOWFLAKE_RING", props{"layout": wide, "worker-id": "0"})},
	{"sony/sonyflake v2", openSonyflake(22, 1)},
}

// saturated are the generators with layout 41-10-12, at most 4,096 keys per millisecond.
var saturated = []subject{
	{"bwmarrin/snowflake", openBwmarrin(10, 12)},
	{"shardkey SNOWFLAKE", openShardkey("SNOWFLAKE", props{"worker-id": "2"})},
	{"shardkey SNOWFLAKE, leased", openShardkey("SNOWFLAKE", props{"worker-id-assigner": "leases"})},
	{"shardkey SNOWFLAKE_RING", openShardkey("SNOWFLAKE_RING", props{"worker-id": "3"})},
	{"sony/sonyflake v2", openSonyflake(12, 10)},
	{"godruoyi/go-snowflake", openGodruoyi},
}

// random are the generators of UUIDs and similar keys.
var random = []subject{
	{"google/uuid v4", plain(func() error { _, err := google.NewRandom(); return err })},
	{"google/uuid v4, pool", openGooglePool},
	{"google/uuid v7", plain(func() error { _, err := google.NewV7(); return err })},
	{"shardkey UUID v4", openShardkey("UUID", props{"version": "4"})},
	{"shardkey UUID v7", openShardkey("UUID", props{"version": "7"})},
	{"gofrs/uuid v4", plain(func() error { _, err := gofrs.NewV4(); return err })},
	{"gofrs/uuid v7", plain(func() error { _, err := gofrs.NewV7(); return err })},
	{"oklog/ulid", plain(func() error { ulid.Make(); return nil })},
	{"rs/xid", plain(func() error { xid.New(); return nil })},
}

func plain(next func() error) open { return func(testing.TB) func() error { return next } }

type props = map[string]any

// newGenerator returns a generator of a registered type, with leases as its assigner.
func newGenerator(typ string, values props) (spi.KeyGenerator, error) {
	host := spi.Host{WorkerIDAssigner: func(string) (spi.WorkerIDAssigner, error) { return leases{}, nil }}
	p, err := spi.NewProps(values, host)
	if err != nil {
		return nil, err
	}
	return spi.NewKeyGenerator(typ, p)
}

// openShardkey returns an open function that generates keys one by one: integers into an array,
// others as values.
func openShardkey(typ string, values props) open {
	return func(t testing.TB) func() error {
		g := must.Get(newGenerator(typ, values))(t)
		ints, ok := g.(spi.Int64KeyGenerator)
		if !ok {
			return func() error {
				_, err := g.GenerateKeys(context.Background(), spi.Column{}, 1)
				return err
			}
		}
		t.Cleanup(func() { _ = g.(io.Closer).Close() })
		return func() error {
			var key [1]int64
			return ints.GenerateInt64Keys(context.Background(), spi.Column{}, key[:])
		}
	}
}

func openBwmarrin(nodeBits, stepBits uint8) open {
	return func(t testing.TB) func() error {
		bwmarrin.NodeBits, bwmarrin.StepBits = nodeBits, stepBits
		node := must.Get(bwmarrin.NewNode(1))(t)
		return func() error { node.Generate(); return nil }
	}
}

func openSonyflake(sequence, machine int) open {
	return func(t testing.TB) func() error {
		sf := must.Get(sonyflake.New(sonyflake.Settings{
			BitsSequence: sequence, BitsMachineID: machine, TimeUnit: time.Millisecond,
			MachineID: func() (int, error) { return 1, nil },
		}))(t)
		return func() error { _, err := sf.NextID(); return err }
	}
}

func openGodruoyi(testing.TB) func() error {
	godruoyi.SetMachineID(1)
	return func() error { _, err := godruoyi.NextID(); return err }
}

func openGooglePool(t testing.TB) func() error {
	google.EnableRandPool()
	t.Cleanup(google.DisableRandPool)
	return func() error { _, err := google.NewRandom(); return err }
}

// leases is an assigner without a store. It grants worker ID 1 for a day, so that benchmarks
// include the check of the lease's limit.
type leases struct{}

func (leases) AcquireWorkerID(context.Context, int64) (spi.WorkerIDLease, error) {
	return lease(time.Now().Add(24 * time.Hour).UnixMilli()), nil
}

type lease int64

func (lease) WorkerID() int64 { return 1 }
func (lease) Floor() int64    { return 0 }
func (l lease) Limit() int64  { return int64(l) }

func (lease) Renew(context.Context, int64) error   { return errors.New("not in a benchmark") }
func (lease) Release(context.Context, int64) error { return nil }
