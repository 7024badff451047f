package rule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/rule/internal/sharding"
	"github.com/shardkey/shardkey/spi"
)

// shownTables is how many names of actual tables [Table.Actual] holds.
const shownTables = 16

// builder builds a Rule from a spec.
type builder struct {
	spec
	rule    *Rule
	logical map[string]*word // logical table name in lower case → the word that defines it
	sources map[string]bool  // data sources of tables with a key; "" for nodes without
	source  string           // the last of sources, as the rule spells it
	specs   []*tableSpec     // parallel to rule.tables
	ways    map[string]sharding.GeneWay
	uses    map[string][]columnUse // by column in lower case; nil until usesOf
}

// build resolves the names in s, checks the rule, and opens each generator once to check its
// properties.
func build(s spec) (*Rule, error) {
	b := builder{
		spec: s,
		rule: &Rule{file: s.file, source: s.source, variables: s.variables, generatorAt: map[string]int{},
			assignerAt: map[string]int{}},
		logical: map[string]*word{},
		sources: map[string]bool{},
		ways:    map[string]sharding.GeneWay{},
	}
	for _, step := range []func() error{b.makers, b.tables, b.keyed, b.patterns, b.rule.check, b.genes, b.finish,
		b.rule.checkDatabases} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.rule, nil
}

// makers adds the generators and assigners. Their names must be unique.
func (b *builder) makers() error {
	for _, g := range b.generators {
		if _, err := b.addGenerator(g); err != nil {
			return err
		}
	}
	for _, a := range b.assigners {
		if err := b.checkMaker(a, assignerKind); err != nil {
			return err
		}
		key := strings.ToLower(a.name.text)
		if other, dup := b.rule.assignerAt[key]; dup {
			also := b.rule.assigners[other].name.place.also()
			return b.errorAt(a.name, fmt.Sprintf("worker-ID assigner %q is defined twice%s", a.name.text, also))
		}
		b.rule.assignerAt[key] = len(b.rule.assigners)
		b.rule.assigners = append(b.rule.assigners, a)
	}
	return nil
}

func (b *builder) addGenerator(g makeSpec) (int, error) {
	if err := b.checkMaker(g, generatorKind); err != nil {
		return 0, err
	}
	key := strings.ToLower(g.name.text)
	if other, dup := b.rule.generatorAt[key]; dup {
		also := b.rule.generators[other].name.place.also()
		return 0, b.errorAt(g.name, fmt.Sprintf("key generator %q is defined twice%s; names are case-insensitive",
			g.name.text, also))
	}
	b.rule.generators = append(b.rule.generators, g)
	b.rule.generatorAt[key] = len(b.rule.generators) - 1
	return b.rule.generatorAt[key], nil
}

func (b *builder) checkMaker(m makeSpec, kind registry.Kind) error {
	switch {
	case strings.TrimSpace(m.name.text) == "":
		return b.errorAt(m.name, "expected a name, found an empty string")
	case m.typ.text == "" && m.ready == nil:
		types := strings.Join(registry.Types(kind), ", ")
		return b.errorAt(m.name, fmt.Sprintf("%q has no type; registered: %s", m.name.text, types))
	}
	return nil
}

// keyed returns an error if no table of the rule has a key.
func (b *builder) keyed() error {
	if len(b.rule.tables) > 0 {
		return nil
	}
	w := word{place: b.scopes[0].place}
	for _, sc := range b.scopes {
		if len(sc.tables) > 0 {
			w.place = sc.tables[0].name.place
			break
		}
	}
	reason := "no table has a key generator; add a keyGenerateStrategy with column and keyGeneratorName to a table"
	for _, name := range b.sequences {
		reason += fmt.Sprintf("; strategy %q%s has keyGenerateType sequence, which generates no keys of a column", name.text,
			name.place.also())
	}
	return b.errorAt(w, reason)
}

// finish sets the data sources and the warnings of the rule.
func (b *builder) finish() error {
	delete(b.sources, "")
	b.rule.sources = slices.Sorted(maps.Keys(b.sources))
	b.rule.warnings = b.warnings
	slices.SortStableFunc(b.rule.warnings, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return nil
}

// also formats the place of another definition for an error message. It returns "" if the place is
// unknown.
func (p place) also() string {
	switch {
	case p.line > 0:
		return fmt.Sprintf(" (line %d)", p.line)
	case p.path != "":
		return " (" + p.path + ")"
	}
	return ""
}

// generator returns the index of the generator that the strategy names, or of the default
// generator.
func (b *builder) generator(sc *scope, st *strategySpec) (int, error) {
	switch {
	case st.inline != nil:
		return b.addGenerator(*st.inline)
	case st.generator.text != "":
		if i, ok := b.rule.generatorAt[strings.ToLower(st.generator.text)]; ok {
			return i, nil
		}
		return 0, undefined(b.file, generatorKind, "keyGenerators", st.generator, b.rule.generators)
	case sc.defMaker != nil:
		return b.rule.generatorAt[strings.ToLower(sc.defMaker.name.text)], nil
	case sc.def != nil && sc.def.generator.text != "":
		return b.generator(sc, sc.def)
	}
	return b.standard(st.place)
}

// standardName is the name of the generator for strategies that name no generator.
const standardName = "default SNOWFLAKE"

// standard returns the index of a SNOWFLAKE without properties, which it adds first if needed.
// ShardingSphere has the same default.
func (b *builder) standard(at place) (int, error) {
	if i, ok := b.rule.generatorAt[strings.ToLower(standardName)]; ok {
		return i, nil
	}
	return b.addGenerator(makeSpec{name: word{standardName, at}, typ: word{"SNOWFLAKE", at}})
}

// spec is a rule as written, in YAML of any format or in Go. It has words with their places. Names
// aren't resolved yet.
type spec struct {
	file       string
	source     source
	scopes     []scope
	generators []makeSpec
	assigners  []makeSpec
	sequences  []word // 5.5.4: names of strategies for sequences, not columns
	variables  []variable
	warnings   []*Error
	warned     map[string]bool // the messages of warnOnce
	compared   int             // words that warnings were compared with, to suggest the nearest
}

func (s *spec) errorAt(w word, reason string, right ...string) *Error {
	return errorAt(s.file, w, reason, right...)
}

// maxCompared bounds the words that warnings are compared with. A file may have many mistakes.
const maxCompared = 100_000

// warn records a warning about the word w.
func (s *spec) warn(w word, reason string, right ...string) {
	if s.compared += len(right); s.compared > maxCompared {
		right = nil
	}
	s.warnings = append(s.warnings, s.errorAt(w, reason, right...))
}

// warnOnce is like warn, but records a warning about the same place only once. Many tables may use
// the same default.
func (s *spec) warnOnce(w word, reason string, right ...string) {
	key := fmt.Sprintf("%v %s", w.place, reason)
	if !s.warned[key] {
		if s.warned == nil {
			s.warned = map[string]bool{}
		}
		s.warned[key] = true
		s.warn(w, reason, right...)
	}
}

// warnOf records e as a warning, unless there is one of the same place. Many tables may use the same
// algorithm.
func (s *spec) warnOf(e *Error) {
	key := fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Path)
	if s.warned[key] {
		return
	}
	if s.warned == nil {
		s.warned = map[string]bool{}
	}
	s.warned[key] = true
	s.warnings = append(s.warnings, e)
}

// scope is one sharding rule. Its default strategy applies to its own tables. Generators and
// assigners are shared by the whole file.
type scope struct {
	place    place
	tables   []tableSpec
	def      *strategySpec
	defMaker *makeSpec // 4.x: the defaultKeyGenerator
}

// tableSpec is one logical table.
type tableSpec struct {
	name      word
	nodes     word  // actualDataNodes expression; empty if missing
	sources   word  // an auto table's actualDataSources
	autoCount int64 // number of an auto table's actual tables, or 0 if unknown
	strategy  *strategySpec
	database  *strategyOf // selects the data source; nil if not specified
	table     *strategyOf // selects the actual table; the shardingStrategy of an auto table
}

// strategySpec specifies the key column of a table and its generator. Missing words are empty.
type strategySpec struct {
	place     place
	column    word
	generator word
	// If a setting is missing and the column is the default's too, the default's setting applies.
	settings
	none   bool      // "none:": the table has no key, even if there is a default
	inline *makeSpec // 4.x: the generator in the table itself
}

// makeSpec is one generator or worker-ID assigner.
type makeSpec struct {
	name  word
	typ   word
	props []propSpec
	ready spi.KeyGenerator // generator built in Go, or nil

	// Set when the rule is checked.
	assigners   []int // indexes of the assigners that a generator uses
	ownDatabase bool  // its state is in the connector's own database
	ownMeant    bool  // the property own-database is set
	used        bool  // it generates the keys of a table
	geneColumn  string
	geneBits    int // number of shard bits of its keys; see Gene
}

// propSpec is one property. value or list has environment variables expanded, and written is the
// original. All of them may be passwords.
type propSpec struct {
	name    word
	place   place // place of the value
	value   spi.Secret
	list    []spi.Secret // nil for a single value
	written spi.Secret
	fromEnv bool
	plain   bool // a Config has it as a string, which package fmt can print
}

// given returns the property's value for [spi.NewProps].
func (p propSpec) given() any {
	if p.list != nil {
		return p.list
	}
	return p.value
}
