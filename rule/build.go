package rule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/rule/internal/sharding"
)

// shownTables is how many names of actual tables [Table.Actual] holds.
const shownTables = 16

type builder struct {
	file    *file
	spec    spec
	rule    *Rule
	logical map[string]*word // logical table name in lower case → the word that defines it
	sources map[string]bool  // data sources of tables with a key; "" for nodes without
	specs   []*tableSpec     // parallel to rule.tables
	ways    map[string]sharding.ShardBitsWay
	uses    map[string][]columnUse // by column in lower case; nil until usesOf
}

// build resolves the names in s, checks the rule, and opens each generator once to check its
// properties.
func build(f *file, s spec) (*Rule, error) {
	b := builder{
		file: f, spec: s,
		rule: &Rule{file: f.name, source: f.source,
			generators: components{at: map[string]int{}}, assigners: components{at: map[string]int{}}},
		logical: map[string]*word{},
		sources: map[string]bool{},
		ways:    map[string]sharding.ShardBitsWay{},
	}
	for _, step := range []func() error{b.makers, b.tables, b.keyed, b.patterns, b.rule.check, b.shardBits} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	delete(b.sources, "")
	b.rule.sources = slices.Sorted(maps.Keys(b.sources))
	b.rule.warnings, b.rule.hash = b.file.warnings, b.hash()
	slices.SortStableFunc(b.rule.warnings, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if err := b.rule.checkDatabases(); err != nil {
		return nil, err
	}
	return b.rule, nil
}

// makers adds the generators and assigners. Their names must be unique.
func (b *builder) makers() error {
	for _, m := range b.spec.components {
		if _, err := b.add(m); err != nil {
			return err
		}
	}
	return nil
}

// components are the generators or the assigners of a rule.
type components struct {
	all []componentSpec
	at  map[string]int // indexes by name in lower case
}

func (c *components) find(name string) (i int, ok bool) {
	i, ok = c.at[strings.ToLower(name)]
	return i, ok
}

func (b *builder) add(m componentSpec) (int, error) {
	to, name := &b.rule.generators, m.name.text
	if m.kind == assignerKind {
		to = &b.rule.assigners
	}
	other, dup := to.find(name)
	isHidden := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case strings.ContainsFunc(name, isHidden): // messages show the name
		return 0, b.file.errorAt(m.name, fmt.Sprintf("the name %q: expected printable characters", name))
	case strings.TrimSpace(name) == "":
		return 0, b.file.errorAt(m.name, "expected a name, found an empty string")
	case m.typ.text == "" && m.ready == nil:
		types := strings.Join(registry.Types(m.kind), ", ")
		return 0, b.file.errorAt(m.name, fmt.Sprintf("%q has no type; registered: %s", name, types))
	case dup:
		reason := fmt.Sprintf("%s is defined twice%s", m, to.all[other].name.position.also())
		if m.kind == generatorKind {
			reason += "; names are case-insensitive"
		}
		return 0, b.file.errorAt(m.name, reason)
	}
	i := len(to.all)
	to.all, to.at[strings.ToLower(name)] = append(to.all, m), i
	return i, nil
}

func (b *builder) keyed() error {
	if len(b.rule.tables) > 0 {
		return nil
	}
	w := word{position: b.spec.scopes[0].position}
	for _, sc := range b.spec.scopes {
		if len(sc.tables) > 0 {
			w.position = sc.tables[0].name.position
			break
		}
	}
	reason := "no table has a key generator; add a keyGenerateStrategy with column and keyGeneratorName to a table"
	for _, name := range b.spec.sequences {
		reason += fmt.Sprintf("; strategy %q%s has keyGenerateType sequence, which generates no keys of a column", name.text,
			name.position.also())
	}
	return b.file.errorAt(w, reason)
}

// also formats the place of another definition for an error message. It returns "" if the place is
// unknown.
func (po position) also() string {
	switch {
	case po.line > 0:
		return fmt.Sprintf(" (line %d)", po.line)
	case po.path != "":
		return " (" + po.path + ")"
	}
	return ""
}

// generator returns the index of the generator that the strategy names, or of the default
// generator.
func (b *builder) generator(sc *scope, st *keyStrategySpec) (int, error) {
	switch {
	case st.inline != nil:
		return b.add(*st.inline)
	case st.generator.text != "":
		if i, ok := b.rule.generators.find(st.generator.text); ok {
			return i, nil
		}
		return 0, undefined(b.file.name, generatorKind, "keyGenerators", st.generator, b.rule.generators)
	case sc.def != nil && sc.def.generator.text != "":
		return b.generator(sc, sc.def)
	}
	// ShardingSphere's default: a SNOWFLAKE without properties.
	if i, ok := b.rule.generators.find(standardName); ok {
		return i, nil
	}
	return b.add(componentSpec{kind: generatorKind, name: word{standardName, st.position}, typ: word{"SNOWFLAKE", st.position}})
}

// standardName is the name of the generator for strategies that name no generator.
const standardName = "default SNOWFLAKE"
