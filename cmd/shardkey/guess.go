package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/shardkey/shardkey/keygen/snowflake"
)

// knownLayout is how a known library or service makes its integer keys.
type knownLayout struct {
	name   string
	layout snowflake.Layout
	epoch  time.Time
	// order is which fields follow each other, from the highest bits, where that is
	// not time, worker, sequence.
	order fieldOrder
}

type fieldOrder int

const (
	timeWorkerSequence fieldOrder = iota
	timeSequenceWorker
	workerTimeSequence
)

func ms(n int64) time.Time { return time.UnixMilli(n).UTC() }

// knownLayouts are those that a column of BIGINT keys may have, each with its
// defaults.
var knownLayouts = []knownLayout{
	// Ours, and ShardingSphere's: its SnowflakeKeyGenerateAlgorithm takes midnight of
	// 2016-11-01 in the zone of its machine.
	{name: "SNOWFLAKE; ShardingSphere in UTC", layout: snowflake.Classic, epoch: snowflake.DefaultEpoch},
	{name: "ShardingSphere at +08:00", layout: snowflake.Classic, epoch: snowflake.DefaultEpoch.Add(-8 * time.Hour)},
	{name: "ShardingSphere at +09:00", layout: snowflake.Classic, epoch: snowflake.DefaultEpoch.Add(-9 * time.Hour)},
	{name: "REDIS", layout: snowflake.Layout{TimeBits: 41, WorkerBits: 12, SequenceBits: 10}, epoch: snowflake.DefaultEpoch},
	{name: "SNOWFLAKE js53", layout: snowflake.JS53, epoch: snowflake.DefaultEpoch},
	// twepoch in IdWorker.scala of twitter-archive/snowflake, and the same in
	// SnowflakeIDGenImpl.java of Meituan-Dianping/Leaf, snowflake.go of
	// bwmarrin/snowflake, Sequence.java of baomidou/mybatis-plus and Snowflake.java of
	// dromara/hutool. These have 5 bits of a data center before 5 of a worker.
	{name: "Twitter, Leaf, bwmarrin/snowflake, MyBatis-Plus, Hutool", layout: snowflake.Classic, epoch: ms(1288834974657)},
	// https://discord.com/developers/docs/reference#snowflakes
	{name: "Discord", layout: snowflake.Classic, epoch: ms(1420070400000)},
	// "Sharding & IDs at Instagram", 2012: 41 bits of ms, 13 of a shard, 10 of a
	// sequence.
	{name: "Instagram", layout: snowflake.Layout{TimeBits: 40, WorkerBits: 13, SequenceBits: 10}, epoch: ms(1314220021721)},
	// sonyflake.go of sony/sonyflake: 39 bits of 10 ms, 8 of a sequence, 16 of a
	// machine.
	{name: "Sonyflake", layout: snowflake.Layout{TimeBits: 39, WorkerBits: 16, SequenceBits: 8, Tick: 10 * time.Millisecond}, epoch: time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC), order: timeSequenceWorker},
	// lib/mastodon/snowflake.rb of mastodon/mastodon: ms since 1970 before 16 bits
	// of a sequence.
	{name: "Mastodon", layout: snowflake.Layout{TimeBits: 47, SequenceBits: 16}, epoch: ms(0)},
	// IdGeneratorOptions.go of yitter/IdGenerator: 6 bits of a worker, 6 of a
	// sequence.
	{name: "yitter/IdGenerator", layout: snowflake.Layout{TimeBits: 51, WorkerBits: 6, SequenceBits: 6}, epoch: ms(1582136402000)},
	// CosId.java of Ahoo-Wang/CosId: COSID_EPOCH is 2019-12-25 at +08:00.
	{name: "CosId", layout: snowflake.Classic, epoch: ms(1577203200000)},
	// DefaultUidGenerator.java of baidu/uid-generator: 28 bits of seconds, 22 of a
	// worker, 13 of a sequence; the date is of its machine's zone.
	{name: "Baidu uid-generator at +08:00", layout: snowflake.Layout{TimeBits: 28, WorkerBits: 22, SequenceBits: 13, Tick: time.Second}, epoch: ms(1463673600000)},
	// snowflake.go of godruoyi/go-snowflake.
	{name: "godruoyi/go-snowflake", layout: snowflake.Classic, epoch: time.Date(2008, 11, 10, 23, 0, 0, 0, time.UTC)},
	// IdWorker.java of apache/incubator-seata: the worker is above the time.
	{name: "Seata", layout: snowflake.Classic, epoch: ms(1588435200000), order: workerTimeSequence},
}

// guess is a key read in a known layout.
type guess struct {
	Time     string `json:"time"` // RFC 3339
	Worker   int64  `json:"worker"`
	Sequence int64  `json:"sequence"`
	Layout   string `json:"layout"`
	Epoch    string `json:"epoch"` // RFC 3339
	KeysOf   string `json:"keysOf"`
	Near     bool   `json:"near"` // its time is near now
}

// nearBefore and nearAfter bound what is near now.
const (
	nearBefore = 366 * 24 * time.Hour
	nearAfter  = 24 * time.Hour
)

// farOff is how far ahead of now no key's time is.
const farOff = 100 * 366 * 24 * time.Hour

// guesses reads a key in each known layout in which it can be one, those first
// whose time is nearest to now.
func guesses(key int64, now time.Time, zone *time.Location) []guess {
	type timed struct {
		guess
		away time.Duration
	}
	var found []timed
	for _, k := range knownLayouts {
		t, worker, sequence, ok := k.read(key)
		if !ok {
			continue
		}
		after := t.Sub(now)
		if after > farOff {
			continue // nor is there a clock that is so wrong
		}
		found = append(found, timed{
			guess{
				Time: formatTime(t, zone), Worker: worker, Sequence: sequence, Layout: k.shape(), Epoch: formatTime(k.epoch, time.UTC),
				KeysOf: k.name, Near: -nearBefore <= after && after <= nearAfter,
			},
			max(after, -after),
		})
	}
	slices.SortStableFunc(found, func(a, b timed) int { return cmp.Compare(a.away, b.away) })
	var sorted []guess
	for _, f := range found {
		sorted = append(sorted, f.guess)
	}
	return sorted
}

// shape is the split of the bits in their order.
func (k knownLayout) shape() string {
	switch k.order {
	case timeSequenceWorker:
		return fmt.Sprintf("%d-%d-%d (time-sequence-worker)", k.layout.TimeBits, k.layout.SequenceBits, k.layout.WorkerBits)
	case workerTimeSequence:
		return fmt.Sprintf("%d-%d-%d (worker-time-sequence)", k.layout.WorkerBits, k.layout.TimeBits, k.layout.SequenceBits)
	}
	return k.layout.String()
}

// read takes a key apart; ok is false for one that cannot be of the layout.
func (k knownLayout) read(key int64) (t time.Time, worker, sequence int64, ok bool) {
	read := k.layout
	if k.order == timeSequenceWorker {
		read.WorkerBits, read.SequenceBits = read.SequenceBits, read.WorkerBits
	}
	if k.order == workerTimeSequence {
		if key < 0 {
			return t, 0, 0, false
		}
		below := read.TimeBits + read.SequenceBits
		worker, key = key>>below, key&(1<<below-1)
	}
	parts, err := snowflake.Decode(read, k.epoch, key)
	if err != nil {
		return t, 0, 0, false
	}
	switch k.order {
	case timeSequenceWorker:
		return parts.Time, parts.Sequence, parts.WorkerID, true
	case workerTimeSequence:
		return parts.Time, worker, parts.Sequence, true
	}
	return parts.Time, parts.WorkerID, parts.Sequence, true
}

func printGuesses(p *program, v decoded) {
	if v.Guesses == nil { // a UUID says itself what it is
		fmt.Fprintf(p.out, "%s  %s  %s\n", v.Key, cmp.Or(v.Time, "-"), v.Layout)
		return
	}
	fmt.Fprintln(p.out, v.Key)
	rows := newTable(" ", "TIME", "WORKER", "SEQUENCE", "LAYOUT", "EPOCH", "KEYS OF")
	near := false
	for _, g := range v.Guesses {
		mark, t := " ", g.Time
		if near = near || g.Near; g.Near {
			mark, t = p.colours.out(green, "*"), p.colours.out(green, g.Time)
		}
		rows.add(mark, t, fmt.Sprint(g.Worker), fmt.Sprint(g.Sequence), g.Layout, g.Epoch, g.KeysOf)
	}
	rows.print(p.out)
	if near {
		fmt.Fprintln(p.out, "* near now: within the year before it")
	} else {
		fmt.Fprintln(p.out, "none is near now")
	}
}
