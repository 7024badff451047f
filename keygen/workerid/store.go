package workerid

import (
	"context"
	"errors"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Store stores the [Record] of each worker ID of one namespace, for example in files, a table or a
// key-value server. Implement it to lease worker IDs from another kind of server, and pass it to
// [NewAssigner]. Package workeridtest tests an implementation.
//
// An assigner calls the methods from multiple goroutines at once. Each call has a context that ends
// after a few seconds, and must return when it ends. A store connects when it is first used, not
// when it is created.
//
// # What must be durable
//
// A CompareAndSet that returned true must be durable, and so must the record that it replaced. The
// uniqueness of keys depends on that alone. A store that loses a write which it has acknowledged,
// for example after a crash or a failover, can lead to duplicate keys.
//
// # Errors and retries
//
// An error means that the outcome is unknown: the write may have been applied, may be applied
// later, or never. Return the client's error as it is, and don't retry the write. If the first
// attempt was applied, the retry fails its own comparison and the result would be false. The lease
// reads the record again and retries by itself, at least once in each renewal interval. It adds the
// store's name and [spi.ErrStore] to the error.
type Store interface {
	// List returns every worker ID that has a record, in any order, and changes nothing. If a
	// record isn't valid, the entry has Err set, so that the worker ID isn't used.
	List(ctx context.Context) ([]Entry, error)

	// Get returns the record of a worker ID. It returns the zero Record if there is none, and a
	// [*ForeignRecordError] if there is something that isn't a record. It must read from the server
	// that CompareAndSet writes to, not from a replica or a cache.
	Get(ctx context.Context, workerID int64) (Record, error)

	// CompareAndSet atomically replaces the record of a worker ID by next if it is still prev, and
	// reports whether it did. A zero prev means that there is no record yet. [Record.Same] defines
	// whether two records are the same. CompareAndSet must not replace something that isn't a
	// record. It then returns false or a [*ForeignRecordError].
	CompareAndSet(ctx context.Context, workerID int64, prev, next Record) (bool, error)

	// Close closes the store's connections. Later calls do nothing.
	Close() error
}

// Entry is one worker ID in a [Store].
type Entry struct {
	WorkerID int64
	Record   Record
	// Err is a *ForeignRecordError if the record isn't valid, and nil otherwise.
	Err error
}

// Info describes a [Store] to its assigner. Only Name is required. The functions are called from
// multiple goroutines at once, like the store's methods.
type Info struct {
	// Name is the type and place of the store in one line, without secrets, for example "ETCD
	// 10.0.0.1:2379 /shardkey/orders/".
	Name string

	// Now returns the time of the store's clock, or the zero time if it isn't known. The assigner
	// uses it to refuse times that only a wrong clock can have. Uniqueness doesn't depend on it.
	Now func(ctx context.Context) (time.Time, error)

	// NowWrites means that Now writes to the store. Listing worker IDs then doesn't call it.
	NowWrites bool

	// Warnings returns the server settings with which the server may lose acknowledged writes. It
	// is called before a worker ID is leased. The assigner logs and reports the result.
	Warnings func(ctx context.Context) ([]string, error)

	// WorkerIDs returns the only worker IDs that this process may have, the best first. It is for a
	// store that assigns them itself. IDs above maxWorkerID are ignored.
	WorkerIDs func(ctx context.Context, maxWorkerID int64) ([]int64, error)

	// serverID and notes are for a store whose server can be replaced by a server without its last
	// writes; see failover.go. serverID returns the name of the server that answers, or "" if it
	// isn't known. The name stays the same as long as the server keeps its acknowledged writes. All
	// nodes of a cluster that acknowledges writes together have the same name. notes is a namespace
	// on the same server in which no worker IDs are leased. It isn't closed.
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
// NewAssigner reads the properties that all lease assigners have: namespace, lease, renew,
// quarantine and max-clock-ahead. It calls open once, which must return the store of a namespace
// without I/O. Closing the assigner closes the store. The error is a [*spi.PropError] or the error
// of open.
func NewAssigner(p spi.Props, open func(namespace string) (Store, Info, error)) (spi.WorkerIDAssigner, error) {
	config, err := configFromProps(p)
	if err != nil {
		return nil, err
	}
	if open == nil {
		return nil, errors.New("shardkey: worker IDs: expected a function that returns a store, found nil")
	}
	store, info, err := open(config.Namespace)
	switch {
	case err != nil:
		return nil, err
	case store == nil:
		return nil, errors.New("shardkey: worker IDs: expected a store or an error, found neither")
	case info.Name == "":
		return nil, errors.New("shardkey: worker IDs: the store has no name; set Info.Name")
	}
	return newAssigner(store, info, config), nil
}
