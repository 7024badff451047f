package workerid

import (
	"context"
	"time"
)

// Store keeps the [Record] of each worker id of one namespace. It is all that
// differs between the lease assigners: a file, a table, a key, a node.
//
// An acknowledged CompareAndSet must last, and so must all that it was written on
// top of: the uniqueness of ids rests on a store that forgets no write that it has
// confirmed. Methods are called by many
// goroutines at once and honour their context. A store connects at its first
// use, not when it is made.
//
// An error means that the outcome is not known: a CompareAndSet that returned
// one may have been applied, may be applied later, or never. A store need not
// (and should not) find out; the lease reads the record again.
type Store interface {
	// List returns every worker id that has a record, in any order. One whose
	// record is not understood is listed with Err, so that it is left alone.
	List(ctx context.Context) ([]Entry, error)

	// Get returns the record of a worker id, the zero Record when it has none,
	// and a [*ForeignRecordError] when it holds what is not a record. It may
	// return one that does not last yet: of a CompareAndSet that has not been
	// acknowledged.
	Get(ctx context.Context, workerID int64) (Record, error)

	// CompareAndSet replaces the record of a worker id by next, if it is still
	// prev (a zero prev: if there is none yet), as one atomic step, and reports
	// whether it did. Two records are the same when Owner and ReservedUntil
	// are. It never replaces what is not a record: that is false, or a
	// [*ForeignRecordError].
	CompareAndSet(ctx context.Context, workerID int64, prev, next Record) (bool, error)

	// Describe names the store in one line without secrets, as
	// "FILE /var/lib/app/workers".
	Describe() string

	// Close ends the store's connections. It is idempotent.
	Close() error
}

// Entry is one worker id of a [Store].
type Entry struct {
	WorkerID int64
	Record   Record
	// Err says that the record is not understood (a *ForeignRecordError).
	Err error
}

// Clocked is a [Store] with a clock of its own. An assigner then refuses to
// write times that only a wrong clock can have made.
// Uniqueness does not depend on it.
type Clocked interface {
	Now(ctx context.Context) (time.Time, error)
}

// Warner is a [Store] that knows of settings of its server with which it may
// forget what it confirmed. Warnings returns them, for Health, as the last List found
// them; it asks nobody.
type Warner interface {
	Warnings() []string
}

// Chooser is a [Store] that decides itself which worker ids this process may
// have, as one with a fixed worker id for each machine. WorkerIDs returns them, the
// best first; those over maxWorkerID are not taken.
type Chooser interface {
	WorkerIDs(ctx context.Context, maxWorkerID int64) ([]int64, error)
}
