package workerid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
)

// Identified is a [Store] at an address behind which another server may stand after
// a failover. One that was an asynchronous replica lacks the last writes that its
// predecessor confirmed.
type Identified interface {
	// ServerID names the server that answers: the same text for as long as it keeps
	// what it has confirmed, one for all nodes of a cluster that confirms together.
	// "" is one that is not known.
	ServerID(ctx context.Context) (string, error)
	// Notes returns the store of a namespace beside this one, on the same server, where
	// nobody takes worker ids. It need not be closed.
	Notes() Store
}

// serverNote is the worker id whose record in the notes is the server: Owner is its
// name, FreeFrom when it was first seen in the place of another one, 1 when there was
// none before.
const serverNote = 0

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
// taken, so that the server which has that record is the one that is looked at. Where
// the server cannot be noted, that is a warning.
func (a *assigner) serverChanged(ctx context.Context) (int64, error) {
	s, ok := a.store.(Identified)
	if !ok {
		return neverChanged, nil
	}
	server, err := s.ServerID(ctx)
	if err != nil || server == "" {
		return neverChanged, a.storeError("ask for the server's name", err)
	}
	changed, err := a.noteServer(ctx, s.Notes(), server)
	var foreign *ForeignRecordError
	if errors.Is(err, errNotNoted) || errors.As(err, &foreign) || mysqldb.IsRefused(err) {
		a.notNoted.Store(&err)
		return neverChanged, nil
	}
	a.notNoted.Store(nil)
	return changed, a.storeError("note the server's name", err)
}

var errNotNoted = errors.New("it is another one after each write")

func (a *assigner) noteServer(ctx context.Context, notes Store, server string) (changed int64, err error) {
	for range busyRetries {
		noted, err := notes.Get(ctx, serverNote)
		if err != nil || noted.Owner == server {
			return noted.FreeFrom, err
		}
		next := Record{Owner: server, ReservedUntil: neverChanged, FreeFrom: neverChanged, Holder: "noted by " + a.holder, Since: a.now()}
		if !noted.IsZero() {
			next.FreeFrom = a.now()
			next.ReservedUntil = max(next.FreeFrom, noted.ReservedUntil+1)
		}
		swapped, err := notes.CompareAndSet(ctx, serverNote, noted, next)
		if err != nil {
			return 0, err
		}
		if swapped && !noted.IsZero() {
			a.config.Logger.Warn("shardkey: the server of the worker ids is another one than before; new leases begin after those that it may not know of",
				"store", a.store.Describe(), "begin_after", a.afterFailover())
		}
	}
	return 0, errNotNoted
}

// failoverWarnings are for Health: while new leases begin later, and where a failover
// would not be noticed.
func (a *assigner) failoverWarnings() (warnings []string) {
	if err := a.notNoted.Load(); err != nil {
		warnings = append(warnings, fmt.Sprintf("which server the worker ids are on cannot be noted, and a failover to one without the last leases would not be noticed: %v", *err))
	}
	if changed := a.changed.Load(); changed > 0 && a.now() <= changed+a.afterFailover().Milliseconds() {
		warnings = append(warnings, fmt.Sprintf("the server of the worker ids was replaced (seen at %s): new leases begin %v after that and so repeat no key of a lease that it may lack, "+
			"if clocks agree within %v and no process still reaches the server before", formatTime(changed), a.afterFailover(), a.afterFailover()-a.config.Lease))
	}
	return warnings
}
