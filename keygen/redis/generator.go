package redis

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/shardkey/shardkey/spi"
)

// maxBatch is how many keys one call of the script makes at most: SPILL in
// reserve.lua rests on it.
const maxBatch = 1 << 16

var (
	_ spi.Int64KeyGenerator = (*Generator)(nil)
	_ spi.KeyDecoder        = (*Generator)(nil)
	_ spi.KeyRanger         = (*Generator)(nil)
	_ spi.Describer         = (*Generator)(nil)
	_ spi.HealthReporter    = (*Generator)(nil)
)

func init() {
	spi.RegisterKeyGenerator("REDIS", func(p spi.Props) (spi.KeyGenerator, error) { return fromProps(p) })
}

// Config says what a [Generator] is.
type Config struct {
	Server
	// ShardID is 0..4095. Servers that know nothing of each other need
	// different ones.
	ShardID int64
	// Namespace begins the name of the Redis key; empty is "shardkey".
	Namespace string
	// Epoch is where keys' time begins; zero is 2016-11-01T00:00:00Z.
	Epoch time.Time
	// Clock is the local time to live by; nil is the system's.
	Clock spi.Clock
}

// Generator is the key generator REDIS. Its methods may be called by many
// goroutines at once.
type Generator struct {
	server   *server
	shard    int64
	stateKey string
	epoch    int64 // milliseconds since 1970
	clock    spi.Clock

	mu     sync.Mutex
	memory memory
	health spi.Health
}

// New makes a generator. It connects to the server at the first key.
func New(c Config) (*Generator, error) {
	s, err := newServer(c.Server)
	if err != nil {
		return nil, fmt.Errorf("shardkey: REDIS: %w", err)
	}
	return newGenerator(s, c)
}

func fromProps(p spi.Props) (*Generator, error) {
	s, err := serverFromProps(p)
	if err != nil {
		return nil, err
	}
	c := Config{Namespace: p.String("namespace", ""), Clock: p.Clock()}
	if c.ShardID, err = p.Int("shard-id", 0, 0, maxShard); err != nil {
		return nil, err
	}
	if c.Epoch, err = p.Time("epoch", defaultEpoch); err != nil {
		return nil, err
	}
	return newGenerator(s, c)
}

func newGenerator(s *server, c Config) (*Generator, error) {
	g := &Generator{server: s, shard: c.ShardID, clock: c.Clock}
	if g.clock == nil {
		g.clock = spi.SystemClock
	}
	if c.Epoch.IsZero() {
		c.Epoch = defaultEpoch
	}
	if c.Namespace == "" {
		c.Namespace = "shardkey"
	}
	if c.ShardID < 0 || c.ShardID > maxShard {
		return nil, &spi.PropError{Name: "shard-id", Value: strconv.FormatInt(c.ShardID, 10), Want: fmt.Sprintf("an integer in 0..%d", maxShard)}
	}
	if err := checkEpoch(c.Epoch, g.clock.Now()); err != nil {
		return nil, err
	}
	g.epoch = c.Epoch.UnixMilli()
	// The braces are Redis Cluster's hash tag.
	g.stateKey = fmt.Sprintf("%s:{keys:%d}", c.Namespace, c.ShardID)
	g.health.WorkerID = new(c.ShardID)
	s.onConnect = g.connected
	return g, nil
}

// checkEpoch wants keys for ten years to come.
func checkEpoch(epoch, now time.Time) error {
	wrong := func(want string) error {
		return &spi.PropError{Name: "epoch", Value: epoch.UTC().Format(time.RFC3339), Want: want}
	}
	last := time.UnixMilli(epoch.UnixMilli() + 1<<timeBits)
	switch {
	case epoch.Before(time.UnixMilli(0)):
		return wrong("a time after 1970")
	case epoch.After(now):
		return wrong("a time in the past; it is " + now.UTC().Format(time.RFC3339))
	case last.Before(now.AddDate(10, 0, 0)):
		return wrong("a later time: its 41 bits of milliseconds end at " + last.UTC().Format(time.RFC3339))
	}
	return nil
}

// GenerateKeys makes n keys as int64.
func (g *Generator) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.BoxedKeys(ctx, g, column, n)
}

// GenerateInt64Keys fills keys with one call of the server, or one for each
// 65,536 of them. They ascend; up to 1024 of them are contiguous.
//
// An error that is not the context's has [spi.ErrStore], [spi.ErrTimeOverflow]
// or [spi.ErrClosed] in its chain.
func (g *Generator) GenerateInt64Keys(ctx context.Context, _ spi.Column, keys []int64) error {
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
func (g *Generator) fill(ctx context.Context, keys []int64) error {
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

// reserve asks the server until it gives n places.
func (g *Generator) reserve(ctx context.Context, n int) (position, error) {
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

// ask runs the script once and remembers what it says.
func (g *Generator) ask(ctx context.Context, c goredis.Scripter, n int, run string) (reply, error) {
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
func (g *Generator) connected(ctx context.Context, c *goredis.Conn) error {
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

func (g *Generator) pause(ctx context.Context, d time.Duration) error {
	start := g.clock.Now()
	err := g.clock.Sleep(ctx, d)
	g.waited(g.clock.Now().Sub(start))
	return err
}

// refusal makes the error of a reply without keys.
func (g *Generator) refusal(r reply) error {
	if r.kind == "clock" {
		return fmt.Errorf("shardkey: REDIS: the clock of %s says %s, this machine's %s: set the wrong one right: %w", g.server.name(),
			time.UnixMilli(r.now).UTC().Format(time.RFC3339), g.clock.Now().UTC().Format(time.RFC3339), spi.ErrStore)
	}
	return &ForeignStateError{Server: g.server.name(), Key: g.stateKey, Field: r.field, Value: r.value}
}

// Close ends the connections. It may be called again.
func (g *Generator) Close() error { return g.server.Close() }

// Describe says server, shard and epoch.
func (g *Generator) Describe() string {
	return fmt.Sprintf("REDIS shard %d at %s, db %d, state %s, layout %s, epoch %s", g.shard, g.server.name(), g.server.DB,
		g.stateKey, layoutName, time.UnixMilli(g.epoch).UTC().Format(time.RFC3339))
}
