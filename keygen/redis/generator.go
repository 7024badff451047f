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

// maxBatch is the maximum number of keys from one call of the script. SPILL in reserve.lua depends
// on it.
const maxBatch = 1 << 16

var (
	_ spi.Int64KeyGenerator = (*generator)(nil)
	_ spi.KeyDecoder        = (*generator)(nil)
	_ spi.KeyRanger         = (*generator)(nil)
	_ spi.Describer         = (*generator)(nil)
	_ spi.HealthReporter    = (*generator)(nil)
	_ spi.ReadyReporter     = (*generator)(nil)
)

func init() { spi.RegisterKeyGenerator("REDIS", newGenerator) }

// generator is the key generator REDIS. Its methods may be called by multiple goroutines at once.
type generator struct {
	server   *server
	shard    int64
	stateKey string
	epoch    time.Time
	clock    spi.Clock

	mu      sync.Mutex
	memory  memory
	figures spi.Health // its figures and slices are replaced, never changed; Health copies its parts
}

// newGenerator returns a generator with these properties. It connects to the server when the first
// key is needed.
func newGenerator(p spi.Props) (spi.KeyGenerator, error) {
	s, err := newServer(p)
	if err != nil {
		return nil, err
	}
	g := &generator{server: s, clock: p.Clock()}
	if g.shard, err = p.Int("shard-id", 0, 0, 1<<layout.WorkerBits-1); err != nil {
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
		Waits: new(int64), Clock: &spi.ClockHealth{Steps: new(int64)}, Segment: new(spi.SegmentHealth),
	}
	s.onConnect = g.connected
	return g, nil
}

// checkEpoch returns an error if no key has a time from now on.
func checkEpoch(epoch, now time.Time) error {
	wrong := func(want string) error {
		return &spi.PropError{Name: "epoch", Value: formatTime(epoch), Want: want}
	}
	switch end := endOf(epoch); {
	case epoch.Before(time.UnixMilli(0)):
		return wrong("a time from 1970 on")
	case epoch.After(now):
		return wrong("a time before the current time " + formatTime(now))
	case !now.Before(end):
		return wrong("a time whose keys haven't ended; 41 bits of milliseconds ended at " + formatTime(end) +
			"; a later epoch is for tables without keys only")
	}
	return nil
}

// endOf returns the first time that no key can have.
func endOf(epoch time.Time) time.Time { return epoch.Add(1 << layout.TimeBits * time.Millisecond) }

// GenerateKeys returns n keys. Each is an int64.
func (g *generator) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, g, column, n)
}

// GenerateInt64Keys sets keys to new keys. It calls the server once for each 65,536 keys. The keys
// ascend, and up to 1024 of them are consecutive.
//
// The error is the context's, or wraps [spi.ErrStore], [spi.ErrTimeOverflow] or [spi.ErrClosed].
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

// reserve calls the server until it has reserved n positions.
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

// Ready makes the server check its state without reserving a position. Its errors are those of
// GenerateInt64Keys.
func (g *generator) Ready(ctx context.Context) error {
	first, err := g.reserve(ctx, 0)
	if err == nil {
		_, err = g.key(first)
	}
	return err
}

// ask runs the script once and records its reply.
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

// connected is called for each new connection, before its first command. The server may have been
// restarted since the last connection.
func (g *generator) connected(ctx context.Context, c *goredis.Conn) error {
	run, err := runID(ctx, c, g.clock.Now())
	if err != nil {
		return err
	}
	_, err = g.ask(ctx, c, 0, run)
	if goredis.HasErrorPrefix(err, "MOVED") { // a cluster node that doesn't have our state
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

func (g *generator) refusal(r reply) error {
	if r.kind == "clock" {
		return storeError(g.server.addr, fmt.Errorf("the server's clock shows %s, and this machine's %s; correct the clock that is wrong",
			formatTime(time.UnixMilli(r.now)), formatTime(g.clock.Now())))
	}
	return g.foreignState(r.field, r.value)
}

// Close closes the connections. It may be called several times.
func (g *generator) Close() error { return g.server.Close() }

// Describe returns the server, the shard and the epoch.
func (g *generator) Describe() string {
	return fmt.Sprintf("REDIS shard %d at %s, db %d, state %s, layout %s, epoch %s", g.shard, g.server.addr, g.server.db,
		g.stateKey, layout, formatTime(g.epoch))
}

// count counts the outcome of a call for n keys. Ended contexts and Close don't set Health.Err.
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

// kind is an error and its name in Health.
type kind struct {
	err  error
	word string
}

var kinds = []kind{
	{spi.ErrClosed, "closed"}, {context.Canceled, "canceled"}, {context.DeadlineExceeded, "deadline"},
	{spi.ErrTimeOverflow, "time-overflow"}, {spi.ErrStore, "store"},
}

// Health returns a snapshot. Err is the error of the last call. Clock compares with the
// server's clock.
func (g *generator) Health() spi.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.figures
	h.Errors, h.Clock, h.Segment = maps.Clone(h.Errors), new(*h.Clock), new(*h.Segment)
	if end := endOf(g.epoch); end.Before(g.clock.Now().AddDate(10, 0, 0)) {
		h.Warnings = append(slices.Clone(h.Warnings), fmt.Sprintf("keys end at %s, in less than 10 years; "+
			"plan another generator for tables that have keys, because another epoch would repeat keys", formatTime(end)))
	}
	return h
}

// layout is the layout of a key: milliseconds, shard, sequence.
var layout = snowflake.Layout{TimeBits: 41, WorkerBits: 12, SequenceBits: 10}

// position is a position on a shard's time line: milliseconds since 1970, followed by a 10-bit
// sequence.
type position int64

func (p position) ms() int64 { return int64(p) >> layout.SequenceBits }

// key returns the key of a position, with the shard between milliseconds and sequence.
func (g *generator) key(p position) (int64, error) {
	ms := p.ms() - g.epoch.UnixMilli()
	if ms < 0 || ms >= 1<<layout.TimeBits {
		last := g.epoch.Add((1<<layout.TimeBits - 1) * time.Millisecond)
		return 0, fmt.Errorf("%w: REDIS at %s: expected a time from %[4]s to %[5]s, found %[3]s; correct the server's clock or the epoch",
			spi.ErrTimeOverflow, g.server.addr, formatTime(time.UnixMilli(p.ms())), formatTime(g.epoch), formatTime(last))
	}
	sequence := int64(p) & (1<<layout.SequenceBits - 1)
	return (ms<<layout.WorkerBits|g.shard)<<layout.SequenceBits | sequence, nil
}

// DecodeKey returns the parts of a key with this generator's epoch. The shard is the worker ID.
func (g *generator) DecodeKey(key int64) (spi.KeyParts, error) {
	return snowflake.Decode(layout, g.epoch, key)
}

// KeyRange returns the smallest and the largest key, of any shard, whose time is in from ≤ time <
// until. The precision is a millisecond.
func (g *generator) KeyRange(from, until time.Time) (first, last int64, err error) {
	return snowflake.KeyRange(layout, g.epoch, from, until)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// memory is what a generator remembers of its shard's time line, in case the server loses it.
type memory struct {
	floor  position  // the last position from the server
	server int64     // the server's clock, in milliseconds since 1970, …
	line   int64     // … and the current position of the time line, …
	local  time.Time // … when the local clock had this time
	lost   int64     // number of times that the server had lost its state
}

// args returns the arguments of reserve.lua for n positions.
func (g *generator) args(now time.Time, n int, run string) []any {
	g.mu.Lock()
	defer g.mu.Unlock()
	m, reach := &g.memory, int64(0) // the minimum current position of the time line
	if !m.local.IsZero() {
		reach = m.line + max(0, now.Sub(m.local).Milliseconds()) // monotonic with the system's clock
	}
	return []any{n, int64(m.floor), reach, g.epoch.UnixMilli(), now.UnixMilli(), run}
}

// answered records the reply to a request for n positions that was sent at start.
func (g *generator) answered(start time.Time, n int, r reply) {
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	f, m := &g.figures, &g.memory
	f.Segment.Fetches++
	f.Segment.FetchTime = now.Sub(start)
	if r.kind != "ok" && r.kind != "wait" {
		return
	}
	if r.lost {
		m.lost++
		f.Warnings = []string{fmt.Sprintf("the server %s has lost the state %s %d times. "+
			"Keys continued after it, but make the server's data durable", g.server.addr, g.stateKey, m.lost)}
	}
	if r.kind == "ok" && n > 0 {
		m.floor = max(m.floor, r.first+position(n)-1)
		f.Clock.Ahead = max(0, time.Duration(m.floor.ms()-r.now)*time.Millisecond)
		f.Err = nil
	}
	if start.Before(m.local) {
		return // a reply to an older request than the last
	}
	if r.now < m.server {
		f.Clock.Steps = new(*f.Clock.Steps + 1)
	}
	m.server, m.line, m.local = r.now, r.time, now
}
