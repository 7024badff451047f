package workerid

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// preference orders what a new owner may take, the best first. Taking again
// what was used before keeps the records few and the worker ids steady; a
// record that has only just run out may be a live one, seen by a clock that is
// a little ahead.
type preference int

const (
	givenBack  preference = iota // and its start has come
	longFree                     // reserved_until is more than a lease ago
	neverUsed                    // no record
	justFree                     // reserved_until is not long ago
	startAhead                   // given back, but it starts ahead of this clock
	notFree
)

// candidates are the worker ids in 0..maxWorkerID that look free, the best
// first. What does not, but stands out, becomes a warning in Health.
func (a *Assigner) candidates(ctx context.Context, entries []Entry, maxWorkerID int64) ([]Entry, error) {
	known := map[int64]Entry{}
	for _, e := range entries {
		known[e.WorkerID] = e
	}
	ids, err := a.allowed(ctx, known, maxWorkerID)
	if err != nil {
		return nil, err
	}
	now := a.now()
	var free []Entry
	var warnings []string
	for _, id := range ids {
		e := known[id]
		e.WorkerID = id
		if warning := oddity(e, now); warning != "" {
			warnings = append(warnings, warning)
			continue
		}
		if a.prefer(e.Record, now) != notFree {
			free = append(free, e)
		}
	}
	a.warn(warnings)
	slices.SortStableFunc(free, func(x, y Entry) int {
		px, py := a.prefer(x.Record, now), a.prefer(y.Record, now)
		switch {
		case px != py:
			return cmp.Compare(px, py)
		case px == startAhead:
			return cmp.Compare(x.Record.start(), y.Record.start())
		}
		return cmp.Compare(y.Record.start(), x.Record.start()) // the latest first
	})
	return free, nil
}

// freshOffered bounds the worker ids without a record that are looked at: a
// layout may have billions.
const freshOffered = 256

// allowed are the worker ids to choose from: all with a record and the first
// ones without, or what the store chooses.
func (a *Assigner) allowed(ctx context.Context, known map[int64]Entry, maxWorkerID int64) ([]int64, error) {
	if c, ok := a.store.(Chooser); ok {
		ids, err := c.WorkerIDs(ctx, maxWorkerID)
		ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return id < 0 || id > maxWorkerID })
		return ids, a.storeError("choose a worker id", err)
	}
	var ids []int64
	for id := range known {
		if id >= 0 && id <= maxWorkerID {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for id, fresh := int64(0), 0; id <= maxWorkerID && fresh < freshOffered; id++ {
		if _, ok := known[id]; !ok {
			ids = append(ids, id)
			fresh++
		}
	}
	return ids, nil
}

func (a *Assigner) prefer(r Record, now int64) preference {
	switch {
	case !a.rules.free(r, now):
		return notFree
	case r.IsZero():
		return neverUsed
	case r.FreeFrom > now:
		return startAhead
	case r.FreeFrom > 0:
		return givenBack
	case r.ReservedUntil+a.config.Lease.Milliseconds() <= now:
		return longFree
	}
	return justFree
}

// oddity says what is wrong with a record that nobody should take: it is not
// understood, or a wrong clock has written it and ids would carry its time.
func oddity(e Entry, now int64) string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Record.start()-now > horizon.Milliseconds():
		return fmt.Sprintf("worker id %d is %v, more than %v ahead of this machine's clock: one of the clocks was wrong",
			e.WorkerID, e.Record, time.Duration(horizon))
	}
	return ""
}

// spreadOver is among how many of the best ones a random one comes next.
const spreadOver = 16

// spread puts a random one of the first few candidates to the front.
func (a *Assigner) spread(ids []Entry) []Entry {
	if n := min(len(ids), spreadOver); n > 1 {
		i := a.intN(n)
		ids[0], ids[i] = ids[i], ids[0]
	}
	return ids
}
