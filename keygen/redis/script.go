package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/shardkey/shardkey/spi"
)

//go:embed reserve.lua
var reserveSource string

var reserveScript = goredis.NewScript(reserveSource)

// request is what reserve.lua is asked; see there.
type request struct {
	key    string
	n      int
	floor  position
	reach  int64
	epoch  int64
	caller time.Time
	run    string
}

// reply is what reserve.lua says; see there.
type reply struct {
	kind  string        // ok, wait, clock, foreign
	first position      // of kind ok
	wait  time.Duration // of kind wait
	now   int64         // the server's clock, in milliseconds since 1970
	time  int64         // the time line's now
	lost  bool          // the caller knew more than the server
	field string        // of kind foreign
	value string
}

// send runs the script once.
func (r request) send(ctx context.Context, c goredis.Scripter) (reply, error) {
	raw, err := reserveScript.Run(ctx, c, []string{r.key}, r.n, int64(r.floor), r.reach, r.epoch, r.caller.UnixMilli(), r.run).Slice()
	if err != nil {
		return reply{}, err
	}
	return parseReply(raw)
}

func parseReply(raw []any) (reply, error) {
	kind, texts, numbers := "", [4]string{}, [4]int64{}
	for i, v := range raw {
		switch v := v.(type) {
		case string:
			if i == 0 {
				kind = v
			} else if i < 5 {
				texts[i-1] = v
			}
		case int64:
			if i > 0 && i < 5 {
				numbers[i-1] = v
			}
		}
	}
	r := reply{kind: kind}
	switch {
	case (kind == "ok" || kind == "wait") && len(raw) == 5:
		r.first, r.wait = position(numbers[0]), time.Duration(numbers[0])*time.Millisecond
		r.now, r.time, r.lost = numbers[1], numbers[2], numbers[3] == 1
	case kind == "clock" && len(raw) == 2:
		r.now = numbers[0]
	case kind == "foreign" && len(raw) == 3:
		r.field, r.value = texts[0], texts[1]
	default:
		return reply{}, fmt.Errorf("the server answered the script with %v", raw)
	}
	return r, nil
}

// runID names the server's process: INFO's run_id. Where INFO is not allowed,
// each connection counts as a process of its own, which is safe and costs a
// wait of some milliseconds.
func runID(ctx context.Context, c *goredis.Conn, now time.Time) (string, error) {
	info, err := c.Info(ctx, "server").Result()
	var refusal goredis.Error
	if errors.As(err, &refusal) && strings.HasPrefix(err.Error(), "NOPERM") {
		return "unknown-" + strconv.FormatInt(now.UnixNano(), 36), nil
	}
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(line, "run_id:"); ok {
			return strings.TrimSpace(id), nil
		}
	}
	return "unknown-" + strconv.FormatInt(now.UnixNano(), 36), nil
}

const (
	timeBits     = 41
	shardBits    = 12
	sequenceBits = 10
	layoutName   = "41-12-10"

	maxShard = 1<<shardBits - 1
)

// defaultEpoch is SNOWFLAKE's: 2016-11-01T00:00:00Z.
var defaultEpoch = time.Date(2016, time.November, 1, 0, 0, 0, 0, time.UTC)

// A position is a place on a shard's line: milliseconds since 1970 and a
// sequence of 10 bits.
type position int64

func (p position) ms() int64 { return int64(p) >> sequenceBits }

// key puts the shard between a position's milliseconds and its sequence.
func (g *Generator) key(p position) (int64, error) {
	ms := p.ms() - g.epoch
	if ms < 0 || ms >= 1<<timeBits {
		return 0, fmt.Errorf("shardkey: REDIS: server %s says it is %s, and keys reach from %s to %s: set its clock, or the epoch: %w", g.server.name(),
			time.UnixMilli(p.ms()).UTC().Format(time.RFC3339), time.UnixMilli(g.epoch).UTC().Format(time.RFC3339),
			time.UnixMilli(g.epoch+1<<timeBits-1).UTC().Format(time.RFC3339), spi.ErrTimeOverflow)
	}
	return ms<<(shardBits+sequenceBits) | g.shard<<sequenceBits | int64(p)&(1<<sequenceBits-1), nil
}

// DecodeKey takes a key of this generator's epoch apart; the shard is the
// worker. A negative key is an error.
func (g *Generator) DecodeKey(key int64) (spi.KeyParts, error) {
	if key < 0 {
		return spi.KeyParts{}, fmt.Errorf("shardkey: REDIS: %d is not a key: it is negative", key)
	}
	return spi.KeyParts{
		Time:     time.UnixMilli(key>>(shardBits+sequenceBits) + g.epoch).UTC(),
		WorkerID: key >> sequenceBits & maxShard,
		Sequence: key & (1<<sequenceBits - 1),
		Layout:   layoutName,
	}, nil
}

// KeyRange gives the smallest and the largest key, of any shard, whose time is
// at or after from and before until, to the millisecond.
func (g *Generator) KeyRange(from, until time.Time) (first, last int64, err error) {
	lo, hi := ceilMilli(from)-g.epoch, ceilMilli(until)-g.epoch
	if lo < 0 || hi > 1<<timeBits || lo >= hi {
		return 0, 0, fmt.Errorf("shardkey: REDIS: no key range from %s until %s: want from before until, both within %s and %s: %w",
			from.UTC().Format(time.RFC3339Nano), until.UTC().Format(time.RFC3339Nano),
			time.UnixMilli(g.epoch).UTC().Format(time.RFC3339), time.UnixMilli(g.epoch+1<<timeBits).UTC().Format(time.RFC3339), spi.ErrTimeOverflow)
	}
	const shift = shardBits + sequenceBits
	return lo << shift, hi<<shift - 1, nil
}

// ceilMilli is the first whole millisecond at or after t.
func ceilMilli(t time.Time) int64 {
	return t.Add(time.Millisecond - time.Nanosecond).UnixMilli()
}
