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

// ListWorkerIDs reads the records of the namespace.
func (a *assigner) ListWorkerIDs(ctx context.Context) (list spi.WorkerIDs, err error) {
	defer guard.Recover(&err, "the store of worker IDs")
	entries, err := a.store.List(ctx)
	if err != nil {
		return spi.WorkerIDs{}, a.storeError("list worker IDs", err)
	}
	list = spi.WorkerIDs{Store: a.info.Name + " namespace=" + a.config.Namespace, Max: -1}
	if list.ClockAhead, err = a.clockAhead(ctx); err != nil {
		return spi.WorkerIDs{}, a.storeError("read the store's clock", err)
	}
	now := a.now()
	for _, e := range entries {
		list.List = append(list.List, a.listed(e, now))
	}
	slices.SortFunc(list.List, func(x, y spi.WorkerID) int { return cmp.Compare(x.ID, y.ID) })
	return list, nil
}

// clockAhead compares this machine's clock with the store's. It assumes that the store read its
// clock at half of the request's duration.
func (a *assigner) clockAhead(ctx context.Context) (*time.Duration, error) {
	if a.info.Now == nil || a.info.NowWrites {
		return nil, nil
	}
	asked := a.config.Clock.Now()
	other, err := a.info.Now(ctx)
	answered := a.config.Clock.Now()
	if err != nil || other.IsZero() {
		return nil, err
	}
	return new(asked.Add(answered.Sub(asked) / 2).Sub(other)), nil
}

// listed returns the list entry of a record.
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

// ListWorkerIDs returns the one worker ID.
func (u *unleased) ListWorkerIDs(context.Context) (spi.WorkerIDs, error) {
	id, err := u.find()
	if err != nil {
		return spi.WorkerIDs{}, err
	}
	return spi.WorkerIDs{Store: u.Describe(), Max: -1, List: []spi.WorkerID{{ID: id, State: "fixed"}}}, nil
}
