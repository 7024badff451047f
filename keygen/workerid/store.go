package workerid

import (
	"context"
	"errors"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Store keeps the [Record] of each worker ID of one namespace: in files, in a table, in a
// key-value server. Implement it to lease worker IDs from a server of your own, and give it
// to [NewAssigner]. Package workeridtest tests an implementation.
//
// An assigner calls the methods from many goroutines at once, each with a context that ends
// after a few seconds. Methods return when their context ends. A store connects when it is
// first used, not when it is made.
//
// # What must be durable
//
// A CompareAndSet that returned true must last, and so must the record that it replaced. The
// uniqueness of keys rests on that alone: a store that forgets a write which it has confirmed,
// for example after a crash or a failover, can lead to duplicate keys.
//
// # Errors and retries
//
// An error means that the outcome is unknown: a CompareAndSet that returned one may have been
// applied, may be applied later, or never. Return the client's error as it is, without a retry
// of the write: a retried write that was applied the first time fails its own comparison, and
// would be reported as false. The lease reads the record again and retries by itself, at
// least once in each renewal interval. It adds the store's name and [spi.ErrStore] to the error.
type Store interface {
	// List returns every worker ID that has a record, in any order, and changes nothing. A
	// worker ID whose record isn't understood is listed with Err set, so that it is left alone.
	List(ctx context.Context) ([]Entry, error)

	// Get returns the record of a worker ID: the zero Record if there is none, and a
	// [*ForeignRecordError] if there is something that isn't a record. It reads from the server
	// that CompareAndSet writes to, not from a replica or a cache.
	Get(ctx context.Context, workerID int64) (Record, error)

	// CompareAndSet replaces the record of a worker ID by next if it is still prev, in one
	// atomic step, and reports whether it did. A zero prev means that there is no record yet.
	// Two records are the same if [Record.Same] reports so. Something that isn't a record is
	// never replaced: the result is false or a [*ForeignRecordError].
	CompareAndSet(ctx context.Context, workerID int64, prev, next Record) (bool, error)

	// Close ends the store's connections. Later calls do nothing.
	Close() error
}

// Entry is one worker ID of a [Store].
type Entry struct {
	WorkerID int64
	Record   Record
	// Err is a *ForeignRecordError if the record isn't understood.
	Err error
}

// Info describes a [Store] to its assigner. Only Name is required. The functions are called
// as the store's methods are.
type Info struct {
	// Name is the store's type and place in one line, without secrets:
	// "ETCD 10.0.0.1:2379 /shardkey/orders/".
	Name string

	// Now returns the time of the store's clock, the zero time if it is unknown. With it, an
	// assigner refuses to reserve times that only a wrong clock can have shown. Uniqueness
	// doesn't depend on it.
	Now func(ctx context.Context) (time.Time, error)

	// NowWrites means that Now writes to the store. It isn't called then to list worker IDs.
	NowWrites bool

	// Warnings returns the settings of the server with which it may forget confirmed writes. It
	// is called before a worker ID is leased. The assigner logs and reports what it returns.
	Warnings func(ctx context.Context) ([]string, error)

	// WorkerIDs returns the only worker IDs that this process may have, the best first, for a
	// store that assigns them itself. IDs over maxWorkerID are ignored.
	WorkerIDs func(ctx context.Context, maxWorkerID int64) ([]int64, error)

	// serverID and notes are for a store whose server can be replaced by another one that
	// lacks its last writes: see failover.go. serverID names the server that answers, "" if it
	// is unknown: the same name for as long as the server keeps confirmed writes, one for all nodes of
	// a cluster that confirms together. notes is a namespace on the same server in which no
	// worker IDs are leased. It isn't closed.
	serverID func(ctx context.Context) (string, error)
	notes    Store
}

// NewAssigner returns an assigner that leases worker IDs from a store. Call it in the factory that
// you register with [spi.RegisterWorkerIDAssigner]:
//
//	spi.RegisterWorkerIDAssigner("CONSUL", func(p spi.Props) (spi.WorkerIDAssigner, error) {
//		addr := p.String("addr", "127.0.0.1:8500")
//		return workerid.NewAssigner(p, func(namespace string) (workerid.Store, workerid.Info, error) {
//			return newConsul(addr, namespace), workerid.Info{Name: "CONSUL " + addr}, nil
//		})
//	})
//
// NewAssigner reads the properties that all lease assigners share: namespace, lease, renew,
// quarantine and max-clock-ahead. It calls open once, which makes the store of a namespace without
// input or output. Closing the assigner closes the store. The error is a [*spi.PropError] for
// a property, or open's.
func NewAssigner(p spi.Props, open func(namespace string) (Store, Info, error)) (spi.WorkerIDAssigner, error) {
	config, err := configFromProps(p)
	if err != nil {
		return nil, err
	}
	if open == nil {
		return nil, errors.New("shardkey: worker IDs: the function that makes the store is nil")
	}
	store, info, err := open(config.Namespace)
	switch {
	case err != nil:
		return nil, err
	case store == nil:
		return nil, errors.New("shardkey: worker IDs: there is no store, and no error either")
	case info.Name == "":
		return nil, errors.New("shardkey: worker IDs: the store has no name: set Info.Name")
	}
	return newAssigner(store, info, config), nil
}
