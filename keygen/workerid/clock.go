package workerid

import (
	"context"
	"strings"
	"sync"
	"time"
)

// earliest is before any clock that is not plainly unset.
var earliest = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

// horizon is how far ahead of the clock a worker ID may start, and a lease be moved on to.
func (a *assigner) horizon() time.Duration {
	return max(horizon, a.mostAhead()+a.config.MaxClockAhead)
}

// clocks is what an assigner knows of its machine's clock.
type clocks struct {
	mu      sync.Mutex
	trusted time.Time // up to here the clock is not too far ahead of the store's
	right   reading   // the last one that was right, as far as is known
	doubted reading   // the first of those since then that were not; zero: there is none
}

// reading is the clock's time, and how long the machine and the process had run by then.
type reading struct {
	at        time.Time
	uptime    time.Duration
	monotonic time.Time
}

// passed is the time between two readings, whatever the clock said: the longer of both, for
// the uptime counts while the machine is suspended.
func (r reading) passed(later reading) time.Duration {
	return max(later.uptime-r.uptime, later.monotonic.Sub(r.monotonic))
}

// checkClock refuses to write by a clock that is too far ahead. Ids would stay unique, but
// the worker ID would be of no use until that time has come. listed are the records of the
// namespace; nil: they are read where they are needed. own is what this lease has reserved, or 0.
func (a *assigner) checkClock(ctx context.Context, own int64, listed []Entry) error {
	now := a.config.Clock.Now()
	if now.Before(earliest) {
		return &clockError{Clock: now, Other: earliest, What: "it is later than"}
	}
	if a.info.Now != nil {
		if known, err := a.checkStoresClock(ctx, now, listed); known || err != nil {
			return err
		}
	}
	return a.checkStep(ctx, now, own, listed)
}

// checkStoresClock compares the clock with the store's. It asks once in MaxClockAhead: as
// time passes, this machine's clock is at most that far ahead until then. A store whose
// clock is behind stops no fleet: its processes are each other's witness. known is false
// where the store has no time.
func (a *assigner) checkStoresClock(ctx context.Context, now time.Time, listed []Entry) (known bool, err error) {
	a.clocks.mu.Lock()
	trusted := !now.After(a.clocks.trusted)
	a.clocks.mu.Unlock()
	if trusted {
		return true, nil
	}
	other, err := a.info.Now(ctx)
	if err != nil {
		return false, a.storeError("ask for the time", err)
	}
	if other.IsZero() {
		return false, nil
	}
	if now.Sub(other) > a.config.MaxClockAhead {
		if agree, err := a.witness(ctx, now, listed, a.isElsewhere); agree || err != nil {
			return true, err
		}
		return true, &clockError{Clock: now, Other: other, What: "the store's says", Most: a.config.MaxClockAhead}
	}
	a.clocks.mu.Lock()
	defer a.clocks.mu.Unlock()
	a.clocks.trusted = other.Add(a.config.MaxClockAhead)
	return true, nil
}

// checkStep is for stores without a clock. What is left are the records, and how far the
// clock has gone since it was read last: a step ahead is refused if no record agrees with it.
// A clock that stays there for MaxClockAhead is believed, as that of a virtual machine that
// was stopped and set right must be.
func (a *assigner) checkStep(ctx context.Context, now time.Time, own int64, listed []Entry) error {
	newest := own
	for _, e := range listed {
		newest = max(newest, e.Record.ReservedUntil)
	}
	if newest > 0 && now.Sub(time.UnixMilli(newest)) > longestPause {
		return &clockError{Clock: now, Other: time.UnixMilli(newest), What: "the newest reservation in the store is of"}
	}
	uptime, ok := a.uptime()
	if !ok {
		return nil
	}
	this := reading{now, uptime, time.Now()}
	a.clocks.mu.Lock()
	right, doubted := a.clocks.right, a.clocks.doubted
	a.clocks.mu.Unlock()

	agree := right.at.IsZero() || now.Sub(right.at)-right.passed(this) <= a.config.MaxClockAhead ||
		now.Sub(time.UnixMilli(own)) <= a.config.MaxClockAhead ||
		!doubted.at.IsZero() && doubted.passed(this) > a.config.MaxClockAhead
	var err error
	if !agree {
		agree, err = a.witness(ctx, now, listed, func(Record) bool { return true })
	}
	a.clocks.mu.Lock()
	defer a.clocks.mu.Unlock()
	switch {
	case agree:
		a.clocks.right, a.clocks.doubted = this, reading{}
		return nil
	case doubted.at.IsZero():
		a.clocks.doubted = this
	}
	if err != nil {
		return err
	}
	return &clockError{
		Clock: now, Other: right.at.Add(right.passed(this)), What: "by its last reading it is",
		Most: a.config.MaxClockAhead, Stays: true,
	}
}

// witness reports whether a process that who accepts holds a worker ID at about this time.
func (a *assigner) witness(ctx context.Context, now time.Time, listed []Entry, who func(Record) bool) (bool, error) {
	if listed == nil {
		var err error
		if listed, err = a.store.List(ctx); err != nil {
			return false, a.storeError("list worker IDs", err)
		}
	}
	for _, e := range listed {
		ahead, most := time.UnixMilli(e.Record.ReservedUntil).Sub(now), a.config.MaxClockAhead
		held := e.Err == nil && e.Record.FreeFrom == 0 && who(e.Record)
		if held && ahead >= -most && ahead <= most+a.mostAhead() {
			return true, nil
		}
	}
	return false, nil
}

// isElsewhere reports whether a record's holder is on another machine.
func (a *assigner) isElsewhere(r Record) bool {
	here, _, _ := strings.Cut(a.holder, holderPID)
	there, _, _ := strings.Cut(r.Holder, holderPID)
	return here != there
}
