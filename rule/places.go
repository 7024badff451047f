package rule

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Places calls yield with each actual table of a logical table that has a key, in
// the rule's order. Of a pattern there is one Place, whose Table is the pattern as it is
// written: t_log_${yyyyMM}. A table without data nodes has itself as its only one.
// Names are case-insensitive; of a table that the rule does not have there is none.
func (r *Rule) Places(logical string) iter.Seq[Place] {
	return func(yield func(Place) bool) {
		i := slices.IndexFunc(r.tables, func(t Table) bool { return strings.EqualFold(t.Logical, logical) })
		if i < 0 {
			return
		}
		found := false
		// There is no other error than errEnough: the rule was checked when it was made.
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

// errEnough ends an expansion that nobody wants the rest of.
var errEnough = fmt.Errorf("shardkey: enough data nodes")

// written is where a table's rows stand, as the rule says it: short, since there may
// be a hundred thousand tables.
type written struct {
	nodes   string // actualDataNodes
	sources string // an auto table's actualDataSources
	count   int64  // an auto table's number of actual tables, 0 when not known
}

func (s *tableSpec) written() written { return written{s.nodes.text, s.sources.text, s.autoCount} }

// each calls yield with the actual tables that the rule names. Those of an auto table stand in
// its data sources in turn.
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

// dataSources returns those of an auto table.
func (w written) dataSources() (all []string, err error) {
	budget := maxNodes
	for _, item := range splitInline(w.sources) {
		if err := product(item, &budget, func(source string) error { all = append(all, source); return nil }); err != nil {
			return nil, err
		}
	}
	return all, nil
}
