package workerid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
)

// After a failover, the address of a [Store] may lead to another server. If that was an
// asynchronous replica, it lacks the last writes that the old server acknowledged. Info.serverID
// distinguishes the servers.

// Worker IDs whose records in Info.notes are the notes.
const (
	// serverNote is the note of the server. Owner is the server's name. FreeFrom is when it was
	// first seen to have replaced another server, or neverChanged if there was no other server.
	serverNote = 0
	// leaseNote is the note of the longest lease in force. ReservedUntil is its length and FreeFrom
	// the length before, both in milliseconds. Since is when it was written.
	leaseNote = 1
)

const neverChanged = 1

const leaseNoteOwner = "longest lease"

// startAfter returns the first key time of a new lease that replaced prev at now. If the store has
// lost leases, their owners generate keys up to the limits that they had. By their clocks, these
// limits are at most the longest lease in force after the time when their server was replaced.
// Adding the same length again allows for clocks that differ.
func (l *lease) startAfter(ctx context.Context, prev Record, now int64) (int64, error) {
	a := l.assigner
	floor := floorAfter(prev, now, a.length())
	if l.delay = a.config.Quarantine; l.delay > 0 {
		floor = max(floor, now+l.delay.Milliseconds())
	}
	if prev.FreeFrom == neverHeld {
		l.delay = max(l.delay, a.length())
	}
	server, changed, err := a.serverChanged(ctx, l.seen)
	if l.server = server; err == nil && changed > neverChanged {
		a.changed.Store(changed)
		begin := changed + a.afterFailover().Milliseconds()
		floor = max(floor, begin)
		l.delay = max(l.delay, a.afterFailover(), time.Duration(begin-now)*time.Millisecond)
	}
	return floor, err
}

// mayBeOthers reports whether another process may have taken over the worker ID, because nearly all
// of the reservation has passed. A server that takes over may lack the new owner's record, and
// return this lease's record as the newest.
func (l *lease) mayBeOthers() bool {
	a := l.assigner
	return l.server != "" && l.newest.ReservedUntil-a.now() < (a.length()-2*a.every()).Milliseconds()
}

// checkServer ends a lease that may belong to another process, if the lease was taken on another
// server. It is called after a write of the lease, so that it checks the server that has the
// record.
func (l *lease) checkServer(ctx context.Context) error {
	if !l.unsure || l.endedBy() != nil {
		return nil
	}
	server, err := l.assigner.info.serverID(ctx)
	if err != nil {
		return l.storeError("read the server's name", err)
	}
	if server != l.server {
		return leaseLost(l.workerID, errServerReplaced)
	}
	l.unsure = false
	return nil
}

var errServerReplaced = errors.New("its reservation ended and the server of the worker-ID store was replaced, " +
	"so another process may have used it in the meantime")

// afterFailover returns how long after a failover new leases start.
func (a *assigner) afterFailover() time.Duration { return max(a.config.Quarantine, 2*a.longest()) }

// mostAhead returns how far ahead of the clock a reservation may reach even though all clocks are
// right. A lease may start later after a failover or because of a quarantine, and it reserves up to
// the longest lease.
func (a *assigner) mostAhead() time.Duration {
	return max(a.config.Quarantine, 2*a.longest()) + a.longest()
}

// leaseLengths are the lengths of leases in force. Until since plus longest, a replica may lack the
// note of the longest lease, and before is the length to use. Afterwards longest is.
type leaseLengths struct {
	longest, before time.Duration
	since           int64
	usable          time.Duration // how far ahead this assigner's leases may reserve
}

// longest returns the longest lease in force, as far as this process knows.
func (a *assigner) longest() time.Duration {
	if n := a.lengths.Load(); n != nil {
		return max(a.config.Lease, n.longest)
	}
	return a.config.Lease
}

// length returns how far ahead leases currently reserve.
func (a *assigner) length() time.Duration {
	if n := a.lengths.Load(); n != nil {
		return n.usable
	}
	return a.config.Lease
}

// every returns how often a lease is renewed. It is more often while the length is still shorter
// than configured.
func (a *assigner) every() time.Duration {
	if n := a.length(); n < a.config.Lease {
		return min(a.config.Renew, renewFor(n))
	}
	return a.config.Renew
}

// noteLease writes the length of this assigner's leases to the notes, if it is longer than those in
// force. It also computes how much of it may be used. It is called before a lease is taken or
// renewed.
func (a *assigner) noteLease(ctx context.Context) error {
	if a.info.notes == nil {
		return nil
	}
	n, err := a.noteLength(ctx)
	if a.isNotNoted(err) {
		a.lengths.Store(nil)
		return nil
	}
	if err != nil {
		return a.storeError("record the length of leases", err)
	}
	n.usable = min(a.config.Lease, n.settled(a.now()))
	a.lengths.Store(&n)
	return nil
}

func (a *assigner) noteLength(ctx context.Context) (leaseLengths, error) {
	for range busyRetries {
		noted, err := a.info.notes.Get(ctx, leaseNote)
		if err != nil {
			return leaseLengths{}, err
		}
		n := leaseLengths{
			longest: time.Duration(noted.ReservedUntil) * time.Millisecond,
			before:  time.Duration(noted.FreeFrom) * time.Millisecond, since: noted.Since,
		}
		if n.longest >= a.config.Lease {
			return n, nil
		}
		now := a.now()
		n = leaseLengths{longest: a.config.Lease, before: n.settled(now), since: now}
		swapped, err := a.info.notes.CompareAndSet(ctx, leaseNote, noted, Record{
			Owner: leaseNoteOwner, ReservedUntil: n.longest.Milliseconds(), FreeFrom: n.before.Milliseconds(),
			Holder: "noted by " + a.holder, Since: now,
		})
		if swapped || err != nil {
			return n, err
		}
	}
	return leaseLengths{}, errNotNoted
}

// serverChanged returns the server's name, and when it was first seen to have replaced another
// server, in milliseconds since the Unix epoch. It is called after a worker ID was taken, so that
// it checks the server that has the record. If the server can't be recorded, Health has a warning.
func (a *assigner) serverChanged(ctx context.Context, seen int64) (server string, changed int64, err error) {
	if a.info.serverID == nil {
		return "", neverChanged, nil
	}
	server, err = a.info.serverID(ctx)
	if err != nil || server == "" {
		return "", neverChanged, a.storeError("read the server's name", err)
	}
	changed, err = a.noteServer(ctx, server, seen)
	if a.isNotNoted(err) {
		return server, neverChanged, nil
	}
	return server, changed, a.storeError("record the server's name", err)
}

// isNotNoted reports whether the error of a note is permanent. Health then has a warning.
func (a *assigner) isNotNoted(err error) bool {
	if errors.Is(err, errNotNoted) || isForeign(err) || mysqldb.IsRefused(err) {
		a.notNoted.Store(&err)
		return true
	}
	return false
}

var errNotNoted = errors.New("the record changed after each write")

// noteServer returns when the server was first seen, and records that. seen is the newest
// reservation that a right clock can have made, as far as the store still has it.
func (a *assigner) noteServer(ctx context.Context, server string, seen int64) (changed int64, err error) {
	for range busyRetries {
		noted, err := a.info.notes.Get(ctx, serverNote)
		if err != nil || noted.Owner == server {
			return noted.FreeFrom, err
		}
		next := Record{
			Owner: server, ReservedUntil: neverChanged, FreeFrom: neverChanged,
			Holder: "noted by " + a.holder, Since: a.now(),
		}
		if !noted.IsZero() {
			next.FreeFrom = max(a.now(), seen-a.longest().Milliseconds())
			if noted.FreeFrom > neverChanged {
				// Leases of the old server may be those that started ahead of the clock.
				next.FreeFrom = max(next.FreeFrom, noted.FreeFrom+a.afterFailover().Milliseconds())
			}
			next.ReservedUntil = max(next.FreeFrom, noted.ReservedUntil+1)
		}
		swapped, err := a.info.notes.CompareAndSet(ctx, serverNote, noted, next)
		if err != nil {
			return 0, err
		}
		if swapped && !noted.IsZero() {
			a.config.Logger.Warn("shardkey: worker-ID store failed over, new leases start later",
				"store", a.info.Name, "delay", a.afterFailover())
		}
	}
	return 0, errNotNoted
}

// failoverWarnings returns warnings for Health: while new leases start later, and if a failover
// wouldn't be noticed.
func (a *assigner) failoverWarnings() (warnings []string) {
	if err := a.notNoted.Load(); err != nil {
		warnings = append(warnings, fmt.Sprintf("cannot record the server of the worker-ID store, "+
			"so a failover to a server without the last leases would not be noticed: %v", *err))
	}
	if changed := a.changed.Load(); changed > 0 && a.now() <= changed+a.afterFailover().Milliseconds() {
		warnings = append(warnings, fmt.Sprintf("the server of the worker-ID store was replaced (noticed at %s). "+
			"New leases start %v later, so no key of a lost lease repeats, "+
			"if clocks agree within %v and no process uses the old server any more",
			formatTime(changed), a.afterFailover(), a.afterFailover()-a.longest()))
	}
	return warnings
}
