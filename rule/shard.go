package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// Shard is an actual table as a statement names it, with what decides which rows
// belong to it. It never changes and may be used by many goroutines at once.
type Shard struct {
	// Columns are the sharding columns that decide: some of [Sharding.Columns], or
	// all.
	Columns []string

	of            *Sharding
	schema, table string
	source        string // the data source that the schema is the name of; empty for none
	// Where all data sources have the same actual tables, the choice of the table
	// is enough: it is this one of these.
	byTable *strategy
	index   int
}

// Shard returns the actual table that a statement names, schema empty where it is
// not qualified. It is nil when that does not tell where the rows go: for the
// logical table, for one that is none of the actual tables, where the sharding is
// not understood, and where there is one such table in each data source and the
// schema does not tell which.
//
// The schema tells it where the data nodes have schemas, and where it is the name
// of one of the table's data sources.
func (s *Sharding) Shard(schema, table string) *Shard {
	if s == nil || s.Err != nil || len(s.tables) == 0 {
		return nil
	}
	x := &Shard{of: s, schema: schema, table: table}
	known, hasSchemas := false, false
	for i := range s.tables {
		in := &s.tables[i]
		known = known || slices.ContainsFunc(in.names, func(n string) bool { return strings.EqualFold(n, table) })
		for _, source := range in.sources {
			if schema != "" && strings.EqualFold(source, schema) {
				x.source = source
			}
		}
		hasSchemas = hasSchemas || slices.ContainsFunc(in.schemas, func(n string) bool { return n != "" })
	}
	bySchema := schema != "" && hasSchemas || x.source != ""
	first := &s.tables[0]
	switch {
	case !known:
		return nil
	case bySchema:
	case strings.EqualFold(table, s.logical):
		return nil
	case s.haveSameTables() && first.strategy == nil:
		return nil
	case s.haveSameTables():
		x.byTable = first.strategy
		x.index = slices.IndexFunc(first.names, func(n string) bool { return strings.EqualFold(n, table) })
		x.Columns = s.Columns[first.strategy.column:][:1]
	}
	if x.Columns == nil {
		x.Columns = s.Columns
	}
	return x
}

// haveSameTables reports whether all data sources have the same actual tables, so
// that the database strategy has no say in a table's name.
func (s *Sharding) haveSameTables() bool {
	first := &s.tables[0]
	for i := range s.tables {
		if in := &s.tables[i]; in.strategy != first.strategy || !slices.Equal(in.names, first.names) {
			return false
		}
	}
	return true
}

// Place returns where the row belongs that has these values in Columns, in their
// order, and whether that is this table. The values are as [Sharding.Place] takes
// them. The data source is empty when Columns do not decide on it. The error is a
// [*PlaceError].
func (x *Shard) Place(values []any) (place Place, here bool, err error) {
	if x.of == nil {
		return Place{}, false, &PlaceError{Table: x.table, Reason: "the table has no sharding"}
	}
	var buf [2]expr.Value
	classed, err := x.of.classed(buf[:0], x.Columns, values)
	if err != nil {
		return Place{}, false, err
	}
	if x.byTable == nil {
		if place, err = x.of.place(classed); err != nil {
			return Place{}, false, err
		}
		return place, x.is(place), nil
	}
	i, err := x.byTable.Place(classed[0])
	if err != nil {
		return Place{}, false, x.of.misplaced(err)
	}
	if i == x.index {
		return Place{Table: x.table}, true, nil
	}
	place = x.of.tables[0].place(i)
	if x.of.database != nil {
		place = Place{Table: place.Table}
	}
	return place, false, nil
}

// is reports whether a place is this table.
func (x *Shard) is(p Place) bool {
	return strings.EqualFold(p.Table, x.table) &&
		(x.schema == "" || p.Schema == "" || strings.EqualFold(p.Schema, x.schema)) &&
		(x.source == "" || p.DataSource == "" || strings.EqualFold(p.DataSource, x.source))
}

// Keys returns a test of whether a row belongs to the table with a key in the given column,
// when it has these values in Columns; the value of the key itself does not matter. The test
// allocates nothing. About one of every n keys passes it, if the keys are spread evenly.
//
// The test is nil when the key is not one of Columns. The error is a [*PlaceError].
func (x *Shard) Keys(column string, values []any) (belongs func(key int64) bool, n int, err error) {
	at := slices.IndexFunc(x.Columns, func(c string) bool { return strings.EqualFold(c, column) })
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
	if x.byTable != nil {
		return func(key int64) bool {
			i, err := x.byTable.Place(expr.OfLong(key))
			return err == nil && i == x.index
		}, len(x.byTable.Names()), nil
	}
	n = 1
	for _, s := range []*strategy{x.of.database, x.of.tables[0].strategy} {
		if s != nil && strings.EqualFold(x.of.Columns[s.column], column) {
			n *= len(s.Names())
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

// classed appends what the values are in Java. columns are what they are the values of.
func (s *Sharding) classed(to []expr.Value, columns []string, values []any) ([]expr.Value, error) {
	if len(values) != len(columns) {
		return nil, &PlaceError{Table: s.logical, Unknown: true, Reason: fmt.Sprintf("%d values for %d sharding columns",
			len(values), len(columns))}
	}
	for i, v := range values {
		value, ok := expr.Of(v)
		if !ok {
			return nil, &PlaceError{Table: s.logical, Column: columns[i], Unknown: true, Reason: fmt.Sprintf(
				"the value of %s is a %T, of which it is not known what it is in Java: give an integer, a string or a "+
					"time.Time", columns[i], v)}
		}
		to = append(to, value)
	}
	return to, nil
}
