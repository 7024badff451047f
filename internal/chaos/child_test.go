//go:build linux

package chaos

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/spi"
)

// childEnv holds a child's orders; the test binary with it is a child.
const childEnv = "SHARDKEY_SOAK_CHILD"

// orders are what a child is told at its start.
type orders struct {
	Type  string         // of the assigner
	Props map[string]any // of the assigner
	Clock time.Duration  // how far its clock is off
	Pause time.Duration  // between two batches, on average
}

// layout has few worker ids, so that they change hands all the time.
var layout = snowflake.Layout{TimeBits: 41, WorkerBits: 4, SequenceBits: 18}

// child makes keys until its standard input says quit, or ends. It writes each
// key to standard output, eight bytes big-endian, a whole batch at once, and a
// line to standard error for each error.
func child(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	clock := new(wrongClock)
	clock.off.Store(int64(o.Clock))
	props, err := spi.NewProps(o.Props, spi.Host{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	assigner, err := spi.NewWorkerIDAssigner(o.Type, props)
	if err != nil {
		return err
	}
	generator, err := snowflake.New(snowflake.Config{Layout: layout, Assigner: assigner, Clock: clock, ClockBack: snowflake.ClockBackBorrow})
	if err != nil {
		return err
	}
	ctx, quit := context.WithCancel(context.Background())
	go obey(clock, quit)
	makeKeys(ctx, generator, o.Pause)
	for _, c := range []any{generator, assigner} {
		if err := c.(interface{ Close() error }).Close(); err != nil {
			report(err)
		}
	}
	return nil
}

// obey reads the parent's commands: "step 1h", "quit".
func obey(clock *wrongClock, quit context.CancelFunc) {
	defer quit()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		step, ok := strings.CutPrefix(in.Text(), "step ")
		d, err := time.ParseDuration(step)
		if !ok || err != nil {
			return
		}
		clock.off.Add(int64(d))
	}
}

func makeKeys(ctx context.Context, g *snowflake.Generator, pause time.Duration) {
	buffer := make([]byte, 0, 8*50) // written at once: below what a pipe takes as one
	for ctx.Err() == nil {
		keys := make([]int64, 1+rand.IntN(50))
		if err := g.GenerateInt64Keys(ctx, spi.Column{}, keys); err != nil {
			if ctx.Err() == nil {
				report(err)
			}
			_ = spi.SystemClock.Sleep(ctx, 10*time.Millisecond)
			continue
		}
		buffer = buffer[:0]
		for _, k := range keys {
			buffer = binary.BigEndian.AppendUint64(buffer, uint64(k))
		}
		if _, err := os.Stdout.Write(buffer); err != nil {
			return // the parent is gone
		}
		_ = spi.SystemClock.Sleep(ctx, rand.N(2*pause))
	}
}

func report(err error) {
	fmt.Fprintf(os.Stderr, "%s\t%s\n", kind(err), strings.ReplaceAll(err.Error(), "\n", " "))
}

// undocumented is the kind of an error that the docs do not speak of.
const undocumented = "UNDOCUMENTED"

func kind(err error) string {
	for _, k := range []struct {
		err  error
		name string
	}{
		{spi.ErrLeaseLost, "lease-lost"}, {spi.ErrLeaseLimit, "lease-limit"}, {spi.ErrNoWorkerID, "no-worker-id"},
		{spi.ErrClockBack, "clock-back"}, {spi.ErrStore, "store"},
	} {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return undocumented
}

// wrongClock is the machine's clock, some way off.
type wrongClock struct{ off atomic.Int64 }

func (c *wrongClock) Now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

func (c *wrongClock) Sleep(ctx context.Context, d time.Duration) error {
	return spi.SystemClock.Sleep(ctx, d)
}
