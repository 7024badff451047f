package rule

import (
	"fmt"
	"iter"
	"strings"
)

// Places calls yield with each actual table of a logical table that has a key, in
// the rule's order. Of a pattern there is one Place, whose Table is the pattern as it is
// written: t_log_${yyyyMM}. A table without data nodes has itself as its only one.
// Names are case-insensitive; of a table that the rule does not have there is none.
func (r *Rule) Places(logical string) iter.Seq[Place] {
	return func(yield func(Place) bool) {
		for i := range r.tables {
			if strings.EqualFold(r.tables[i].Logical, logical) {
				r.nodes[i].of(r.tables[i].Logical).eachPlace(yield)
				return
			}
		}
	}
}

// written is where a table's rows stand, as the rule says it: short, since there may
// be a hundred thousand tables.
type written struct {
	nodes string
	auto  *writtenAuto // nil of a table that is no auto table
}

type writtenAuto struct {
	sources string
	count   int64
}

func newWritten(s *tableSpec) written {
	w := written{nodes: s.nodes.text}
	if s.sources.text != "" || s.autoCount > 0 {
		w.auto = &writtenAuto{s.sources.text, s.autoCount}
	}
	return w
}

// of is what it was written for.
func (w written) of(logical string) *tableSpec {
	s := &tableSpec{name: word{text: logical}, nodes: word{text: w.nodes}}
	if w.auto != nil {
		s.sources.text, s.autoCount = w.auto.sources, w.auto.count
	}
	return s
}

// errEnough ends an expansion that nobody wants the rest of.
var errEnough = fmt.Errorf("shardkey: enough data nodes")

func (s *tableSpec) eachPlace(yield func(Place) bool) {
	var sources []string // of an auto table, in turn
	budget := maxNodes
	for _, item := range splitInline(s.sources.text) {
		_ = product(item, &budget, func(source string) error { sources = append(sources, source); return nil })
	}
	count := 0
	err := s.actualTables(func(n node) error {
		p := Place{DataSource: shown(n.source), Schema: n.schema, Table: shown(n.table)}
		if len(sources) > 0 && p.DataSource == "" {
			p.DataSource = sources[count%len(sources)]
		}
		count++
		if !yield(p) {
			return errEnough
		}
		return nil
	})
	if err != nil || count > 0 {
		return // what the rule was checked for when it was made
	}
	p := Place{Table: s.name.text}
	if schema, table, ok := strings.Cut(p.Table, "."); ok && schema != "" && table != "" {
		p.Schema, p.Table = schema, table
	}
	yield(p)
}
