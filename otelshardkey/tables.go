package otelshardkey

import (
	"cmp"
	"slices"
	"sync"

	"github.com/shardkey/shardkey/driver"
)

const (
	// maxTables is the largest number of tables with their own series.
	maxTables = 1000
	// otherTables is the table name of the series that adds up all other tables.
	otherTables = "_OTHER"
)

// namedTables are the tables with their own series. A table doesn't get or lose its series later,
// because the sum over the others must not decrease.
type namedTables struct {
	mu    sync.Mutex
	names map[string]bool
}

// group returns the named tables, and for each generator the sum of its other tables.
func (n *namedTables) group(tables []driver.TableStats) (list []driver.TableStats) {
	named := n.choose(tables)
	for _, t := range tables {
		if named[t.Table] {
			list = append(list, t)
			continue
		}
		t.Table = otherTables
		i := slices.IndexFunc(list, func(o driver.TableStats) bool {
			return o.Table == otherTables && o.Generator == t.Generator && o.Type == t.Type
		})
		if i < 0 {
			list = append(list, t)
			continue
		}
		list[i].Keys += t.Keys
		list[i].Statements += t.Statements
		list[i].Errors += t.Errors
	}
	return list
}

// choose returns the named tables: all tables of a small rule, otherwise the first ones in use.
// If several tables come into use at once, the busiest come first.
func (n *namedTables) choose(tables []driver.TableStats) map[string]bool {
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
	slices.SortStableFunc(fresh, func(a, b *driver.TableStats) int {
		return cmp.Compare(b.Keys+b.Errors, a.Keys+a.Errors)
	})
	for _, t := range fresh[:min(len(fresh), maxTables-len(names))] {
		names[t.Table] = true
	}
	n.names = names
	return names
}
