package rule

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
	sharding "github.com/shardkey/shardkey/rule/internal/place"
)

// Sharding describes how a table's rows are distributed over its actual tables. It never changes
// and may be used by multiple goroutines at once.
type Sharding struct {
	// Columns are the sharding columns, as the rule spells them. [Sharding.Place] takes their
	// values in this order. It is nil if Err is not nil.
	Columns []string
	// Err is an [*Error] if shardkey can't evaluate the table's sharding, with the place in the
	// rule and the reason. Otherwise it is nil.
	Err error

	logical string
	text    string
	// database selects the data source. If it is nil, tables has one element for all data sources.
	database *strategy
	tables   []actuals // one element for each data source
}

// Place is the location of a row.
type Place struct {
	// DataSource is the name of the data source in the rule. It is empty if the rule names no data
	// source, or doesn't determine which of several it is.
	DataSource string
	// Schema is the schema in dataSource.schema.table, or "". Table is the name of the actual
	// table.
	Schema, Table string
}

// String returns the place in the format of a data node.
func (p Place) String() string {
	s := p.Table
	if p.Schema != "" {
		s = p.Schema + "." + s
	}
	if p.DataSource != "" {
		s = p.DataSource + "." + s
	}
	return s
}

// PlaceError is the error for a row that belongs to no actual table, or whose table can't be
// computed.
type PlaceError struct {
	Table  string // logical table
	Column string // sharding column whose value is at fault, or ""
	Reason string
	// Unknown reports whether the place can't be computed, so that the row may belong to any table.
	Unknown bool
	Err     error // cause, or nil
}

func (e *PlaceError) Error() string {
	if e.Unknown {
		return fmt.Sprintf("shardkey: cannot compute the actual table of a row of %q: %s", e.Table, e.Reason)
	}
	return fmt.Sprintf("shardkey: no actual table for a row of %q: %s", e.Table, e.Reason)
}

func (e *PlaceError) Unwrap() error { return e.Err }

// strategy is a compiled strategy, with the index of its column in Sharding.Columns.
type strategy struct {
	*sharding.Strategy
	column int
}

// actuals are the actual tables of one data source, or of all data sources.
type actuals struct {
	strategy *strategy // nil if there is one table
	names    []string
	// Each has one element for each name, a single element for all names, or none.
	sources, schemas []string
}

func (a *actuals) place(i int) Place {
	return Place{DataSource: oneOf(a.sources, i), Schema: oneOf(a.schemas, i), Table: a.names[i]}
}

func oneOf(list []string, i int) string {
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0]
	}
	return list[i]
}

// Place returns the place of a row whose sharding columns have these values. The values are in the
// order of Columns. They can be integers, strings and time.Time. An integer is a Long in Java,
// unless javaType in the rule specifies another class. Only the wall clock of a time counts. The
// error is a [*PlaceError], or Err if that is not nil.
func (s *Sharding) Place(values []any) (Place, error) {
	if s.Err != nil {
		return Place{}, s.Err
	}
	var buf [2]expr.Value
	classed, err := s.classed(buf[:0], s.Columns, values)
	if err != nil {
		return Place{}, err
	}
	return s.place(classed)
}

func (s *Sharding) place(values []expr.Value) (Place, error) {
	if len(s.tables) == 0 {
		return Place{}, &PlaceError{Table: s.logical, Reason: "the rule specifies no sharding for it"}
	}
	source := 0
	if s.database != nil {
		var err error
		if source, err = s.database.Place(values[s.database.column]); err != nil {
			return Place{}, s.misplaced(err)
		}
	}
	in := &s.tables[source]
	if in.strategy == nil {
		return in.place(0), nil
	}
	table, err := in.strategy.Place(values[in.strategy.column])
	if err != nil {
		return Place{}, s.misplaced(err)
	}
	return in.place(table), nil
}

func (s *Sharding) misplaced(err error) error {
	e := &PlaceError{Table: s.logical, Reason: err.Error(), Err: err}
	var value *sharding.ValueError
	var none *sharding.NoTargetError
	switch {
	case errors.As(err, &value):
		e.Column, e.Unknown = value.Column, true
	case errors.As(err, &none):
		e.Column = none.Column
	}
	return e
}

// String describes in one line how the table is sharded, or why shardkey can't evaluate it.
func (s *Sharding) String() string {
	if s.Err != nil {
		return plain(s.Err)
	}
	return s.text
}

// shard sets the Sharding of a table that has these actual tables.
func (b *builder) shard(spec *tableSpec, t *Table, nodes []node) {
	t.Sharding = &Sharding{logical: t.Logical}
	if err := b.sharding(spec, t, t.Sharding, nodes); err != nil {
		t.Sharding = &Sharding{logical: t.Logical, Err: err}
	}
}

// notUnderstood returns an error for Sharding.Err.
func (b *builder) notUnderstood(w word, what, reason string, cause error) error {
	e := b.errorAt(w, fmt.Sprintf("%s: %s", what, reason))
	e.Err = cause
	return e
}

func (b *builder) sharding(spec *tableSpec, t *Table, s *Sharding, nodes []node) error {
	what := fmt.Sprintf("cannot evaluate the sharding of table %q", t.Logical)
	if len(t.Patterns) > 0 {
		return b.notUnderstood(spec.nodesOrName(), what, fmt.Sprintf("the actual tables that match %s aren't known",
			t.Patterns[0]), nil)
	}
	var texts []string
	for _, of := range []*strategyOf{spec.database, spec.table} {
		if of == nil {
			continue
		}
		a, err := of.compile()
		w, reason := of.at, of.unknown
		if reason == "" && err != nil {
			w, reason = of.algorithm.wordOf(err), err.Error()
		}
		if reason != "" {
			return b.notUnderstood(w, what, of.key.text+": "+reason, err)
		}
		if a.Odd() != "" {
			b.warnOnce(of.algorithm.name, a.Odd())
		}
		if of == spec.database {
			s.database = &strategy{column: s.index(of)}
			texts = append(texts, "data source by "+of.describe(a))
		} else {
			texts = append(texts, "table by "+of.describe(a))
		}
	}
	if spec.nodes.text == "" && spec.autoCount == 0 {
		return b.notUnderstood(spec.name, what, "the table has no actualDataNodes", nil)
	}
	s.text = strings.Join(texts, ", ")
	return b.targets(spec, s, nodes, what)
}

// describe returns the columns and the algorithm.
func (s *strategyOf) describe(a *sharding.Algorithm) string {
	columns := s.columns[0].text
	if s.class != expr.Null {
		columns += fmt.Sprintf(" (in Java %s)", s.class)
	}
	detail := ""
	for _, prop := range []string{"algorithm-expression", "sharding-count", "sharding-ranges"} {
		if w, ok := s.algorithm.props[prop]; ok {
			detail = " " + clip(strings.TrimSpace(w.text))
		}
	}
	return fmt.Sprintf("%s with %s%s", columns, a.Type(), detail)
}

// index returns the index of the strategy's column in s.Columns. It adds the column if needed.
func (s *Sharding) index(of *strategyOf) int {
	name := of.columns[0].text
	i := slices.IndexFunc(s.Columns, func(have string) bool { return strings.EqualFold(have, name) })
	if i < 0 {
		i = len(s.Columns)
		s.Columns = append(s.Columns, name)
	}
	return i
}

// grouped returns the actual tables of each data source, in the order of the nodes, and the names
// of all of them.
func grouped(nodes []node) (groups []actuals, names []string) {
	numbers := map[string]int{} // index of each group, by data source
	listed, known := map[node]bool{}, map[string]bool{}
	for _, n := range nodes {
		i, ok := numbers[n.source]
		if !ok {
			i = len(groups)
			numbers[n.source], groups = i, append(groups, actuals{sources: []string{n.source}})
		}
		if one := (node{source: n.source, table: n.table}); !listed[one] {
			listed[one] = true
			groups[i].names, groups[i].schemas = append(groups[i].names, n.table), append(groups[i].schemas, n.schema)
		}
		if !known[n.table] {
			known[n.table], names = true, append(names, n.table)
		}
	}
	for i := range groups[min(1, len(groups)):] { // share equal slices, because most groups have the same names
		one, next := &groups[i], &groups[i+1]
		if slices.Equal(one.names, next.names) && slices.Equal(one.schemas, next.schemas) {
			next.names, next.schemas = one.names, one.schemas
		}
	}
	return groups, names
}

// targets compiles the strategies with the names that they choose from.
func (b *builder) targets(spec *tableSpec, s *Sharding, nodes []node, what string) error {
	groups, names := grouped(nodes)
	naming := sharding.NamingOf(spec.name.text, names)
	if s.database == nil {
		s.tables = []actuals{anySource(groups, names)}
		if len(groups) > 1 && slices.Contains(s.tables[0].sources, "") {
			s.text += ", in any data source"
		}
		s.choose(spec.table, naming)
		return nil
	}
	var sources []string
	for _, g := range groups {
		source := g.sources[0]
		switch {
		case source == "":
			return b.notUnderstood(spec.nodesOrName(), what,
				"it has a "+spec.database.key.text+", but a data node has no data source", nil)
		case spec.table == nil && len(g.names) > 1:
			return b.notUnderstood(spec.nodesOrName(), what,
				fmt.Sprintf("data source %q has several actual tables, but the table has no tableStrategy", source), nil)
		}
		sources = append(sources, source)
	}
	s.tables = groups
	s.database.Strategy = spec.database.compiled.Over(sources, sharding.NamingOf("", sources), spec.database.class)
	if spec.table != nil {
		s.choose(spec.table, naming)
	}
	return nil
}

// anySource returns the actual tables of all data sources as one group. It is used for an auto
// table, each of whose tables is in one data source, and where the rule doesn't determine the data
// source.
func anySource(groups []actuals, names []string) actuals {
	all := actuals{names: names, sources: make([]string, len(names)), schemas: make([]string, len(names))}
	numbers := make(map[string]int, len(names))
	for i, name := range names {
		numbers[name] = i
	}
	found := make([]bool, len(names))
	for _, g := range groups {
		for j, name := range g.names {
			i := numbers[name]
			all.sources[i], all.schemas[i] = g.sources[0], oneOf(g.schemas, j)
			if found[i] {
				all.sources[i] = ""
			}
			found[i] = true
		}
	}
	return all
}

// choose compiles the table strategy for each data source. Data sources with the same table names
// share it.
func (s *Sharding) choose(of *strategyOf, naming sharding.Naming) {
	column := s.index(of)
	for i := range s.tables {
		if i > 0 && slices.Equal(s.tables[i].names, s.tables[i-1].names) {
			s.tables[i].strategy = s.tables[i-1].strategy
			continue
		}
		s.tables[i].strategy = &strategy{of.compiled.Over(s.tables[i].names, naming, of.class), column}
	}
}

// Places returns an iterator over the actual tables of a logical table that has a key, in the
// rule's order. A pattern is one Place, whose Table is the pattern as written, for example
// t_log_${yyyyMM}. A table without data nodes is its own only actual table. Names are
// case-insensitive. The iterator is empty if the rule doesn't have the table.
func (r *Rule) Places(logical string) iter.Seq[Place] {
	return func(yield func(Place) bool) {
		i := slices.IndexFunc(r.tables, func(t Table) bool { return strings.EqualFold(t.Logical, logical) })
		if i < 0 {
			return
		}
		found := false
		// The error can only be errEnough, because the rule was checked when it was made.
		_ = r.nodes[i].each(r.tables[i].Logical, func(n node) error {
			if found = true; !yield(Place{DataSource: shown(n.source), Schema: n.schema, Table: shown(n.table)}) {
				return errEnough
			}
			return nil
		})
		if found {
			return
		}
		p := Place{Table: r.tables[i].Logical}
		if schema, table, ok := strings.Cut(p.Table, "."); ok && schema != "" && table != "" {
			p.Schema, p.Table = schema, table
		}
		yield(p)
	}
}

// errEnough ends an expansion when the caller needs no more nodes.
var errEnough = fmt.Errorf("shardkey: enough data nodes")

// written is the list of a table's actual tables in the short form of the rule. The short form
// saves memory, because there may be 100,000 tables.
type written struct {
	nodes   string // actualDataNodes
	sources string // an auto table's actualDataSources
	count   int64  // number of an auto table's actual tables, or 0 if unknown
}

func (s *tableSpec) written() written { return written{s.nodes.text, s.sources.text, s.autoCount} }

// each calls yield for each actual table. The tables of an auto table are distributed over its data
// sources in turn.
func (w written) each(logical string, yield func(node) error) error {
	if w.count > maxNodes {
		return errTooManyNodes
	}
	sources, err := w.dataSources()
	if err != nil {
		return err
	}
	at := 0
	next := func(n node) error {
		if n.source == "" && len(sources) > 0 {
			n.source = sources[at%len(sources)]
		}
		at++
		return yield(n)
	}
	for i := range w.count {
		if err := next(node{table: fmt.Sprintf("%s_%d", logical, i)}); err != nil {
			return err
		}
	}
	return dataNodes(w.nodes, next)
}

// dataSources returns the data sources of an auto table.
func (w written) dataSources() (all []string, err error) {
	budget := maxNodes
	for _, item := range splitInline(w.sources) {
		if err := product(item, &budget, func(source string) error { all = append(all, source); return nil }); err != nil {
			return nil, err
		}
	}
	return all, nil
}
