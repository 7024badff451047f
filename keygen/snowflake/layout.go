package snowflake

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Layout says how the 63 bits of a key are split, from the highest bit down:
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

// Classic is Twitter's and ShardingSphere's split: 41 bits of milliseconds
// (69 years), 10 bits of worker, 12 bits of sequence (4,096 keys a
// millisecond).
var Classic = Layout{TimeBits: 41, WorkerBits: 10, SequenceBits: 12, Tick: time.Millisecond}

// JS53 is the reduced split for clients that hold numbers as JavaScript does:
// 33 bits of seconds, 4 of worker and 15 of sequence, so that no key is above
// 2^53−1.
var JS53 = Layout{TimeBits: 33, WorkerBits: 4, SequenceBits: 15, Tick: time.Second}

// ParseLayout reads "41-10-12" (time, worker and sequence bits, in ticks of
// tick) or "js53". A tick of zero means the layout's own: 1 ms, and 1 s for
// js53. The error says what is wrong with the split.
func ParseLayout(text string, tick time.Duration) (Layout, error) {
	if strings.EqualFold(text, "js53") {
		if tick != 0 && tick != JS53.Tick {
			return Layout{}, fmt.Errorf("shardkey: layout js53 has ticks of 1s, not of %v: write 33-4-15 for another tick", tick)
		}
		return JS53, nil
	}
	parts := strings.Split(text, "-")
	if len(parts) != 3 {
		return Layout{}, fmt.Errorf("shardkey: layout %q is not three numbers of bits: write time-worker-sequence, as 41-10-12, or js53", text)
	}
	var bits [3]int
	for i, part := range parts {
		n, err := strconv.ParseUint(strings.TrimSpace(part), 10, 16)
		if err != nil {
			return Layout{}, fmt.Errorf("shardkey: layout %q: %q is not a number of bits", text, part)
		}
		bits[i] = int(n)
	}
	l := Layout{TimeBits: bits[0], WorkerBits: bits[1], SequenceBits: bits[2], Tick: tick}.orDefault()
	return l, l.check()
}

// String is the split as it is written in a rule: "41-10-12", "js53".
func (l Layout) String() string {
	l = l.orDefault()
	if l == JS53 {
		return "js53"
	}
	return fmt.Sprintf("%d-%d-%d", l.TimeBits, l.WorkerBits, l.SequenceBits)
}

// MaxWorkerID is the highest worker id of the layout.
func (l Layout) MaxWorkerID() int64 { return 1<<l.orDefault().WorkerBits - 1 }

// MaxSequence is the highest sequence of the layout; one tick of one worker
// has MaxSequence+1 keys.
func (l Layout) MaxSequence() int64 { return 1<<l.orDefault().SequenceBits - 1 }

func (l Layout) orDefault() Layout {
	if l.TimeBits == 0 && l.WorkerBits == 0 && l.SequenceBits == 0 {
		tick := l.Tick
		if l = Classic; tick != 0 {
			l.Tick = tick
		}
	}
	if l.Tick == 0 {
		l.Tick = time.Millisecond
	}
	return l
}

func (l Layout) check() error {
	switch {
	case l.TimeBits < 1 || l.WorkerBits < 0 || l.SequenceBits < 0:
		return fmt.Errorf("shardkey: layout %s: time needs at least one bit, and no field can be negative", l)
	case l.WorkerBits > 31 || l.SequenceBits > 31:
		return fmt.Errorf("shardkey: layout %s: worker and sequence can have 31 bits at most", l)
	case l.TimeBits > 63 || l.TimeBits+l.WorkerBits+l.SequenceBits > 63:
		return fmt.Errorf("shardkey: layout %s has %d bits: a positive int64 has 63", l, l.TimeBits+l.WorkerBits+l.SequenceBits)
	case l.Tick < time.Microsecond || l.Tick > time.Hour:
		return fmt.Errorf("shardkey: layout %s: a tick of %v is not in 1µs..1h", l, l.Tick)
	}
	return nil
}
