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
	"time"

	testclock "github.com/shardkey/shardkey/internal/test/clock"
	"github.com/shardkey/shardkey/spi"
)

// childEnv is the environment variable with a child's orders. A test binary with it runs as a
// child.
const childEnv = "SHARDKEY_CHAOS_CHILD"

// orders are a child's instructions at its start.
type orders struct {
	Generator part
	Assigner  part          // of the generator; Type is empty if there is none
	Clock     time.Duration // error of the child's clock
	Pause     time.Duration // average pause between two batches
	Writer    *writer       // writes rows, instead of generating keys
}

// part is a generator or an assigner of a rule.
type part struct {
	Type  string
	Props map[string]any
}

// child generates keys until it reads "quit" or the end of standard input. It writes each batch
// of keys to standard output in one write, eight bytes big-endian for each key. It writes a line
// to standard error for each error.
func child(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	if o.Writer != nil {
		return o.Writer.work()
	}
	clock := testclock.New(o.Clock)
	host := spi.Host{Clock: clock, Logger: slog.New(slog.DiscardHandler)}
	var all []any // closed at the end
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
func obey(clock *testclock.Clock, quit context.CancelFunc) {
	defer quit()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		step, ok := strings.CutPrefix(in.Text(), "step ")
		d, err := time.ParseDuration(step)
		if !ok || err != nil {
			return
		}
		clock.Set(clock.Off() + d)
	}
}

func makeKeys(ctx context.Context, g spi.Int64KeyGenerator, pause time.Duration) {
	buffer := make([]byte, 0, 8*50) // written at once: small enough for an atomic write to a pipe
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
			return // the parent has ended
		}
		_ = spi.SystemClock.Sleep(ctx, rand.N(2*pause))
	}
}

func report(err error) { reportAs(kind(err), err) }

func reportAs(kind string, err error) {
	fmt.Fprintf(os.Stderr, "%s\t%s\n", kind, strings.ReplaceAll(err.Error(), "\n", " "))
}

// undocumented is the kind of errors that the documentation doesn't list.
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
