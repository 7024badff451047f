package rule

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
	"github.com/shardkey/shardkey/rule/internal/sharding"
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
	// database chooses one of sources, and table one of names. Nil means that there is no choice.
	database, table *strategy
	sources, names  []string
	// nodes are the actual tables by the indexes in sources and names, with -1 where a strategy is
	// nil. It is nil if each data source has all names, without schemas.
	nodes      map[[2]int]Place
	hasSchemas bool
	// sameTables reports whether the name of a row's table doesn't depend on the data source.
	sameTables bool
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
func (pl Place) String() string {
	s := pl.Table
	if pl.Schema != "" {
		s = pl.Schema + "." + s
	}
	if pl.DataSource != "" {
		s = pl.DataSource + "." + s
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

func (pe *PlaceError) Error() string {
	if pe.Unknown {
		return fmt.Sprintf("shardkey: cannot compute the actual table of a row of %q: %s", pe.Table, pe.Reason)
	}
	return fmt.Sprintf("shardkey: no actual table for a row of %q: %s", pe.Table, pe.Reason)
}

func (pe *PlaceError) Unwrap() error { return pe.Err }

// strategy is a compiled strategy, with the index of its column in Sharding.Columns.
type strategy struct {
	*sharding.Strategy
	column int
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
	if len(s.names) == 0 {
		return Place{}, &PlaceError{Table: s.logical, Reason: "the rule specifies no sharding for it"}
	}
	at, err := s.at(values)
	if err != nil {
		return Place{}, err
	}
	return s.placeAt(at)
}

// at returns the indexes in sources and names that the strategies select, and -1 where there is no
// strategy.
func (s *Sharding) at(values []expr.Value) (at [2]int, err error) {
	at = [2]int{-1, -1}
	for i, of := range [...]*strategy{s.database, s.table} {
		if of == nil {
			continue
		}
		if at[i], err = of.Place(values[of.column]); err != nil {
			return at, s.misplaced(err)
		}
	}
	return at, nil
}

// placeAt returns the actual table with these indexes.
func (s *Sharding) placeAt(at [2]int) (Place, error) {
	if s.nodes == nil {
		return Place{DataSource: s.sources[at[0]], Table: s.names[at[1]]}, nil
	}
	p, ok := s.nodes[at]
	if !ok {
		return p, s.misplaced(s.table.NoName(s.names[at[1]]))
	}
	return p, nil
}

func (s *Sharding) misplaced(err error) error {
	e := &PlaceError{Table: s.logical, Reason: err.Error(), Err: err}
	if cause, ok := errors.AsType[*sharding.PlaceError](err); ok {
		e.Column, e.Unknown = cause.Column, cause.Unknown
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

func (b *builder) notUnderstood(w word, what, reason string) *Error {
	return b.file.errorAt(w, fmt.Sprintf("%s: %s", what, reason))
}

func (b *builder) sharding(spec *tableSpec, t *Table, s *Sharding, nodes []node) error {
	what := fmt.Sprintf("cannot evaluate the sharding of table %q", t.Logical)
	var texts []string
	for _, of := range []*shardingStrategy{spec.database, spec.table} {
		if of == nil {
			continue
		}
		c := of.compile()
		if c == nil {
			e := b.notUnderstood(of.at, what, of.key.text+": "+of.unknown)
			if of.wrong {
				b.file.warnOf(e)
			}
			return e
		}
		if c.Odd != "" {
			b.file.warnOnce(of.algorithm.name, c.Odd)
		}
		if of == spec.database {
			s.database = &strategy{c, s.index(of)}
			texts = append(texts, "data source by "+of.describe())
		} else {
			s.table = &strategy{c, s.index(of)}
			texts = append(texts, "table by "+of.describe())
		}
	}
	if len(t.Patterns) > 0 {
		return b.notUnderstood(spec.nodesOrName(), what, fmt.Sprintf("the actual tables that match %s aren't known",
			t.Patterns[0]))
	}
	if spec.nodes.text == "" && spec.autoCount == 0 {
		return b.notUnderstood(spec.name, what, "the table has no actualDataNodes")
	}
	s.text = strings.Join(texts, ", ")
	return b.targets(spec, s, nodes, what)
}

func (ss *shardingStrategy) describe() string {
	columns := ss.columns[0].text
	if ss.class != expr.Null {
		columns += fmt.Sprintf(" (in Java %s)", ss.class)
	}
	detail := ""
	for _, prop := range []string{"algorithm-expression", "sharding-count", "sharding-ranges"} {
		if w, ok := ss.algorithm.props[prop]; ok {
			detail = " " + expr.Clip(strings.TrimSpace(w.text))
		}
	}
	return fmt.Sprintf("%s with %s%s", columns, ss.compiled.Type, detail)
}

// index returns the index of the strategy's column in s.Columns. It adds the column if needed.
func (s *Sharding) index(of *shardingStrategy) int {
	name := of.columns[0].text
	i := indexOf(s.Columns, name)
	if i < 0 {
		i = len(s.Columns)
		s.Columns = append(s.Columns, name)
	}
	return i
}

// targets sets the actual tables, and the names that the strategies choose from.
func (b *builder) targets(spec *tableSpec, s *Sharding, nodes []node, what string) error {
	sources, names := map[string]int{}, map[string]int{}
	s.nodes = map[[2]int]Place{}
	anySource := false
	for _, n := range nodes {
		at := [2]int{indexIn(sources, &s.sources, n.source), indexIn(names, &s.names, n.table)}
		if s.database == nil {
			at[0] = -1
		}
		if s.table == nil {
			at[1] = -1
		}
		p := Place{DataSource: n.source, Schema: n.schema, Table: n.table}
		switch old, known := s.nodes[at]; {
		case s.database != nil && n.source == "":
			return b.notUnderstood(spec.nodesOrName(), what,
				"it has a "+spec.database.key.text+", but a data node has no data source")
		case known && old.Table != n.table:
			return b.notUnderstood(spec.nodesOrName(), what,
				fmt.Sprintf("data source %q has several actual tables, but the table has no tableStrategy", n.source))
		case known && old.DataSource == n.source:
			continue
		case known:
			p.DataSource = "" // the rule doesn't determine the data source
		}
		s.nodes[at] = p
		s.hasSchemas = s.hasSchemas || p.Schema != ""
		anySource = anySource || p.DataSource == ""
	}
	if anySource && len(s.sources) > 1 {
		s.text += ", in any data source"
	}
	s.sameTables = s.database == nil || len(s.nodes) == len(s.sources)*len(s.names)
	if s.database != nil {
		s.database.Over("", s.sources)
	}
	if s.table != nil {
		s.table.Over(spec.name.text, s.names)
		if s.database != nil && s.sameTables && !s.hasSchemas {
			s.nodes = nil // there may be a million
		}
	}
	return nil
}

// indexIn returns the index of a name in list. It adds the name if needed. known has the indexes.
func indexIn(known map[string]int, list *[]string, name string) int {
	i, ok := known[name]
	if !ok {
		i = len(*list)
		known[name], *list = i, append(*list, name)
	}
	return i
}

// places returns an iterator over the actual tables that rows can be in.
func (s *Sharding) places() iter.Seq[Place] {
	if s.nodes != nil {
		return maps.Values(s.nodes)
	}
	return func(yield func(Place) bool) {
		for _, source := range s.sources {
			for _, name := range s.names {
				if !yield(Place{DataSource: source, Table: name}) {
					return
				}
			}
		}
	}
}

// Places returns an iterator over the actual tables of a logical table that has a key, in the
// rule's order. A pattern is one Place, whose Table is the pattern as written, for example
// t_log_${yyyyMM}. A table without data nodes is its own only actual table. Names are
// case-insensitive. The iterator is empty if the rule doesn't have the table.
func (r *Rule) Places(logical string) iter.Seq[Place] {
	return func(yield func(Place) bool) {
		i := r.indexOf(logical)
		if i == none {
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

func (r *Rule) indexOf(logical string) int32 {
	for _, o := range r.index.all(strings.ToLower(logical)) {
		if o.table != none && int(o.table) < len(r.tables) && strings.EqualFold(r.tables[o.table].Logical, logical) {
			return o.table
		}
	}
	return none
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

func (ts *tableSpec) written() written { return written{ts.nodes.text, ts.sources.text, ts.autoCount} }

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
