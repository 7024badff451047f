package rule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/spi"
)

// shownTables is how many actual tables of each logical one are kept by name
// for people to read.
const shownTables = 16

// builder makes a Rule of a spec.
type builder struct {
	rule    *Rule
	byName  map[string]int  // generator name in lower case → index
	logical map[string]word // logical table name in lower case → where
}

// build looks everything up, checks it, and opens the generators once.
func build(s spec) (*Rule, error) {
	b := builder{
		rule:    &Rule{file: s.file},
		byName:  map[string]int{},
		logical: map[string]word{},
	}
	steps := []func(spec) error{b.makers, b.tables, b.keyed}
	for _, step := range steps {
		if err := step(s); err != nil {
			return nil, err
		}
	}
	if err := b.rule.check(); err != nil {
		return nil, err
	}
	return b.rule, nil
}

// makers takes the generators and assigners, whose names must be unique.
func (b *builder) makers(s spec) error {
	for _, g := range s.generators {
		if _, err := b.addGenerator(g); err != nil {
			return err
		}
	}
	seen := map[string]word{}
	for _, a := range s.assigners {
		if err := b.checkMaker(a, spi.WorkerIDAssignerTypes); err != nil {
			return err
		}
		key := strings.ToLower(a.name.text)
		if other, dup := seen[key]; dup {
			return b.errorAt(a.name, fmt.Sprintf("worker-id assigner %q is defined twice%s", a.name.text, other.place.also()))
		}
		seen[key] = a.name
		b.rule.assigners = append(b.rule.assigners, a)
	}
	return nil
}

func (b *builder) addGenerator(g makeSpec) (int, error) {
	if err := b.checkMaker(g, spi.KeyGeneratorTypes); err != nil {
		return 0, err
	}
	key := strings.ToLower(g.name.text)
	if other, dup := b.byName[key]; dup {
		also := b.rule.generators[other].name.place.also()
		return 0, b.errorAt(g.name, fmt.Sprintf("key generator %q is defined twice%s; names are case-insensitive", g.name.text, also))
	}
	b.rule.generators = append(b.rule.generators, g)
	b.byName[key] = len(b.rule.generators) - 1
	return b.byName[key], nil
}

func (b *builder) checkMaker(m makeSpec, types func() []string) error {
	switch {
	case strings.TrimSpace(m.name.text) == "":
		return b.errorAt(m.name, "empty name")
	case m.typ.text == "" && m.ready == nil:
		return b.errorAt(m.name, fmt.Sprintf("%q has no type; registered: %s", m.name.text, strings.Join(types(), ", ")))
	}
	return nil
}

// tables takes each table with a key column. Tables without one are taken down
// as well, as far as they can be understood: a name must not mean both.
func (b *builder) tables(s spec) error {
	for _, sc := range s.scopes {
		if sc.defMaker != nil {
			if _, err := b.addGenerator(*sc.defMaker); err != nil {
				return err
			}
		}
		if err := b.checkDefault(sc); err != nil {
			return err
		}
		for _, t := range sc.tables {
			if err := b.addTable(sc, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkDefault resolves the default strategy even where no table uses it.
func (b *builder) checkDefault(sc scope) error {
	if sc.def == nil || sc.def.generator.text == "" {
		return nil
	}
	_, err := b.generator(sc, sc.def)
	return err
}

func (b *builder) addTable(sc scope, spec tableSpec) error {
	key := strings.ToLower(spec.name.text)
	if strings.TrimSpace(key) == "" {
		return b.errorAt(spec.name, "the table has no name")
	}
	if other, dup := b.logical[key]; dup {
		return b.errorAt(spec.name, fmt.Sprintf("table %q is already defined as %q%s; names are case-insensitive", spec.name.text, other.text, other.place.also()))
	}
	b.logical[key] = spec.name
	t, err := b.keyColumn(sc, spec)
	if err != nil {
		return err
	}
	if t == nil {
		return b.addNames(spec, none, nil)
	}
	b.rule.tables = append(b.rule.tables, *t)
	index := len(b.rule.tables) - 1
	return b.addNames(spec, int32(index), &b.rule.tables[index])
}

// keyColumn returns the table's column and generator, its own or the default's;
// nil when it has none.
func (b *builder) keyColumn(sc scope, spec tableSpec) (*Table, error) {
	own, def := spec.strategy, sc.def
	if own == nil && (def == nil || def.column.text == "") {
		return nil, nil
	}
	if own == nil {
		own = def
	}
	t := &Table{Logical: spec.name.text, Column: own.column.text, ExplicitKeys: own.explicit, Consecutive: own.consecutive}
	if t.Column == "" && def != nil {
		t.Column = def.column.text
		if !own.explicitSet {
			t.ExplicitKeys = def.explicit
		}
		if !own.consecutiveSet {
			t.Consecutive = def.consecutive
		}
	}
	if strings.TrimSpace(t.Column) == "" {
		w := word{spec.name.text, own.place}
		return nil, b.errorAt(w, fmt.Sprintf("the key of table %q has no column", spec.name.text))
	}
	index, err := b.generator(sc, own)
	if err != nil {
		return nil, err
	}
	g := b.rule.generators[index]
	t.GeneratorName, t.GeneratorType = g.name.text, strings.ToUpper(g.typ.text)
	return t, nil
}

// keyed refuses a rule in which no table has a key.
func (b *builder) keyed(s spec) error {
	if len(b.rule.tables) > 0 {
		return nil
	}
	w := word{place: s.scopes[0].place}
	for _, sc := range s.scopes {
		if len(sc.tables) > 0 {
			w.place = sc.tables[0].name.place
			break
		}
	}
	err := b.errorAt(w, "no table has a key generator: give a table a keyGenerateStrategy with column and keyGeneratorName")
	err.Err = ErrNoKeys
	return err
}

func (b *builder) errorAt(w word, reason string, right ...string) *Error {
	return errorAt(b.rule.file, w, reason, right...)
}

// also returns a second place in the words of an error.
func (p place) also() string {
	switch {
	case p.line > 0:
		return fmt.Sprintf(" (line %d)", p.line)
	case p.path != "":
		return " (" + p.path + ")"
	}
	return ""
}

// generator finds the generator that a strategy names, or the default one.
func (b *builder) generator(sc scope, st *strategySpec) (int, error) {
	switch {
	case st.inline != nil:
		return b.addGenerator(*st.inline)
	case st.generator.text != "":
		if i, ok := b.byName[strings.ToLower(st.generator.text)]; ok {
			return i, nil
		}
		return 0, b.undefined(st.generator)
	case sc.defMaker != nil:
		return b.byName[strings.ToLower(sc.defMaker.name.text)], nil
	case sc.def != nil && sc.def.generator.text != "":
		return b.generator(sc, sc.def)
	}
	return b.standard(st.place)
}

// standardName is the name of the generator of strategies that name none.
const standardName = "default SNOWFLAKE"

// standard is a SNOWFLAKE without properties, as in ShardingSphere.
func (b *builder) standard(at place) (int, error) {
	if i, ok := b.byName[strings.ToLower(standardName)]; ok {
		return i, nil
	}
	return b.addGenerator(makeSpec{name: word{standardName, at}, typ: word{"SNOWFLAKE", at}})
}

func (b *builder) undefined(name word) error {
	var defined []string
	for _, g := range b.rule.generators {
		defined = append(defined, g.name.text)
	}
	reason := fmt.Sprintf("key generator %q is not defined", name.text)
	if len(defined) == 0 {
		reason += "; the rule has no keyGenerators"
	} else {
		reason += "; defined: " + strings.Join(defined, ", ")
	}
	return b.errorAt(name, reason, defined...)
}

// addNames makes a table known by its logical and its actual names. t is nil
// for a table without key, whose data nodes are nobody's to check: what cannot
// be understood of them is left out.
func (b *builder) addNames(spec tableSpec, index int32, t *Table) error {
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
func (t *Table) addActual(n node) {
	t.ActualCount++
	if t.ActualCount > shownTables {
		return
	}
	name := n.table
	if n.schema != "" {
		name = n.schema + "." + name
	}
	t.Actual = append(t.Actual, name)
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

// claim makes n a name of the table, and reports whether it is a new one. Two
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
	return fmt.Sprintf("table %q", b.rule.tables[o.table].Logical)
}
