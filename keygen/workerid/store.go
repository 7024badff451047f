package workerid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
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
// quarantine and max-clock-ahead. It calls open twice, which must return the store of a namespace
// without I/O: once for leases, and once for lists of worker IDs, so that renewals don't wait for
// the connections of a debug page. Closing the assigner closes both. The error is a
// [*spi.PropError] or the error of open.
func NewAssigner(p spi.Props, open func(namespace string) (Store, Info, error)) (spi.WorkerIDAssigner, error) {
	config, err := configFromProps(p)
	if err != nil {
		return nil, err
	}
	if open == nil {
		return nil, errors.New("shardkey: worker IDs: expected a function that returns a store, found nil")
	}
	store, info, err := opened(open, config.Namespace)
	if err != nil {
		return nil, err
	}
	a := newAssigner(store, info, config)
	if a.display.store, a.display.info, err = opened(open, config.Namespace); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return a, nil
}

func opened(open func(namespace string) (Store, Info, error), namespace string) (Store, Info, error) {
	store, info, err := open(namespace)
	switch {
	case err != nil:
		return nil, Info{}, err
	case store == nil:
		return nil, Info{}, errors.New("shardkey: worker IDs: expected a store or an error, found neither")
	case info.Name == "":
		return nil, Info{}, errors.New("shardkey: worker IDs: the store has no name; set Info.Name")
	}
	return store, info, nil
}

// Record is the data in a [Store] for one worker ID. The zero Record means that the worker ID was
// never used.
//
// All times are key times: milliseconds since the Unix epoch, as in keys.
type Record struct {
	// Owner is a random token that is new in every write. No two records are equal, and only the
	// writer knows its next token.
	Owner string `json:"owner"`
	// ReservedUntil is the first millisecond for which no key of this worker ID has been reserved.
	// It never decreases.
	ReservedUntil int64 `json:"reserved_until"`
	// FreeFrom is 0 while the worker ID is held. When the owner releases it, FreeFrom is the first
	// millisecond that it hasn't used. The next lease starts there, and its record has 0 again.
	FreeFrom int64 `json:"free_from,omitempty"`
	// Holder describes the holder, for example "host-7 pid 4711". It has at most 200 bytes.
	Holder string `json:"holder"`
	// Since is when the holder leased the worker ID, by the holder's clock.
	Since int64 `json:"since"`
}

// IsZero reports whether the worker ID was never used.
func (r Record) IsZero() bool { return r == Record{} }

// Same reports whether two records are the same write.
func (r Record) Same(other Record) bool {
	return r.Owner == other.Owner && r.ReservedUntil == other.ReservedUntil
}

// start returns the first key time that the next owner may use.
func (r Record) start() int64 {
	if r.FreeFrom > 0 {
		return r.FreeFrom
	}
	return r.ReservedUntil
}

// recordVersion identifies the format of a record in JSON.
const recordVersion = 1

type recordText struct {
	Version int `json:"shardkey"`
	Record
}

// Text returns the record as one line of JSON, for stores that store a string.
func (r Record) Text() string {
	text, err := json.Marshal(recordText{recordVersion, r})
	if err != nil {
		return "" // can't happen: strings and integers always marshal
	}
	return string(text)
}

// ParseRecord parses the result of [Record.Text] for a worker ID. The error for any other string is
// a [*ForeignRecordError].
func ParseRecord(workerID int64, text string) (Record, error) {
	var t recordText
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&t)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("expected the end after the record")
		}
	}
	if err == nil && t.Version != recordVersion {
		err = fmt.Errorf("expected \"shardkey\":%d", recordVersion)
	}
	if err == nil {
		err = t.check()
	}
	if err != nil {
		return Record{}, &ForeignRecordError{WorkerID: workerID, Value: text, Err: err}
	}
	return t.Record, nil
}

// check returns an error if this package can't have written the record. Stores with separate fields
// call it for the records that they read.
func (r Record) check() error {
	switch {
	case r.Owner == "":
		return fmt.Errorf("expected an owner's token, found an empty string")
	case r.ReservedUntil <= 0:
		return fmt.Errorf("expected a positive reserved_until, found %d", r.ReservedUntil)
	case r.FreeFrom < 0:
		return fmt.Errorf("expected a free_from of 0 or more, found %d", r.FreeFrom)
	}
	return nil
}

// String describes the record for messages.
func (r Record) String() string {
	switch {
	case r.IsZero(), r.FreeFrom == neverHeld:
		return "never used"
	case r.FreeFrom > 0:
		return fmt.Sprintf("released by %s, free from %s", r.Holder, formatTime(r.FreeFrom))
	}
	return fmt.Sprintf("held by %s since %s, reserved until %s",
		r.Holder, formatTime(r.Since), formatTime(r.ReservedUntil))
}

func formatTime(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
