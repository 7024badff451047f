package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/sqlstate"
	"github.com/shardkey/shardkey/spi"
)

// workerIDs says how many worker ids each store has left, of whatever kind it is.
func (x *examination) workerIDs(ctx context.Context, tables []stateTable) (found []Finding) {
	inSQL := slices.ContainsFunc(tables, func(t stateTable) bool { return t.Kind == sqlstate.Leases })
	seen := map[string]bool{}
	for _, d := range x.Databases {
		for _, t := range x.Rule.Tables() {
			if d.Live == nil || seen[t.GeneratorName] {
				continue
			}
			lister, ok := d.Live.Generator(t.GeneratorName).(spi.WorkerIDLister)
			if !ok {
				continue
			}
			list, err := listWorkerIDs(ctx, lister)
			switch {
			case errors.Is(err, errors.ErrUnsupported):
			case err != nil && inSQL:
				// What is wrong with the table or its server has been found.
			case err != nil:
				seen[t.GeneratorName] = true
				found = append(found, Finding{Severity: Error, Check: "leases", What: fmt.Sprintf("the worker ids of %s cannot be read: %s", t.GeneratorName, plain(err)),
					Why: "no worker id can be had, and keys end with the lease of each process"})
			case !seen[list.Store]:
				seen[list.Store] = true
				found = append(found, listed(list, inSQL)...)
			}
		}
	}
	return found
}

func listWorkerIDs(ctx context.Context, lister spi.WorkerIDLister) (list spi.WorkerIDs, err error) {
	defer guard.Recover(&err, "the generator's ListWorkerIDs")
	return lister.ListWorkerIDs(ctx)
}

// listed looks at the worker ids of one store. Those of SQL that are reserved for too
// far ahead have been found with their statement.
func listed(list spi.WorkerIDs, inSQL bool) (found []Finding) {
	add := func(severity, what, why, fix string) {
		found = append(found, Finding{Severity: severity, Check: "leases", What: list.Store + ": " + what, Why: why, Fix: fix})
	}
	taken, held := int64(0), 0
	for _, id := range list.List {
		if id.ID > list.Max || id.Free() {
			continue
		}
		taken++
		switch id.State {
		case "fixed":
			return nil // nothing is known of others
		case "held":
			held++
		case "ahead":
			if !inSQL {
				add(Warning, fmt.Sprintf("worker id %d is reserved until %s", id.ID, id.ReservedUntil.UTC().Format(time.RFC3339)),
					"a wrong clock has reserved the time up to there; nobody can use the worker id before", "remove its record, only if no key with such a time is in any table")
			}
		case "unknown":
			add(Warning, fmt.Sprintf("the record of worker id %d is not understood: %v", id.ID, id.Err), "nobody can use the worker id", "find out who wrote it; nothing of shardkey's is lost with it")
		}
	}
	if ahead := list.ClockAhead; ahead != nil && ahead.Abs() >= maxAhead && !inSQL {
		add(Warning, fmt.Sprintf("this machine's clock is %v ahead of the store's", ahead.Round(time.Second)), "keys carry the time of the machine that makes them",
			"-- synchronize the clocks of both machines (chrony, systemd-timesyncd)")
	}
	const fix = "a layout with more bits for the worker, or another namespace for tables that do not meet these"
	free, all := list.Max+1-taken, list.Max+1
	what := fmt.Sprintf("%d of %d worker ids are held, %d are free", held, all, free)
	switch {
	case free <= 0:
		add(Error, what, "the next process that starts gets no worker id, and makes no key", fix)
	case free*10 < all:
		add(Warning, what, "processes that start together, as in a rolling deployment, need as many again", fix)
	default:
		add(OK, what, "", "")
	}
	return found
}
