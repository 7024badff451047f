package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/spi"
)

// maxBatch is how many keys one call of the script makes at most: SPILL in
// reserve.lua rests on it.
const maxBatch = 1 << 16

var (
	_ spi.Int64KeyGenerator = (*generator)(nil)
	_ spi.KeyDecoder        = (*generator)(nil)
	_ spi.KeyRanger         = (*generator)(nil)
	_ spi.Describer         = (*generator)(nil)
	_ spi.HealthReporter    = (*generator)(nil)
	_ spi.ReadyReporter     = (*generator)(nil)
)

func init() {
	spi.RegisterKeyGenerator("REDIS", func(p spi.Props) (spi.KeyGenerator, error) {
		g, err := newGenerator(p)
		if err != nil {
			return nil, err // not g: a nil *generator in an interface is not nil
		}
		return g, nil
	})
}

// generator is the key generator REDIS. Its methods may be called by many
// goroutines at once.
type generator struct {
	server   *server
	shard    int64
	stateKey string
	epoch    time.Time
	clock    spi.Clock

	mu      sync.Mutex
	memory  memory
	figures stats.Figures
}

// newGenerator makes a generator of a rule's properties. It connects to the
// server at the first key.
func newGenerator(p spi.Props) (*generator, error) {
	s, err := newServer(p)
	if err != nil {
		return nil, err
	}
	g := &generator{server: s, clock: p.Clock()}
	if g.shard, err = p.Int("shard-id", 0, 0, layout.MaxWorkerID()); err != nil {
		return nil, err
	}
	if g.epoch, err = p.Time("epoch", snowflake.DefaultEpoch); err != nil {
		return nil, err
	}
	if err := checkEpoch(g.epoch, g.clock.Now()); err != nil {
		return nil, err
	}
	// The braces are Redis Cluster's hash tag:
	// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
	g.stateKey = fmt.Sprintf("%s:{keys:%d}", p.String("namespace", "shardkey"), g.shard)
	g.figures.Health = spi.Health{
		WorkerID: &g.shard,
		Waits:    new(int64), Fetches: new(int64), ClockSteps: new(int64), Borrowed: new(time.Duration),
	}
	s.onConnect = g.connected
	return g, nil
}

// checkEpoch wants keys for ten years to come.
func checkEpoch(epoch, now time.Time) error {
	wrong := func(want string) error {
		return &spi.PropError{Name: "epoch", Value: formatTime(epoch), Want: want}
	}
	last := epoch.Add(1 << layout.TimeBits * time.Millisecond)
	switch {
	case epoch.Before(time.UnixMilli(0)):
		return wrong("a time after 1970")
	case epoch.After(now):
		return wrong("a time in the past; it is " + formatTime(now))
	case last.Before(now.AddDate(10, 0, 0)):
		return wrong("a later time: its 41 bits of milliseconds end at " + formatTime(last))
	}
	return nil
}

// GenerateKeys makes n keys as int64.
func (g *generator) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.BoxedKeys(ctx, g, column, n)
}

// GenerateInt64Keys fills keys with one call of the server, or one for each
// 65,536 of them. They ascend; up to 1024 of them are contiguous.
//
// An error that is not the context's has [spi.ErrStore], [spi.ErrTimeOverflow]
// or [spi.ErrClosed] in its chain.
func (g *generator) GenerateInt64Keys(ctx context.Context, _ spi.Column, keys []int64) error {
	for rest := keys; len(rest) > 0; {
		batch := rest[:min(len(rest), maxBatch)]
		if err := g.fill(ctx, batch); err != nil {
			g.failed(err)
			return err
		}
		rest = rest[len(batch):]
	}
	return nil
}

// fill makes the keys of one reservation.
func (g *generator) fill(ctx context.Context, keys []int64) error {
	first, err := g.reserve(ctx, len(keys))
	if err != nil {
		return err
	}
	for i := range keys {
		if keys[i], err = g.key(first + position(i)); err != nil {
			return err
		}
	}
	g.issued(len(keys))
	return nil
}

// reserve calls the server until it has reserved n places.
func (g *generator) reserve(ctx context.Context, n int) (position, error) {
	for {
		r, err := do(ctx, g.server, func(ctx context.Context, c goredis.UniversalClient) (reply, error) {
			return g.ask(ctx, c, n, "")
		})
		if err != nil {
			return 0, err
		}
		switch r.kind {
		case "ok":
			return r.first, nil
		case "wait":
			if err := g.pause(ctx, r.wait); err != nil {
				return 0, err
			}
		default:
			return 0, g.refusal(r)
		}
	}
}

// Ready asks the server to check its state, and to reserve nothing. Its errors are
// those of GenerateInt64Keys.
func (g *generator) Ready(ctx context.Context) error {
	r, err := do(ctx, g.server, func(ctx context.Context, c goredis.UniversalClient) (reply, error) {
		return g.ask(ctx, c, 0, "")
	})
	switch {
	case err != nil:
		return err
	case r.kind != "ok":
		return g.refusal(r)
	}
	_, err = g.key(r.first)
	return err
}

// ask runs the script once and remembers what it says.
func (g *generator) ask(ctx context.Context, c goredis.Scripter, n int, run string) (reply, error) {
	start := g.clock.Now()
	req := g.request(start, n, run)
	r, err := req.send(ctx, c)
	if err == nil {
		g.answered(start, req, r)
	}
	return r, err
}

// connected is called with each new connection, before its first command: the
// server may be another process than the last.
func (g *generator) connected(ctx context.Context, c *goredis.Conn) error {
	run, err := runID(ctx, c, g.clock.Now())
	if err != nil {
		return err
	}
	_, err = g.ask(ctx, c, 0, run)
	if goredis.HasErrorPrefix(err, "MOVED") { // a cluster's node that does not have our state
		return nil
	}
	return err
}

func (g *generator) pause(ctx context.Context, d time.Duration) error {
	start := g.clock.Now()
	err := g.clock.Sleep(ctx, d)
	g.waited(g.clock.Now().Sub(start))
	return err
}

// refusal returns the error of a reply without keys.
func (g *generator) refusal(r reply) error {
	if r.kind == "clock" {
		return storeError(g.server.addr, fmt.Errorf("its clock says %s, this machine's %s: set the wrong one right",
			formatTime(time.UnixMilli(r.now)), formatTime(g.clock.Now())))
	}
	return g.foreignState(r.field, r.value)
}

// Close ends the connections. It may be called again.
func (g *generator) Close() error { return g.server.Close() }

// Describe returns server, shard and epoch.
func (g *generator) Describe() string {
	return fmt.Sprintf("REDIS shard %d at %s, db %d, state %s, layout %s, epoch %s", g.shard, g.server.addr, g.server.db,
		g.stateKey, layout, formatTime(g.epoch))
}

func (g *generator) issued(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.Issued += int64(n)
}

func (g *generator) waited(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.Wait(d)
}

// failed counts an error. Cancelled calls do not set Health.Err.
func (g *generator) failed(err error) {
	kind := stats.KindOf(err)
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.Error(kind, err, now)
	if kind != "canceled" && kind != "deadline" && kind != "closed" {
		g.figures.Err = err
	}
}

// Health is a snapshot. Err is the last call's error; Borrowed is how far the
// newest key's time is ahead of the server's clock.
func (g *generator) Health() spi.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.figures.Snapshot()
}

// layout is the split of a key's bits: milliseconds, shard, sequence.
var layout = snowflake.Layout{TimeBits: 41, WorkerBits: 12, SequenceBits: 10}

// A position is a place on a shard's time line: milliseconds since 1970 and a
// sequence of 10 bits.
type position int64

func (p position) ms() int64 { return int64(p) >> layout.SequenceBits }

// key puts the shard between a position's milliseconds and its sequence.
func (g *generator) key(p position) (int64, error) {
	ms := p.ms() - g.epoch.UnixMilli()
	if ms < 0 || ms >= 1<<layout.TimeBits {
		return 0, fmt.Errorf("%w: REDIS at %s says it is %s, and keys reach from %s to %s: set its clock, or the epoch", spi.ErrTimeOverflow, g.server.addr,
			formatTime(time.UnixMilli(p.ms())), formatTime(g.epoch), formatTime(g.epoch.Add((1<<layout.TimeBits-1)*time.Millisecond)))
	}
	sequence := int64(p) & layout.MaxSequence()
	return (ms<<layout.WorkerBits|g.shard)<<layout.SequenceBits | sequence, nil
}

// DecodeKey takes a key of this generator's epoch apart; the shard is the
// worker.
func (g *generator) DecodeKey(key int64) (spi.KeyParts, error) {
	return snowflake.Decode(layout, g.epoch, key)
}

// KeyRange returns the smallest and the largest key, of any shard, whose time
// is in from ≤ time < until, to the millisecond.
func (g *generator) KeyRange(from, until time.Time) (first, last int64, err error) {
	return snowflake.KeyRange(layout, g.epoch, from, until)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
