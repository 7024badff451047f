package snowflake

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

func TestDecode_parts(t *testing.T) {
	at := DefaultEpoch.Add(12345 * ms)
	for _, tt := range []struct {
		layout Layout
		key    int64
		want   spi.KeyParts
	}{
		{Classic, 0, spi.KeyParts{Time: DefaultEpoch, Layout: "41-10-12"}},
		{Classic, 12345<<22 | 7<<12 | 99, spi.KeyParts{Time: at, WorkerID: 7, Sequence: 99, Layout: "41-10-12"}},
		{Layout{}, 12345<<22 | 1023<<12 | 4095, spi.KeyParts{Time: at, WorkerID: 1023, Sequence: 4095, Layout: "41-10-12"}},
		{JS53, 12<<19 | 15<<15 | 3, spi.KeyParts{Time: at.Truncate(time.Second), WorkerID: 15, Sequence: 3, Layout: "js53"}},
		{JS53, 1<<52 - 1, spi.KeyParts{Time: DefaultEpoch.Add((1<<33 - 1) * time.Second), WorkerID: 15, Sequence: 1<<15 - 1, Layout: "js53"}},
		{Layout{41, 22, 0, ms}, 1<<22 | 5, spi.KeyParts{Time: DefaultEpoch.Add(ms), WorkerID: 5, Layout: "41-22-0"}},
	} {
		have, err := Decode(tt.layout, time.Time{}, tt.key)
		if err != nil || have != tt.want {
			t.Errorf("%d\nhave: %+v %v\nwant: %+v", tt.key, have, err, tt.want)
		}
		again, err := compose(tt.layout, time.Time{}, have.Time, have.WorkerID, have.Sequence)
		if err != nil || again != tt.key {
			t.Errorf("\nhave: %d %v\nwant: %d", again, err, tt.key)
		}
	}
	for _, key := range []int64{-1, math.MinInt64} {
		if _, err := Decode(Classic, DefaultEpoch, key); err == nil {
			t.Errorf("%d\nhave: no error\nwant: one", key)
		}
	}
	if _, err := Decode(JS53, DefaultEpoch, 1<<53); err == nil {
		t.Error("a key above 2^53 is not of js53")
	}
	if _, err := Decode(Layout{TimeBits: 64}, DefaultEpoch, 1); err == nil {
		t.Error("a layout that cannot be decodes")
	}
	if _, err := Decode(Classic, time.Unix(-1, 0), 1); err == nil {
		t.Error("an epoch that cannot be decodes")
	}
}

func TestCompose_refuses(t *testing.T) {
	for _, tt := range []struct {
		at          time.Time
		worker, seq int64
		overflow    bool
	}{
		{DefaultEpoch, 1024, 0, false},
		{DefaultEpoch, -1, 0, false},
		{DefaultEpoch, 0, 4096, false},
		{DefaultEpoch.Add(-1), 0, 0, true},
		{DefaultEpoch.Add((1 << 41) * ms), 0, 0, true},
		{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 0, 0, true},
	} {
		if key, err := compose(Classic, DefaultEpoch, tt.at, tt.worker, tt.seq); err == nil || errors.Is(err, spi.ErrTimeOverflow) != tt.overflow {
			t.Errorf("%+v\nhave: %d, %v\nwant: an error, of time: %v", tt, key, err, tt.overflow)
		}
	}
}

func TestKeyRange_bounds(t *testing.T) {
	at := func(ms float64) time.Time { return DefaultEpoch.Add(time.Duration(ms * 1e6)) }
	const all = 1<<22 - 1
	for _, tt := range []struct {
		from, until time.Time
		first, last int64
		empty       bool
	}{
		{from: at(10), until: at(11), first: 10 << 22, last: 10<<22 | all},
		{from: at(10.1), until: at(12.5), first: 11 << 22, last: 12<<22 | all},
		{from: time.Time{}, until: at(1), first: 0, last: all},
		{from: at(5), until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), first: 5 << 22, last: math.MaxInt64},
		{from: at(10), until: at(10), empty: true},
		{from: at(11), until: at(10), empty: true},
		{from: at(10.2), until: at(10.8), empty: true},
		{from: time.Time{}, until: at(0), empty: true},
		{from: time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC), until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), empty: true},
	} {
		first, last, err := KeyRange(Layout{}, time.Time{}, tt.from, tt.until)
		if (err != nil) != tt.empty || first != tt.first || last != tt.last {
			t.Errorf("%v until %v\nhave: %d..%d %v\nwant: %d..%d", tt.from, tt.until, first, last, err, tt.first, tt.last)
		}
	}
}

// A key is in the range of an interval exactly when its time is.
func TestKeyRange_holdsItsKeys(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 4))
	for range 10_000 {
		l := []Layout{Classic, JS53, {TimeBits: 45, WorkerBits: 5, SequenceBits: 9, Tick: 300 * time.Microsecond}}[rnd.IntN(3)]
		at := func() time.Time { return DefaultEpoch.Add(time.Duration(rnd.Int64N(int64(20 * l.Tick)))) }
		from, until := at(), at()
		key, err := compose(l, DefaultEpoch, at(), rnd.Int64N(l.MaxWorkerID()+1), rnd.Int64N(l.MaxSequence()+1))
		if err != nil {
			t.Fatal(err)
		}
		first, last, rangeErr := KeyRange(l, DefaultEpoch, from, until)
		parts, err := Decode(l, DefaultEpoch, key)
		if err != nil {
			t.Fatal(err)
		}
		have := rangeErr == nil && first <= key && key <= last
		if want := !parts.Time.Before(from) && parts.Time.Before(until); have != want {
			t.Fatalf("key of %v, %v until %v\nhave: %v\nwant: %v", parts.Time, from, until, have, want)
		}
	}
}
