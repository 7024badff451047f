package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/shardkey/shardkey/keygen/snowflake"
)

// knownLayout is the default layout of the integer keys of a library or service.
type knownLayout struct {
	name   string
	layout snowflake.Layout
	epoch  time.Time
}

func layoutOf(timeBits, workerBits, sequenceBits int) snowflake.Layout {
	return snowflake.Layout{TimeBits: timeBits, WorkerBits: workerBits, SequenceBits: sequenceBits}
}

func ms(n int64) time.Time { return time.UnixMilli(n).UTC() }

// knownLayouts are layouts of time, worker and sequence whose keys fit in a BIGINT.
var knownLayouts = []knownLayout{
	{"SNOWFLAKE; ShardingSphere in UTC", snowflake.Classic, snowflake.DefaultEpoch},
	// The epoch of ShardingSphere's SnowflakeKeyGenerateAlgorithm is midnight of 2016-11-01
	// in the machine's time zone.
	{"ShardingSphere at +08:00", snowflake.Classic, snowflake.DefaultEpoch.Add(-8 * time.Hour)},
	{"ShardingSphere at +09:00", snowflake.Classic, snowflake.DefaultEpoch.Add(-9 * time.Hour)},
	{"REDIS", layoutOf(41, 12, 10), snowflake.DefaultEpoch},
	{"SNOWFLAKE js53", snowflake.JS53, snowflake.DefaultEpoch},
	// The epoch is twepoch in IdWorker.scala of twitter-archive/snowflake. The same epoch is
	// in SnowflakeIDGenImpl.java of Meituan-Dianping/Leaf, snowflake.go of bwmarrin/snowflake,
	// Sequence.java of baomidou/mybatis-plus and Snowflake.java of dromara/hutool. Some of
	// them split the worker's 10 bits into 5 of a data center and 5 of a worker.
	{"Twitter, Leaf, bwmarrin/snowflake, MyBatis-Plus, Hutool", snowflake.Classic, ms(1288834974657)},
	// https://discord.com/developers/docs/reference#snowflakes
	{"Discord", snowflake.Classic, ms(1420070400000)},
	// "Sharding & IDs at Instagram", 2012: 41 bits of ms, 13 of a shard, 10 of a sequence.
	{"Instagram", layoutOf(40, 13, 10), ms(1314220021721)},
	// IdGeneratorOptions.go of yitter/IdGenerator.
	{"yitter/IdGenerator", layoutOf(51, 6, 6), ms(1582136402000)},
	// CosId.java of Ahoo-Wang/CosId: COSID_EPOCH is 2019-12-25 at +08:00.
	{"CosId", snowflake.Classic, ms(1577203200000)},
	// DefaultUidGenerator.java of baidu/uid-generator. Its epoch is a date in the machine's
	// time zone.
	{
		"Baidu uid-generator at +08:00",
		snowflake.Layout{TimeBits: 28, WorkerBits: 22, SequenceBits: 13, Tick: time.Second}, ms(1463673600000),
	},
	// snowflake.go of godruoyi/go-snowflake.
	{"godruoyi/go-snowflake", snowflake.Classic, time.Date(2008, 11, 10, 23, 0, 0, 0, time.UTC)},
}

// guess is a key decoded in a known layout.
type guess struct {
	Time     string `json:"time"` // RFC 3339
	Worker   int64  `json:"worker"`
	Sequence int64  `json:"sequence"`
	Layout   string `json:"layout"`
	Epoch    string `json:"epoch"` // RFC 3339
	KeysOf   string `json:"keysOf"`
	Near     bool   `json:"near"` // the time is near now

	distance time.Duration // between the time and now
}

// A time is near now if it is at most nearBefore earlier or nearAfter later. A time more
// than farOff ahead of now shows that a layout is wrong.
const (
	nearBefore = 366 * 24 * time.Hour
	nearAfter  = 24 * time.Hour
	farOff     = 100 * 366 * 24 * time.Hour
)

// guesses decodes a key in each known layout, nearest time first. It leaves out layouts in
// which the key is invalid or its time is more than farOff ahead.
func guesses(key int64, now time.Time, zone *time.Location) (found []guess) {
	for _, k := range knownLayouts {
		parts, err := snowflake.Decode(k.layout, k.epoch, key)
		after := parts.Time.Sub(now)
		if err != nil || after > farOff {
			continue
		}
		found = append(found, guess{
			Time: formatTime(parts.Time, zone), Worker: parts.WorkerID, Sequence: parts.Sequence,
			Layout: k.layout.String(), Epoch: formatTime(k.epoch, time.UTC), KeysOf: k.name,
			Near: -nearBefore <= after && after <= nearAfter, distance: max(after, -after),
		})
	}
	slices.SortStableFunc(found, func(a, b guess) int { return cmp.Compare(a.distance, b.distance) })
	return found
}

func printGuesses(w io.Writer, v decoded) {
	if v.Guesses == nil { // a UUID, which contains its version
		fmt.Fprintf(w, "%s  %s  %s\n", v.Key, orDash(v.Time), v.Layout)
		return
	}
	fmt.Fprintln(w, v.Key)
	rows := newTable(w)
	fmt.Fprintln(rows, " \tTIME\tWORKER\tSEQUENCE\tLAYOUT\tEPOCH\tKEYS OF")
	for _, g := range v.Guesses {
		mark := " "
		if g.Near {
			mark = "*"
		}
		fmt.Fprintf(rows, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n",
			mark, g.Time, g.Worker, g.Sequence, g.Layout, g.Epoch, g.KeysOf)
	}
	rows.Flush()
}
