package rule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// addNames makes a table known by its logical and its actual names. t is nil
// for a table without key, whose data nodes are nobody's to check: what cannot
// be understood of them is left out.
func (b *builder) addNames(spec tableSpec, index int32, t *table) error {
	schemas := map[string]bool{}
	claim := func(n node) error {
		schemas[n.schema] = true
		isNew, err := b.claim(spec, n, index)
		if isNew && t != nil {
			t.addActual(n)
		}
		return err
	}
	err := spec.actualTables(claim)
	if clash := (*Error)(nil); errors.As(err, &clash) {
		return clash
	}
	if err != nil && t != nil {
		return b.expandError(spec, err)
	}
	if len(schemas) == 0 {
		return b.claimLogical(spec, index, claim)
	}
	// The logical name stands in the schemas of its data nodes, and so in any
	// when a node has none.
	for _, schema := range slices.Sorted(maps.Keys(schemas)) {
		if _, err := b.claim(spec, node{schema, spec.name.text}, index); err != nil {
			return err
		}
	}
	return nil
}

// claimLogical makes the logical name the only actual table. One that is
// written as schema.table is the table of that schema, too.
func (b *builder) claimLogical(spec tableSpec, index int32, claim func(node) error) error {
	if err := claim(node{table: spec.name.text}); err != nil {
		return err
	}
	schema, table, ok := strings.Cut(spec.name.text, ".")
	if !ok || schema == "" || table == "" {
		return nil
	}
	_, err := b.claim(spec, node{schema, table}, index)
	return err
}

// addActual counts an actual table, and keeps the first ones' names.
func (t *table) addActual(n node) {
	t.count++
	if t.count > shownTables {
		return
	}
	name := n.table
	if n.schema != "" {
		name = n.schema + "." + name
	}
	t.actual = append(t.actual, name)
}

// actualTables calls yield with the actual tables that the rule names.
func (s tableSpec) actualTables(yield func(node) error) error {
	if s.autoCount > maxNodes {
		return errTooManyNodes
	}
	for i := range s.autoCount {
		if err := yield(node{table: fmt.Sprintf("%s_%d", s.name.text, i)}); err != nil {
			return err
		}
	}
	return dataNodes(s.nodes.text, yield)
}

func (b *builder) expandError(spec tableSpec, cause error) error {
	reason := fmt.Sprintf("the data nodes of table %q: %v", spec.name.text, cause)
	return b.errorAt(spec.nodesOrName(), reason)
}

// claim makes n a name of the table, and tells whether it is a new one. Two
// tables of which one has a key must not share a name.
func (b *builder) claim(spec tableSpec, n node, index int32) (isNew bool, err error) {
	other, clash, isNew := b.rule.names.add(n.schema, n.table, index)
	if !clash {
		return isNew, nil
	}
	return false, b.errorAt(spec.nodesOrName(), fmt.Sprintf(
		"%s and table %q both have the actual table %q: a statement that names it could mean either; data sources do not tell them apart, schemas do (dataSource.schema.table)",
		b.ownerName(other), spec.name.text, n.table))
}

func (s tableSpec) nodesOrName() word {
	if s.nodes.text != "" {
		return s.nodes
	}
	return s.name
}

func (b *builder) ownerName(o owner) string {
	if o.table == none {
		return "a table without key"
	}
	return fmt.Sprintf("table %q", b.rule.tables[o.table].name.text)
}
