package rule

import (
	"errors"
	"fmt"
	"maps"
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
	_, has5 := find(pairs, "rules")
	_, has4 := find(pairs, "shardingRule")
	for _, p := range pairs {
		switch p.key.text {
		case "rules":
			err = rd.rules(p.value)
		case "shardingRule":
			err = rd.rule4(p.value)
		default:
			if first, _, _ := strings.Cut(p.key.text, "."); !has5 && !has4 && (first == "spring" || first == "sharding") {
				return rd.olderForm(p.key, "a Spring Boot file")
			}
			if has5 || has4 {
				rd.rootKey(p)
			}
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

// rootKey warns of a key that no ShardingSphere file has beside its rules. What
// carries an anchor is there to be referred to.
func (rd *reader) rootKey(p pair) {
	_, known := fileObject[p.key.text]
	if !known && p.value.Anchor == "" && p.value.Kind != yaml.AliasNode && !strings.HasPrefix(p.key.text, "x-") {
		rd.warn(p.key, fmt.Sprintf("unknown key %q in the rule file: it is ignored", p.key.text), slices.Sorted(maps.Keys(fileObject))...)
	}
}

// noSharding is the error for a text without a sharding rule.
func (rd *reader) noSharding(empty bool) error {
	reason := "no sharding rule: write \"rules:\" and below it \"- !SHARDING\""
	if empty {
		reason = "the rule is empty: write \"rules:\" and below it \"- !SHARDING\""
	}
	return rd.errorAt(word{place: place{line: 1, column: 1}}, reason+rd.hint)
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
	for _, p := range pairs {
		switch p.key.text {
		case "tables":
			err = rd.tables(p.value, &sc, tableObject, pairs)
		case "autoTables":
			err = rd.tables(p.value, &sc, autoTableObject, pairs)
		case "defaultKeyGenerateStrategy":
			sc.def, err = rd.strategy(p.value, p.key)
		case "shardingAlgorithms":
			rd.algorithmProps(p.value)
		case "keyGenerators":
			rd.spec.generators, err = rd.makers(p.value, p.key.text, rd.spec.generators)
		case "workerIdAssigners":
			rd.spec.assigners, err = rd.makers(p.value, p.key.text, rd.spec.assigners)
		}
		if err != nil {
			return err
		}
	}
	if err := rd.others(pairs, what, ruleObject); err != nil {
		return err
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

// tables reads tables or autoTables, which differ in the keys that they have.
func (rd *reader) tables(n *yaml.Node, sc *scope, o object, rule []pair) error {
	pairs, err := rd.pairs(n, "the tables")
	if err != nil {
		return err
	}
	all := rd.algorithms(rule)
	sc.tables = slices.Grow(sc.tables, len(pairs))
	for _, p := range pairs {
		if err := rd.indented(p, o); err != nil {
			return err
		}
		what := "table " + strconv.Quote(p.key.text)
		entries, err := rd.pairs(p.value, what)
		if err != nil {
			return err
		}
		t := tableSpec{name: p.key}
		if err := rd.table(entries, what, &t, o); err != nil {
			return err
		}
		if err := rd.tableStrategies(entries, rule, all, &t, o); err != nil {
			return err
		}
		sc.tables = append(sc.tables, t)
	}
	return nil
}

// tableStrategies reads how a table is sharded.
func (rd *reader) tableStrategies(entries, rule []pair, all map[string]algorithm, t *tableSpec, o object) (err error) {
	if rd.isBroadcast(t.name.text, rule) {
		return nil
	}
	if _, auto := o["actualDataSources"]; auto {
		t.table, err = rd.strategyNamed("shardingStrategy", "defaultShardingStrategy", entries, rule, all)
		rd.autoTable(t)
		return err
	}
	if t.database, err = rd.strategyNamed("databaseStrategy", "defaultDatabaseStrategy", entries, rule, all); err != nil {
		return err
	}
	t.table, err = rd.strategyNamed("tableStrategy", "defaultTableStrategy", entries, rule, all)
	return err
}

// isBroadcast reports whether all rows of a table are in all data sources.
func (rd *reader) isBroadcast(table string, rule []pair) bool {
	p, ok := find(rule, "broadcastTables")
	if !ok {
		return false
	}
	names := []*yaml.Node{p.value}
	if list := resolve(p.value); list.Kind == yaml.SequenceNode {
		names = list.Content
	}
	for _, n := range names {
		for name := range strings.SplitSeq(resolve(n).Value, ",") {
			if strings.EqualFold(strings.TrimSpace(name), table) {
				return true
			}
		}
	}
	return false
}

func (rd *reader) table(entries []pair, what string, t *tableSpec, o object) (err error) {
	for _, e := range entries {
		if _, known := o[e.key.text]; !known {
			continue
		}
		switch e.key.text {
		case "actualDataNodes":
			t.nodes, err = rd.nodesText(e.value, e.key.text)
		case "actualDataSources":
			t.sources, err = rd.nodesText(e.value, e.key.text)
		case "keyGenerateStrategy":
			t.strategy, err = rd.strategy(e.value, e.key)
		case "keyGenerator":
			t.strategy, err = rd.keyGenerator(e.value, e.key, t.name.text)
		}
		if err != nil {
			return err
		}
	}
	return rd.others(entries, what, o)
}

// indented refuses a table that has the name of a table's key: it is probably
// one that is indented too little.
func (rd *reader) indented(p pair, o object) error {
	if _, known := o[p.key.text]; !known || isNull(p.value) {
		return nil
	}
	for _, e := range rd.entries(p.value) {
		if _, known := o[e.key.text]; known || e.key.text == "actualDataNodes" {
			return nil // a table that really has this name
		}
	}
	return rd.errorAt(p.key, fmt.Sprintf("%q is indented as a table is: indent it further, below its table", p.key.text))
}

// autoTable computes how many actual tables an auto table has.
func (rd *reader) autoTable(t *tableSpec) {
	if t.nodes.text != "" {
		return
	}
	err := errors.New("it has no shardingStrategy with a shardingAlgorithmName of the rule")
	at := t.name
	if t.table != nil && t.table.unknown == "" {
		t.autoCount, err = t.table.algorithm.autoTables()
		at = t.table.algorithm.name
	}
	if err != nil {
		rd.warn(at, fmt.Sprintf("the actual tables of auto table %q are not known: %v; only %q itself is filled (write actualDataNodes to list them)", t.name.text, err, t.name.text))
	}
}

// defaultGenerator reads a defaultKeyGenerator.
func (rd *reader) defaultGenerator(p pair, sc *scope) (err error) {
	sc.def, err = rd.keyGenerator(p.value, p.key, p.key.text)
	if sc.def != nil {
		sc.defMaker, sc.def.inline = sc.def.inline, nil
	}
	return err
}

// nodesText reads actualDataNodes or actualDataSources; a list of items is taken
// as well as a text with commas.
func (rd *reader) nodesText(n *yaml.Node, what string) (word, error) {
	list := resolve(n)
	if list.Kind != yaml.SequenceNode {
		return rd.text(n, what)
	}
	var items []string
	for _, item := range list.Content {
		w, err := rd.text(item, "an item of "+what)
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
			err = rd.tables(p.value, &sc, tableObject4, pairs)
		case "defaultKeyGenerator":
			err = rd.defaultGenerator(p, &sc)
		case "workerIdAssigners":
			rd.spec.assigners, err = rd.makers(p.value, p.key.text, rd.spec.assigners)
		}
		if err != nil {
			return err
		}
	}
	if err := rd.others(pairs, what, ruleObject4); err != nil {
		return err
	}
	rd.spec.scopes = append(rd.spec.scopes, sc)
	return nil
}
