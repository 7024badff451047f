package snowflake

import (
	"testing"
	"time"
)

// What is a layout can be written and read again, and keys of it can be taken
// apart and put together; nothing panics.
func FuzzLayout(f *testing.F) {
	for _, seed := range []struct {
		text string
		tick int64
		key  int64
	}{
		{"41-10-12", 0, 1213274574029312345}, {"js53", int64(time.Second), 1<<52 - 1}, {"39-16-8", int64(10 * ms), 1 << 40},
		{"63-0-0", 1000, 1<<63 - 1}, {"1-31-31", int64(time.Hour), 1<<63 - 1}, {"41-10-13", 1, -1}, {"--", 0, 0}, {"0-0-0", 0, 0},
	} {
		f.Add(seed.text, seed.tick, seed.key)
	}
	f.Fuzz(func(t *testing.T, text string, tick, key int64) {
		l, err := ParseLayout(text, time.Duration(tick))
		if err != nil {
			return
		}
		again, err := ParseLayout(l.String(), l.Tick)
		if err != nil || again != l {
			t.Fatalf("%q\nhave: %+v, %v\nwant: %+v", l, again, err, l)
		}
		parts, err := Decode(l, DefaultEpoch, key)
		if err != nil {
			return
		}
		composed, err := compose(l, DefaultEpoch, parts.Time, parts.WorkerID, parts.Sequence)
		if err != nil || composed != key {
			t.Fatalf("%v\nhave: %d, %v\nwant: %d", l, composed, err, key)
		}
		first, last, err := KeyRange(l, DefaultEpoch, parts.Time, parts.Time.Add(l.Tick))
		if err != nil || key < first || key > last {
			t.Fatalf("%v\nhave: %d..%d, %v\nwant: %d in it", l, first, last, err, key)
		}
	})
}
