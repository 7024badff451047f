package workerid

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// The table has each of the rules at its bounds.
func TestRules_bounds(t *testing.T) {
	equal := func(what string, have, want any) {
		t.Helper()
		must.Equal(t, have, want, what)
	}
	held := Record{Owner: "a", ReservedUntil: 1000}
	released := Record{Owner: "a", ReservedUntil: 1000, FreeFrom: 400}
	equal("floor of one never used", floorAfter(Record{FreeFrom: neverHeld}, 77, 5*time.Millisecond), int64(81))
	equal("floor after one held", floorAfter(held, 77, 5), int64(1000))
	equal("floor after one released", floorAfter(released, 77, 5), int64(400))
	equal("raised", raised(held, 1001), int64(1001))
	equal("not lowered", raised(held, 999), int64(1000))
	for _, c := range []struct {
		swapped bool
		err     error
		want    bool
	}{{true, nil, true}, {true, errors.New("x"), false}, {false, nil, false}, {false, errors.New("x"), false}} {
		equal("confirmed", confirmed(c.swapped, c.err), c.want)
	}
	equal("the newest is mine", isOwn(held, held, nil), true)
	equal("another reservation isn't", isOwn(Record{Owner: "a", ReservedUntil: 1001}, held, nil), false)
	equal("an attempt is mine", isOwn(Record{Owner: "b", ReservedUntil: 5}, held, []string{"x", "b"}), true)
	equal("another's isn't", isOwn(Record{Owner: "c", ReservedUntil: 1000}, held, []string{"x", "b"}), false)
	equal("free after the last used", freeFrom(100, 1000, 500), int64(501))
	equal("free from the floor", freeFrom(100, 1000, 0), int64(100))
	equal("free from the floor, the one before used", freeFrom(100, 1000, 99), int64(100))
	equal("free after the floor alone was used", freeFrom(100, 1000, 100), int64(101))
	equal("free after all", freeFrom(100, 1000, -1), int64(1000))
	equal("never used is free", Record{}.isFree(0), true)
	equal("released is free", released.isFree(0), true)
	equal("held is not", held.isFree(999), false)
	equal("run out is", held.isFree(1000), true)
	n := leaseLengths{longest: 10 * time.Second, before: 4 * time.Second, since: 1000}
	equal("not settled", n.settled(10_999), 4*time.Second)
	equal("settled", n.settled(11_000), 10*time.Second)
	n.before = 0
	equal("nothing before", n.settled(1000), 10*time.Second)
}

// Worker IDs are tried in the order in which they are certain to be free.
func TestAssigner_prefer(t *testing.T) {
	const now = 1_000_000
	a := &assigner{config: config{Lease: 10 * time.Second}}
	for _, tt := range []struct {
		r    Record
		want preference
	}{
		{Record{}, neverUsed},
		{Record{Owner: "a", ReservedUntil: now + 1}, notFree},
		{Record{Owner: "a", ReservedUntil: now}, justFree},
		{Record{Owner: "a", ReservedUntil: now - 10_000 + 1}, justFree},
		{Record{Owner: "a", ReservedUntil: now - 10_000}, longFree},
		{Record{Owner: "a", ReservedUntil: now + 50, FreeFrom: now}, released},
		{Record{Owner: "a", ReservedUntil: now + 50, FreeFrom: 1}, released},
		{Record{Owner: "a", ReservedUntil: now + 50, FreeFrom: now + 1}, startAhead},
	} {
		must.Equal(t, a.prefer(tt.r, now), tt.want, tt.r)
	}
	record := func(until, free int64) Record { return Record{Owner: "a", ReservedUntil: until, FreeFrom: free} }
	free := []Entry{
		{9, record(now+50, now+30), nil}, {8, record(now+50, now+20), nil}, {7, record(now, 0), nil}, {6, Record{}, nil},
		{5, record(now-40_000, 0), nil}, {4, record(now-30_000, 0), nil},
		{3, record(now, 5), nil}, {2, record(now, 9), nil}, {1, record(now, 5), nil},
	}
	slices.SortStableFunc(free, func(x, y Entry) int { return a.compare(x.Record, y.Record, now) })
	var order []int64
	for _, e := range free {
		order = append(order, e.WorkerID)
	}
	must.EqualSlices(t, order, []int64{2, 3, 1, 4, 5, 6, 7, 8, 9})
}

// If many worker IDs are free, the best are offered in order, and some of the others with equal
// probability.
func TestAssigner_some(t *testing.T) {
	list := func(n int) (free []Entry) {
		for id := range int64(n) {
			free = append(free, Entry{WorkerID: id})
		}
		return free
	}
	var asked []int
	a := &assigner{intN: func(n int) int { asked = append(asked, n); return n - 1 }}
	if have := a.some(list(offered)); len(have) != offered || len(asked) != 0 {
		t.Errorf("have: %d, by chance %d\nwant: all, in their order", len(have), len(asked))
	}
	have := a.some(list(offered + 1))
	if len(have) != offered || have[bestOffered-1].WorkerID != bestOffered-1 || have[bestOffered].WorkerID != offered {
		t.Errorf("have: %v\nwant: %d in their order, then the last", have, bestOffered)
	}
	if len(asked) != offered-bestOffered || asked[0] != offered+1-bestOffered || asked[len(asked)-1] != 2 {
		t.Errorf("have: chances among %v\nwant: all those that are left, each time", asked)
	}
	seen := map[int64]bool{}
	for _, c := range have {
		if seen[c.WorkerID] {
			t.Errorf("worker ID %d is offered twice", c.WorkerID)
		}
		seen[c.WorkerID] = true
	}
}

// One of the first candidates, chosen at random, comes first.
func TestAssigner_spread(t *testing.T) {
	for _, tt := range []struct {
		n, among, asked int
		want            []int64
	}{
		{0, 16, 0, nil}, {1, 16, 0, []int64{0}}, {2, 16, 2, []int64{1, 0}}, {4, 3, 3, []int64{2, 1, 0, 3}}, {3, 1, 0, []int64{0, 1, 2}},
	} {
		asked := 0
		a := &assigner{intN: func(n int) int { asked = n; return n - 1 }}
		var ids []Entry
		for id := range int64(tt.n) {
			ids = append(ids, Entry{WorkerID: id})
		}
		var have []int64
		for _, e := range a.spread(ids, tt.among) {
			have = append(have, e.WorkerID)
		}
		if !slices.Equal(have, tt.want) || asked != tt.asked {
			t.Errorf("the first %d of %d\nhave: %v, by chance among %d\nwant: %v, among %d", tt.among, tt.n, have, asked, tt.want, tt.asked)
		}
	}
}

// The layout's worker IDs with a record are all candidates. Of the others, the first and a few
// random ones are.
func TestAssigner_allowed(t *testing.T) {
	none := &assigner{intN: func(int) int { return 0 }}
	if have, err := none.allowed(t.Context(), nil, 2); err != nil || !slices.Equal(have, []int64{0, 1, 2}) {
		t.Errorf("have: %v, %v\nwant: all three, without chance", have, err)
	}
	for _, tt := range []struct {
		known []int64
		most  int64
		want  []int64
	}{
		{nil, 0, []int64{0}},
		{nil, 2, []int64{0, 1, 2}},
		{[]int64{1, 3, -1, 4}, 3, []int64{1, 3, 0, 2}},
		{[]int64{3}, 20, []int64{3, 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20}}, // the last is random
		{nil, math.MaxInt32 + 9, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, math.MaxInt32 - 1}},
	} {
		a := &assigner{intN: func(n int) int { return n - 1 }}
		known := map[int64]Entry{}
		for _, id := range tt.known {
			known[id] = Entry{WorkerID: id}
		}
		if have, err := a.allowed(t.Context(), known, tt.most); err != nil || !slices.Equal(have, tt.want) {
			t.Errorf("known %v in 0..%d\nhave: %v, %v\nwant: %v", tt.known, tt.most, have, err, tt.want)
		}
	}
	chosen := []int64{3, -1, 4, 0, 5}
	a := &assigner{info: Info{WorkerIDs: func(context.Context, int64) ([]int64, error) { return chosen, nil }}}
	if have, err := a.allowed(t.Context(), nil, 4); err != nil || !slices.Equal(have, []int64{3, 4, 0}) || chosen[1] != -1 {
		t.Errorf("have: %v, %v, of %v\nwant: those of the layout, in their order", have, err, chosen)
	}
	away := errors.New("away")
	a.info.WorkerIDs = func(context.Context, int64) ([]int64, error) { return nil, away }
	if _, err := a.allowed(t.Context(), nil, 4); !errors.Is(err, away) || !errors.Is(err, spi.ErrStore) {
		t.Errorf("have: %v\nwant: %v", err, away)
	}
}

// A record that starts more than the horizon ahead is unusual.
func TestAssigner_oddity(t *testing.T) {
	const now = 1_790_000_000_000
	a := &assigner{config: config{Lease: 10 * time.Second, MaxClockAhead: time.Minute}}
	day := a.horizon().Milliseconds()
	for _, tt := range []struct {
		e    Entry
		want bool
	}{
		{Entry{Record: Record{Owner: "a", ReservedUntil: now + day}}, false},
		{Entry{Record: Record{Owner: "a", ReservedUntil: now + day + 1}}, true},
		{Entry{Record: Record{Owner: "a", ReservedUntil: now + day + 1, FreeFrom: now + day}}, false},
		{Entry{Record: Record{Owner: "a", ReservedUntil: now, FreeFrom: now + day + 1}}, true},
		{Entry{Err: errors.New("not understood")}, true},
		{Entry{}, false},
	} {
		must.Equal(t, a.oddity(tt.e, now) != "", tt.want, tt.e)
	}
}

// newestHeld returns the newest reservation of a holder, without those of wrong clocks.
func TestAssigner_newestHeld(t *testing.T) {
	clock := &fixedClock{ms: 1_790_000_000_000}
	a := assign(new(oneRecord), config{Clock: clock, MaxClockAhead: time.Minute})
	most := clock.ms + (time.Minute + a.mostAhead()).Milliseconds()
	entry := func(until, free int64) Entry {
		return Entry{Record: Record{Owner: "a", ReservedUntil: until, FreeFrom: free}}
	}
	for _, tt := range []struct {
		entries []Entry
		want    int64
	}{
		{nil, 0},
		{[]Entry{entry(5, 0), entry(7, 0), entry(6, 0)}, 7},
		{[]Entry{entry(5, 0), entry(7, 1)}, 5},
		{[]Entry{entry(5, 0), entry(most, 0)}, most},
		{[]Entry{entry(5, 0), entry(most+1, 0)}, 5},
	} {
		must.Equal(t, a.newestHeld(tt.entries), tt.want, tt.entries)
	}
}

// The limits for leases ahead of the clock and for operations depend on the properties.
func TestAssigner_durations(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		c                             config
		noted                         *leaseLengths
		ahead, horizon, failover      time.Duration
		length, every, longest, opera time.Duration
	}{
		{config{Lease: 10 * s, Renew: 3 * s, MaxClockAhead: s}, nil, 30 * s, 24 * time.Hour, 20 * s, 10 * s, 3 * s, 10 * s, 3 * s},
		{config{Lease: 10 * s, Renew: s, Quarantine: 25 * s, MaxClockAhead: s}, nil, 35 * s, 24 * time.Hour, 25 * s, 10 * s, s, 10 * s, 2 * s},
		{config{Lease: 10 * s, Renew: 3 * s, Quarantine: 15 * s}, nil, 30 * s, 24 * time.Hour, 20 * s, 10 * s, 3 * s, 10 * s, 3 * s},
		{config{Lease: 24 * time.Hour, Renew: s, MaxClockAhead: time.Hour}, nil, 72 * time.Hour, 73 * time.Hour, 48 * time.Hour, 24 * time.Hour, s, 24 * time.Hour, 2 * s},
		{config{Lease: 10 * s, Renew: 3 * s}, &leaseLengths{longest: 40 * s, usable: 6 * s}, 120 * s, 24 * time.Hour, 80 * s, 6 * s, 2 * s, 40 * s, 3 * s},
		{config{Lease: 10 * s, Renew: s}, &leaseLengths{longest: 5 * s, usable: 6 * s}, 30 * s, 24 * time.Hour, 20 * s, 6 * s, s, 10 * s, 2 * s},
		{config{Lease: 10 * s, Renew: 4 * s}, &leaseLengths{longest: 10 * s, usable: 10 * s}, 30 * s, 24 * time.Hour, 20 * s, 10 * s, 4 * s, 10 * s, 4 * s},
	} {
		a := &assigner{config: tt.c}
		a.lengths.Store(tt.noted)
		have := [...]time.Duration{a.mostAhead(), a.horizon(), a.afterFailover(), a.length(), a.every(), a.longest(), a.opTimeout()}
		want := [...]time.Duration{tt.ahead, tt.horizon, tt.failover, tt.length, tt.every, tt.longest, tt.opera}
		must.Equal(t, have, want, tt.c, "noted", tt.noted)
	}
	for lease, want := range map[time.Duration]time.Duration{8999 * time.Millisecond: 2999666666, 9 * s: 3 * s, time.Hour: 3 * s, 3 * s: s} {
		must.Equal(t, renewFor(lease), want, "renew for a lease of", lease)
	}
}

// A renewal happens at a random time between half and all of its interval.
func TestLease_early(t *testing.T) {
	asked := 0
	for by, want := range map[int]time.Duration{0: 10 * time.Second, 5_000_000: 5 * time.Second, 1: 10*time.Second - time.Microsecond} {
		l := &lease{assigner: &assigner{intN: func(n int) int { asked = n; return by }}}
		if have := l.early(10 * time.Second); have != want || asked != 5_000_001 {
			t.Errorf("have: %v, by chance among %d\nwant: %v, among 5,000,001", have, asked, want)
		}
	}
}

// The clock was set if it advanced over a second more or less than the time that passed.
func TestClockWasSet_bounds(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		wall, passed time.Duration
		want         bool
	}{
		{s, s, false}, {2 * s, s, false}, {2*s + 1, s, true}, {0, s, false}, {-1, s, true}, {time.Hour, s, true}, {-time.Hour, s, true},
	} {
		must.Equal(t, wasSet(tt.wall, tt.passed), tt.want, tt.wall, "in", tt.passed)
	}
}

// A process is a copy if its identity is known to have changed.
func TestLease_copied(t *testing.T) {
	for _, tt := range []struct {
		before, now string
		want        bool
	}{{"a", "a", false}, {"a", "b", true}, {"", "b", false}, {"a", "", false}, {"", "", false}} {
		l := &lease{identity: tt.before, assigner: &assigner{identity: func() string { return tt.now }}, workerID: 7}
		err := l.copied()
		if (err != nil) != tt.want || tt.want && (!errors.Is(err, spi.ErrLeaseLost) || !errors.Is(err, errCopied)) {
			t.Errorf("%q, then %q\nhave: %v\nwant: a copy: %v", tt.before, tt.now, err, tt.want)
		}
	}
}

// The time that passed is the longer of the machine's and the process' time.
func TestReading_passed(t *testing.T) {
	begin := time.Now()
	r := reading{uptime: time.Hour, monotonic: begin}
	for _, tt := range []struct{ up, mono, want time.Duration }{
		{time.Second, 2 * time.Second, 2 * time.Second}, {time.Minute, time.Second, time.Minute}, {-time.Second, time.Second, time.Second},
	} {
		must.Equal(t, r.passed(reading{uptime: time.Hour + tt.up, monotonic: begin.Add(tt.mono)}), tt.want, tt.up, "and", tt.mono)
	}
}

// A witness is a valid record of an accepted holder that is reserved until about now. That means
// at most max-clock-ahead before now, or as far ahead as leases may be.
func TestAssigner_witness(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	a := assign(new(oneRecord), config{MaxClockAhead: time.Minute})
	most := (time.Minute + a.mostAhead()).Milliseconds()
	held := func(ahead int64) Entry {
		return Entry{Record: Record{Owner: "a", ReservedUntil: now.UnixMilli() + ahead, Holder: "there pid 1"}}
	}
	for name, tt := range map[string]struct {
		entry Entry
		want  bool
	}{
		"now":                {held(0), true},
		"the earliest":       {held(-60_000), true},
		"before that":        {held(-60_001), false},
		"the latest":         {held(most), true},
		"after that":         {held(most + 1), false},
		"released":           {Entry{Record: Record{Owner: "a", ReservedUntil: now.UnixMilli(), FreeFrom: 5}}, false},
		"not understood":     {Entry{Record: held(0).Record, Err: errors.New("odd")}, false},
		"on this machine":    {Entry{Record: Record{Owner: "a", ReservedUntil: now.UnixMilli(), Holder: a.holder}}, false},
		"another process":    {Entry{Record: Record{Owner: "a", ReservedUntil: now.UnixMilli(), Holder: a.holder + "9"}}, false},
		"nobody's, and then": {Entry{}, false},
	} {
		must.Equal(t, must.Get(a.witness(t.Context(), now, []Entry{{}, tt.entry}, a.isElsewhere))(t), tt.want, name)
	}
}

// The clock is trusted up to the store's time plus max-clock-ahead, and then compared again. A
// clock that was never set is refused.
func TestAssigner_checkClockBounds(t *testing.T) {
	for _, tt := range []struct {
		ahead  time.Duration
		agrees bool
	}{{time.Minute, true}, {time.Minute + 1, false}, {-time.Hour, true}} {
		now := time.UnixMilli(1_790_000_000_000)
		asked := 0
		clock := &fixedClock{ms: now.UnixMilli()}
		a := assign(new(oneRecord), config{Clock: clock, MaxClockAhead: time.Minute})
		a.info.Now = func(context.Context) (time.Time, error) { asked++; return now.Add(-tt.ahead), nil }
		err := a.checkClock(t.Context(), 0, nil)
		if (err == nil) != tt.agrees || err != nil && !isClockError(err) {
			t.Errorf("%v ahead\nhave: %v\nwant: agrees: %v", tt.ahead, err, tt.agrees)
		}
		if !tt.agrees {
			continue
		}
		for after, want := range map[time.Duration]int{time.Minute - tt.ahead: 1, time.Minute - tt.ahead + time.Millisecond: 2} {
			a.clocks.trusted, asked = time.Time{}, 0
			clock.ms = now.UnixMilli()
			_ = a.checkClock(t.Context(), 0, nil)
			clock.ms += after.Milliseconds()
			if _ = a.checkClock(t.Context(), 0, nil); asked != want {
				t.Errorf("%v later\nhave: asked %d times\nwant: %d", after, asked, want)
			}
		}
	}
	for at, unset := range map[time.Time]bool{earliest: false, earliest.Add(-time.Millisecond): true, time.Unix(0, 0): true} {
		a := assign(new(oneRecord), config{Clock: &fixedClock{ms: at.UnixMilli()}})
		must.Equal(t, isClockError(a.checkClock(t.Context(), 0, nil)), unset, at)
	}
}

// Without a store's clock, the clock may be ten years after the newest record. It may then
// advance max-clock-ahead more than the time that passed.
func TestAssigner_checkStepBounds(t *testing.T) {
	const begin = 1_790_000_000_000
	years := longestPause.Milliseconds()
	for _, tt := range []struct {
		name     string
		own      int64
		listed   []Entry
		step     time.Duration
		up       time.Duration
		accepted bool
	}{
		{"no records", 0, nil, 0, 0, true},
		{"as long a pause as may be", begin - years, nil, 0, 0, true},
		{"too long a pause", begin - years - 1, nil, 0, 0, false},
		{"too long a pause of all records", 0, []Entry{{Record: Record{ReservedUntil: begin - years - 1}}}, 0, 0, false},
		{"one record is newer", 5, []Entry{{Record: Record{ReservedUntil: begin - years}}, {Record: Record{ReservedUntil: 5}}}, 0, 0, true},
		{"a step as far as may be", 0, []Entry{}, time.Minute, 0, true},
		{"a step too far", 0, []Entry{}, time.Minute + time.Second, 0, false},
		{"that has passed", 0, []Entry{}, time.Hour, time.Hour - time.Minute, true},
		{"that has not all passed", 0, []Entry{}, time.Hour, time.Hour - time.Minute - time.Second, false},
		{"up to what the lease has reserved", begin + time.Hour.Milliseconds() - 60_000, []Entry{}, time.Hour, 0, true},
		{"beyond what it has reserved", begin + time.Hour.Milliseconds() - 60_001, []Entry{}, time.Hour, 0, false},
		{"a step back", 0, []Entry{}, -time.Hour, 0, true},
	} {
		up := time.Hour
		clock := &fixedClock{ms: begin}
		a := assign(new(oneRecord), config{Clock: clock, MaxClockAhead: time.Minute})
		a.uptime = func() (time.Duration, bool) { return up, true }
		if tt.step != 0 {
			must.Do(t, a.checkClock(t.Context(), 0, tt.listed))
			clock.ms, up = clock.ms+tt.step.Milliseconds(), up+tt.up
		}
		if err := a.checkClock(t.Context(), tt.own, tt.listed); (err == nil) != tt.accepted || err != nil && !isClockError(err) {
			t.Errorf("%s\nhave: %v\nwant: accepted: %v", tt.name, err, tt.accepted)
		}
	}
}

// A clock that stays ahead for max-clock-ahead, from the first time that this was seen, is
// accepted.
func TestAssigner_clockThatStaysAhead(t *testing.T) {
	up := time.Hour
	clock := &fixedClock{ms: 1_790_000_000_000}
	a := assign(new(oneRecord), config{Clock: clock, MaxClockAhead: time.Minute})
	a.uptime = func() (time.Duration, bool) { return up, true }
	check := func(passed time.Duration, want bool) {
		t.Helper()
		up += passed
		clock.ms += passed.Milliseconds()
		must.Equal(t, a.checkClock(t.Context(), 0, []Entry{}) == nil, want, "accepted")
	}
	check(0, true)
	clock.ms += time.Hour.Milliseconds()
	check(0, false)
	check(30*time.Second, false)
	check(30*time.Second, false)
	check(time.Second, true)
	check(time.Second, true)
}

// A record is valid if this package can have written it.
func TestRecord_check(t *testing.T) {
	for _, tt := range []struct {
		r    Record
		want string
	}{
		{Record{Owner: "a", ReservedUntil: 1}, ""},
		{Record{Owner: "a", ReservedUntil: 1, FreeFrom: 1}, ""},
		{Record{ReservedUntil: 1}, "expected an owner's token"},
		{Record{Owner: "a"}, "expected a positive reserved_until, found 0"},
		{Record{Owner: "a", ReservedUntil: -1}, "expected a positive reserved_until, found -1"},
		{Record{Owner: "a", ReservedUntil: 1, FreeFrom: -1}, "expected a free_from of 0 or more, found -1"},
	} {
		err := tt.r.check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v\nhave: %v\nwant: %q", tt.r, err, tt.want)
		}
		if tt.want == "" {
			if back, err := ParseRecord(3, tt.r.Text()); err != nil || back != tt.r {
				t.Errorf("%+v\nhave: %+v, %v\nwant: it, read again", tt.r, back, err)
			}
		}
	}
	for _, text := range []string{"", "x", `{"shardkey":2,"owner":"a","reserved_until":1}`, `{"shardkey":1,"owner":"a","reserved_until":1} x`,
		`{"shardkey":1,"owner":"a","reserved_until":1,"more":1}`, `{"owner":"a","reserved_until":1}`, `{"shardkey":1,"owner":"a"}`} {
		var foreign *ForeignRecordError
		if _, err := ParseRecord(3, text); !errors.As(err, &foreign) || foreign.WorkerID != 3 || !errors.Is(err, spi.ErrStore) {
			t.Errorf("%s\nhave: %v\nwant: a foreign record", text, err)
		}
	}
}

// Namespaces consist of letters, digits and three punctuation characters.
func TestValidNamespace_characters(t *testing.T) {
	for r := range rune(0x100) {
		name := "x" + string(r)
		want := r < 0x80 && strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r)
		must.Equal(t, validNamespace(name), want, name)
	}
	for name, want := range map[string]bool{
		"": false, ".x": false, "-x": true, strings.Repeat("x", maxNamespace): true, strings.Repeat("x", maxNamespace+1): false,
	} {
		must.Equal(t, validNamespace(name), want, name)
	}
}

// The error for a foreign record shows the beginning of its content.
func TestForeignRecordError_content(t *testing.T) {
	for n, cut := range map[int]bool{0: false, 60: false, 61: true} {
		text := (&ForeignRecordError{Value: strings.Repeat("x", n), Err: errors.New("odd")}).Error()
		must.Equal(t, strings.Contains(text, "…"), cut, n, "bytes", text)
	}
	for value, want := range map[string]bool{"abc": true, "": false} {
		text := (&ForeignRecordError{Value: value, Err: errors.New("odd")}).Error()
		if strings.Contains(text, `(odd): "abc"`) != want || strings.Contains(text, `""`) {
			t.Errorf("have: %s\nwant: %q shown", text, value)
		}
	}
}

// A worker ID that is not leased must be one of the layout's.
func TestUnleased_bounds(t *testing.T) {
	for id, want := range map[int64]bool{-1: false, 0: true, 15: true, 16: false} {
		u := &fixed{kind: "STATIC", find: func() (int64, error) { return id, nil }}
		l, err := u.AcquireWorkerID(t.Context(), 15)
		if (err == nil) != want || err != nil && !errors.Is(err, spi.ErrNoWorkerID) {
			t.Errorf("%d of 0..15\nhave: %v, %v\nwant: %v", id, l, err, want)
		}
		if want && (l.WorkerID() != id || l.Floor() != 0 || l.Limit() != math.MaxInt64 || l.Renew(t.Context(), 5) != nil || l.Release(t.Context(), 5) != nil) {
			t.Errorf("have: %v\nwant: worker ID %d without a limit", l, id)
		}
	}
	none := errors.New("none")
	u := &fixed{kind: "IP", find: func() (int64, error) { return 0, none }}
	if _, err := u.AcquireWorkerID(t.Context(), 15); !errors.Is(err, none) || !errors.Is(err, spi.ErrNoWorkerID) {
		t.Errorf("have: %v\nwant: %v", err, none)
	}
	static := &fixed{kind: "STATIC", find: func() (int64, error) { return 7, nil }}
	if h := static.Health(); *h.WorkerID != 7 || len(h.Warnings) != 1 || h.Err != nil {
		t.Errorf("have: %+v\nwant: worker ID 7 with a warning", h)
	}
	list, err := static.ListWorkerIDs(t.Context())
	if err != nil || list.Max != -1 || list.Store != static.Describe() ||
		len(list.List) != 1 || list.List[0].ID != 7 || list.List[0].State != "fixed" {
		t.Errorf("have: %+v, %v\nwant: worker ID 7, fixed, and no highest worker ID", list, err)
	}
	if h := u.Health(); !errors.Is(h.Err, none) || h.WorkerID != nil || u.Describe() != "IP" || len(h.Warnings) != 1 {
		t.Errorf("have: %+v, %s\nwant: the error", h, u.Describe())
	}
	must.Is(t, must.Err(u.ListWorkerIDs(t.Context())), none)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.AcquireWorkerID(ended, 15); !errors.Is(err, context.Canceled) || errors.Is(err, none) {
		t.Errorf("have: %v\nwant: the context's error", err)
	}
}

// The store's clock counts as read half way between request and answer.
func TestAssigner_clockAhead(t *testing.T) {
	clock := &fixedClock{ms: 1_790_000_000_000}
	a := assign(new(oneRecord), config{Clock: clock})
	other := time.UnixMilli(clock.ms)
	a.display.info.Now = func(context.Context) (time.Time, error) { clock.ms += 1000; return other, nil }
	if have, err := a.clockAhead(t.Context()); err != nil || *have != 500*time.Millisecond {
		t.Errorf("have: %v, %v\nwant: 500ms", have, err)
	}
	other = time.Time{}
	if have, err := a.clockAhead(t.Context()); have != nil || err != nil {
		t.Errorf("have: %v, %v\nwant: not known", have, err)
	}
	away := errors.New("away")
	a.display.info.Now = func(context.Context) (time.Time, error) { return time.Now(), away }
	if have, err := a.clockAhead(t.Context()); have != nil || !errors.Is(err, away) {
		t.Errorf("have: %v, %v\nwant: %v", have, err, away)
	}
	a.display.info.NowWrites = true
	if have, err := a.clockAhead(t.Context()); have != nil || err != nil {
		t.Errorf("have: %v, %v\nwant: not asked, as that writes", have, err)
	}
}

// Warnings list five worker IDs, and the number of the others.
func TestAssigner_oddWarnings(t *testing.T) {
	for n, want := range map[int]string{0: "", 5: "", 6: "1 more worker IDs", 9: "4 more worker IDs"} {
		a := assign(new(oneRecord), config{})
		for id := range n {
			a.addWarning(int64(id), fmt.Sprint("odd ", id))
		}
		w := strings.Join(a.Health().Warnings, "\n")
		if strings.Count(w, "odd ") != min(n, 5) || !strings.Contains(w, want) || (want == "") == strings.Contains(w, "more") {
			t.Errorf("%d warnings\nhave: %q\nwant: five at most, %q", n, w, want)
		}
		if a.clearWarnings(); a.Health().Warnings != nil && len(a.Health().Warnings) > 0 {
			t.Errorf("have: %q\nwant: none", a.Health().Warnings)
		}
	}
}
