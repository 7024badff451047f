package workerid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

const start = 1_790_000_000_000

// A write that fails and is not done is the error of taking a worker ID.
func TestAssigner_takingFails(t *testing.T) {
	away := errors.New("away")
	store := &oneRecord{writeErr: away}
	a := assign(store, config{Clock: &fixedClock{ms: start}})
	_, err := a.acquire(t.Context(), 0)
	if !errors.Is(err, away) || !errors.Is(err, spi.ErrStore) {
		t.Errorf("have: %v\nwant: the store's error alone", err)
	}
}

// If no worker ID looks free, the store is read once, and once more for the error. It lists five
// holders in order, and when the first of the valid records is free.
func TestAssigner_noWorkerIDIsFree(t *testing.T) {
	a := assign(new(oneRecord), config{Clock: &fixedClock{ms: start}})
	held := func(id, until int64) Entry {
		r := Record{Owner: "a", ReservedUntil: start + until, Holder: fmt.Sprint("host", id), Since: start}
		return Entry{WorkerID: id, Record: r}
	}
	odd := func(id int64) Entry { return Entry{WorkerID: id, Err: errors.New("not understood")} }
	all := func(n int64) (entries []Entry) {
		for id := range n {
			entries = append(entries, held(id, 5000))
		}
		return entries
	}
	for _, tt := range []struct {
		listed []Entry
		most   int64
		want   string // a pattern of the part about the holders
	}{
		{[]Entry{held(2, 6000), odd(3), held(1, 5000), held(0, 7000)}, 3,
			"; 0: held by host0 .*; 1: held by host1 .*; 2: held by host2 .*; 3: not understood; the next is free at 2026-09-21T14:13:25Z;"},
		{[]Entry{odd(1), odd(0)}, 1, "in TEST; 0: not understood; 1: not understood; stop a holder"},
		{[]Entry{held(0, 6000), held(1, 5000)}, 0, "0..0 are leased in TEST; 0: held by host0 since 2026-[^;]*; the next is free at 2026-09-21T14:13:26Z;"},
		{all(5), 4, "; 4: held by host4 [^;]*; the next"},
		{all(6), 5, "; 4: held by host4 [^;]*; and 1 more; the next"},
	} {
		store := &oneRecord{listed: tt.listed}
		a.store = store
		_, err := a.AcquireWorkerID(t.Context(), tt.most)
		must.Is(t, a.Health().Err, spi.ErrNoWorkerID, "health")
		if !errors.Is(err, spi.ErrNoWorkerID) || !regexp.MustCompile(tt.want).MatchString(err.Error()) {
			t.Errorf("\nhave: %v\nwant: %s", err, tt.want)
		}
		if store.lists != 2 || store.writes != 0 {
			t.Errorf("have: listed %d times, %d writes\nwant: 2, none", store.lists, store.writes)
		}
	}
}

// The error lists the holders among the worker IDs that the store offers, and why the store can't
// list more.
func TestAssigner_noWorkerIDIsOffered(t *testing.T) {
	entries := []Entry{{WorkerID: 1, Record: Record{Owner: "a"}}, {WorkerID: 80, Record: Record{Owner: "b"}}}
	away := errors.New("away")
	for name, tt := range map[string]struct {
		offer func(context.Context, int64) ([]int64, error)
		has   []bool // of 1 and 80
		err   error
		says  string
	}{
		"all":     {nil, []bool{true, true}, nil, "all of 0..100 are leased"},
		"one":     {func(context.Context, int64) ([]int64, error) { return []int64{1}, nil }, []bool{true, false}, nil, "this process, [1], are leased"},
		"several": {func(context.Context, int64) ([]int64, error) { return []int64{1, 7}, nil }, []bool{true, false}, nil, "this process, [1 7], are leased"},
		"none":    {func(context.Context, int64) ([]int64, error) { return nil, nil }, []bool{false, false}, nil, "this process, [], are leased"},
		"unknown": {func(context.Context, int64) ([]int64, error) { return nil, away }, []bool{true, true}, away, "all of 0..100 are leased"},
	} {
		a := assign(&oneRecord{listed: entries}, config{Clock: &fixedClock{ms: start}})
		a.info.WorkerIDs, a.intN = tt.offer, func(int) int { return 0 }
		err := a.noWorkerID(t.Context(), 100)
		if !errors.Is(err, spi.ErrNoWorkerID) || errors.Is(err, away) != (tt.err != nil) {
			t.Errorf("%s\nhave: %v\nwant: ErrNoWorkerID, and %v", name, err, tt.err)
		}
		must.Contain(t, err.Error(), tt.says, name)
		if have := []bool{strings.Contains(err.Error(), "; 1: "), strings.Contains(err.Error(), "; 80: ")}; tt.err == nil && !slices.Equal(have, tt.has) {
			t.Errorf("%s\nhave: %v, in %v\nwant: %v", name, have, err, tt.has)
		}
	}
}

// An attempt to renew that its caller's context ends is no failure of the store.
func TestLease_triedUntilItsCallerEnds(t *testing.T) {
	_, l := byHand(t, new(oneRecord), config{Clock: &fixedClock{ms: start}})
	for i, tt := range []struct {
		err    error
		ended  bool
		failed bool
	}{{context.Canceled, true, false}, {errors.New("away"), false, true}, {nil, true, false}} {
		l.tried(tt.err, tt.ended)
		must.Equal(t, l.Health().Err != nil, tt.failed, "attempt", i, "failed")
	}
}

func TestAssigner_describesWhatItHolds(t *testing.T) {
	a, _ := byHand(t, new(oneRecord), config{Clock: &fixedClock{ms: start}})
	must.Equal(t, a.Describe(), "TEST namespace=shardkey lease=10s renew=3s: holds [0]")
	if have := assign(new(oneRecord), config{}).Describe(); !strings.HasSuffix(have, ": none held") {
		t.Errorf("have: %s\nwant: none held", have)
	}
	host, err := os.Hostname()
	if name := holderName(); err == nil && !strings.HasPrefix(name, host[:min(150, len(host))]+" pid ") {
		t.Errorf("have: %s\nwant: the name of the host", name)
	}
	list, err := a.ListWorkerIDs(t.Context())
	if err != nil || list.Max != -1 {
		t.Errorf("have: %+v, %v\nwant: no highest worker ID, which only a layout has", list, err)
	}
}

// A renewal is one write, and nothing else is asked where all is known.
func TestLease_renewalIsOneWrite(t *testing.T) {
	store, notes, clock := new(oneRecord), new(oneRecord), &fixedClock{ms: start}
	a := assign(store, config{Clock: clock})
	a.info.notes = notes
	l := must.Get(a.acquire(t.Context(), 0))(t)
	for range 3 {
		store.writes, store.gets, store.lists, notes.gets = 0, 0, 0, 0
		clock.ms += 1000
		if err := l.keep(t.Context()); err != nil || store.writes != 1 || store.gets != 0 || store.lists != 0 || notes.gets != 0 {
			t.Errorf("have: %v, %d writes, %d reads, %d lists, %d reads of the notes\nwant: one write", err, store.writes, store.gets, store.lists, notes.gets)
		}
	}
	if h := l.Health(); h.Lease.Renewals != 3 || h.Err != nil || a.Health().Lease.Renewals != 3 {
		t.Errorf("have: %+v\nwant: three renewals", h)
	}
	store.writeErr = errors.New("away")
	clock.ms += 1000
	if err := l.keep(t.Context()); err == nil || l.Health().Lease.Renewals != 3 {
		t.Errorf("have: %v, %+v\nwant: an error, three renewals", err, l.Health())
	}
}

// A lease is renewed each 3 s, after a failure earlier, and less so with each.
func TestLease_renewalsAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(oneRecord)
		a := assign(store, config{})
		a.intN = func(int) int { return 0 }
		must.Get(a.acquire(t.Context(), 0))(t)
		time.Sleep(10 * time.Second) // three renewals
		failing := time.Now()
		store.do(func() { store.at, store.writeErr = nil, errors.New("unavailable") })
		time.Sleep(12 * time.Second)
		store.do(func() { store.writeErr = nil })
		time.Sleep(7 * time.Second)
		must.Do(t, a.Close())
		var have []time.Duration
		for _, at := range store.at[:len(store.at)-1] { // the last is the release
			have = append(have, at.Sub(failing))
		}
		const s = time.Second
		must.EqualSlices(t, have, []time.Duration{2 * s, 3 * s, 5 * s, 8 * s, 11 * s, 14 * s, 17 * s})
	})
}

// What a release returns, by what the store does with it.
func TestLease_releaseThatFails(t *testing.T) {
	away := errors.New("away")
	for name, tt := range map[string]struct {
		do   func(*oneRecord)
		want error
	}{
		"done":                         {func(*oneRecord) {}, nil},
		"not written":                  {func(s *oneRecord) { s.writeErr = away }, away},
		"busy, then done":              {func(s *oneRecord) { s.refuse = 2 }, nil},
		"busy":                         {func(s *oneRecord) { s.refuse = 3 }, spi.ErrStore},
		"busy, and not readable":       {func(s *oneRecord) { s.refuse, s.getErr = 1, away }, away},
		"another owner's in the store": {func(s *oneRecord) { s.record = Record{Owner: "other", ReservedUntil: start} }, nil},
	} {
		store := new(oneRecord)
		_, l := byHand(t, store, config{Clock: &fixedClock{ms: start}})
		tt.do(store)
		if err := l.Release(t.Context(), l.floor+5); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s\nhave: %v\nwant: %v", name, err, tt.want)
		}
		if name == "done" && store.record.FreeFrom != l.floor+6 {
			t.Errorf("have: free from %d\nwant: %d", store.record.FreeFrom, l.floor+6)
		}
	}
}

// Writes whose outcome is unknown have a token each, 64 at most.
func TestLease_tokens(t *testing.T) {
	_, l := byHand(t, new(oneRecord), config{Clock: &fixedClock{ms: start}})
	for n, again := range map[int]bool{0: false, maxAttempts - 1: false, maxAttempts: true} {
		l.attempts = nil
		for i := range n {
			l.attempts = append(l.attempts, strings.Repeat("x", i+1))
		}
		next := l.next(start + 99_999)
		if have := slices.Contains(l.attempts, next.Owner); have != again || again && next.Owner != l.attempts[n-1] {
			t.Errorf("after %d attempts\nhave: the last one's token: %v\nwant: %v", n, have, again)
		}
	}
}

// A lease reserves one length beyond the clock, or beyond a time that is far ahead of it.
func TestLease_target(t *testing.T) {
	const length = 10_000
	_, l := byHand(t, new(oneRecord), config{Clock: &fixedClock{ms: start}})
	for _, tt := range []struct{ floor, until, want int64 }{
		{length - 1, -5, length}, {length - 1, length - 1, length}, {length - 1, length, 2 * length},
		{1, length / 2, length}, {1, length/2 + 1, length},
		{0, length / 2, length}, {0, length/2 + 1, 3*length/2 + 1},
	} {
		l.floor = start + tt.floor
		must.Equal(t, l.target(start+tt.until)-start, tt.want, tt)
	}
}

// Times up to the horizon, and the lease's delay, may be asked for.
func TestLease_checkClocksBounds(t *testing.T) {
	a, l := byHand(t, new(oneRecord), config{Clock: &fixedClock{ms: start}})
	l.delay = time.Minute
	most := start + (a.horizon() + time.Minute).Milliseconds()
	for until, ok := range map[int64]bool{most: true, most + 1: false} {
		if err := l.checkClocks(t.Context(), until); (err == nil) != ok || err != nil && !isClockError(err) {
			t.Errorf("%d ms ahead\nhave: %v\nwant: accepted: %v", until-start, err, ok)
		}
	}
}

// At its limit a lease is at an end: Health and the log show it.
func TestLease_atItsLimit(t *testing.T) {
	for ms, ended := range map[int64]bool{1: false, 0: true, -1: true} {
		var log must.Log
		_, l := byHand(t, new(oneRecord), config{Clock: &fixedClock{ms: start}, Logger: log.Logger()})
		l.limit.Store(start + ms)
		must.Equal(t, errors.Is(l.Health().Err, spi.ErrLeaseLimit), ended, ms, "ms before the limit", l.Health().Err)
		l.tried(errors.New("away"), false)
		if text := log.String(); strings.Contains(text, "lease ended") != ended || strings.Contains(text, "renewal failed") == ended {
			t.Errorf("%d ms before the limit\nhave: %s\nwant: at its end: %v", ms, text, ended)
		}
	}
}

func TestKindOf_errors(t *testing.T) {
	for want, err := range map[string]error{
		"lease-lost": leaseLost(3, &ForeignRecordError{Err: errAway}), "no-worker-id": spi.ErrNoWorkerID, "clock": errClock,
		"foreign-record": &ForeignRecordError{Err: errors.New("odd")}, "store": &spi.StoreError{},
	} {
		must.Equal(t, kindOf(err), want, err)
	}
}

// named makes an assigner whose store is on a server of this name, which notes know.
func named(t *testing.T, server string, notes *oneRecord, c config) (*assigner, *lease) {
	t.Helper()
	c.Clock = &fixedClock{ms: start}
	a := assign(&oneRecord{server: server, notes: notes}, c)
	return a, newLease(a)
}

// After a failover new leases begin two leases after the moment at which it was seen.
func TestLease_startAfter(t *testing.T) {
	const lease = 10_000
	for name, tt := range map[string]struct {
		quarantine time.Duration
		changed    int64
		floor      int64
		wantFloor  int64
		wantDelay  time.Duration
	}{
		"never changed":                 {0, neverChanged, start, start, 0},
		"changed now":                   {0, start, start, start + 2*lease, 20 * time.Second},
		"changed a while ago":           {0, start - 5000, start, start + 15_000, 20 * time.Second},
		"changed long ago":              {0, start - 50_000, start, start, 20 * time.Second},
		"changed ahead":                 {0, start + 5000, start, start + 25_000, 25 * time.Second},
		"a floor beyond it":             {0, start, start + 30_000, start + 30_000, 20 * time.Second},
		"quarantine":                    {30 * time.Second, neverChanged, start, start + 30_000, 30 * time.Second},
		"quarantine, a failure":         {30 * time.Second, start, start, start + 30_000, 30 * time.Second},
		"quarantine, a floor beyond it": {30 * time.Second, neverChanged, start + 45_000, start + 45_000, 30 * time.Second},
		"no record":                     {0, neverChanged, 0, start + lease - 1, 10 * time.Second},
		"no record, quarantine":         {30 * time.Second, neverChanged, 0, start + 30_000, 30 * time.Second},
		"no record, a failure":          {0, start, 0, start + 2*lease, 20 * time.Second},
	} {
		notes := &oneRecord{record: Record{Owner: "s", FreeFrom: tt.changed, ReservedUntil: tt.changed}}
		a, l := named(t, "s", notes, config{Quarantine: tt.quarantine})
		prev := Record{Owner: "x", ReservedUntil: tt.floor}
		if tt.floor == 0 {
			prev = Record{Owner: "x", ReservedUntil: neverHeld, FreeFrom: neverHeld}
		}
		floor, err := l.startAfter(t.Context(), prev, start)
		if err != nil || floor != tt.wantFloor || l.Delay() != tt.wantDelay || l.server != "s" {
			t.Errorf("%s\nhave: floor %d, delay %v, %v\nwant: %d, %v", name, floor-start, l.Delay(), err, tt.wantFloor-start, tt.wantDelay)
		}
		if changed := a.changed.Load(); changed != 0 && tt.changed == neverChanged || changed == 0 && tt.changed != neverChanged {
			t.Errorf("%s\nhave: changed at %d\nwant: %d", name, changed, tt.changed)
		}
	}
}

// A lease of which all but four seconds has passed may be another's on another server.
func TestLease_mayBeOthers(t *testing.T) {
	for _, tt := range []struct {
		server string
		left   int64
		want   bool
	}{{"s", 4000, false}, {"s", 3999, true}, {"s", -1, true}, {"", 0, false}} {
		_, l := named(t, "s", new(oneRecord), config{})
		l.server, l.newest.ReservedUntil = tt.server, start+tt.left
		must.Equal(t, l.mayBeOthers(), tt.want, tt.left, "ms left on server", tt.server)
	}
}

// A server that takes the place of another is noted with the time, which is not before the
// end of leases that the store still shows, and not before the last change is over.
func TestAssigner_noteServer(t *testing.T) {
	away := errors.New("away")
	noted := func(owner string, free, until int64) Record {
		return Record{Owner: owner, FreeFrom: free, ReservedUntil: until}
	}
	for name, tt := range map[string]struct {
		noted  Record
		seen   int64
		notes  *oneRecord
		want   int64
		until  int64
		logged bool
		err    error
	}{
		"never noted":             {want: neverChanged, until: neverChanged},
		"the same":                {noted: noted("s", 77, 88), want: 77, until: 88},
		"another":                 {noted: noted("old", neverChanged, neverChanged), want: start, until: start, logged: true},
		"another, leases ahead":   {noted: noted("old", neverChanged, neverChanged), seen: start + 30_000, want: start + 20_000, until: start + 20_000, logged: true},
		"another, leases shorter": {noted: noted("old", neverChanged, neverChanged), seen: start + 9999, want: start, until: start, logged: true},
		"another soon after":      {noted: noted("old", start-5000, start-5000), want: start + 15_000, until: start + 15_000, logged: true},
		"another long after":      {noted: noted("old", start-50_000, start-50_000), want: start, until: start, logged: true},
		"a later note":            {noted: noted("old", neverChanged, start+70_000), want: start, until: start + 70_001, logged: true},
		"busy, then noted":        {noted: noted("old", neverChanged, neverChanged), notes: &oneRecord{refuse: 1}, want: start, until: start, logged: true},
		"busy":                    {noted: noted("old", neverChanged, neverChanged), notes: &oneRecord{refuse: 9}, err: errNotNoted, until: neverChanged},
		"not readable":            {noted: noted("old", neverChanged, neverChanged), notes: &oneRecord{getErr: away}, err: away, until: neverChanged},
		"not writable":            {noted: noted("old", neverChanged, neverChanged), notes: &oneRecord{writeErr: away}, err: away, until: neverChanged},
	} {
		var log must.Log
		notes := cmp.Or(tt.notes, new(oneRecord))
		notes.record = tt.noted
		a, _ := named(t, "s", notes, config{Logger: log.Logger()})
		changed, err := a.noteServer(t.Context(), "s", tt.seen)
		if !errors.Is(err, tt.err) || tt.err == nil && (err != nil || changed != tt.want || notes.record.Owner != "s") || notes.record.ReservedUntil != tt.until {
			t.Errorf("%s\nhave: changed at %d, %v, noted %+v\nwant: %d, %v, until %d", name, changed, err, notes.record, tt.want, tt.err, tt.until)
		}
		if have := strings.Contains(log.String(), "failed over"); have != tt.logged {
			t.Errorf("%s\nhave: logged %q\nwant: %v", name, log.String(), tt.logged)
		}
	}
}

// A store without a name of its server has nothing noted, and errors are the store's.
func TestAssigner_serverChanged(t *testing.T) {
	away := errors.New("away")
	notes := new(oneRecord)
	a, _ := named(t, "", notes, config{})
	if server, changed, err := a.serverChanged(t.Context(), 0); server != "" || changed != neverChanged || err != nil || notes.gets != 0 {
		t.Errorf("have: %q, %d, %v, %d reads\nwant: nothing noted", server, changed, err, notes.gets)
	}
	a.info.serverID = func(context.Context) (string, error) { return "s", away }
	if _, _, err := a.serverChanged(t.Context(), 0); !errors.Is(err, away) || !errors.Is(err, spi.ErrStore) || notes.gets != 0 {
		t.Errorf("have: %v, %d reads\nwant: %v, none", err, notes.gets, away)
	}
	for err, want := range map[error]bool{
		errNotNoted: true, &ForeignRecordError{Err: away}: true, &mysql.MySQLError{Number: sqlerr.TableDenied}: true, away: false,
	} {
		a, _ := named(t, "s", &oneRecord{getErr: err}, config{})
		if have := a.isNotNoted(err); have != want || (a.notNoted.Load() != nil) != want || (len(a.failoverWarnings()) > 0) != want {
			t.Errorf("%v\nhave: a warning: %v\nwant: %v", err, have, want)
		}
	}
	must.Equal(t, a.isNotNoted(nil), false)
}

// The longest lease is noted, and one that gives way is tried again.
func TestAssigner_noteLength(t *testing.T) {
	away := errors.New("away")
	for name, tt := range map[string]struct {
		notes *oneRecord
		want  leaseLengths
		err   error
	}{
		"none yet":         {&oneRecord{}, leaseLengths{longest: 10 * time.Second, since: start}, nil},
		"the same":         {&oneRecord{record: Record{Owner: "n", ReservedUntil: 10_000, FreeFrom: 4000, Since: 5}}, leaseLengths{longest: 10 * time.Second, before: 4 * time.Second, since: 5}, nil},
		"a longer one":     {&oneRecord{record: Record{Owner: "n", ReservedUntil: 20_000, Since: 5}}, leaseLengths{longest: 20 * time.Second, since: 5}, nil},
		"a shorter one":    {&oneRecord{record: Record{Owner: "n", ReservedUntil: 9999, Since: 5}}, leaseLengths{longest: 10 * time.Second, before: 9999 * time.Millisecond, since: start}, nil},
		"busy, then noted": {&oneRecord{refuse: 2}, leaseLengths{longest: 10 * time.Second, since: start}, nil},
		"busy":             {&oneRecord{refuse: 3}, leaseLengths{}, errNotNoted},
		"not readable":     {&oneRecord{getErr: away}, leaseLengths{}, away},
		"not writable":     {&oneRecord{writeErr: away}, leaseLengths{}, away},
	} {
		a, _ := named(t, "s", tt.notes, config{})
		n, err := a.noteLength(t.Context())
		if !errors.Is(err, tt.err) || tt.err == nil && (err != nil || n != tt.want) {
			t.Errorf("%s\nhave: %+v, %v\nwant: %+v, %v", name, n, err, tt.want, tt.err)
		}
	}
}

// A failover is a warning for as long as new leases begin later.
func TestAssigner_failoverWarningEnds(t *testing.T) {
	for after, want := range map[time.Duration]int{0: 1, 20 * time.Second: 1, 20*time.Second + time.Millisecond: 0} {
		a, _ := named(t, "s", new(oneRecord), config{})
		a.changed.Store(start - after.Milliseconds())
		must.Equal(t, len(a.failoverWarnings()), want, "warnings", after, "after it")
	}
}

// An error is that of one worker ID where its file is there and is odd, or another user's.
func TestFileStore_whichErrorsAreOfOneFile(t *testing.T) {
	dir := t.TempDir()
	there, absent := filepath.Join(dir, "there"), filepath.Join(dir, "absent")
	must.Do(t, os.WriteFile(there, nil, 0o600))
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&fs.PathError{Path: there, Err: errNotRegular}, true},
		{&fs.PathError{Path: absent, Err: errNotRegular}, true},
		{&fs.PathError{Path: there, Err: fs.ErrPermission}, true},
		{&fs.PathError{Path: absent, Err: fs.ErrPermission}, false},
		{&fs.PathError{Path: there, Err: syscall.ELOOP}, true},
		{&fs.PathError{Path: there, Err: syscall.EIO}, false},
		{fs.ErrPermission, false},
	} {
		err := (&fileStore{dir: dir}).odd(3, tt.err)
		if errors.As(err, new(*ForeignRecordError)) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%v\nhave: %v\nwant: of the worker ID alone: %v", tt.err, err, tt.want)
		}
	}
}

// Waiting for a lock ends with its context.
func TestFileStore_lockWaitEnds(t *testing.T) {
	s := newFileStore(t.TempDir(), "ns")
	must.Do(t, makeDir(s.dir, os.Lstat))
	held := must.Get(s.lock(t.Context(), 3))(t)
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if lock, err := s.lock(ctx, 3); lock != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("have: %v, %v\nwant: the context's error", lock, err)
	}
	if lock, err := s.lock(ctx, 4); lock == nil || err != nil {
		t.Errorf("have: %v\nwant: the lock of another worker ID, which is free", err)
	} else {
		lock.Close()
	}
}

// The notes of a namespace have a name that no namespace has, and that fits its column.
func TestSQLStore_namespaceOfNotes(t *testing.T) {
	for _, n := range []int{1, maxNamespace - 1, maxNamespace} {
		namespace := strings.Repeat("n", n)
		have := (&sqlStore{namespace: namespace}).notes().(*sqlStore).namespace
		if len(have) > maxNamespace || validNamespace(have) || (have == "#"+namespace) != (n < maxNamespace) {
			t.Errorf("%d characters\nhave: %q\nwant: the namespace in it where it fits", n, have)
		}
	}
}

// busyClock is the clock of a process that oversleeps.
type busyClock struct{ spi.Clock }

func (c busyClock) Sleep(ctx context.Context, d time.Duration) error { return c.Clock.Sleep(ctx, 3*d) }

// A busy process renews as often as another one, although it looks for clones more rarely.
func TestLease_oversleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, l := byHand(t, new(oneRecord), config{Clock: busyClock{spi.SystemClock}})
		start := time.Now()
		must.Do(t, l.sleep(t.Context(), a.config.Renew))
		must.Equal(t, time.Since(start), a.config.Renew, "slept")
	})
}
