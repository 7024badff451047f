package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/sqlstate"
	"github.com/shardkey/shardkey/spi"
)

// workerIDs reports how many worker IDs each store has left.
func (x *examination) workerIDs(ctx context.Context) (found []Finding) {
	seen := map[string]bool{}
	for _, d := range x.databases {
		for _, t := range x.rule.Tables() {
			if d.live == nil || seen[t.GeneratorName] {
				continue
			}
			lister, ok := d.live.Generator(t.GeneratorName).(spi.WorkerIDLister)
			if !ok {
				continue
			}
			inSQL := d.leasesInSQL()
			list, err := listWorkerIDs(ctx, lister)
			switch {
			case errors.Is(err, errors.ErrUnsupported):
			case err != nil && inSQL:
				// The errors of the table or its server have been found.
			case err != nil:
				seen[t.GeneratorName] = true
				what := fmt.Sprintf("the worker IDs of %s cannot be read: %s", t.GeneratorName, plain(err))
				found = append(found, Finding{Severity: Error, Check: "leases", What: what,
					Why: "no worker IDs can be leased, and a process generates no keys after its lease ends"})
			case !seen[list.Store]:
				seen[list.Store] = true
				found = append(found, listed(list, inSQL)...)
			}
		}
	}
	return found
}

// leasesInSQL reports whether an assigner of the rule leases worker IDs in a SQL database.
func (d *database) leasesInSQL() bool {
	for _, a := range d.live.WorkerIDAssigners() {
		if k, ok := a.(sqlstate.Keeper); ok && len(k.SQLState()) > 0 {
			return true
		}
	}
	return false
}

func listWorkerIDs(ctx context.Context, lister spi.WorkerIDLister) (list spi.WorkerIDs, err error) {
	defer guard.Recover(&err, "the generator's ListWorkerIDs")
	return lister.ListWorkerIDs(ctx)
}

// listed examines the worker IDs of one store. Those of SQL that are reserved too far ahead have been
// found in their table, with the statement that frees them.
func listed(list spi.WorkerIDs, inSQL bool) (found []Finding) {
	add := func(severity Severity, what, why, fix string) {
		found = append(found, Finding{Severity: severity, Check: "leases", What: list.Store + ": " + what,
			Why: why, Fix: fix})
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
				add(Warning, fmt.Sprintf("worker ID %d is reserved until %s", id.ID, id.ReservedUntil.UTC().Format(time.RFC3339)),
					aheadWhy, "remove its record, if no table has a key with such a time")
			}
		case "unknown":
			add(Warning, fmt.Sprintf("the record of worker ID %d is not understood: %v", id.ID, id.Err),
				"no process can use the worker ID", "find out which program wrote it; shardkey doesn't need it")
		}
	}
	if ahead := list.ClockAhead; ahead != nil && ahead.Abs() >= maxAhead && !inSQL {
		add(Warning, fmt.Sprintf("this machine's clock is %v ahead of the store's", ahead.Round(time.Second)),
			"keys contain the time of the machine that generates them", synchronize)
	}
	const fix = "use a layout with more worker bits, or another namespace for tables whose keys may repeat these"
	free, all := list.Max+1-taken, list.Max+1
	what := fmt.Sprintf("%d of %d worker IDs are held, %d are free", held, all, free)
	switch {
	case free <= 0:
		add(Error, what, "the next process gets no worker ID, and generates no keys", fix)
	case free*10 < all:
		add(Warning, what, "a rolling deployment needs free worker IDs for the new processes", fix)
	default:
		add(OK, what, "", "")
	}
	return found
}
