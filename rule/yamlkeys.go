package rule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/shardkey/shardkey/internal/nearest"
)

// keyTree lists the keys of a map in ShardingSphere's format, of all versions together. The value of
// a key lists the keys of the map under it, or is nil if that map isn't checked. "*" stands for any
// key. A key that isn't listed is misspelt or doesn't exist.
type keyTree map[string]keyTree

func keys(names ...string) keyTree { return keyTree{}.with(names...) }

// with adds keys whose maps aren't checked.
func (kt keyTree) with(names ...string) keyTree {
	for _, name := range names {
		kt[name] = nil
	}
	return kt
}

var (
	standard = keys("shardingColumn", "shardingAlgorithmName", "javaType")
	several  = keys("shardingColumns", "shardingAlgorithmName", "javaType")
	hint     = keys("shardingAlgorithmName")

	strategyObject = keyTree{"standard": standard, "complex": several, "hint": hint, "none": nil}
	strategy4      = keyTree{
		"standard": keys("shardingColumn", "preciseAlgorithmClassName", "rangeAlgorithmClassName"),
		"inline":   keys("shardingColumn", "algorithmExpression", "javaType"),
		"complex":  keys("shardingColumns", "algorithmClassName"),
		"hint":     keys("algorithmClassName"),
		"none":     nil,
	}
	audit      = keys("auditorNames", "allowHintDisable")
	algorithms = keyTree{"*": keys("type", "props")}

	tableObject = keyTree{
		"databaseStrategy": strategyObject, "tableStrategy": strategyObject, "auditStrategy": audit,
	}.with("logicTable", "actualDataNodes", "keyGenerateStrategy")
	autoTableObject = keyTree{
		"shardingStrategy": strategyObject, "auditStrategy": audit,
	}.with("logicTable", "actualDataNodes", "actualDataSources", "keyGenerateStrategy")
	tableObject4 = keyTree{
		"databaseStrategy": strategy4, "tableStrategy": strategy4,
	}.with("logicTable", "actualDataNodes", "keyGenerator", "logicIndex")

	ruleObject = keyTree{
		"defaultDatabaseStrategy": strategyObject, "defaultTableStrategy": strategyObject,
		"defaultAuditStrategy": audit, "auditors": algorithms, "shardingAlgorithms": algorithms,
		"shardingCache": {"routeCache": keys("softValues", "initialCapacity", "maximumSize"), "allowedMaxSqlLength": nil},
	}.with("tables", "autoTables", "bindingTables", "broadcastTables", "defaultShardingColumn", "scaling",
		"scalingName",
		"defaultKeyGenerateStrategy", "keyGenerateStrategies", "keyGenerators", "workerIdAssigners")
	ruleObject4 = keyTree{
		"defaultDatabaseStrategy": strategy4, "defaultTableStrategy": strategy4,
	}.with("tables", "bindingTables", "broadcastTables", "defaultKeyGenerator", "masterSlaveRules", "encryptRule",
		"defaultDataSourceName", "configMap", "props", "workerIdAssigners")

	fileObject = keys("schemaName", "databaseName", "dataSources", "dataSource", "dataSourceCommon", "mode", "rules", "props", "authority",
		"authentication",
		"governance", "orchestration", "metrics", "configMap", "labels", "shardingRule", "masterSlaveRule", "masterSlaveRules",
		"encryptRule", "shadowRule", "sqlParser", "transaction", "sqlTranslator", "sqlFederation", "logging", "traffic")
)

// ours are the keys that shardkey reads, of all objects together. An unknown key that looks like
// one of them is an error. If it were ignored, rows could be sent without a key, or the sharding
// could be computed for another Java class.
var ours = []string{"tables", "autoTables", "actualDataNodes", "keyGenerateStrategy", "keyGenerator",
	"defaultKeyGenerateStrategy", "defaultKeyGenerator", "keyGenerateStrategies", "keyGenerators",
	"workerIdAssigners", "javaType"}

// others checks the keys of an object that shardkey doesn't read. ShardingSphere's keys are
// ignored. A key that looks like one of ours is an error. Any other key is a warning.
func (rd *reader) others(pairs []pair, what string, o keyTree) error {
	for _, p := range pairs {
		inner, known := o[p.key.text]
		if _, any := o["*"]; any && !known {
			inner, known = o["*"], true
		}
		switch {
		case known && len(inner) > 0:
			if err := rd.others(rd.entries(p.value), fmt.Sprintf("%q of %s", p.key.text, what), inner); err != nil {
				return err
			}
		case !known:
			if err := rd.stranger(p, what, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// alphaWords are keys of the alpha versions of ShardingSphere 5, whose files have to be converted
// first, with today's keys of the same objects.
var alphaWords = map[string]string{
	"keyGenerator": "keyGenerateStrategy", "defaultKeyGenerator": "defaultKeyGenerateStrategy",
}

func (rd *reader) olderForm(w word, form string) error {
	return rd.file.errorAt(w, form+" must be converted first: shardkey init --from FILE > rule.yaml")
}

// stranger handles a key that the object doesn't have.
func (rd *reader) stranger(p pair, what string, o keyTree) error {
	if today, old := alphaWords[p.key.text]; old {
		if _, here := o[today]; here {
			return rd.olderForm(p.key, fmt.Sprintf("%q of an alpha version of ShardingSphere 5", p.key.text))
		}
		return rd.file.errorAt(p.key, fmt.Sprintf("%q is nested too deep, in %s: move it up, into its table or the rule itself",
			p.key.text, what))
	}
	mine := slices.DeleteFunc(slices.Clone(ours), func(k string) bool { _, ok := o[k]; return !ok })
	if right := rd.meant(p, mine); len(right) > 0 {
		return rd.unknownKey(p.key, what, mine, right)
	}
	rd.file.warn(p.key, fmt.Sprintf("unknown key %q in %s is ignored", p.key.text, what), slices.Sorted(maps.Keys(o))...)
	return nil
}

// meant returns the keys that an unknown key was probably meant for, judged by its spelling or by
// the map under it.
func (rd *reader) meant(p pair, mine []string) []string {
	has := func(part string) bool { return strings.Contains(letters(p.key.text), part) }
	var right []string
	for _, k := range mine {
		if nearest.Distance(p.key.text, k) <= min(2, len(k)/4) {
			right = append(right, k)
		}
	}
	switch {
	case len(right) > 0:
		return right
	case has("keygen") || has("workerid"):
		return mine
	case has("datanode") || has("actualtable") || rd.looksLikeNodes(p.value):
		return slices.DeleteFunc(mine, func(k string) bool { return k != "actualDataNodes" })
	case rd.looksLikeKey(p.value):
		for _, k := range []string{"keyGenerateStrategy", "defaultKeyGenerateStrategy", "keyGenerator",
			"defaultKeyGenerator"} {
			if slices.Contains(mine, k) {
				return []string{k}
			}
		}
	}
	return nil
}

// looksLikeKey reports whether a map looks like a key generator or a key-generate strategy.
func (rd *reader) looksLikeKey(n *yaml.Node) bool {
	return slices.ContainsFunc(rd.entries(n), func(p pair) bool {
		return strings.Contains(letters(p.key.text), "generator")
	})
}

func (rd *reader) looksLikeNodes(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && strings.Contains(n.Value, ".") &&
		(strings.Contains(n.Value, "${") || strings.Contains(n.Value, "$->{"))
}

// letters returns the text in lower case without "-" and "_".
func letters(text string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(text))
}
