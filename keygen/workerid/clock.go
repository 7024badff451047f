package workerid

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// earliest is a time that only an unset clock is before.
var earliest = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

// horizon returns how far ahead of the clock a lease may start or be renewed to.
func (a *assigner) horizon() time.Duration {
	return max(horizon, a.mostAhead()+a.config.MaxClockAhead)
}

// clocks is what an assigner knows about its machine's clock.
type clocks struct {
	mu      sync.Mutex
	trusted time.Time // until this time the clock is not too far ahead of the store's
	right   reading   // the last reading without a suspicious step
	doubted reading   // the first suspicious reading after right; zero for none
}

// reading is a reading of the clock, with the uptimes of the machine and of the process at that
// time.
type reading struct {
	at        time.Time // wall clock
	uptime    time.Duration
	monotonic time.Time
}

// passed returns the time between two readings, independently of the clock. It is the longer of
// both uptimes, because the machine's includes time in suspension.
func (re reading) passed(later reading) time.Duration {
	return max(later.uptime-re.uptime, later.monotonic.Sub(re.monotonic))
}

// checkClock returns an error if the clock is too far ahead to write to the store. Keys would stay
// unique, but the worker ID would be unusable until that time. listed are the records of the
// namespace. If it is nil, they are read when needed. own is the lease's reservation, or 0.
func (a *assigner) checkClock(ctx context.Context, own int64, listed []Entry) error {
	now := a.config.Clock.Now().Round(0) // only the wall clock: a monotonic reading doesn't show that it was set
	if now.Before(earliest) {
		return wrongClock(now, "the current time is after", earliest)
	}
	if a.info.Now != nil {
		if known, err := a.checkStoresClock(ctx, now, listed); known || err != nil {
			return err
		}
	}
	return a.checkStep(ctx, now, own, listed)
}

// checkStoresClock compares the clock with the store's. It reads the store's clock once in
// MaxClockAhead: until then, time that passes can't put this machine's clock further ahead than
// that. A store whose clock is behind doesn't stop all processes, because the processes confirm
// each other's clocks (witness). known is false if the store has no clock.
func (a *assigner) checkStoresClock(ctx context.Context, now time.Time, listed []Entry) (known bool, err error) {
	a.clocks.mu.Lock()
	trusted := !now.After(a.clocks.trusted)
	a.clocks.mu.Unlock()
	if trusted {
		return true, nil
	}
	other, err := a.info.Now(ctx)
	if err != nil {
		return false, a.storeError("read the store's clock", err)
	}
	if other.IsZero() {
		return false, nil
	}
	if now.Sub(other) > a.config.MaxClockAhead {
		if agree, err := a.witness(ctx, now, listed, a.isElsewhere); agree || err != nil {
			return true, err
		}
		return true, fmt.Errorf("%w; max-clock-ahead is %v", wrongClock(now, "the store's clock shows", other), a.config.MaxClockAhead)
	}
	a.clocks.mu.Lock()
	defer a.clocks.mu.Unlock()
	a.clocks.trusted = other.Add(a.config.MaxClockAhead)
	return true, nil
}

// checkStep checks the clock if the store has none. It uses the records, and how far the clock has
// moved since the last reading. A step forward is refused if no record confirms it. A clock that
// stays there for MaxClockAhead is accepted, for example after a virtual machine was suspended and
// its clock was corrected.
func (a *assigner) checkStep(ctx context.Context, now time.Time, own int64, listed []Entry) error {
	newest := own
	for _, e := range listed {
		newest = max(newest, e.Record.ReservedUntil)
	}
	if newest > 0 && now.Sub(time.UnixMilli(newest)) > longestPause {
		return wrongClock(now, "the newest reservation in the store is until", time.UnixMilli(newest))
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
	return fmt.Errorf("%w; max-clock-ahead is %v, and a clock that stays ahead for that time is accepted",
		wrongClock(now, "after its last reading it should show", right.at.Add(right.passed(this))), a.config.MaxClockAhead)
}

// witness reports whether a process holds a worker ID at about this time. The function who selects
// the processes that count.
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
