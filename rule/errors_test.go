package rule_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// head is a rule of which the table t has a key, up to its generators.
const head = `rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
`

// gens ends head, in its fifth line and on.
const gens = `  keyGenerators:
    snowflake: {type: SNOWFLAKE}
`

// TestParse_errorsPointAtTheWord reads wrong rules and looks where and how the error points.
func TestParse_errorsPointAtTheWord(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		at         string // "line:column"
		word       string
		nearest    string // joined by commas
		text       string // part of the message
	}{
		// Not a rule at all.
		{name: "empty", yaml: "", at: "1:1", text: "the rule is empty"},
		{name: "blank", yaml: "\n\n# no more\n", at: "1:1", text: "the rule is empty"},
		{name: "null", yaml: "---\n~\n", at: "1:1", text: "the rule is empty"},
		{name: "text", yaml: "hello", at: "1:1", text: "a text where a map belongs"},
		{name: "list", yaml: "- a\n- b\n", at: "1:1", text: "a list where a map belongs"},
		{name: "binary", yaml: "rules:\n  \x01", at: "2:1", text: "not YAML"},
		{name: "not YAML", yaml: "rules:\n- !SHARDING\n  tables: {", at: "3:1", text: "not YAML"},
		{name: "tab", yaml: "rules:\n\t- a\n", at: "2:1", text: "not YAML"},
		{name: "anchor", yaml: "a: 1\nb: *nothing\n", at: "2:1", text: "unknown anchor"},
		{name: "no rules", yaml: "dataSources: {}\n", at: "1:1", text: "no sharding rule"},
		{name: "other rules", yaml: "rules:\n- !ENCRYPT {}\n", at: "1:1", text: "line 2 has a rule !ENCRYPT"},
		{name: "no tag", yaml: "rules:\n- tables: {}\n", at: "1:1", text: "the rule in line 2 has no tag"},
		{name: "rule", yaml: "x: 1\nrule:\n- !SHARDING {}\n", at: "1:1", text: `line 2 has "rule", not "rules"`},
		{name: "wrong tag", yaml: "rules:\n- !SHARDNG {}\n", at: "2:3", word: "!SHARDNG", nearest: "!SHARDING"},
		{name: "map for list", yaml: "rules:\n  SHARDING: {}\n", at: "2:3", text: "a map where a list belongs"},
		{name: "no tables", yaml: "rules:\n- !SHARDING\n", at: "2:3", text: "no table has a key generator"},
		{name: "no keys", yaml: "rules:\n- !SHARDING\n  tables:\n    a: {actualDataNodes: ds.a}\n", at: "4:5", text: "no table has a key generator"},
		{name: "no keys 4", yaml: "shardingRule:\n  tables:\n    a: {}\n", at: "3:5", text: "no table has a key generator"},

		// Keys with a slip in them.
		{name: "key_generators", yaml: head + "  key_generators: {}\n", at: "5:3", word: "key_generators", nearest: "keyGenerators"},
		{name: "keygenerators", yaml: head + "  keygenerators: {}\n", at: "5:3", nearest: "keyGenerators"},
		{name: "table", yaml: "rules:\n- !SHARDING\n  table: {}\n", at: "3:3", nearest: "tables"},
		{name: "keyGenerateStragety", yaml: "rules:\n- !SHARDING\n  tables:\n    a:\n      keyGenerateStragety: {column: id}\n", at: "5:7", nearest: "keyGenerateStrategy"},
		{name: "actualDataNode", yaml: "rules:\n- !SHARDING\n  tables:\n    a: {actualDataNode: ds.a}\n", at: "4:9", nearest: "actualDataNodes"},
		{name: "5 in 4", yaml: "shardingRule:\n  tables:\n    a:\n      keyGenerateStrategy: {column: id}\n", at: "4:7", nearest: "", text: "known: actualDataNodes, keyGenerator"},
		{name: "workerIds", yaml: head + "  workerIdAssigner: {}\n", at: "5:3", nearest: "workerIdAssigners"},

		// Within the key-generation part.
		{name: "columm", yaml: strings.Replace(head, "column", "columm", 1) + gens, at: "4:37", word: "columm", nearest: "column"},
		{name: "strategy list", yaml: "rules:\n- !SHARDING\n  tables:\n    t: {keyGenerateStrategy: [id]}\n", at: "4:30", text: "a list where a map belongs"},
		{name: "column map", yaml: "rules:\n- !SHARDING\n  tables:\n    t: {keyGenerateStrategy: {column: {a: b}}}\n", at: "4:39", text: "a map where a text belongs: column"},
		{name: "no column", yaml: "rules:\n- !SHARDING\n  tables:\n    t: {keyGenerateStrategy: {keyGeneratorName: snowflake}}\n" + gens, at: "4:9", text: `the key of table "t" has no column`},
		{name: "undefined", yaml: strings.Replace(head, "snowflake", "snowflak", 1) + gens, at: "4:67", word: "snowflak", nearest: "snowflake", text: `key generator "snowflak" is not defined; defined: snowflake; did you mean "snowflake"?`},
		{name: "none defined", yaml: head, at: "4:67", text: "the rule has no keyGenerators"},
		{name: "undefined default", yaml: head + "  defaultKeyGenerateStrategy: {column: id, keyGeneratorName: other}\n" + gens, at: "5:62", text: `"other" is not defined`},
		{name: "explicitKeys", yaml: strings.Replace(head, "column: id", "column: id, explicitKeys: kept", 1) + gens, at: "4:63", word: "kept", nearest: "keep"},
		{name: "batchKeys", yaml: strings.Replace(head, "column: id", "column: id, batchKeys: consecutiv", 1) + gens, at: "4:60", word: "consecutiv", nearest: "consecutive", text: "want any or consecutive"},
		{name: "twice", yaml: head + gens + "    SnowFlake: {type: UUID}\n", at: "7:5", text: "is defined twice (line 6)"},
		{name: "generator list", yaml: head + "  keyGenerators: [a]\n", at: "5:18", text: "a list where a map belongs: keyGenerators"},
		{name: "no type", yaml: head + "  keyGenerators: {snowflake: {}}\n", at: "5:19", text: `"snowflake" has no type`},
		{name: "unknown type", yaml: head + "  keyGenerators: {snowflake: {type: SNOWFLAK}}\n", at: "5:37", word: "SNOWFLAK", nearest: "SNOWFLAKE", text: "registered: "},
		{name: "typo in type", yaml: head + "  keyGenerators: {snowflake: {tpye: SNOWFLAKE}}\n", at: "5:31", nearest: "type"},
		{name: "REDIS", yaml: head + "  keyGenerators: {snowflake: {type: redis}}\n", at: "5:37", text: `import _ "github.com/shardkey/shardkey/keygen/redis"`},
		{name: "LEAF_SNOWFLAKE", yaml: head + "  keyGenerators: {snowflake: {type: LEAF_SNOWFLAKE}}\n", at: "5:37", text: `import _ "github.com/shardkey/shardkey/keygen/zookeeper"`},
		{name: "NANOID", yaml: head + "  keyGenerators: {snowflake: {type: NANOID}}\n", at: "5:37", text: `import _ "github.com/shardkey/shardkey/driver"`},
		{name: "unused type", yaml: head + gens + "    other: {type: COSID}\n", at: "7:19", word: "COSID", text: "registered: "},
		{name: "factory fails", yaml: head + "  keyGenerators: {snowflake: {type: BROKEN}}\n", at: "5:19", text: `5:19: key generator "snowflake": the moon is wrong`},
		{name: "factory speaks of a property", yaml: head + "  keyGenerators:\n    snowflake:\n      type: BROKEN\n      props:\n        a: b\n        what: layout\n", at: "10:15", word: "layout", text: "the layout is wrong"},
		{name: "factory gives nil", yaml: head + "  keyGenerators: {snowflake: {type: NOTHING}}\n", at: "5:19", text: "returned nil"},

		// Properties.
		{name: "unknown property", yaml: head + "  keyGenerators:\n    snowflake:\n      type: SNOWFLAKE\n      props:\n        worker-id: 1\n        worker: 1\n", at: "10:9", word: "worker", nearest: "worker-id,worker-id-assigner", text: "unknown property"},
		{name: "out of range", yaml: head + "  keyGenerators:\n    snowflake:\n      type: SNOWFLAKE\n      props:\n        worker.id: 1024\n", at: "9:20", word: "1024", text: `property "worker.id" is "1024": want an integer in 0..1023`},
		{name: "no value", yaml: head + "  keyGenerators:\n    snowflake:\n      type: SNOWFLAKE\n      props:\n        worker-id:\n", at: "9:19", text: `property "worker-id": want an integer`},
		{name: "property twice", yaml: head + "  keyGenerators:\n    snowflake:\n      type: SNOWFLAKE\n      props:\n        worker-id: 1\n        worker.id: 1\n", at: "10:9", text: `property "worker.id" is already given as "worker-id" (line 9)`},
		{name: "property map", yaml: head + "  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: {a: 1}}}}\n", at: "5:67", text: "a map where a text belongs"},
		{name: "props list", yaml: head + "  keyGenerators: {snowflake: {type: SNOWFLAKE, props: [1]}}\n", at: "5:55", text: "a list where a map belongs"},
		{name: "environment", yaml: head + "  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: \"${SHARDKEY_NOT_SET}\"}}}\n", at: "5:67", text: "the environment variable SHARDKEY_NOT_SET is not set"},
		{name: "environment name", yaml: head + "  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: \"${1 + 1}\"}}}\n", at: "5:67", text: "write \\${ for the characters"},
		{name: "environment elsewhere", yaml: strings.Replace(head, "snowflake", "'${USER}'", 1) + gens, at: "4:67", word: "${USER}", text: "is not defined"},

		// Worker-id assigners.
		{name: "undefined assigner", yaml: head + "  keyGenerators:\n    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: clustr}}\n  workerIdAssigners: {cluster: {type: FILE, props: {path: /tmp}}}\n", at: "6:62", word: "clustr", nearest: "cluster"},
		{name: "no assigners", yaml: head + "  keyGenerators:\n    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: clustr}}\n", at: "6:62", text: "the rule has no workerIdAssigners"},
		{name: "assigner type", yaml: head + gens + "  workerIdAssigners:\n    a: {type: FIEL}\n", at: "8:15", word: "FIEL", nearest: "FILE"},
		{name: "assigner import", yaml: head + gens + "  workerIdAssigners:\n    a: {type: ETCD}\n", at: "8:15", text: "shardkey/keygen/etcd"},
		{name: "assigner property", yaml: head + gens + "  workerIdAssigners:\n    a:\n      type: FILE\n      props:\n        path: /tmp\n        pth: /tmp\n", at: "12:9", word: "pth", nearest: "path"},
		{name: "assigner property missing", yaml: head + gens + "  workerIdAssigners:\n    a: {type: FILE}\n", at: "8:5", text: `property "path": want a directory`},
		{name: "assigner property with a slip", yaml: head + gens + "  workerIdAssigners:\n    a: {type: FILE, props: {pathh: /tmp}}\n", at: "8:29", word: "pathh", nearest: "path", text: `property "path": want a directory`},
		{name: "assigner twice", yaml: head + gens + "  workerIdAssigners:\n    a: {type: FILE, props: {path: x}}\n    A: {type: FILE, props: {path: x}}\n", at: "9:5", text: "is defined twice (line 8)"},
		{name: "assigner without type", yaml: head + gens + "  workerIdAssigners: {a: }\n", at: "7:23", text: `"a" has no type; registered: FILE`},

		// Tables.
		{name: "same table", yaml: head + "    T_ORDER:\n" + gens, at: "5:5", word: "T_ORDER", text: `is already defined as "t_order" (line 4)`},
		{name: "same key", yaml: head + "    t_order:\n" + gens, at: "5:5", text: "duplicate key"},
		{name: "overlap", yaml: "rules:\n- !SHARDING\n  tables:\n    a: {actualDataNodes: \"ds.x_${0..3}\"}\n    b: {actualDataNodes: \"ds.X_${3..5}\"}\n  defaultKeyGenerateStrategy: {column: id}\n", at: "5:26", text: `table "a" and table "b" both have the actual table "X_3"`},
		{name: "overlap over data sources", yaml: "rules:\n- !SHARDING\n  tables:\n    a: {actualDataNodes: ds_0.x}\n    b: {actualDataNodes: ds_1.x}\n  defaultKeyGenerateStrategy: {column: id}\n", at: "5:26", text: "data sources do not tell them apart"},
		{name: "overlap with a logical name", yaml: "rules:\n- !SHARDING\n  tables:\n    a: {actualDataNodes: \"ds.b\"}\n    b: {actualDataNodes: \"ds.c\"}\n  defaultKeyGenerateStrategy: {column: id}\n", at: "5:26", text: "both have"},
		{name: "overlap without key", yaml: head + "    other: {actualDataNodes: ds.t_order}\n" + gens, at: "5:30", text: "both have"},
		{name: "overlap in one schema", yaml: "rules:\n- !SHARDING\n  tables:\n    a: {actualDataNodes: ds_0.app.x}\n    b: {actualDataNodes: ds_1.APP.x}\n  defaultKeyGenerateStrategy: {column: id}\n", at: "5:26", text: "both have"},
		{name: "nodes", yaml: "rules:\n- !SHARDING\n  tables:\n    a: {actualDataNodes: \"ds.a_${0..}\"}\n  defaultKeyGenerateStrategy: {column: id}\n", at: "4:26", text: "cannot expand \"ds.a_${0..}\""},
		{name: "too many nodes", yaml: "rules:\n- !SHARDING\n  tables:\n    a: {actualDataNodes: \"ds.a_${0..999999999}\"}\n  defaultKeyGenerateStrategy: {column: id}\n", at: "4:26", text: "more than 1048576 data nodes"},
		{name: "nodes map", yaml: "rules:\n- !SHARDING\n  tables:\n    a: {actualDataNodes: {a: b}}\n", at: "4:26", text: "a map where a text belongs"},

		// ShardingSphere 5.5.4.
		{name: "logicTable", yaml: head + "  keyGenerateStrategies:\n    s: {logicTable: t_ordr, keyGenerateColumn: id}\n" + gens, at: "6:21", word: "t_ordr", nearest: "t_order"},
		{name: "two columns", yaml: head + "  keyGenerateStrategies:\n    s: {logicTable: T_ORDER, keyGenerateColumn: id2}\n" + gens, at: "6:21", text: "already has a key column (line 4)"},
		{name: "no logicTable", yaml: head + "  keyGenerateStrategies:\n    s: {keyGenerateColumn: id}\n" + gens, at: "6:5", text: "has no logicTable"},
		{name: "no keyGenerateColumn", yaml: head + "  keyGenerateStrategies:\n    s: {logicTable: t_order}\n" + gens, at: "6:5", text: "has no keyGenerateColumn"},
		{name: "keyGenerateType", yaml: head + "  keyGenerateStrategies:\n    s: {keyGenerateType: colum, logicTable: t_order}\n" + gens, at: "6:26", word: "colum", nearest: "column"},
		{name: "strategies key", yaml: head + "  keyGenerateStrategies:\n    s: {column: id, logicTable: t_order}\n" + gens, at: "6:9", word: "column", text: "known: keyGenerateType"},

		// ShardingSphere 4.
		{name: "4: key", yaml: "shardingRule:\n  tables:\n    a: {keyGenerator: {type: UUID, col: id}}\n", at: "3:36", word: "col", nearest: "column"},
		{name: "4: no column", yaml: "shardingRule:\n  tables:\n    a: {keyGenerator: {type: UUID}}\n", at: "3:9", text: "has no column"},
		{name: "4: props without type", yaml: "shardingRule:\n  tables:\n    a: {keyGenerator: {column: id, props: {x: y}}}\n", at: "3:44", text: "props but no type"},
		{name: "4: default", yaml: "shardingRule:\n  tables:\n    a:\n  defaultKeyGenerator: {type: UUD, column: id}\n", at: "4:31", word: "UUD", nearest: "UUID"},
		{name: "4: list", yaml: "shardingRule:\n- a\n", at: "2:1", text: "a list where a map belongs: the shardingRule"},

		// YAML's own traps.
		{name: "merge of a text", yaml: "rules:\n- !SHARDING\n  tables:\n    a: {<<: b}\n", at: "4:13", text: "a text where a map belongs"},
		{name: "merge of itself", yaml: "rules:\n- !SHARDING\n  tables:\n    a: &a {<<: *a}\n", at: "4:16", text: "a map into itself"},
		{name: "key is a list", yaml: "rules:\n- !SHARDING\n  tables:\n    [a]: b\n", at: "4:5", text: "a list where a text belongs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := rule.Parse("conf/rule.yaml", []byte(c.yaml))
			var e *rule.Error
			if !errors.As(err, &e) {
				t.Fatalf("have: %v\nwant: a *rule.Error", err)
			}
			place := ""
			if e.Line > 0 {
				place = fmt.Sprintf("%d:%d", e.Line, e.Column)
			}
			if place != c.at {
				t.Errorf("have: at %s\nwant: at %s\n%v", place, c.at, err)
			}
			if c.word != "" && e.Word != c.word {
				t.Errorf("have: word %q\nwant: word %q\n%v", e.Word, c.word, err)
			}
			if near := strings.Join(e.Nearest, ","); c.nearest != "" && near != c.nearest {
				t.Errorf("have: nearest %q\nwant: nearest %q\n%v", near, c.nearest, err)
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("have: %v\nwant: %s", err, c.text)
			}
			prefix := "shardkey: conf/rule.yaml:"
			if c.at != "" {
				prefix += c.at + ": "
			}
			if !strings.HasPrefix(err.Error(), prefix) {
				t.Errorf("have: %v\nwant: prefix %s", err, prefix)
			}
		})
	}
}

// TestError_wrapsItsCause finds the causes in the chain.
func TestError_wrapsItsCause(t *testing.T) {
	parse := func(yaml string) error {
		_, err := rule.Parse("r", []byte(yaml))
		return err
	}
	var prop *spi.PropError
	if err := parse(head + "  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: x}}}"); !errors.As(err, &prop) || prop.Value != "x" {
		t.Errorf("have: %v\nwant: a *spi.PropError", err)
	}
}

// TestError_showsNoSecrets keeps what the environment held out of errors.
func TestError_showsNoSecrets(t *testing.T) {
	t.Setenv("SHARDKEY_SECRET", "tops3cret")
	for _, props := range []string{
		`what: "${SHARDKEY_SECRET}"`,
		`worker-id: "${SHARDKEY_SECRET}"`,
		`worker-id: "1${SHARDKEY_SECRET}"`,
		`worker-id: ["${SHARDKEY_SECRET}", b]`,
		`password: "${SHARDKEY_SECRET}", unknown: "${SHARDKEY_SECRET}"`,
		`password: "${SHARDKEY_SECRET}${SHARDKEY_NOT_SET}"`,
		`worker-id-assigner: "${SHARDKEY_SECRET}"`,
	} {
		_, err := rule.Parse("r", []byte(head+"  keyGenerators: {snowflake: {type: "+typeOf(props)+", props: {"+props+"}}}"))
		if err == nil {
			t.Errorf("%s\nhave: no error", props)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v", e, e), "tops3cret") {
				t.Errorf("%s\nhave: %v\nwant: nothing of the variable's value", props, e)
			}
		}
	}
}

// A short value is neither shown nor replaced, which would show it as well.
func TestError_showsNoShortSecrets(t *testing.T) {
	for _, value := range []string{"p", "is", "wrong", ".*", "1"} {
		t.Setenv("SHARDKEY_SECRET", value)
		for _, props := range []string{`what: "${SHARDKEY_SECRET}"`, `what: moon, a: ["${SHARDKEY_SECRET}"], b: "${SHARDKEY_SECRET}"`} {
			_, err := rule.Parse("r", []byte(head+"  keyGenerators: {snowflake: {type: BROKEN, props: {"+props+"}}}"))
			const whole = "the moon is wrong"
			if have := fmt.Sprint(err); strings.Contains(have, "${SHARDKEY_SECRET} is") || !strings.Contains(have, whole) && !strings.Contains(have, "not shown") {
				t.Errorf("%q, %s\nhave: %v\nwant: the whole reason or none of it", value, props, err)
			}
		}
	}
}

func typeOf(props string) string {
	if strings.HasPrefix(props, "what") {
		return "BROKEN"
	}
	return "SNOWFLAKE"
}
