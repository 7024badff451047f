package rule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/policy"
	"github.com/shardkey/shardkey/internal/yamltree"
)

// settings are the values of the keys in settingNames. A missing key is empty.
type settings [4]string

const (
	explicitKeys = iota
	batchKeys
	unlisted
	shardGuard
)

var settingNames = []string{"explicitKeys", "batchKeys", "unlisted", "shardGuard"}

// settingWords are the valid values. The first one is the default.
var settingWords = [len(settings{})][]string{
	{policy.Fill, policy.Keep}, {"any", "consecutive"}, {policy.Refuse, policy.Warn, policy.Pass}, {policy.Refuse, policy.Warn, policy.Off},
}

// newSettings checks the settings. The function written returns the value of a key.
func newSettings(file string, written func(name string) word) (s settings, err error) {
	for i, name := range settingNames {
		w, words := written(name), settingWords[i]
		if w.text == "" {
			continue
		}
		j := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, w.text) })
		if j < 0 {
			last := len(words) - 1
			reason := fmt.Sprintf("%s: expected %s or %s, found %q", name, strings.Join(words[:last], ", "), words[last], w.text)
			return s, errorAt(file, w, reason, words...)
		}
		s[i] = words[j]
	}
	return s, nil
}

// of returns the value of a key, or its default.
func (st settings) of(key int) string { return cmp.Or(st[key], settingWords[key][0]) }

// or returns the settings, with empty ones set to those of def.
func (st settings) or(def settings) settings {
	for i := range st {
		st[i] = cmp.Or(st[i], def[i])
	}
	return st
}

var (
	strategyKeys     = append([]string{"column", "keyGeneratorName"}, settingNames...)
	keyGeneratorKeys = append([]string{"type", "props", "column"}, settingNames...)
	strategies554    = append([]string{"keyGenerateType", "keyGeneratorName", "logicTable", "keyGenerateColumn",
		"keyGenerateSequence"}, settingNames...)
)

// strategy reads a keyGenerateStrategy. It returns nil if the strategy is empty.
func (rd *reader) strategy(p pair) (*keyStrategySpec, error) {
	st := &keyStrategySpec{position: p.key.position}
	if entries := rd.entries(p.value); len(entries) == 1 && entries[0].key.text == "none" {
		st.none = true
		return st, nil
	}
	f := rd.fields(p.value, p.key.text, strategyKeys...)
	if len(f.pairs) == 0 {
		return nil, f.err
	}
	st.column, st.generator, st.settings = f.text("column"), f.text("keyGeneratorName"), f.settings()
	return st, f.err
}

// keyGenerator reads a keyGenerator of ShardingSphere 4, which is a column and a generator
// together. name becomes the name of the generator. If there is no type, the table uses the
// default's generator.
func (rd *reader) keyGenerator(p pair, name string) (*keyStrategySpec, error) {
	what := name
	if p.key.text != name {
		what = fmt.Sprintf("%s of %q", p.key.text, name)
	}
	f := rd.fields(p.value, what, keyGeneratorKeys...)
	if yamltree.IsNull(p.value) {
		return nil, nil
	}
	st := &keyStrategySpec{position: p.key.position, column: f.text("column"), settings: f.settings()}
	switch m := f.maker(generatorKind, word{name, p.key.position}); {
	case f.err != nil:
	case m.typ.text != "":
		st.inline = &m
	case len(m.props) > 0:
		f.err = rd.file.errorAt(m.props[0].name, fmt.Sprintf("%s has props but no type", what))
	}
	return st, f.err
}

// strategies reads the keyGenerateStrategies of ShardingSphere 5.5.4 into the tables that they
// name.
func (rd *reader) strategies(p pair, sc *scope) error {
	pairs, err := rd.pairs(p.value, p.key.text)
	if err != nil {
		return err
	}
	tables := map[string]*tableSpec{}
	for i, t := range sc.tables {
		tables[strings.ToLower(t.name.text)] = &sc.tables[i]
	}
	for _, s := range pairs {
		f := rd.fields(s.value, fmt.Sprintf("%s %q", p.key.text, s.key.text), strategies554...)
		if err := rd.columnStrategy(s.key, f, tables); err != nil {
			return err
		}
	}
	return nil
}

func (rd *reader) columnStrategy(name word, f *fields, tables map[string]*tableSpec) error {
	st := &keyStrategySpec{position: name.position, column: f.text("keyGenerateColumn"), generator: f.text("keyGeneratorName"),
		settings: f.settings()}
	kind, logic := f.text("keyGenerateType"), f.text("logicTable")
	t, ok := tables[strings.ToLower(logic.text)]
	switch {
	case f.err != nil:
		return f.err
	case strings.EqualFold(kind.text, "sequence"):
		// It is for CREATE SEQUENCE, and not for a column of a table.
		rd.spec.sequences = append(rd.spec.sequences, name)
		return nil
	case kind.text != "" && !strings.EqualFold(kind.text, "column"):
		return rd.file.errorAt(kind, fmt.Sprintf("keyGenerateType: expected column or sequence, found %q", kind.text), "column",
			"sequence")
	case logic.text == "":
		return rd.file.errorAt(name, fmt.Sprintf("strategy %q has no logicTable", name.text))
	case st.column.text == "":
		return rd.file.errorAt(name, fmt.Sprintf("strategy %q has no keyGenerateColumn", name.text))
	case !ok:
		var defined []string
		for _, t := range tables {
			defined = append(defined, t.name.text)
		}
		slices.Sort(defined)
		return rd.file.errorAt(logic, fmt.Sprintf("logicTable: expected a table of the rule, found %q", logic.text), defined...)
	case t.strategy != nil:
		return rd.file.errorAt(logic, fmt.Sprintf("table %q already has a key column%s; only one column of a table can be "+
			"generated", t.name.text, t.strategy.position.also()))
	}
	t.strategy = st
	return nil
}
