package uuid

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/shardkey/shardkey/spi"
)

func mustNew(t testing.TB, cfg config) *generator {
	t.Helper()
	cfg.version, cfg.format = cmp.Or(cfg.version, 4), cmp.Or(cfg.format, hexFormat)
	if cfg.clock == nil {
		cfg.clock = spi.SystemClock
	}
	return newGenerator(cfg)
}

func mustKeys(t testing.TB, g spi.KeyGenerator, n int) []any {
	t.Helper()
	keys, err := g.GenerateKeys(context.Background(), spi.Column{}, n)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != n {
		t.Fatalf("\nhave: %d keys\nwant: %d", len(keys), n)
	}
	return keys
}

// clock is a time that a test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time                                 { return c.now }
func (*clock) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

var someTime = time.UnixMilli(0x0123456789ab).Add(500 * time.Microsecond)

func TestGenerator_bytes(t *testing.T) {
	ff := strings.Repeat("\xff", 64)
	for _, tt := range []struct {
		version int
		format  string
		rand    string
		want    []any
	}{
		{4, hexFormat, ff, []any{"ffffffffffff4fffbfffffffffffffff", "ffffffffffff4fffbfffffffffffffff"}},
		{4, canonicalFormat, strings.Repeat("\x00", 64), []any{"00000000-0000-4000-8000-000000000000", "00000000-0000-4000-8000-000000000000"}},
		{4, binaryFormat, ff[:16], []any{[]byte("\xff\xff\xff\xff\xff\xff\x4f\xff\xbf\xff\xff\xff\xff\xff\xff\xff")}},
		{7, canonicalFormat, ff, []any{"01234567-89ab-7800-bfff-ffffffffffff", "01234567-89ab-7801-bfff-ffffffffffff"}},
		{7, hexFormat, ff[:16], []any{"0123456789ab7800bfffffffffffffff"}},
	} {
		t.Run(fmt.Sprint(tt.version, tt.format), func(t *testing.T) {
			g := mustNew(t, config{version: tt.version, format: tt.format, clock: &clock{someTime}, rand: strings.NewReader(tt.rand)})
			have := mustKeys(t, g, len(tt.want))
			if fmt.Sprint(have) != fmt.Sprint(tt.want) || fmt.Sprintf("%T", have[0]) != fmt.Sprintf("%T", tt.want[0]) {
				t.Errorf("\nhave: %v\nwant: %v", have, tt.want)
			}
		})
	}
}

func TestProperties_checked(t *testing.T) {
	for _, tt := range []struct {
		props map[string]any
		want  string // a pattern
	}{
		{nil, `^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$`},
		{map[string]any{"version": "7"}, `^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$`},
		{map[string]any{"format": "CANONICAL"}, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`},
	} {
		g, err := registered(t, tt.props)
		if err != nil {
			t.Fatal(err)
		}
		if have := mustKeys(t, g, 1)[0]; !regexp.MustCompile(tt.want).MatchString(have.(string)) {
			t.Errorf("%v\nhave: %v\nwant: %s", tt.props, have, tt.want)
		}
	}
	for _, bad := range []map[string]any{{"version": "1"}, {"version": ""}, {"format": "base64"}, {"size": "3"}} {
		var prop *spi.PropError
		if _, err := registered(t, bad); !errors.As(err, &prop) {
			t.Errorf("%v\nhave: %v\nwant: a PropError", bad, err)
		}
	}
}

func registered(t *testing.T, values map[string]any) (spi.KeyGenerator, error) {
	t.Helper()
	props, err := spi.NewProps(values, spi.Host{})
	if err != nil {
		t.Fatal(err)
	}
	return spi.NewKeyGenerator("uuid", props)
}

func TestVersion7_ascends(t *testing.T) {
	c := &clock{someTime}
	g := mustNew(t, config{version: 7, format: binaryFormat, clock: c})
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
	if have := g.Health(); *have.Borrowed <= 0 {
		t.Errorf("\nhave: %+v\nwant: some time borrowed", have)
	}
}

// Callers in a tight loop, of a clock that stands still, take as many times as
// pass: one that is given twice makes it more.
func TestVersion7_givesEachTimeOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	g := mustNew(t, config{version: 7, clock: &clock{someTime}})
	from, err := g.reserve(1)
	if err != nil {
		t.Fatal(err)
	}
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
	for at, says := range map[time.Time]string{time.Unix(-1, 0): "before 1970", time.UnixMilli(1 << 48): "after the year 2262"} {
		g := mustNew(t, config{version: 7, clock: &clock{at}})
		if keys, err := g.GenerateKeys(context.Background(), spi.Column{}, 1); !errors.Is(err, spi.ErrTimeOverflow) || !strings.Contains(err.Error(), says) || keys != nil {
			t.Errorf("%v\nhave: %v, %v\nwant: ErrTimeOverflow that says %q", at, keys, err, says)
		}
	}
	g := mustNew(t, config{version: 7, clock: &clock{someTime}})
	u, err := g.uuid()
	if err != nil {
		t.Fatal(err)
	}
	sec, ns := u.Time().UnixTime()
	if have, want := time.Unix(sec, ns).UnixMilli(), someTime.UnixMilli(); have != want {
		t.Errorf("\nhave: %d ms\nwant: %d ms", have, want)
	}
}

func TestGenerator_randomnessFails(t *testing.T) {
	for _, version := range []int{4, 7} {
		g := mustNew(t, config{version: version, rand: strings.NewReader("few")})
		if keys, err := g.GenerateKeys(context.Background(), spi.Column{}, 1); !errors.Is(err, io.ErrUnexpectedEOF) || keys != nil {
			t.Errorf("\nhave: %v, %v\nwant: ErrUnexpectedEOF", keys, err)
		}
		if u, err := g.uuid(); err == nil || u != uuid.Nil {
			t.Errorf("\nhave: %v, %v\nwant: an error", u, err)
		}
	}
}

func TestGenerator_unique(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	for _, version := range []int{4, 7} {
		g := mustNew(t, config{version: version})
		made := make([][]string, 64)
		var wg sync.WaitGroup
		for i := range made {
			wg.Go(func() {
				for n := range 200 {
					for _, key := range mustKeys(t, g, 1+n%4) {
						made[i] = append(made[i], key.(string))
					}
				}
			})
		}
		wg.Wait()
		all := slices.Concat(made...)
		slices.Sort(all)
		if n := len(all); len(slices.Compact(all)) != n {
			t.Errorf("version %d\nhave: a key twice\nwant: %d different keys", version, n)
		}
		if version == 7 {
			for _, keys := range made {
				if !slices.IsSorted(keys) {
					t.Error("version 7 keys of one goroutine do not ascend")
				}
			}
		}
	}
}

func TestGenerator_describe(t *testing.T) {
	have := mustNew(t, config{version: 7, format: binaryFormat}).Describe()
	if want := "UUID version 7, format binary"; have != want {
		t.Errorf("\nhave: %s\nwant: %s", have, want)
	}
}

var raceEnabled bool

func TestGenerator_noAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, version := range []int{4, 7} {
		g := mustNew(t, config{version: version})
		if have := testing.AllocsPerRun(1000, func() { _, _ = g.uuid() }); have != 0 {
			t.Errorf("version %d\nhave: %v allocations\nwant: 0", version, have)
		}
	}
}
