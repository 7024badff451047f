package rule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/shardkey/shardkey/internal/nearest"
)

// document reads one YAML document of a file.
func (rd *reader) document(root *yaml.Node) error {
	pairs, err := rd.pairs(root, "the rule file")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		switch p.key.text {
		case "rules":
			err = rd.rules(p.value)
		case "shardingRule":
			err = rd.rule4(p.value)
		default:
			if right := nearest.Words(p.key.text, []string{"rules", "shardingRule"}); right != nil && rd.hint == "" {
				rd.hint = fmt.Sprintf("; line %d has %q, not %q", p.key.place.line, p.key.text, right[0])
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noSharding is the error for a text without a sharding rule.
func (rd *reader) noSharding(empty bool) error {
	reason := "no sharding rule: write \"rules:\" and below it \"- !SHARDING\""
	if empty {
		reason = "the rule is empty: write \"rules:\" and below it \"- !SHARDING\""
	}
	e := rd.errorAt(word{place: place{line: 1, column: 1}}, reason+rd.hint)
	e.Err = ErrNoSharding
	return e
}

// rules reads the list of rules and leaves all but !SHARDING alone.
func (rd *reader) rules(n *yaml.Node) error {
	list := resolve(n)
	if isNull(list) {
		return nil
	}
	if list.Kind != yaml.SequenceNode {
		return rd.kindError(n, "rules, each beginning with \"- !SHARDING\" or another tag", "a list")
	}
	for _, item := range list.Content {
		rule := resolve(item)
		switch tag := rule.ShortTag(); {
		case isSharding(tag):
			if err := rd.sharding(rule); err != nil {
				return err
			}
		case !strings.HasPrefix(tag, "!!"):
			if near := nearest.Words(strings.TrimPrefix(tag, "!"), []string{"SHARDING"}); near != nil {
				return rd.errorAt(word{tag, placeOf(item)}, fmt.Sprintf("unknown rule %q", tag), "!SHARDING")
			}
			rd.hint = fmt.Sprintf("; line %d has a rule %s", rule.Line, tag)
		case rule.Kind == yaml.MappingNode:
			rd.hint = fmt.Sprintf("; the rule in line %d has no tag", rule.Line)
		}
	}
	return nil
}

func isSharding(tag string) bool {
	return strings.EqualFold(tag, "!SHARDING") || strings.HasSuffix(tag, ".YamlShardingRuleConfiguration")
}

// sharding reads one sharding rule of ShardingSphere 5.
func (rd *reader) sharding(n *yaml.Node) error {
	const what = "the sharding rule"
	pairs, err := rd.pairs(n, what)
	if err != nil {
		return err
	}
	sc := scope{place: placeOf(n)}
	counts := rd.shardingCounts(pairs)
	for _, p := range pairs {
		switch p.key.text {
		case "tables":
			err = rd.tables(p.value, &sc, nil)
		case "autoTables":
			err = rd.tables(p.value, &sc, counts)
		case "defaultKeyGenerateStrategy":
			sc.def, err = rd.strategy(p.value, p.key)
		case "keyGenerators":
			rd.spec.generators, err = rd.makers(p.value, p.key.text, rd.spec.generators)
		case "workerIdAssigners":
			rd.spec.assigners, err = rd.makers(p.value, p.key.text, rd.spec.assigners)
		case "keyGenerateStrategies":
		default:
			err = rd.almost(p.key, what, "tables", "autoTables", "defaultKeyGenerateStrategy",
				"keyGenerateStrategies", "keyGenerators", "workerIdAssigners")
		}
		if err != nil {
			return err
		}
	}
	// The strategies name tables, which may stand below them.
	if p, ok := find(pairs, "keyGenerateStrategies"); ok {
		if err := rd.strategies(p.value, &sc); err != nil {
			return err
		}
	}
	rd.spec.scopes = append(rd.spec.scopes, sc)
	return nil
}

// tables reads tables or, with the counts of the algorithms, autoTables.
func (rd *reader) tables(n *yaml.Node, sc *scope, counts map[string]int) error {
	pairs, err := rd.pairs(n, "the tables")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		entries, err := rd.pairs(p.value, fmt.Sprintf("table %q", p.key.text))
		if err != nil {
			return err
		}
		t := tableSpec{name: p.key}
		if counts != nil {
			t.autoCount = counts[rd.algorithmOf(entries)]
		}
		if err := rd.table(entries, &t); err != nil {
			return err
		}
		sc.tables = append(sc.tables, t)
	}
	return nil
}

func (rd *reader) table(entries []pair, t *tableSpec) (err error) {
	for _, e := range entries {
		switch e.key.text {
		case "actualDataNodes":
			t.nodes, err = rd.nodesText(e.value)
		case "keyGenerateStrategy":
			t.strategy, err = rd.strategy(e.value, e.key)
		default:
			err = rd.almost(e.key, fmt.Sprintf("table %q", t.name.text), "actualDataNodes", "keyGenerateStrategy")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nodesText reads actualDataNodes; a list of items is taken as well as a text
// with commas.
func (rd *reader) nodesText(n *yaml.Node) (word, error) {
	list := resolve(n)
	if list.Kind != yaml.SequenceNode {
		return rd.text(n, "actualDataNodes")
	}
	var items []string
	for _, item := range list.Content {
		w, err := rd.text(item, "an item of actualDataNodes")
		if err != nil {
			return word{}, err
		}
		items = append(items, w.text)
	}
	return word{strings.Join(items, ","), placeOf(n)}, nil
}

// rule4 reads the shardingRule of ShardingSphere 4, in which a table has its
// generator written into it.
func (rd *reader) rule4(n *yaml.Node) error {
	const what = "the shardingRule"
	pairs, err := rd.pairs(n, what)
	if err != nil {
		return err
	}
	sc := scope{place: placeOf(n)}
	for _, p := range pairs {
		switch p.key.text {
		case "tables":
			err = rd.tables4(p.value, &sc)
		case "defaultKeyGenerator":
			sc.def, err = rd.keyGenerator(p.value, p.key, "defaultKeyGenerator")
			if sc.def != nil {
				sc.defMaker, sc.def.inline = sc.def.inline, nil
			}
		case "workerIdAssigners":
			rd.spec.assigners, err = rd.makers(p.value, p.key.text, rd.spec.assigners)
		default:
			err = rd.almost(p.key, what, "tables", "defaultKeyGenerator", "workerIdAssigners")
		}
		if err != nil {
			return err
		}
	}
	rd.spec.scopes = append(rd.spec.scopes, sc)
	return nil
}

func (rd *reader) tables4(n *yaml.Node, sc *scope) error {
	pairs, err := rd.pairs(n, "the tables")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		entries, err := rd.pairs(p.value, fmt.Sprintf("table %q", p.key.text))
		if err != nil {
			return err
		}
		t := tableSpec{name: p.key}
		for _, e := range entries {
			switch e.key.text {
			case "actualDataNodes":
				t.nodes, err = rd.nodesText(e.value)
			case "keyGenerator":
				t.strategy, err = rd.keyGenerator(e.value, e.key, p.key.text)
			default:
				err = rd.almost(e.key, fmt.Sprintf("table %q", p.key.text), "actualDataNodes", "keyGenerator")
			}
			if err != nil {
				return err
			}
		}
		sc.tables = append(sc.tables, t)
	}
	return nil
}

// keyGenerator reads column and generator together. The generator gets a name
// for health and descriptions; without a type the default's generator serves.
func (rd *reader) keyGenerator(n *yaml.Node, key word, name string) (*strategySpec, error) {
	texts := map[string]word{"column": {}}
	for _, name := range settings {
		texts[name] = word{}
	}
	m := makeSpec{name: word{name, key.place}}
	what := fmt.Sprintf("%s of %q", key.text, name)
	if key.text == name {
		what = name
	}
	if err := rd.maker(n, what, &m, texts); err != nil || isNull(n) {
		return nil, err
	}
	st := &strategySpec{place: key.place, column: texts["column"]}
	if err := rd.settings(texts, st); err != nil {
		return nil, err
	}
	switch {
	case m.typ.text != "":
		st.inline = &m
	case len(m.props) > 0:
		return nil, rd.errorAt(m.props[0].name, fmt.Sprintf("%s has props but no type", what))
	}
	return st, nil
}

// strategy reads a keyGenerateStrategy, or nil when there is nothing in it.
func (rd *reader) strategy(n *yaml.Node, key word) (*strategySpec, error) {
	texts, err := rd.texts(n, key.text, append([]string{"column", "keyGeneratorName"}, settings...)...)
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	st := &strategySpec{place: key.place, column: texts["column"], generator: texts["keyGeneratorName"]}
	return st, rd.settings(texts, st)
}

// settings are shardkey's own words beside the column of a strategy.
var settings = []string{"explicitKeys", "batchKeys"}

// settings reads shardkey's own words, which are choices between two.
func (rd *reader) settings(texts map[string]word, st *strategySpec) (err error) {
	var keep bool
	if keep, st.explicitSet, err = rd.choice(texts, "explicitKeys", "fill", "keep"); err != nil {
		return err
	}
	if keep {
		st.explicit = KeepExplicit
	}
	st.consecutive, st.consecutiveSet, err = rd.choice(texts, "batchKeys", "any", "consecutive")
	return err
}

// choice reports whether the text of that name is yes rather than no, and whether
// it is there at all.
func (rd *reader) choice(texts map[string]word, name, no, yes string) (chosen, set bool, err error) {
	w := texts[name]
	switch {
	case w.text == "":
		return false, false, nil
	case strings.EqualFold(w.text, no):
		return false, true, nil
	case strings.EqualFold(w.text, yes):
		return true, true, nil
	}
	return false, true, rd.errorAt(w, fmt.Sprintf("%s is %q: want %s or %s", name, w.text, no, yes), no, yes)
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
	for _, p := range pairs {
		what := fmt.Sprintf("keyGenerateStrategies %q", p.key.text)
		texts, err := rd.texts(p.value, what, append([]string{"keyGenerateType", "keyGeneratorName", "logicTable", "keyGenerateColumn", "keyGenerateSequence"}, settings...)...)
		if err == nil {
			err = rd.columnStrategy(p.key, texts, tables)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (rd *reader) columnStrategy(name word, texts map[string]word, tables map[string]*tableSpec) error {
	st := &strategySpec{place: name.place, column: texts["keyGenerateColumn"], generator: texts["keyGeneratorName"]}
	if err := rd.settings(texts, st); err != nil {
		return err
	}
	switch kind := texts["keyGenerateType"]; {
	case strings.EqualFold(kind.text, "sequence"):
		return nil // for CREATE SEQUENCE, no column of any table
	case kind.text != "" && !strings.EqualFold(kind.text, "column"):
		return rd.errorAt(kind, fmt.Sprintf("keyGenerateType is %q: want column or sequence", kind.text), "column", "sequence")
	}
	logic, ok := texts["logicTable"]
	switch {
	case !ok || logic.text == "":
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

// shardingCounts returns the sharding-count of each of the shardingAlgorithms
// that has one. Algorithms are not about keys: what is odd in them is left
// alone.
func (rd *reader) shardingCounts(rule []pair) map[string]int {
	counts := map[string]int{}
	for _, algorithm := range rd.below(rule, "shardingAlgorithms") {
		props := rd.below(rd.entries(algorithm.value), "props")
		if count, ok := find(props, "sharding-count"); ok {
			n, err := strconv.Atoi(resolve(count.value).Value)
			if err == nil && n > 0 {
				counts[algorithm.key.text] = n
			}
		}
	}
	return counts
}

// algorithmOf returns the name of the algorithm that spreads an auto table.
func (rd *reader) algorithmOf(table []pair) string {
	for _, strategy := range rd.below(table, "shardingStrategy") {
		if name, ok := find(rd.entries(strategy.value), "shardingAlgorithmName"); ok {
			return resolve(name.value).Value
		}
	}
	return ""
}

// below returns the entries of the map that stands under key; none when there is
// no such map.
func (rd *reader) below(pairs []pair, key string) []pair {
	p, ok := find(pairs, key)
	if !ok {
		return nil
	}
	return rd.entries(p.value)
}

func (rd *reader) entries(n *yaml.Node) []pair {
	pairs, err := rd.pairs(n, "")
	if err != nil {
		return nil
	}
	return pairs
}
