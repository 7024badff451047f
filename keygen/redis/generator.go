package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

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
	figures spi.Health // its pointers and slices are replaced, never changed
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
	g.figures = spi.Health{
		WorkerID: &g.shard, Errors: map[string]int64{},
		Waits: new(int64), Fetches: new(int64), ClockSteps: new(int64), Borrowed: new(time.Duration),
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
	for batch := range slices.Chunk(keys, maxBatch) {
		err := g.fill(ctx, batch)
		g.count(len(batch), err)
		if err != nil {
			return err
		}
	}
	return nil
}

// fill makes the keys of one reservation.
func (g *generator) fill(ctx context.Context, keys []int64) error {
	first, err := g.reserve(ctx, len(keys))
	for i := range keys {
		if err != nil {
			return err
		}
		keys[i], err = g.key(first + position(i))
	}
	return err
}

// reserve calls the server until it has reserved n places.
func (g *generator) reserve(ctx context.Context, n int) (position, error) {
	for {
		r, err := do(ctx, g.server, func(ctx context.Context, c goredis.UniversalClient) (reply, error) {
			return g.ask(ctx, c, n, "")
		})
		switch {
		case err != nil:
			return 0, err
		case r.kind == "ok":
			return r.first, nil
		case r.kind != "wait":
			return 0, g.refusal(r)
		}
		if err := g.pause(ctx, r.wait); err != nil {
			return 0, err
		}
	}
}

// Ready asks the server to check its state, and to reserve nothing. Its errors are
// those of GenerateInt64Keys.
func (g *generator) Ready(ctx context.Context) error {
	first, err := g.reserve(ctx, 0)
	if err == nil {
		_, err = g.key(first)
	}
	return err
}

// ask runs the script once and remembers what it says.
func (g *generator) ask(ctx context.Context, c goredis.Scripter, n int, run string) (reply, error) {
	start := g.clock.Now()
	raw, err := reserveScript.Run(ctx, c, []string{g.stateKey}, g.args(start, n, run)...).Slice()
	if err != nil {
		return reply{}, err
	}
	r, err := parseReply(raw)
	if err == nil {
		g.answered(start, n, r)
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
	g.mu.Lock()
	defer g.mu.Unlock()
	g.figures.Waits = new(*g.figures.Waits + 1)
	g.figures.Waited += g.clock.Now().Sub(start)
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

// count counts the outcome of a call for n keys. Ended contexts and Close do not
// set Health.Err.
func (g *generator) count(n int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := &g.figures
	if err == nil {
		f.Issued += int64(n)
		return
	}
	word := "other"
	if i := slices.IndexFunc(kinds, func(k kind) bool { return errors.Is(err, k.err) }); i >= 0 {
		word = kinds[i].word
	}
	f.Errors[word]++
	f.LastError, f.LastErrorTime = err, g.clock.Now()
	switch word {
	case "canceled", "deadline", "closed":
	default:
		f.Err = err
	}
}

// kind is an error and the word for it in Health.
type kind struct {
	err  error
	word string
}

var kinds = []kind{
	{spi.ErrClosed, "closed"}, {context.Canceled, "canceled"}, {context.DeadlineExceeded, "deadline"},
	{spi.ErrTimeOverflow, "time-overflow"}, {spi.ErrStore, "store"},
}

// Health is a snapshot. Err is the last call's error; Borrowed is how far the
// newest key's time is ahead of the server's clock.
func (g *generator) Health() spi.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.figures
	h.Errors = maps.Clone(h.Errors)
	return h
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
		last := g.epoch.Add((1<<layout.TimeBits - 1) * time.Millisecond)
		return 0, fmt.Errorf("%w: REDIS at %s says it is %s, and keys reach from %s to %s: set its clock, or the epoch",
			spi.ErrTimeOverflow, g.server.addr, formatTime(time.UnixMilli(p.ms())), formatTime(g.epoch), formatTime(last))
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
