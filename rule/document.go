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
	"github.com/shardkey/shardkey/internal/yamltree"
)

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
			err = rd.sharding(p.value, form4)
		default:
			if first, _, _ := strings.Cut(p.key.text, "."); !has5 && !has4 && first == "spring" {
				return rd.olderForm(p.key, "a Spring Boot file")
			}
			if has5 || has4 {
				rd.rootKey(p)
			}
			if nearest.Words(p.key.text, []string{"rules", "shardingRule"}) != nil && rd.other.position.line == 0 {
				rd.other = p.key
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rootKey warns about an unknown top-level key. It doesn't warn about keys with an anchor, because
// other parts of the file refer to them.
func (rd *reader) rootKey(p pair) {
	_, known := fileObject[p.key.text]
	if !known && p.value.Anchor == "" && p.value.Alias == nil && !strings.HasPrefix(p.key.text, "x-") {
		rd.file.warn(p.key, fmt.Sprintf("unknown key %q in the rule file is ignored", p.key.text),
			slices.Sorted(maps.Keys(fileObject))...)
	}
}

// noSharding returns the error for a file without a sharding rule.
func (rd *reader) noSharding(empty bool) error {
	reason := "no sharding rule: write"
	switch {
	case empty:
		reason = "the rule is empty: write"
	case rd.json:
		reason = "no sharding rule: JSON has no tags, so write the rule as YAML, with"
	}
	if rd.other.position.line == 0 {
		rd.other.position = position{line: 1, column: 1}
	}
	return rd.file.errorAt(rd.other, reason+" \"rules:\" and \"- !SHARDING\" under it", "rules", "shardingRule")
}

// rules reads the list of rules. It skips all rules except !SHARDING.
func (rd *reader) rules(n *yaml.Node) error {
	if yamltree.IsNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return rd.kindError(n, "rules", "a list")
	}
	for _, item := range n.Content {
		switch tag := item.ShortTag(); {
		case strings.EqualFold(tag, "!SHARDING"), strings.HasSuffix(tag, ".YamlShardingRuleConfiguration"):
			if err := rd.sharding(item, form5); err != nil {
				return err
			}
		case !strings.HasPrefix(tag, "!!"):
			if near := nearest.Words(strings.TrimPrefix(tag, "!"), []string{"SHARDING"}); near != nil {
				return rd.file.errorAt(word{tag, positionOf(item)}, fmt.Sprintf("unknown rule %q", tag), "!SHARDING")
			}
			rd.other = word{tag, positionOf(item)}
		case item.Kind == yaml.MappingNode:
			rd.other = word{position: positionOf(item)}
		}
	}
	return nil
}

// form is one of the formats of a sharding rule.
type form struct {
	what        string
	rule, table keyTree
}

var (
	form5 = form{"the sharding rule", ruleObject, tableObject}
	form4 = form{"the shardingRule", ruleObject4, tableObject4}
)

// ruleReader reads one sharding rule.
type ruleReader struct {
	rd         *reader
	pairs      []pair
	scope      scope
	algorithms map[string]algorithm
	// algorithmNames are the names of algorithms, sorted.
	algorithmNames []string
	broadcast      map[string]bool // tables whose rows are in every data source, in lower case
}

// sharding reads one sharding rule in the format f.
func (rd *reader) sharding(n *yaml.Node, f form) error {
	pairs, err := rd.pairs(n, f.what)
	if err != nil {
		return err
	}
	r := &ruleReader{rd: rd, pairs: pairs, scope: scope{position: positionOf(n)}, algorithms: rd.algorithms(pairs),
		broadcast: rd.broadcast(pairs)}
	r.algorithmNames = slices.Sorted(maps.Keys(r.algorithms))
	read := map[string]func(pair) error{
		"tables":                     func(p pair) error { return r.tables(p, f.table) },
		"autoTables":                 func(p pair) error { return r.tables(p, autoTableObject) },
		"defaultKeyGenerateStrategy": func(p pair) (err error) { r.scope.def, err = rd.strategy(p); return err },
		"defaultKeyGenerator":        r.defaultGenerator,
		"keyGenerators":              func(p pair) error { return rd.makers(p, generatorKind) },
		"workerIdAssigners":          func(p pair) error { return rd.makers(p, assignerKind) },
	}
	for _, p := range pairs {
		if _, known := f.rule[p.key.text]; known && read[p.key.text] != nil {
			if err := read[p.key.text](p); err != nil {
				return err
			}
		}
	}
	if err := rd.others(pairs, f.what, f.rule); err != nil {
		return err
	}
	// The strategies refer to tables, which may follow them in the file.
	if p, ok := find(pairs, "keyGenerateStrategies"); ok {
		if err := rd.strategies(p, &r.scope); err != nil {
			return err
		}
	}
	rd.spec.scopes = append(rd.spec.scopes, r.scope)
	return nil
}

func (rr *ruleReader) defaultGenerator(p pair) error {
	def, err := rr.rd.keyGenerator(p, p.key.text)
	if def != nil && def.inline != nil {
		rr.rd.spec.components = append(rr.rd.spec.components, *def.inline)
		def.generator, def.inline = def.inline.name, nil
	}
	rr.scope.def = def
	return err
}

// tables reads tables or autoTables. o lists the keys that a table can have.
func (rr *ruleReader) tables(p pair, o keyTree) error {
	pairs, err := rr.rd.pairs(p.value, "the tables")
	rr.scope.tables = slices.Grow(rr.scope.tables, len(pairs))
	for _, p := range pairs {
		if err := rr.rd.indented(p, o); err != nil {
			return err
		}
		t, err := rr.table(p, o)
		if err != nil {
			return err
		}
		rr.scope.tables = append(rr.scope.tables, t)
	}
	return err
}

func (rr *ruleReader) table(p pair, o keyTree) (t tableSpec, err error) {
	t.name = p.key
	what := "table " + strconv.Quote(p.key.text)
	entries, err := rr.rd.pairs(p.value, what)
	if err != nil {
		return t, err
	}
	for _, e := range entries {
		if _, known := o[e.key.text]; !known || err != nil {
			continue
		}
		switch e.key.text {
		case "actualDataNodes":
			t.nodes, err = rr.rd.nodesText(e.value, e.key.text)
		case "actualDataSources":
			t.sources, err = rr.rd.nodesText(e.value, e.key.text)
		case "keyGenerateStrategy":
			t.strategy, err = rr.rd.strategy(e)
		case "keyGenerator":
			t.strategy, err = rr.rd.keyGenerator(e, t.name.text)
		}
	}
	if err == nil {
		err = rr.rd.others(entries, what, o)
	}
	if err != nil || rr.broadcast[strings.ToLower(t.name.text)] {
		return t, err
	}
	if _, auto := o["actualDataSources"]; auto {
		t.table, err = rr.strategyNamed("shardingStrategy", "defaultShardingStrategy", entries)
		rr.rd.autoTable(&t)
		return t, err
	}
	if t.database, err = rr.strategyNamed("databaseStrategy", "defaultDatabaseStrategy", entries); err == nil {
		t.table, err = rr.strategyNamed("tableStrategy", "defaultTableStrategy", entries)
	}
	return t, err
}

// broadcast returns the broadcastTables, which are a list or a comma-separated string.
func (rd *reader) broadcast(rule []pair) map[string]bool {
	tables := map[string]bool{}
	if p, ok := find(rule, "broadcastTables"); ok {
		names, _ := rd.nodesText(p.value, p.key.text)
		for name := range strings.SplitSeq(names.text, ",") {
			tables[strings.ToLower(strings.TrimSpace(name))] = true
		}
	}
	return tables
}

// indented returns an error for a table whose name is a key of tables, because it is probably
// indented too little.
func (rd *reader) indented(p pair, o keyTree) error {
	if _, known := o[p.key.text]; !known || yamltree.IsNull(p.value) {
		return nil
	}
	for _, e := range rd.entries(p.value) {
		if _, known := o[e.key.text]; known || e.key.text == "actualDataNodes" {
			return nil // a table that has this name
		}
	}
	return rd.file.errorAt(p.key, fmt.Sprintf("%q is indented like a table; indent it further, under its table", p.key.text))
}

// autoTable computes the number of an auto table's actual tables.
func (rd *reader) autoTable(t *tableSpec) {
	if t.nodes.text != "" {
		return
	}
	err := errors.New("no shardingStrategy names an algorithm of the rule")
	at := t.name
	if t.table != nil && t.table.unknown == "" {
		t.autoCount, err = t.table.algorithm.autoTables()
		at = t.table.algorithm.name
	}
	if err != nil {
		rd.file.warnOf(rd.file.errorAt(at, fmt.Sprintf("cannot list the actual tables of auto table %q: %v; only INSERTs into %q itself get keys; write "+
			"actualDataNodes to list its tables", t.name.text, err, t.name.text)))
	}
}

// nodesText reads actualDataNodes or another value that is a list or a comma-separated string.
func (rd *reader) nodesText(n *yaml.Node, what string) (word, error) {
	if n.Kind != yaml.SequenceNode {
		return rd.text(n, what)
	}
	var items []string
	for _, item := range n.Content {
		w, err := rd.text(item, "an item of "+what)
		if err != nil {
			return word{}, err
		}
		items = append(items, w.text)
	}
	return word{strings.Join(items, ","), positionOf(n)}, nil
}
