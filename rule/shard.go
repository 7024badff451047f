package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// Shard is an actual table as a statement names it. It determines which rows belong to the table.
// It never changes and may be used by multiple goroutines at once.
type Shard struct {
	// Columns are the sharding columns that determine the rows: all of [Sharding.Columns], or some
	// of them.
	Columns []string

	of            *Sharding
	schema, table string
	source        string // the data source that has the name of the schema, or ""
	index         int    // the index of the table in Sharding.names
	byTable       bool   // the table strategy alone determines the table
}

// Shard returns the actual table that a statement names. schema is the qualifier of the name, or
// "". Shard returns nil if the name doesn't determine which rows belong to the table:
//
//   - the name is the logical table's, or none of the actual tables'
//   - shardkey can't evaluate the sharding
//   - each data source has a table of that name, and the schema doesn't identify the data source
//
// The schema identifies the data source if the data nodes have schemas, or if it is the name of one
// of the table's data sources.
func (s *Sharding) Shard(schema, table string) *Shard {
	if s == nil || s.Err != nil {
		return nil
	}
	x := &Shard{Columns: s.Columns, of: s, schema: schema, table: table}
	x.index = indexOf(s.names, table)
	if i := indexOf(s.sources, schema); i >= 0 && schema != "" {
		x.source = s.sources[i]
	}
	switch bySchema := schema != "" && (s.hasSchemas || x.source != ""); {
	case x.index < 0, !bySchema && strings.EqualFold(table, s.logical):
		return nil
	case !bySchema && s.sameTables:
		if x.byTable = s.table != nil; !x.byTable {
			return nil
		}
		x.Columns = s.Columns[s.table.column:][:1]
	}
	return x
}

// indexOf returns the index of a name, ignoring case, or -1 if it isn't among names.
func indexOf(names []string, name string) int {
	return slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// Place returns the place of a row whose Columns have these values, and reports in here whether it
// is this table. The values are in the order of Columns and have the types that [Sharding.Place]
// accepts. The data source is empty if Columns don't determine it. The error is a [*PlaceError].
func (x *Shard) Place(values []any) (place Place, here bool, err error) {
	if x.of == nil {
		return Place{}, false, &PlaceError{Table: x.table, Reason: "the rule specifies no sharding for it"}
	}
	var buf [2]expr.Value
	classed, err := x.of.classed(buf[:0], x.Columns, values)
	if err != nil {
		return Place{}, false, err
	}
	if !x.byTable {
		if place, err = x.of.place(classed); err != nil {
			return Place{}, false, err
		}
		return place, x.is(place), nil
	}
	i, err := x.of.table.Place(classed[0])
	if err != nil {
		return Place{}, false, x.of.misplaced(err)
	}
	if i == x.index {
		return Place{Table: x.table}, true, nil
	}
	if x.of.database != nil {
		return Place{Table: x.of.names[i]}, false, nil
	}
	return x.of.nodes[[2]int{-1, i}], false, nil
}

func (x *Shard) is(p Place) bool {
	return strings.EqualFold(p.Table, x.table) &&
		(x.schema == "" || p.Schema == "" || strings.EqualFold(p.Schema, x.schema)) &&
		(x.source == "" || p.DataSource == "" || strings.EqualFold(p.DataSource, x.source))
}

// Keys returns a function that reports whether a row with a given key belongs to the table. column
// is the key column. values are the values of Columns, of which the key's own value is ignored.
// About one of every n keys belongs to the table if the keys are evenly distributed. The function
// allocates no memory.
//
// The function is nil if the key column isn't one of Columns. The error is a [*PlaceError].
func (x *Shard) Keys(column string, values []any) (belongs func(key int64) bool, n int, err error) {
	at := indexOf(x.Columns, column)
	if at < 0 {
		return nil, 0, nil
	}
	given := slices.Clone(values)
	if at < len(given) {
		given[at] = int64(0)
	}
	classed, err := x.of.classed(nil, x.Columns, given)
	if err != nil {
		return nil, 0, err
	}
	if x.byTable {
		return func(key int64) bool {
			i, err := x.of.table.Place(expr.OfLong(key))
			return err == nil && i == x.index
		}, len(x.of.names), nil
	}
	n = 1
	for _, s := range []*strategy{x.of.database, x.of.table} {
		if s != nil && strings.EqualFold(x.of.Columns[s.column], column) {
			n *= len(s.Names)
		}
	}
	return func(key int64) bool {
		var buf [2]expr.Value
		all := append(buf[:0], classed...)
		all[at] = expr.OfLong(key)
		place, err := x.of.place(all)
		return err == nil && x.is(place)
	}, n, nil
}

// classed appends the Java values of the values of columns.
func (s *Sharding) classed(to []expr.Value, columns []string, values []any) ([]expr.Value, error) {
	if len(values) != len(columns) {
		return nil, &PlaceError{Table: s.logical, Unknown: true, Reason: fmt.Sprintf("%d values for %d sharding columns",
			len(values), len(columns))}
	}
	for i, v := range values {
		value, ok := expr.Of(v)
		if !ok {
			return nil, &PlaceError{Table: s.logical, Column: columns[i], Unknown: true, Reason: fmt.Sprintf(
				"%s: expected an integer, a string or a "+
					"time.Time, found a %T", columns[i], v)}
		}
		to = append(to, value)
	}
	return to, nil
}
