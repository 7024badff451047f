package uuid

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// clock is a clock that a test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time                                 { return c.now }
func (*clock) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

var someTime = time.UnixMilli(0x0123456789ab).Add(500 * time.Microsecond)

// newUUID returns a generator. pairs alternates names and values of properties.
func newUUID(c spi.Clock, pairs ...string) (*generator, error) {
	values := map[string]any{}
	for pair := range slices.Chunk(pairs, 2) {
		values[pair[0]] = pair[1]
	}
	props, propsErr := spi.NewProps(values, spi.Host{Clock: c})
	g, err := spi.NewKeyGenerator("uuid", props)
	made, _ := g.(*generator)
	return made, errors.Join(propsErr, err)
}

func mustNew(t testing.TB, c spi.Clock, pairs ...string) *generator {
	t.Helper()
	return must.Get(newUUID(c, pairs...))(t)
}

func mustKeys(t testing.TB, g spi.KeyGenerator, n int) []any {
	t.Helper()
	keys := must.Get(g.GenerateKeys(t.Context(), spi.Column{}, n))(t)
	must.Equal(t, len(keys), n, "keys")
	return keys
}

// setRandom replaces the source of randomness with text.
func setRandom(t *testing.T, text string) {
	random := rand.Reader
	rand.Reader = strings.NewReader(text)
	t.Cleanup(func() { rand.Reader = random })
}

func TestGenerator_bytes(t *testing.T) {
	ones := []byte("\xff\xff\xff\xff\xff\xff\x4f\xff\xbf\xff\xff\xff\xff\xff\xff\xff")
	for _, tt := range []struct {
		version, format, rand string
		want                  []any
	}{
		{"4", "hex", "\xff", []any{"ffffffffffff4fffbfffffffffffffff", "ffffffffffff4fffbfffffffffffffff"}},
		{"4", "canonical", "\x00", []any{"00000000-0000-4000-8000-000000000000", "00000000-0000-4000-8000-000000000000"}},
		{"4", "binary", "\xff", []any{ones, ones}},
		{"7", "canonical", "\xff", []any{"01234567-89ab-7800-bfff-ffffffffffff", "01234567-89ab-7801-bfff-ffffffffffff"}},
		{"7", "hex", "\xff", []any{"0123456789ab7800bfffffffffffffff"}},
	} {
		t.Run(tt.version+tt.format, func(t *testing.T) {
			setRandom(t, strings.Repeat(tt.rand, 64))
			g := mustNew(t, &clock{someTime}, "version", tt.version, "format", tt.format)
			have := mustKeys(t, g, len(tt.want))
			if fmt.Sprint(have) != fmt.Sprint(tt.want) || fmt.Sprintf("%T", have[0]) != fmt.Sprintf("%T", tt.want[0]) {
				t.Errorf("\nhave: %v\nwant: %v", have, tt.want)
			}
		})
	}
}

func TestProperties(t *testing.T) {
	for _, tt := range []struct {
		props    []string
		key      string // a pattern
		describe string
	}{
		{nil, `^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`, "UUID version 4, format hex"},
		{[]string{"version", "7"}, `^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$`, "UUID version 7, format hex"},
		{[]string{"format", "CANONICAL"}, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, "UUID version 4, format canonical"},
	} {
		g := mustNew(t, nil, tt.props...)
		if key := mustKeys(t, g, 1)[0]; !regexp.MustCompile(tt.key).MatchString(key.(string)) || g.Describe() != tt.describe {
			t.Errorf("%v\nhave: %v of %q\nwant: %s of %q", tt.props, key, g.Describe(), tt.key, tt.describe)
		}
	}
	for _, bad := range [][]string{{"version", "1"}, {"version", ""}, {"format", "base64"}, {"size", "3"}} {
		if _, err := newUUID(nil, bad...); !errors.As(err, new(*spi.PropError)) {
			t.Errorf("%v\nhave: %v\nwant: a PropError", bad, err)
		}
	}
}

func TestVersion7_ascends(t *testing.T) {
	c := &clock{someTime}
	g := mustNew(t, c, "version", "7", "format", "binary")
	var last []byte
	for i, step := range []time.Duration{0, time.Nanosecond, time.Millisecond, -time.Hour, 0, -24 * time.Hour, 2 * 24 * time.Hour, -time.Millisecond} {
		c.now = c.now.Add(step)
		for _, key := range mustKeys(t, g, 5000) {
			if bytes.Compare(key.([]byte), last) <= 0 {
				t.Fatalf("step %d\nhave: %x after %x\nwant: ascending keys", i, key, last)
			}
			last = key.([]byte)
		}
	}
	if have := g.Health().Clock.Ahead; have <= 0 {
		t.Errorf("\nhave: %v\nwant: some time borrowed", have)
	}
}

// Callers in a tight loop take times from a clock that stands still. Their number must equal the
// number of times that passed. A duplicate would increase it.
func TestVersion7_givesEachTimeOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	g := mustNew(t, &clock{someTime}, "version", "7")
	from := must.Get(g.reserve(1))(t)
	var given atomic.Uint64
	var wg sync.WaitGroup
	for i := range uint64(8) {
		wg.Go(func() {
			own := uint64(0)
			for n := 1 + i%3; own < 1<<21; n = 1 + n%3 {
				if _, err := g.reserve(n); err != nil {
					t.Error(err)
				}
				own += n
			}
			given.Add(own)
		})
	}
	wg.Wait()
	last, err := g.reserve(1)
	if have, want := last-from-1, given.Load(); err != nil || have != want {
		t.Errorf("\nhave: %d times for %d keys (%v)\nwant: one each", have, want, err)
	}
}

func TestVersion7_time(t *testing.T) {
	for at, part := range map[time.Time]string{time.Unix(-1, 0): "from 1970 on", time.UnixMilli(1 << 48): "before April 2262"} {
		g := mustNew(t, &clock{at}, "version", "7")
		keys, err := g.GenerateKeys(t.Context(), spi.Column{}, 1)
		if !errors.Is(err, spi.ErrTimeOverflow) || !strings.Contains(err.Error(), part) || keys != nil {
			t.Errorf("%v\nhave: %v, %v\nwant: ErrTimeOverflow with %q", at, keys, err, part)
		}
	}
	u := uuid.MustParse(mustKeys(t, mustNew(t, &clock{someTime}, "version", "7"), 1)[0].(string))
	sec, ns := u.Time().UnixTime()
	must.Equal(t, time.Unix(sec, ns).UnixMilli(), someTime.UnixMilli(), "ms")
}

func TestGenerator_unique(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	for _, version := range []string{"4", "7"} {
		g := mustNew(t, nil, "version", version)
		made := make([][]string, 64)
		var wg sync.WaitGroup
		for i := range made {
			wg.Go(func() {
				for n := range 200 {
					for _, key := range mustKeys(t, g, 1+n%4) {
						made[i] = append(made[i], key.(string))
					}
				}
				if version == "7" && !slices.IsSorted(made[i]) {
					t.Error("version 7 keys of one goroutine do not ascend")
				}
			})
		}
		wg.Wait()
		all := slices.Concat(made...)
		slices.Sort(all)
		if n := len(all); len(slices.Compact(all)) != n {
			t.Errorf("version %s\nhave: a key twice\nwant: %d different keys", version, n)
		}
	}
}

// A key allocates its slice, its string and the string's interface value. With the race detector
// it is one more.
func TestGenerator_allocations(t *testing.T) {
	for _, version := range []string{"4", "7"} {
		g := mustNew(t, nil, "version", version)
		if have := testing.AllocsPerRun(1000, func() { _, _ = g.GenerateKeys(t.Context(), spi.Column{}, 1) }); have > 4 {
			t.Errorf("version %s\nhave: %v allocations\nwant: at most 4", version, have)
		}
	}
}
