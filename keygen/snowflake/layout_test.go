package snowflake

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

func TestParseLayout_texts(t *testing.T) {
	for _, tt := range []struct {
		text string
		tick time.Duration
		want Layout
		str  string
		err  string
	}{
		{text: "41-10-12", want: Classic, str: "41-10-12"},
		{text: " 41 - 10 - 12 ", want: Classic, str: "41-10-12"},
		{text: "js53", want: JS53, str: "js53"},
		{text: "JS53", tick: time.Second, want: JS53, str: "js53"},
		{text: "33-4-15", tick: time.Second, want: JS53, str: "js53"},
		{text: "39-16-8", tick: 10 * ms, want: Layout{39, 16, 8, 10 * ms}, str: "39-16-8"},
		{text: "63-0-0", want: Layout{63, 0, 0, ms}, str: "63-0-0"},
		{text: "js53", tick: ms, err: "ticks of 1s"},
		{text: "41-10-13", err: "64 bits"},
		{text: "0-10-12", err: "at least one bit"},
		{text: "41-32-1", err: "31 bits at most"},
		{text: "9999-1-1", err: "shardkey: layout 9999-1-1 has 10001 bits"},
		{text: "41-10", err: "three numbers"},
		{text: "41-10-12-1", err: "three numbers"},
		{text: "41-ten-12", err: `"ten" is not a number`},
		{text: "41--1-12", err: "three numbers"},
		{text: "", err: "three numbers"},
		{text: "41-10-12", tick: time.Nanosecond, err: "1µs..1h"},
		{text: "41-10-12", tick: 2 * time.Hour, err: "1µs..1h"},
	} {
		have, err := ParseLayout(tt.text, tt.tick)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q\nhave: %v\nwant: an error with %q", tt.text, err, tt.err)
			}
			continue
		}
		if err != nil || have != tt.want || have.String() != tt.str {
			t.Errorf("%q\nhave: %+v %v\nwant: %+v", tt.text, have, err, tt.want)
		}
	}
}

func TestNew_refuses(t *testing.T) {
	next := time.Now().AddDate(1, 0, 0)
	for _, tt := range []struct {
		cfg      config
		overflow bool
	}{
		{cfg: config{WorkerID: -1}},
		{cfg: config{WorkerID: 1024}},
		{cfg: config{Layout: JS53, WorkerID: 16}},
		{cfg: config{MaxVibrationOffset: 4096}},
		{cfg: config{Layout: JS53, MaxVibrationOffset: 1 << 15}},
		{cfg: config{ClockBack: -1}},
		{cfg: config{ClockBack: 3}},
		{cfg: config{Tolerance: 25 * time.Hour}},
		{cfg: config{RingSize: maxRingSize + 1}},
		{cfg: config{Layout: Layout{TimeBits: 64}}},
		{cfg: config{Layout: Layout{TimeBits: 41, WorkerBits: -1, SequenceBits: 12}}},
		{cfg: config{Layout: Layout{TimeBits: 41, Tick: -1}}},
		{cfg: config{Epoch: next}, overflow: true},
		{cfg: config{Epoch: time.Unix(-1, 0)}},
		{cfg: config{Epoch: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{cfg: config{Layout: Layout{TimeBits: 38, WorkerBits: 10, SequenceBits: 12}}, overflow: true},
		{cfg: config{Layout: Layout{TimeBits: 41, WorkerBits: 10, SequenceBits: 12, Tick: 100 * time.Microsecond}}, overflow: true},
		{cfg: config{Epoch: time.Unix(0, 0), Layout: Layout{TimeBits: 40, WorkerBits: 10, SequenceBits: 12}}, overflow: true},
	} {
		g, err := newGenerator(tt.cfg)
		if err == nil || g != nil || !strings.HasPrefix(err.Error(), "shardkey: ") || errors.Is(err, spi.ErrTimeOverflow) != tt.overflow {
			t.Errorf("%+v\nhave: %v, %v\nwant: an error, of time: %v", tt.cfg, g, err, tt.overflow)
		}
	}
	for _, cfg := range []config{{WorkerID: 1023}, {Layout: JS53, WorkerID: 15, MaxVibrationOffset: 1<<15 - 1}, {Layout: Layout{TimeBits: 63}}} {
		mustNew(t, cfg)
	}
}

// Every worker and sequence of a layout makes a key of its own: none is cut
// off, none runs into another field.
func TestLayout_everyWorkerHasItsOwnKeys(t *testing.T) {
	for _, l := range []Layout{Classic, JS53, {TimeBits: 39, WorkerBits: 16, SequenceBits: 8, Tick: 10 * ms}, {TimeBits: 45, WorkerBits: 0, SequenceBits: 18}, {TimeBits: 41, WorkerBits: 22, SequenceBits: 0}} {
		clock := newHandClock()
		tick := clock.now.Sub(DefaultEpoch) / l.orDefault().Tick
		for _, worker := range slices.Compact([]int64{0, l.MaxWorkerID() / 2, l.MaxWorkerID()}) {
			g := mustNew(t, config{Layout: l, Clock: clock, WorkerID: worker, WorkerIDSet: true, MaxVibrationOffset: -1})
			for seq, key := range mustKeys(t, g, int(min(5, l.MaxSequence()+1))) {
				want, err := compose(l, DefaultEpoch, clock.now, worker, int64(seq))
				if err != nil || key != want || key>>(l.WorkerBits+l.SequenceBits) != int64(tick) {
					t.Errorf("%v worker %d\nhave: %d\nwant: %d (%v)", l, worker, key, want, err)
				}
			}
		}
	}
}
