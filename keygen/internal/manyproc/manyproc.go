// Package manyproc tests a key generator in several processes at once, which
// are killed and stopped, as their server is, while their keys are gathered.
// Tests call [Child] in TestMain and then [Run].
package manyproc

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

	"github.com/shardkey/shardkey/spi"
)

// childEnv holds what a child is to do; the test binary with it is a child.
const childEnv = "SHARDKEY_MANYPROC_CHILD"

type orders struct {
	Type  string
	Props map[string]any
}

// Child makes keys until its standard input ends, when this process was started
// by [Run]; it then ends the process. It writes each key to standard output,
// eight bytes big-endian, a whole batch at once, and a line to standard error
// for each error.
func Child() {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	if err := child(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	props, err := spi.NewProps(o.Props, spi.Host{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	generator, err := spi.NewKeyGenerator(o.Type, props)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	makeKeys(ctx, generator.(spi.Int64KeyGenerator))
	return generator.(io.Closer).Close()
}

func makeKeys(ctx context.Context, g spi.Int64KeyGenerator) {
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	for ctx.Err() == nil {
		keys := make([]int64, 1+rand.IntN(50))
		if err := g.GenerateInt64Keys(ctx, spi.Column{}, keys); err != nil {
			if ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, kind(err)+"\t"+strings.ReplaceAll(err.Error(), "\n", " "))
			}
			_ = spi.SystemClock.Sleep(ctx, 10*time.Millisecond)
			continue
		}
		for _, k := range keys {
			_ = binary.Write(out, binary.BigEndian, k)
		}
		if out.Flush() != nil {
			return // the parent is gone
		}
		_ = spi.SystemClock.Sleep(ctx, rand.N(2*time.Millisecond))
	}
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
