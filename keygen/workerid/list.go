package workerid

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.WorkerIDLister = (*assigner)(nil)
	_ spi.WorkerIDLister = (*unleased)(nil)
)

// Reader is a [Store] whose List, or whose clock, does more than to read: it
// makes a table that is missing, or shows only the worker ids that this process may
// have. Who only looks uses these methods in their place.
type Reader interface {
	// Read returns every worker id that has a record, as List does, and changes
	// nothing. Where nothing is there yet, that is no error.
	Read(ctx context.Context) ([]Entry, error)
	// ReadTime is the store's clock; the zero time when it has none that can be
	// read without a write.
	ReadTime(ctx context.Context) (time.Time, error)
}

// ListWorkerIDs reads the records of the namespace.
func (a *assigner) ListWorkerIDs(ctx context.Context) (list spi.WorkerIDs, err error) {
	defer guard.Recover(&err, "the store of worker ids")
	read := a.store.List
	reader, _ := a.store.(Reader)
	if reader != nil {
		read = reader.Read
	}
	entries, err := read(ctx)
	if err != nil {
		return spi.WorkerIDs{}, a.storeError("list worker ids", err)
	}
	list = spi.WorkerIDs{Store: a.store.Describe() + " namespace=" + a.config.Namespace, Max: -1}
	if reader != nil {
		if list.ClockAhead, err = a.clockAhead(ctx, reader); err != nil {
			return spi.WorkerIDs{}, a.storeError("ask for the time", err)
		}
	}
	now := a.now()
	for _, e := range entries {
		list.List = append(list.List, a.listed(e, now))
	}
	slices.SortFunc(list.List, func(x, y spi.WorkerID) int { return cmp.Compare(x.ID, y.ID) })
	return list, nil
}

// clockAhead compares the clocks, as if the store had answered at half time.
func (a *assigner) clockAhead(ctx context.Context, store Reader) (*time.Duration, error) {
	asked := a.config.Clock.Now()
	other, err := store.ReadTime(ctx)
	answered := a.config.Clock.Now()
	if err != nil || other.IsZero() {
		return nil, err
	}
	return new(asked.Add(answered.Sub(asked) / 2).Sub(other)), nil
}

// listed is an entry as it is listed.
func (a *assigner) listed(e Entry, now int64) spi.WorkerID {
	id := spi.WorkerID{ID: e.WorkerID, Err: e.Err, Holder: e.Record.Holder}
	for _, t := range []struct {
		to *time.Time
		ms int64
	}{{&id.Since, e.Record.Since}, {&id.ReservedUntil, e.Record.ReservedUntil}, {&id.FreeFrom, e.Record.FreeFrom}} {
		if t.ms > 0 {
			*t.to = time.UnixMilli(t.ms)
		}
	}
	switch {
	case e.Err != nil:
		id.State = "unknown"
	case a.oddity(e.WorkerID, e, now) != "":
		id.State = "ahead"
	case !a.rules.free(e.Record, now):
		id.State = "held"
	case e.Record.FreeFrom > 0 || e.Record.IsZero():
		id.State = "free"
	default:
		id.State = "expired"
	}
	return id
}

// ListWorkerIDs returns the one worker id that there is here.
func (u *unleased) ListWorkerIDs(context.Context) (spi.WorkerIDs, error) {
	id, err := u.find()
	if err != nil {
		return spi.WorkerIDs{}, err
	}
	return spi.WorkerIDs{Store: u.Describe(), Max: -1, List: []spi.WorkerID{{ID: id, State: "fixed"}}}, nil
}
