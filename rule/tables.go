package rule

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/policy"
)

// tables adds the tables that have a key column. Tables without a key are recorded too, as far as
// shardkey understands them, so that no name refers to both.
func (b *builder) tables() error {
	count := 0
	for _, sc := range b.spec.scopes {
		count += len(sc.tables)
	}
	b.rule.tables, b.specs = make([]Table, 0, count), make([]*tableSpec, 0, count)
	b.rule.nodes = make([]written, 0, count)
	b.rule.index = tableIndex{tables: make(map[[2]string]int32, count), inSchemas: map[string][]owner{},
		shapes: map[string]owner{}, families: map[int32]bool{}}
	b.logical = make(map[string]*word, count)
	for _, sc := range b.spec.scopes {
		if sc.def != nil && sc.def.generator.text != "" { // it must exist, even if no table uses it
			if _, err := b.generator(&sc, sc.def); err != nil {
				return err
			}
		}
		for i := range sc.tables {
			if err := b.addTable(&sc, &sc.tables[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *builder) addTable(sc *scope, spec *tableSpec) error {
	key := strings.ToLower(spec.name.text)
	if reason := wrongIdentifier(spec.name.text); reason != "" {
		return b.file.errorAt(spec.name, fmt.Sprintf("table %q: %s", spec.name.text, reason))
	}
	if other, dup := b.logical[key]; dup {
		return b.file.errorAt(spec.name, fmt.Sprintf("table %q is already defined as %q%s; names are case-insensitive",
			spec.name.text, other.text, other.position.also()))
	}
	b.logical[key] = &spec.name
	t, ok, err := b.keyColumn(sc, spec)
	if err != nil {
		return err
	}
	if !ok {
		b.rule.keyless = append(b.rule.keyless, spec.name.text)
		return b.addNames(spec, none, nil)
	}
	b.rule.tables, b.specs = append(b.rule.tables, t), append(b.specs, spec)
	b.rule.nodes = append(b.rule.nodes, spec.written())
	index := len(b.rule.tables) - 1
	sources, err := spec.written().dataSources()
	if err != nil {
		return b.file.errorAt(spec.sources, fmt.Sprintf("actualDataSources of table %q: %v", spec.name.text, err))
	}
	for _, source := range sources {
		b.sources[source] = true
	}
	return b.addNames(spec, int32(index), &b.rule.tables[index])
}

// keyColumn returns the table with its column and generator, which are its own or the default's. ok
// is false if the table has no key.
func (b *builder) keyColumn(sc *scope, spec *tableSpec) (_ Table, ok bool, err error) {
	own, def := spec.strategy, sc.def
	if def == nil || def.none {
		def = new(keyStrategySpec)
	}
	switch {
	case own != nil && own.none, own == nil && def.column.text == "":
		return Table{}, false, nil
	case own == nil:
		own = def
	}
	column, set := own.column, own.settings
	if column.text == "" {
		column, set = def.column, set.or(def.settings)
	}
	if err := b.checkColumn(spec, own, column); err != nil {
		return Table{}, false, err
	}
	index, err := b.generator(sc, own)
	if err != nil {
		return Table{}, false, err
	}
	g := &b.rule.generators.all[index]
	g.used = true
	return Table{
		Logical: spec.name.text, Column: column.text,
		GeneratorName: g.name.text, GeneratorType: strings.ToUpper(g.typ.text),
		ExplicitKeys: set.of(explicitKeys), Consecutive: set.of(batchKeys) == "consecutive",
		Unlisted: set[unlisted], ShardGuard: set.of(shardGuard),
	}, true, nil
}

func (b *builder) checkColumn(spec *tableSpec, own *keyStrategySpec, column word) error {
	if strings.TrimSpace(column.text) == "" {
		w := word{spec.name.text, own.position}
		return b.file.errorAt(w, fmt.Sprintf("the key of table %q has no column; add column to its strategy", spec.name.text))
	}
	if reason := wrongColumn(column.text); reason != "" {
		return b.file.errorAt(column, fmt.Sprintf("column %q: %s", column.text, reason))
	}
	return nil
}

func wrongColumn(name string) string {
	if reason := wrongIdentifier(name); reason != "" || !strings.Contains(name, ".") {
		return reason
	}
	return "write the column without its table"
}

// wrongIdentifier returns the error in the name of a logical table or column, and how to fix it. It
// returns "" for a correct name.
func wrongIdentifier(name string) string {
	inner := strings.ReplaceAll(name, " ", "")
	switch i := strings.IndexFunc(inner, isInvisible); {
	case strings.TrimSpace(name) == "":
		return "the name is empty"
	case i >= 0:
		return fmt.Sprintf("expected a printable character, found %+q", []rune(inner[i:])[0])
	case strings.TrimSpace(name) != name:
		return "the name begins or ends with a space"
	case strings.ContainsAny(name[:1], "`'\""):
		return "write the name without quotes"
	case strings.Contains(name, "${"):
		return "${…} can only be used in actualDataNodes and in the values of properties"
	case strings.ContainsAny(name, "*?[]{}();,"):
		return "expected a name; list actual tables in actualDataNodes"
	}
	return ""
}

// addNames adds the logical and the actual names of a table. t is nil for a table without a key.
// The data nodes of such a table aren't checked, and nodes that shardkey doesn't understand are
// ignored.
func (b *builder) addNames(spec *tableSpec, index int32, t *Table) error {
	schemas := map[string]bool{}
	var nodes []node // nodes of a sharded table
	sharded := t != nil && (spec.database != nil || spec.table != nil)
	claim := func(n node) error {
		schemas[n.schema] = true
		if sharded {
			nodes = append(nodes, n)
		}
		return b.addNode(spec, index, t, n)
	}
	if t != nil && spec.nodes.text == "" && spec.database != nil {
		b.rule.spread = t.Logical
	}
	err := spec.written().each(spec.name.text, claim)
	if clash := (*Error)(nil); errors.As(err, &clash) {
		return clash
	}
	if err != nil && t != nil {
		return b.file.errorAt(spec.nodesOrName(), fmt.Sprintf("the data nodes of table %q: %v", spec.name.text, err))
	}
	if sharded {
		t.Sharding = &Sharding{logical: t.Logical}
		if err := b.sharding(spec, t, t.Sharding, nodes); err != nil {
			t.Sharding = &Sharding{logical: t.Logical, Err: err}
		}
	}
	if t != nil && t.Unlisted == "" {
		t.Unlisted = defaultUnlisted(b.rule.index.families[index])
	}
	if len(schemas) == 0 {
		return b.claimLogical(spec, index, claim)
	}
	// The logical name exists in the schemas of its data nodes, or in every schema if a node has
	// none.
	for _, schema := range slices.Sorted(maps.Keys(schemas)) {
		if _, err := b.claim(spec, node{schema: schema, table: spec.name.text}, index); err != nil {
			return err
		}
	}
	return nil
}

// addNode adds one data node of a table. t is nil for a table without a key.
func (b *builder) addNode(spec *tableSpec, index int32, t *Table, n node) error {
	if isPattern(n.table) {
		b.addPattern(n, index, t)
		return nil
	}
	if t == nil {
		_, err := b.claim(spec, n, index)
		return err
	}
	b.warnOfMinus(spec, n)
	isNew, err := b.claim(spec, n, index)
	if isNew {
		if t.addActual(n); t.ActualCount > 1 {
			b.rule.index.families[index] = true
		}
		b.rule.index.addShape(n.schema, n.table, index)
	}
	b.sources[shown(n.source)] = true
	return err
}

// expressionsInNodes matches the expressions in data nodes.
var expressionsInNodes = regexp.MustCompile(`\$(?:->)?\{[^}]*\}`)

// warnOfMinus warns about an actual table whose name has a minus that an expression computed, such as
// t_order_-1 for ${0-1}.
func (b *builder) warnOfMinus(spec *tableSpec, n node) {
	if !strings.Contains(n.table, "-") || strings.ContainsAny(spec.nodes.text, "'\"") {
		return
	}
	if literal := expressionsInNodes.ReplaceAllString(spec.nodes.text, ""); !strings.Contains(literal, "-") {
		b.file.warnOnce(spec.nodes, fmt.Sprintf("an expression of table %q computes the name %q, with a minus; a range is written with two "+
			"dots, for example ${0..3}", spec.name.text, n.table))
	}
}

// defaultUnlisted returns the setting unlisted of a table that has none. Only a family, a table with
// several actual tables or a pattern, refuses INSERTs into tables that look like its own.
func defaultUnlisted(family bool) string {
	if family {
		return policy.Refuse
	}
	return policy.Warn
}

func (b *builder) addPattern(n node, index int32, t *Table) {
	p := newPattern(n, index)
	if t != nil {
		b.sources[shown(n.source)] = true
	}
	if !b.rule.index.patterns.add(p) {
		return
	}
	b.rule.index.beyondASCII = b.rule.index.beyondASCII || isBeyondASCII(p.schema) || isBeyondASCII(p.text)
	if t != nil {
		t.Patterns = append(t.Patterns, p.text)
		b.rule.index.families[index] = true
		b.rule.index.addShape(n.schema, p.example(), index)
	}
}

// patterns returns an error if a pattern also matches a table of another logical table.
func (b *builder) patterns() error {
	pairs := 0
	for _, p := range b.rule.index.patterns.all {
		for q := range b.rule.index.patterns.begin(p.prefix) {
			if pairs++; pairs > maxPatternPairs {
				return b.file.errorAt(word{}, "too many patterns begin alike; give their tables names that begin differently")
			}
			if q.table == p.table || !p.overlaps(q) {
				continue
			}
			if p.table == none || q.table != none && q.at < p.at {
				p, q = q, p
			}
			return b.patternClash(p, q.owner, q.text)
		}
	}
	if p, other, name := b.rule.index.matched(); p != nil {
		return b.patternClash(p, other, name)
	}
	return nil
}

// maxPatternPairs bounds the patterns that are compared with each other.
const maxPatternPairs = 1 << 22

func (b *builder) patternClash(p *pattern, other owner, name string) error {
	w := b.logical[strings.ToLower(b.rule.tables[p.table].Logical)]
	return b.file.errorAt(*w, fmt.Sprintf("table %q has a pattern %s, but %s has %s; use names that differ", w.text, p.text,
		b.ownerName(other), name))
}

// claimLogical makes the logical name the only actual table. If it is written as schema.table, it
// is also the name of the table in that schema.
func (b *builder) claimLogical(spec *tableSpec, index int32, claim func(node) error) error {
	if err := claim(node{table: spec.name.text}); err != nil {
		return err
	}
	schema, table, ok := strings.Cut(spec.name.text, ".")
	if !ok || schema == "" || table == "" {
		return nil
	}
	_, err := b.claim(spec, node{schema: schema, table: table}, index)
	return err
}

// addActual counts an actual table, and records the names of the first ones.
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

// claim makes n a name of the table, and reports whether it is new. It returns an error if another
// table has the same name and one of the two has a key.
func (b *builder) claim(spec *tableSpec, n node, index int32) (isNew bool, err error) {
	other, clash, isNew := b.rule.index.add(n.schema, n.table, index)
	if !clash {
		return isNew, nil
	}
	return false, b.file.errorAt(spec.nodesOrName(), fmt.Sprintf(
		"%s and table %q both have the actual table %q, so a statement that names it is ambiguous; write "+
			"dataSource.schema.table if their schemas differ",
		b.ownerName(other), spec.name.text, n.table))
}

func (ts *tableSpec) nodesOrName() word {
	if ts.nodes.text != "" {
		return ts.nodes
	}
	return ts.name
}

func (b *builder) ownerName(o owner) string {
	if o.table == none {
		return "a table without a key"
	}
	return fmt.Sprintf("table %q", b.rule.tables[o.table].Logical)
}
