package workerid

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/spi"
)

// display reads the records for users. Renewals must not wait for that, so it has its own store with
// its own connections, and however many users look, it reads once in listEvery.
type display struct {
	store Store
	info  Info
	last  *listing // the assigner's mu guards it
}

// listEvery is how long a list is returned again. listTime limits a reading, which nobody may wait
// for any more.
const (
	listEvery = 5 * time.Second
	listTime  = 10 * time.Second
)

// listing is one reading of a namespace's records. done is closed when the other fields are set.
type listing struct {
	done chan struct{}
	at   time.Time
	list spi.WorkerIDs
	err  error
}

// ListWorkerIDs returns the records of the namespace, as they were at most 5 s ago.
func (a *assigner) ListWorkerIDs(ctx context.Context) (spi.WorkerIDs, error) {
	r := a.listing()
	select {
	case <-r.done:
		list := r.list
		list.List = slices.Clone(list.List)
		return list, r.err
	case <-ctx.Done():
		return spi.WorkerIDs{}, a.storeError("list worker IDs", ctx.Err())
	}
}

// listing returns the last reading, or starts another one.
func (a *assigner) listing() *listing {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.display.last; r != nil && !r.isOld() {
		return r
	}
	r := &listing{done: make(chan struct{})}
	if a.closed {
		r.err = fmt.Errorf("%w: worker-ID assigner %s", spi.ErrClosed, a.info.Name)
		close(r.done)
		return r
	}
	a.display.last = r
	a.running.Go(func() { a.read(r) })
	return r
}

func (li *listing) isOld() bool {
	select {
	case <-li.done:
		return time.Since(li.at) >= listEvery
	default:
		return false
	}
}

// read does a reading. It ends with the assigner, not with a user's context.
func (a *assigner) read(r *listing) {
	ctx, cancel := context.WithTimeout(a.background, listTime)
	defer cancel()
	r.err = panics.Call("the store of worker IDs", func() (err error) {
		r.list, err = a.listed(ctx)
		return err
	})
	r.at = time.Now()
	close(r.done)
}

func (a *assigner) listed(ctx context.Context) (list spi.WorkerIDs, err error) {
	entries, err := a.display.store.List(ctx)
	if err != nil {
		return spi.WorkerIDs{}, a.storeError("list worker IDs", err)
	}
	list = spi.WorkerIDs{Store: a.info.Name + " namespace=" + a.config.Namespace, Max: -1}
	if list.ClockAhead, err = a.clockAhead(ctx); err != nil {
		return spi.WorkerIDs{}, a.storeError("read the store's clock", err)
	}
	now := a.now()
	for _, e := range entries {
		list.List = append(list.List, a.describe(e, now))
	}
	slices.SortFunc(list.List, func(x, y spi.WorkerID) int { return cmp.Compare(x.ID, y.ID) })
	return list, nil
}

// clockAhead compares this machine's clock with the store's. It assumes that the store read its
// clock at half of the request's duration.
func (a *assigner) clockAhead(ctx context.Context) (*time.Duration, error) {
	now := a.display.info.Now
	if now == nil || a.display.info.NowWrites {
		return nil, nil
	}
	asked := a.config.Clock.Now()
	other, err := now(ctx)
	answered := a.config.Clock.Now()
	if err != nil || other.IsZero() {
		return nil, err
	}
	return new(asked.Add(answered.Sub(asked) / 2).Sub(other)), nil
}

// describe returns a record as users see it.
func (a *assigner) describe(e Entry, now int64) spi.WorkerID {
	id := spi.WorkerID{ID: e.WorkerID, Err: e.Err, Holder: e.Record.Holder}
	for _, t := range []struct {
		to *time.Time
		ms int64
	}{{&id.Since, e.Record.Since}, {&id.ReservedUntil, e.Record.ReservedUntil}, {&id.FreeFrom, e.Record.FreeFrom}} {
		if t.ms > neverHeld {
			*t.to = time.UnixMilli(t.ms)
		}
	}
	switch {
	case e.Err != nil:
		id.State = "unknown"
	case a.oddity(e, now) != "":
		id.State = "ahead"
	case !e.Record.isFree(now):
		id.State = "held"
	case e.Record.FreeFrom > 0 || e.Record.IsZero():
		id.State = "free"
	default:
		id.State = "expired"
	}
	return id
}
