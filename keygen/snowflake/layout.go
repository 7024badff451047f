package snowflake

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Layout specifies how the 63 bits of a key are divided, from the highest bit down:
//
//	0 | time since the epoch, in ticks | worker | sequence
//	  |            TimeBits            |WorkerBits|SequenceBits
//
// The zero Layout is [Classic].
type Layout struct {
	// TimeBits is the width of the time field, 1..63.
	TimeBits int
	// WorkerBits is the width of the worker field, 0..31.
	WorkerBits int
	// SequenceBits is the width of the sequence within one tick, 0..31.
	SequenceBits int
	// Tick is the unit of the time field, 1 µs..1 h; zero means 1 ms.
	Tick time.Duration
}

// Classic is the layout of Twitter and ShardingSphere: 41 bits of milliseconds (69 years), 10 bits
// of worker ID and 12 bits of sequence (4,096 keys per millisecond).
var Classic = Layout{TimeBits: 41, WorkerBits: 10, SequenceBits: 12, Tick: time.Millisecond}

// js53 is a shorter layout for JavaScript clients: 33 bits of seconds, 4 bits of worker ID and 15
// bits of sequence. No key is above 2^53−1.
var js53 = Layout{TimeBits: 33, WorkerBits: 4, SequenceBits: 15, Tick: time.Second}

// ParseLayout parses "41-10-12" (bits of time, worker ID and sequence) or "js53". A tick of zero
// means the default, which is 1 ms, or 1 s for js53. The error describes an invalid layout.
func ParseLayout(text string, tick time.Duration) (Layout, error) {
	if strings.EqualFold(text, "js53") {
		if tick != 0 && tick != js53.Tick {
			return Layout{}, fmt.Errorf("shardkey: layout js53: expected a tick of 1s, found %v; write 33-4-15 for another tick", tick)
		}
		return js53, nil
	}
	parts := strings.Split(text, "-")
	if len(parts) != 3 {
		return Layout{}, fmt.Errorf("shardkey: layout: expected three numbers of bits, found %q; "+
			"write time-worker-sequence, for example 41-10-12, or js53", text)
	}
	var bits [3]int
	for i, part := range parts {
		n, err := strconv.ParseUint(strings.TrimSpace(part), 10, 16)
		if err != nil {
			return Layout{}, fmt.Errorf("shardkey: layout %q: expected a number of bits, found %q", text, part)
		}
		bits[i] = int(n)
	}
	l := Layout{TimeBits: bits[0], WorkerBits: bits[1], SequenceBits: bits[2], Tick: tick}.orDefault()
	return l, l.check()
}

// String returns the layout in the form that [ParseLayout] accepts, for example "41-10-12" or
// "js53".
func (l Layout) String() string {
	l = l.orDefault()
	if l == js53 {
		return "js53"
	}
	return fmt.Sprintf("%d-%d-%d", l.TimeBits, l.WorkerBits, l.SequenceBits)
}

// maxWorkerID returns the highest worker ID of the layout.
func (l Layout) maxWorkerID() int64 { return 1<<l.orDefault().WorkerBits - 1 }

// maxSequence returns the highest sequence of the layout. A worker ID has maxSequence+1 keys per
// tick.
func (l Layout) maxSequence() int64 { return 1<<l.orDefault().SequenceBits - 1 }

func (l Layout) orDefault() Layout {
	if l.TimeBits == 0 && l.WorkerBits == 0 && l.SequenceBits == 0 {
		tick := l.Tick
		l = Classic
		l.Tick = cmp.Or(tick, l.Tick)
	}
	l.Tick = cmp.Or(l.Tick, time.Millisecond)
	return l
}

func (l Layout) check() error {
	switch all := l.TimeBits + l.WorkerBits + l.SequenceBits; {
	case l.TimeBits < 1 || l.WorkerBits < 0 || l.SequenceBits < 0:
		return fmt.Errorf("shardkey: layout %s: expected at least one bit of time, and no negative numbers", l)
	case l.WorkerBits > 31 || l.SequenceBits > 31:
		return fmt.Errorf("shardkey: layout %s: expected at most 31 bits of worker and sequence", l)
	case l.TimeBits > 63 || all > 63:
		return fmt.Errorf("shardkey: layout %s: expected at most 63 bits, found %d", l, all)
	case l.Tick < time.Microsecond || l.Tick > time.Hour:
		return fmt.Errorf("shardkey: layout %s: expected a tick in 1µs..1h, found %v", l, l.Tick)
	}
	return nil
}

// DecodeKey decodes a key with [Decode].
func (g *generator) DecodeKey(key int64) (spi.KeyParts, error) {
	return Decode(g.cfg.Layout, g.cfg.Epoch, key)
}

// KeyRange calls [KeyRange] with the generator's layout and epoch.
func (g *generator) KeyRange(from, until time.Time) (first, last int64, err error) {
	return KeyRange(g.cfg.Layout, g.cfg.Epoch, from, until)
}

// Decode returns the parts of a key. The zero Layout is [Classic], and the zero epoch is
// [DefaultEpoch]. It returns an error for a negative key, for a key with bits above the time field,
// and for a key whose time is 292 years or more after the epoch.
func Decode(l Layout, epoch time.Time, key int64) (spi.KeyParts, error) {
	l, epoch, err := known(l, epoch)
	if err != nil {
		return spi.KeyParts{}, err
	}
	shift := l.WorkerBits + l.SequenceBits
	tick := key >> shift
	if key < 0 || tick > maxTick(l) {
		return spi.KeyParts{}, fmt.Errorf("shardkey: expected a key of layout %[2]s in 0..%[3]d, found %[1]d",
			key, l, maxTick(l)<<shift|(1<<shift-1))
	}
	return spi.KeyParts{
		Time:     tickTime(l, epoch, tick),
		WorkerID: key >> l.SequenceBits & l.maxWorkerID(),
		Sequence: key & l.maxSequence(),
		Layout:   l.String(),
	}, nil
}

// KeyRange returns the smallest and the largest key, of any worker ID, whose time is in from ≤ time
// < until. Both are inclusive, for WHERE id BETWEEN ? AND ?. The time of a key is the beginning of
// its tick. Times outside the layout count as its first or last time. If no tick begins in the
// interval, KeyRange returns an error.
func KeyRange(l Layout, epoch, from, until time.Time) (first, last int64, err error) {
	l, epoch, err = known(l, epoch)
	if err != nil {
		return 0, 0, err
	}
	begin, end := rangeTick(l, epoch, from), rangeTick(l, epoch, until)
	if begin >= end {
		return 0, 0, fmt.Errorf("shardkey: no key of layout %s with epoch %s has a time from %s until %s: "+
			"expected an interval of %v or more, after the epoch",
			l, stamp(epoch), stamp(from), stamp(until), l.Tick)
	}
	shift := l.WorkerBits + l.SequenceBits
	return begin << shift, (end-1)<<shift | (1<<shift - 1), nil
}

// rangeTick returns the first tick at or after t, from 0 to the tick after the layout's last one.
func rangeTick(l Layout, epoch, t time.Time) int64 {
	since := t.Sub(epoch) // at most 292 years
	if since <= 0 {
		return 0
	}
	return min(int64((since-1)/l.Tick)+1, maxTick(l)+1)
}

// maxTick returns the last tick that a key can have. If the time field is so wide that it has later
// ticks, it is the last one whose distance from the epoch a [time.Duration] can hold, 292 years.
func maxTick(l Layout) int64 {
	return min(1<<l.TimeBits-1, int64((math.MaxInt64-l.Tick)/l.Tick))
}

func tickTime(l Layout, epoch time.Time, tick int64) time.Time {
	return epoch.Add(time.Duration(tick) * l.Tick).UTC()
}

func known(l Layout, epoch time.Time) (Layout, time.Time, error) {
	if epoch.IsZero() {
		epoch = DefaultEpoch
	}
	l = l.orDefault()
	if err := l.check(); err != nil {
		return l, epoch, err
	}
	return l, epoch, checkEpoch(epoch)
}
