package workerid

import (
	"errors"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Tokens made at one time differ all the same.
func TestNewToken_isRandom(t *testing.T) {
	const random = 32 // digits, of 128 bits
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

// A round of renewal that waited while the lease was released writes nothing on
// top of what the next owner reads.
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

// A caller that asks for ids of a time far ahead has a clock that is wrong, and
// moves nothing on.
func TestLease_timeFarAheadIsNotReserved(t *testing.T) {
	l, store, clock := acquired(t)
	before := store.record
	until := clock.ms + (horizon + time.Hour).Milliseconds()
	if err := l.Renew(t.Context(), until); err == nil || !store.record.Same(before) {
		t.Errorf("have: %v, %v\nwant: an error, the record as it was", err, store.record)
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
		t.Errorf("have: %v, %v\nwant: worker ids 1 and 3", free, err)
	}
}
