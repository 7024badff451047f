package rule

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
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
			if right := nearest(p.key.text, []string{"rules", "shardingRule"}); right != nil && rd.hint == "" {
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
	reason := "there is no sharding rule: write \"rules:\" and below it \"- !SHARDING\""
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
			if near := nearest(strings.TrimPrefix(tag, "!"), []string{"SHARDING"}); near != nil {
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
