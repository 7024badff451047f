package workerid

import (
	"context"
	"errors"
	"time"
)

// Identified is a [Store] at an address behind which another server may stand after
// a failover. One that was an asynchronous replica lacks the last writes that its
// predecessor confirmed.
type Identified interface {
	// ServerID names the server that answers: the same text for as long as it keeps
	// what it has confirmed, one for all nodes of a cluster that confirms together.
	// "" is one that is not known.
	ServerID(ctx context.Context) (string, error)
}

// serverNote is the worker id, below all others, whose record notes the server:
// Owner is its name, FreeFrom when it was first seen in the place of another one, 1
// when there was none before.
const serverNote = -1

const neverChanged = 1

// apart is the first id time of a lease that may start at floor and was taken at now.
// Where the store has forgotten leases, their owners make ids up to the limits that
// they had: at most one lease ahead of the moment at which their server was
// replaced, by their clocks. A second lease allows for clocks that differ.
func (a *assigner) apart(ctx context.Context, floor, now int64) (int64, error) {
	if q := a.config.Quarantine.Milliseconds(); q > 0 {
		floor = max(floor, now+q)
	}
	changed, err := a.serverChanged(ctx)
	if err == nil && changed > neverChanged {
		a.changed.Store(changed)
		floor = max(floor, changed+a.afterFailover().Milliseconds())
	}
	return floor, err
}

// afterFailover is how long after it new leases begin.
func (a *assigner) afterFailover() time.Duration { return max(a.config.Quarantine, 2*a.config.Lease) }

// serverChanged returns when the store's server was first seen in the place of
// another one, in milliseconds since the Unix epoch. It is asked after a worker id was
// taken, so that the server which has that record is the one that is looked at.
func (a *assigner) serverChanged(ctx context.Context) (int64, error) {
	s, ok := a.store.(Identified)
	if !ok {
		return neverChanged, nil
	}
	server, err := s.ServerID(ctx)
	if err != nil || server == "" {
		return neverChanged, a.storeError("ask for the server's name", err)
	}
	for range busyRetries {
		noted, err := a.store.Get(ctx, serverNote)
		if err != nil {
			return 0, a.storeError("read the server's name", err)
		}
		if noted.Owner == server {
			return noted.FreeFrom, nil
		}
		next := Record{Owner: server, ReservedUntil: neverChanged, FreeFrom: neverChanged, Holder: "noted by " + a.holder, Since: a.now()}
		if !noted.IsZero() {
			next.FreeFrom = a.now()
			next.ReservedUntil = max(next.FreeFrom, noted.ReservedUntil+1)
		}
		swapped, err := a.store.CompareAndSet(ctx, serverNote, noted, next)
		switch {
		case err != nil:
			return 0, a.storeError("note the server's name", err)
		case swapped && !noted.IsZero():
			a.config.Logger.Warn("shardkey: the server of the worker ids is another one than before; new leases begin after those that it may not know of",
				"store", a.store.Describe(), "begin_after", a.afterFailover())
		}
	}
	return 0, a.storeError("note the server's name", errors.New("it changes all the time"))
}

// failoverWarning is for Health while new leases begin later.
func (a *assigner) failoverWarning() []string {
	changed := a.changed.Load()
	if changed == 0 || a.now() > changed+a.afterFailover().Milliseconds() {
		return nil
	}
	return []string{"the store's server was replaced, which was seen at " + formatTime(changed) +
		"; worker ids that were leased up to then are not lost if it had all writes; if it had not, their keys are apart from new ones as long as clocks agree"}
}
