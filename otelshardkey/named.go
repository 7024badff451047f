package otelshardkey

import (
	"cmp"
	"slices"
	"sync"

	"github.com/shardkey/shardkey/driver"
)

const (
	// maxTables is how many tables have series of their own.
	maxTables = 1000
	// otherTables is the table's name in the series of all others.
	otherTables = "_OTHER"
)

// namedTables are the tables that have series of their own. A table keeps them, and
// gets none later, since the sum over the others must not go down.
type namedTables struct {
	mu    sync.Mutex
	names map[string]bool
}

// of returns the tables that have series of their own: all of a rule with few tables, and
// otherwise the first ones in use, of those that are first seen together the busiest.
func (n *namedTables) of(tables []driver.TableStats) map[string]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := len(tables) <= maxTables
	names := make(map[string]bool, min(len(tables), maxTables))
	var fresh []*driver.TableStats
	for i := range tables {
		switch t := &tables[i]; {
		case all || n.names[t.Table]:
			names[t.Table] = true
		case t.Keys+t.Errors > 0:
			fresh = append(fresh, t)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *driver.TableStats) int { return cmp.Compare(b.Keys+b.Errors, a.Keys+a.Errors) })
	for _, t := range fresh[:min(len(fresh), maxTables-len(names))] {
		names[t.Table] = true
	}
	n.names = names
	return names
}
