package redis

import (
	"fmt"
	"time"

	"github.com/shardkey/shardkey/spi"
)

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
