//go:build linux

package chaos

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// childEnv holds a child's orders; the test binary with it is a child.
const childEnv = "SHARDKEY_CHAOS_CHILD"

// orders are what a child is told at its start.
type orders struct {
	Generator part
	Assigner  part          // the generator's; its Type is empty for none
	Clock     time.Duration // how far its clock is off
	Pause     time.Duration // between two batches, on average
	Writer    *writer       // what the child writes rows with, in place of making keys
}

// part is a generator or an assigner as a rule names it.
type part struct {
	Type  string
	Props map[string]any
}

// child makes keys until its standard input says quit, or ends. It writes each
// key to standard output, eight bytes big-endian, a whole batch at once, and a
// line to standard error for each error.
func child(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	if o.Writer != nil {
		return o.Writer.work()
	}
	clock := new(wrongClock)
	clock.off.Store(int64(o.Clock))
	host := spi.Host{Clock: clock, Logger: slog.New(slog.DiscardHandler)}
	var all []any // to be closed
	if o.Assigner.Type != "" {
		itsProps, err := spi.NewProps(o.Assigner.Props, host)
		if err != nil {
			return err
		}
		assigner, err := spi.NewWorkerIDAssigner(o.Assigner.Type, itsProps)
		if err != nil {
			return err
		}
		host.WorkerIDAssigner = func(string) (spi.WorkerIDAssigner, error) { return assigner, nil }
		all = append(all, assigner)
	}
	props, err := spi.NewProps(o.Generator.Props, host)
	if err != nil {
		return err
	}
	generator, err := spi.NewKeyGenerator(o.Generator.Type, props)
	if err != nil {
		return err
	}
	ctx, quit := context.WithCancel(context.Background())
	go obey(clock, quit)
	makeKeys(ctx, generator.(spi.Int64KeyGenerator), o.Pause)
	for _, c := range append([]any{generator}, all...) {
		if err := c.(io.Closer).Close(); err != nil {
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

func makeKeys(ctx context.Context, g spi.Int64KeyGenerator, pause time.Duration) {
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

func report(err error) { reportAs(kind(err), err) }

func reportAs(kind string, err error) {
	fmt.Fprintf(os.Stderr, "%s\t%s\n", kind, strings.ReplaceAll(err.Error(), "\n", " "))
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
