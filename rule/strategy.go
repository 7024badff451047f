package rule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// settings are shardkey's own words beside the column of a strategy, each empty
// or nil where it is not written.
type settings struct {
	explicit    string
	consecutive *bool
	unlisted    string
	guard       string
}

// or returns the settings with those of the default where there are none.
func (s settings) or(def settings) settings {
	s.explicit = cmp.Or(s.explicit, def.explicit)
	s.unlisted = cmp.Or(s.unlisted, def.unlisted)
	s.guard = cmp.Or(s.guard, def.guard)
	if s.consecutive == nil {
		s.consecutive = def.consecutive
	}
	return s
}

// valueOf returns what p points to; zero for nil.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Values of the settings.
var (
	explicitWords = []string{"fill", "keep"}
	batchWords    = []string{"any", "consecutive"}
	unlistedWords = []string{"refuse", "warn", "pass"}
	guardWords    = []string{"refuse", "warn", "off"}
)

// settingNames are the words that settings reads.
var settingNames = []string{"explicitKeys", "batchKeys", "unlisted", "shardGuard"}

func (rd *reader) settings(texts words) (s settings, err error) {
	var batch string
	for _, setting := range []struct {
		to    *string
		name  string
		words []string
	}{
		{&s.explicit, "explicitKeys", explicitWords},
		{&batch, "batchKeys", batchWords},
		{&s.unlisted, "unlisted", unlistedWords},
		{&s.guard, "shardGuard", guardWords},
	} {
		w := texts.at(setting.name)
		if *setting.to, err = choose(rd.spec.file, setting.name, w, setting.words); err != nil {
			return s, err
		}
	}
	if batch != "" {
		s.consecutive = new(batch == "consecutive")
	}
	return s, nil
}

// choose returns which of the words is written, as it is listed; "" for none.
func choose(file, name string, w word, words []string) (string, error) {
	if w.text == "" {
		return "", nil
	}
	if i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, w.text) }); i >= 0 {
		return words[i], nil
	}
	last := len(words) - 1
	reason := fmt.Sprintf("%s is %q: want %s or %s", name, w.text, strings.Join(words[:last], ", "), words[last])
	return "", errorAt(file, w, reason, words...)
}

var strategyKeys = append([]string{"column", "keyGeneratorName"}, settingNames...)

// strategy reads a keyGenerateStrategy, or nil when there is nothing in it.
func (rd *reader) strategy(n *yaml.Node, key word) (*strategySpec, error) {
	pairs, err := rd.pairs(n, key.text)
	if err != nil {
		return nil, err
	}
	if len(pairs) == 1 && pairs[0].key.text == "none" {
		return &strategySpec{place: key.place, none: true}, nil
	}
	texts, err := rd.texts(pairs, key.text, strategyKeys)
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	st := &strategySpec{place: key.place, column: texts.at("column"), generator: texts.at("keyGeneratorName")}
	st.settings, err = rd.settings(texts)
	return st, err
}

// keyGenerator reads column and generator together, as ShardingSphere 4 has them. The
// generator gets a name for health and descriptions; without a type the default's generator
// is used.
func (rd *reader) keyGenerator(n *yaml.Node, key word, name string) (*strategySpec, error) {
	var texts words
	for _, name := range append([]string{"column"}, settingNames...) {
		texts = append(texts, namedWord{name: name})
	}
	m := makeSpec{name: word{name, key.place}}
	what := fmt.Sprintf("%s of %q", key.text, name)
	if key.text == name {
		what = name
	}
	if err := rd.maker(n, what, &m, texts); err != nil || isNull(n) {
		return nil, err
	}
	st := &strategySpec{place: key.place, column: texts.at("column")}
	var err error
	if st.settings, err = rd.settings(texts); err != nil {
		return nil, err
	}
	if m.typ.text != "" {
		st.inline = &m
	} else if len(m.props) > 0 {
		return nil, rd.errorAt(m.props[0].name, fmt.Sprintf("%s has props but no type", what))
	}
	return st, nil
}

// strategies reads the keyGenerateStrategies of ShardingSphere 5.5.4 into the
// tables that they name.
func (rd *reader) strategies(n *yaml.Node, sc *scope) error {
	pairs, err := rd.pairs(n, "keyGenerateStrategies")
	if err != nil {
		return err
	}
	tables := map[string]*tableSpec{}
	for i, t := range sc.tables {
		tables[strings.ToLower(t.name.text)] = &sc.tables[i]
	}
	known := append([]string{"keyGenerateType", "keyGeneratorName", "logicTable", "keyGenerateColumn", "keyGenerateSequence"}, settingNames...)
	for _, p := range pairs {
		what := fmt.Sprintf("keyGenerateStrategies %q", p.key.text)
		entries, err := rd.pairs(p.value, what)
		if err != nil {
			return err
		}
		texts, err := rd.texts(entries, what, known)
		if err == nil {
			err = rd.columnStrategy(p.key, texts, tables)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (rd *reader) columnStrategy(name word, texts words, tables map[string]*tableSpec) (err error) {
	st := &strategySpec{place: name.place, column: texts.at("keyGenerateColumn"), generator: texts.at("keyGeneratorName")}
	if st.settings, err = rd.settings(texts); err != nil {
		return err
	}
	switch kind := texts.at("keyGenerateType"); {
	case strings.EqualFold(kind.text, "sequence"):
		// For CREATE SEQUENCE, no column of any table.
		rd.spec.sequences = append(rd.spec.sequences, name)
		return nil
	case kind.text != "" && !strings.EqualFold(kind.text, "column"):
		return rd.errorAt(kind, fmt.Sprintf("keyGenerateType is %q: want column or sequence", kind.text), "column", "sequence")
	}
	logic := texts.at("logicTable")
	switch {
	case logic.text == "":
		return rd.errorAt(name, fmt.Sprintf("strategy %q has no logicTable", name.text))
	case st.column.text == "":
		return rd.errorAt(name, fmt.Sprintf("strategy %q has no keyGenerateColumn", name.text))
	}
	t, ok := tables[strings.ToLower(logic.text)]
	if !ok {
		return rd.noTable(logic, tables)
	}
	if t.strategy != nil {
		return rd.errorAt(logic, fmt.Sprintf("table %q already has a key column%s; only one column of a table can be generated", t.name.text, t.strategy.place.also()))
	}
	t.strategy = st
	return nil
}

func (rd *reader) noTable(logic word, tables map[string]*tableSpec) error {
	var defined []string
	for _, t := range tables {
		defined = append(defined, t.name.text)
	}
	slices.Sort(defined)
	return rd.errorAt(logic, fmt.Sprintf("logicTable %q is not one of the rule's tables", logic.text), defined...)
}
