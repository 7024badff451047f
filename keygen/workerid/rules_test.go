package workerid

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Tokens created at the same time differ.
func TestNewToken_isRandom(t *testing.T) {
	const random = 32 // digits of 128 random bits
	seen := map[string]bool{}
	for range 1000 {
		token := newToken()
		if len(token) < random || seen[token[:random]] {
			t.Fatalf("have: %s\nwant: %d random digits that have not come before", token, random)
		}
		seen[token[:random]] = true
	}
}

func acquired(t *testing.T) (*lease, *unconfirmed, *fixedClock) {
	t.Helper()
	clock, store := &fixedClock{ms: 1_790_000_000_000}, &unconfirmed{oneRecord: new(oneRecord)}
	_, l := byHand(t, store, config{Clock: clock})
	return l, store, clock
}

// If the lease is released while a renewal waits, the renewal writes nothing on top of the next
// owner's record.
func TestLease_isNotRenewedAfterItsRelease(t *testing.T) {
	l, store, clock := acquired(t)
	if err := l.Release(t.Context(), clock.ms); err != nil {
		t.Fatal(err)
	}
	released := store.record
	if err := l.keep(t.Context()); !errors.Is(err, spi.ErrClosed) || !store.record.Same(released) {
		t.Errorf("have: %v, %v\nwant: %v, the record as it was released", err, store.record, spi.ErrClosed)
	}
}

func TestCandidates_ofRecords(t *testing.T) {
	l, _, clock := acquired(t)
	hour := time.Hour.Milliseconds()
	entries := []Entry{
		{WorkerID: 0, Record: Record{Owner: "held", ReservedUntil: clock.ms + hour}},
		{WorkerID: 1, Record: Record{Owner: "released", ReservedUntil: clock.ms + hour, FreeFrom: clock.ms - hour}},
		{WorkerID: 2, Err: errors.New("not understood")},
		{WorkerID: 3, Record: Record{Owner: "run out", ReservedUntil: clock.ms - hour}},
		{WorkerID: 5000, Record: Record{Owner: "above the layout's", ReservedUntil: clock.ms - hour}},
	}
	free, err := l.assigner.candidates(t.Context(), entries, 3)
	if err != nil || len(free) != 2 || free[0].WorkerID != 1 || free[1].WorkerID != 3 {
		t.Errorf("have: %v, %v\nwant: worker IDs 1 and 3", free, err)
	}
}

// unconfirmed is a store that applies and shows writes that it doesn't acknowledge.
type unconfirmed struct {
	*oneRecord
	silent int // number of writes that are not acknowledged
	writes int
}

func (s *unconfirmed) CompareAndSet(ctx context.Context, id int64, prev, next Record) (bool, error) {
	s.writes++
	ok, err := s.oneRecord.CompareAndSet(ctx, id, prev, next)
	if s.writes <= s.silent {
		return false, errors.New("no answer")
	}
	return ok, err
}

// The store may lose a record in a crash that a lease has only read. The limit rises after a
// write on top of it is acknowledged.
func TestLease_shownRecordDoesNotMoveTheLimit(t *testing.T) {
	clock, store := &fixedClock{ms: 1_790_000_000_000}, &unconfirmed{oneRecord: new(oneRecord)}
	_, l := byHand(t, store, config{Clock: clock})
	reserved := l.Limit()
	clock.ms += 3000
	store.silent, store.writes = 2, 0
	for range 2 {
		if err := l.keep(t.Context()); !errors.Is(err, spi.ErrStore) || l.Limit() != reserved {
			t.Errorf("while nothing is confirmed\nhave: %v, limit %d\nwant: spi.ErrStore, limit %d", err, l.Limit(), reserved)
		}
	}
	if store.record.ReservedUntil != reserved+3000 {
		t.Fatalf("the store shows %d, want %d", store.record.ReservedUntil, reserved+3000)
	}
	shown := store.record
	if err := l.keep(t.Context()); err != nil || l.Limit() != reserved+3000 {
		t.Errorf("once it is confirmed\nhave: %v, limit %d\nwant: limit %d", err, l.Limit(), reserved+3000)
	}
	if store.record.Owner == shown.Owner || store.writes != 3 {
		t.Errorf("have: the record that was shown, after %d writes\nwant: one on top of it, after 3", store.writes)
	}
}

func TestAssigner_shownTakeoverIsWrittenAgain(t *testing.T) {
	const now = 1_790_000_000_000
	free := Record{Owner: "x", ReservedUntil: now + 9_999, FreeFrom: now + 9_999}
	for name, c := range map[string]struct {
		before Record
		silent int
		writes int
		taken  bool
	}{
		"the second is confirmed":           {free, 1, 2, true},
		"none is confirmed":                 {free, 2, 2, false},
		"a first record need not be":        {Record{}, 1, 2, true},
		"the second one, of a first record": {Record{}, 2, 3, true},
		"none, of a first record":           {Record{}, 3, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			clock, store := &fixedClock{ms: 1_790_000_000_000}, &unconfirmed{oneRecord: &oneRecord{c.before}, silent: c.silent}
			a := assign(store, config{Clock: clock})
			a.manual = true
			l, err := a.acquire(t.Context(), 0)
			switch {
			case store.writes != c.writes:
				t.Errorf("writes\nhave: %d\nwant: %d", store.writes, c.writes)
			case c.taken && (err != nil || l.Limit() != clock.ms+10_000 || l.Floor() != clock.ms+9_999):
				t.Errorf("have: %v, %v\nwant: a lease", l, err)
			case !c.taken && !errors.Is(err, spi.ErrStore):
				t.Errorf("have: %v\nwant: spi.ErrStore", err)
			}
		})
	}
}

// altering is a store with a column that is too narrow.
type altering struct {
	*oneRecord
	alter func(*Record)
}

func (s altering) CompareAndSet(ctx context.Context, id int64, prev, next Record) (bool, error) {
	s.alter(&next)
	return s.oneRecord.CompareAndSet(ctx, id, prev, next)
}

func TestAssigner_refusesARecordThatCameBackOtherThanWritten(t *testing.T) {
	for name, alter := range map[string]func(*Record){
		"reserved_until": func(r *Record) { r.ReservedUntil = 1<<31 - 1 },
		"free_from":      func(r *Record) { r.FreeFrom = min(r.FreeFrom, 0) },
		"free_from kept": func(r *Record) { r.FreeFrom = 1 },
	} {
		a := assign(altering{new(oneRecord), alter}, config{Clock: &fixedClock{ms: 1_790_000_000_000}})
		a.manual = true
		if l, err := a.acquire(t.Context(), 0); !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "changed a record") {
			t.Errorf("%s\nhave: %v, %v\nwant: that the record was changed", name, l, err)
		}
	}
}

func TestIPWorkerID_lastBits(t *testing.T) {
	for _, c := range []struct {
		addrs []string
		want  int64 // -1 for an error
	}{
		{[]string{"127.0.0.1/8", "10.0.3.17/16"}, 3*256 + 17},
		{[]string{"10.0.4.17/16"}, 17}, // only two bits of the third byte
		{[]string{"fe80::1/64", "192.168.255.255/16"}, 1023},
		{[]string{"10.0.0.1/8", "10.0.0.2/8"}, 1},
		{[]string{"2001:db8::9/64", "10.0.0.2/8"}, 2},
		{[]string{"127.0.0.1/8", "169.254.0.9/16", "::1/128"}, -1},
		{nil, -1},
	} {
		var addrs []net.Addr
		for _, a := range c.addrs {
			ip, n, err := net.ParseCIDR(a)
			if err != nil {
				t.Fatal(err)
			}
			addrs = append(addrs, &net.IPAddr{IP: ip}, &net.IPNet{IP: ip, Mask: n.Mask})
		}
		have, err := ipWorkerID(firstIPv4(addrs))
		if err != nil {
			have = -1
		}
		if have != c.want {
			t.Errorf("%v\nhave: %d, %v\nwant: %d", c.addrs, have, err, c.want)
		}
	}
}

func TestHostnameWorkerID_ordinal(t *testing.T) {
	for name, want := range map[string]int64{
		"orders-0": 0, "orders-12": 12, "a-b-1023": 1023, "orders-3.orders.default.svc": 3,
		"orders": -1, "orders12": -1, "orders-": -1, "orders-x": -1, "": -1, "orders-99999999999": -1,
		"ip-10-0-1-12": -1, "ip-10-0-1-12.eu-west-1.compute.internal": -1, "10-0-1-12": -1, "v1-2-3": 3,
	} {
		have, err := hostnameWorkerID(name)
		if err != nil {
			have = -1
		}
		if have != want {
			t.Errorf("%q\nhave: %d, %v\nwant: %d", name, have, err, want)
		}
	}
}
