package rule_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
)

// whole puts what a table or a rule has besides into a rule with one good table.
func whole(table, more string) string {
	return "rules:\n- !SHARDING\n  tables:\n    t_order:\n      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}\n" + table +
		"  keyGenerators:\n    snowflake: {type: SNOWFLAKE}\n" + more
}

func TestParse_warnsOfKeysThatNobodyReads(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		want       []string // parts of the warnings
	}{
		{"all that ShardingSphere has", `
databaseName: app
dataSources: {ds: {url: x}}
mode: {type: Standalone}
rules:
- !SHARDING
  tables:
    t_order:
      logicTable: t_order
      actualDataNodes: ds.t_order_${0..1}
      databaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: a}}
      tableStrategy: {complex: {shardingColumns: "a,b", shardingAlgorithmName: a}}
      auditStrategy: {auditorNames: [x], allowHintDisable: true}
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  autoTables: {t_auto: {actualDataSources: "ds", shardingStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: a}}}}
  bindingTables: ["a,b"]
  broadcastTables: [c]
  defaultDatabaseStrategy: {none: }
  defaultTableStrategy: {hint: {shardingAlgorithmName: a}}
  defaultShardingColumn: id
  defaultAuditStrategy: {auditorNames: [x]}
  shardingAlgorithms: {a: {type: HASH_MOD, props: {sharding-count: 4}}, b: {type: CLASS_BASED, props: {strategy: STANDARD, anything: 1}}, c: {type: MINE, props: {anything: 1}}}
  auditors: {x: {type: DML_SHARDING_CONDITIONS}}
  shardingCache: {allowedMaxSqlLength: 1, routeCache: {softValues: true}}
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}}
- !BROADCAST
  tables: [c]
props: {sql-show: true}
`, nil},
		{"table", whole("      colour: red\n", ""), []string{`rule.yaml:6:7: unknown key "colour" in table "t_order": it is ignored`}},
		{"rule", whole("", "  bindingTable: [a]\n"), []string{`8:3: unknown key "bindingTable" in the sharding rule: it is ignored; did you mean "bindingTables"?`}},
		{"strategy", whole("      tableStrategy: {standard: {shardingColum: id}}\n", ""),
			[]string{`unknown key "shardingColum" in "standard" of "tableStrategy" of table "t_order": it is ignored; did you mean "shardingColumn"`}},
		{"algorithm", whole("", "  shardingAlgorithms: {a: {typ: MOD}}\n"), []string{`unknown key "typ" in "a" of "shardingAlgorithms"`}},
		{"algorithm's name", whole("      tableStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: bay}}\n    u:\n    v:\n",
			"  defaultDatabaseStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: non}}\n  shardingAlgorithms: {bat: {type: MOD, props: {sharding-count: 4}}}\n"),
			[]string{`the sharding algorithm "bay" is not defined; did you mean "bat"?`, `11:83: the sharding algorithm "non" is not defined`}},
		{"algorithm's property", whole("", "  shardingAlgorithms: {a: {type: mod, props: {sharding-count: 4, stop-offst: 1}}}\n"),
			[]string{`unknown property "stop-offst" of the sharding algorithm "a": MOD ignores it; did you mean "stop-offset"`}},
		{"property of an algorithm that is not computed", whole("", "  shardingAlgorithms: {a: {type: COSID_INTERVAL, props: {zone-id: x, zone: y}}}\n"), []string{`unknown property "zone" of`}},
		{"file", whole("", "") + "ruls: 1\nx-mine: 1\nanchor: &a {b: c}\n", []string{`8:1: unknown key "ruls" in the rule file: it is ignored; did you mean "rules"`}},
		{"4", "shardingRule: {tables: {t: {keyGenerator: {type: UUID, column: id}, tabelStrategy: {none: }}}, defaultDataSource: ds}",
			[]string{`"tabelStrategy" in table "t": it is ignored; did you mean "tableStrategy"`, `"defaultDataSource" in the shardingRule`}},
	} {
		t.Run(c.name, func(t *testing.T) { expectWarnings(t, mustParse(t, c.yaml), c.want) })
	}
}

func expectWarnings(t *testing.T, r *rule.Rule, want []string) {
	t.Helper()
	var have []string
	for _, w := range r.Warnings() {
		have = append(have, w.Error())
	}
	if len(have) != len(want) || !slices.EqualFunc(have, want, strings.Contains) {
		t.Errorf("have: %s\nwant: %s", strings.Join(have, "\n      "), strings.Join(want, "\n      "))
	}
}

// TestParse_refusesWhatWouldLeaveKeysUnfilled has the words that look like those
// about keys, by their spelling or by what is under them.
func TestParse_refusesWhatWouldLeaveKeysUnfilled(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"defaultKeyStrategy", whole("", "  defaultKeyStrategy: {column: id, keyGeneratorName: snowflake}\n"), `8:3: unknown key "defaultKeyStrategy" in the sharding rule; known: tables, autoTables, defaultKeyGenerateStrategy, keyGenerateStrategies, keyGenerators, workerIdAssigners; did you mean "defaultKeyGenerateStrategy"?`},
		{"idStrategy", whole("    t_item:\n      idStrategy: {column: id, generatorName: snowflake}\n", ""), `7:7: unknown key "idStrategy" in table "t_item"; known: actualDataNodes, keyGenerateStrategy; did you mean "keyGenerateStrategy"?`},
		{"strategy", whole("    t_item:\n      strategy: {column: id, keyGeneratorName: snowflake}\n", ""), `did you mean "keyGenerateStrategy"`},
		{"dataNodes", whole("    t_item:\n      dataNodes: ds.t_item_0\n", ""), `did you mean "actualDataNodes"`},
		{"actualTables", whole("    t_item:\n      actualTables: ds.t_item_0\n", ""), `did you mean "actualDataNodes"`},
		{"nodes", whole("    t_item:\n      nodes: ds.t_item_${0..1}\n", ""), `did you mean "actualDataNodes"`},
		{"indented", "rules:\n- !SHARDING\n  tables:\n    t_order:\n    keyGenerateStrategy:\n      column: id\n      keyGeneratorName: g\n", `5:5: "keyGenerateStrategy" is indented as a table is: indent it further, below its table`},
		{"pattern", whole("    t_item: {actualDataNodes: ds.t_item_*, keyGenerateStrategy: {column: id}}\n", ""), `"ds.t_item_*" is not a data node: write ${*} for any number, as in ds.t_order_${*}`},
		{"regular expression", whole("    t_item: {actualDataNodes: 'ds.t_item_[0-9]+', keyGenerateStrategy: {column: id}}\n", ""), `write ${*} for any number`},
		{"semicolon", whole("    t_item: {actualDataNodes: 'ds.t_${0..1};ds.t_2', keyGenerateStrategy: {column: id}}\n", ""), `separate data nodes with commas`},
		{"backticks", whole("    t_item: {actualDataNodes: 'ds.`t_1`', keyGenerateStrategy: {column: id}}\n", ""), `write names without quotes`},
		{"column in backticks", whole("    t_item: {keyGenerateStrategy: {column: '`id`'}}\n", ""), "6:44: column \"`id`\": write the name without quotes"},
		{"column with table", whole("    t_item: {keyGenerateStrategy: {column: t_item.id}}\n", ""), "write the column without its table"},
		{"column with blank", whole("    t_item: {keyGenerateStrategy: {column: 'id '}}\n", ""), "begins or ends with a blank"},
		{"column with zero-width space", whole("    t_item: {keyGenerateStrategy: {column: \"i\u200bd\"}}\n", ""), `the name has the character '\u200b'`},
		{"column of the environment", whole("    t_item: {keyGenerateStrategy: {column: '${HOME}'}}\n", ""), "expanded in actualDataNodes and in values of properties only"},
		{"binary column", whole("    t_item: {keyGenerateStrategy: {column: !!binary aWQ=}}\n", ""), "column is !!binary: write it as a text"},
		{"default column", whole("    t_item:\n", "  defaultKeyGenerateStrategy: {column: 'a,b'}\n"), "this is no name"},
		{"table", whole("    '`t_item`': {keyGenerateStrategy: {column: id}}\n", ""), "6:5: table \"`t_item`\": write the name without quotes"},
		{"sequences only", "rules:\n- !SHARDING\n  tables: {t: }\n  keyGenerateStrategies: {s: {keyGenerateType: sequence, keyGenerateSequence: x}}\n", `strategy "s" (line 4) is of keyGenerateType sequence`},
	} {
		_, err := rule.Parse("rule.yaml", []byte(c.yaml))
		if e := (*rule.Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nhave: %v\nwant: %s", c.name, err, c.want)
		}
	}
}

func TestParse_listsTablesWithoutKey(t *testing.T) {
	r := mustParse(t, whole("    t_item:\n    t_none: {keyGenerateStrategy: {none: }}\n", ""))
	if have, want := r.String(), "table t_item: no key (nothing fills it)\n  table t_none: no key"; !strings.Contains(have, want) {
		t.Errorf("have:\n%s\nwant:\n%s", have, want)
	}
	// A default is for tables that do not say none.
	r = mustParse(t, whole("    t_item:\n    t_none: {keyGenerateStrategy: {none: }}\n", "  defaultKeyGenerateStrategy: {column: id}\n"))
	if n := len(r.Tables()); n != 2 {
		t.Errorf("have: %d tables with a key\nwant: 2\n%v", n, r)
	}
	r = mustParse(t, whole("    t_item:\n", "  defaultKeyGenerateStrategy: {none: }\n"))
	if n := len(r.Tables()); n != 1 {
		t.Errorf("have: %d tables with a key\nwant: 1\n%v", n, r)
	}
}

func TestParse_autoTablesOfEachAlgorithm(t *testing.T) {
	const file = `rules:
- !SHARDING
  autoTables:
    t_auto:
      actualDataSources: ds_${0..1}
      shardingStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: a}}
      keyGenerateStrategy: {column: id, keyGeneratorName: g}
  keyGenerators: {g: {type: UUID}}
  shardingAlgorithms:
    a: %s
`
	r := mustParse(t, fmt.Sprintf(file, "{type: boundary_range, props: {sharding-ranges: '10,20'}}"))
	expectWarnings(t, r, nil)
	table := r.Tables()[0]
	if have := strings.Join(table.Actual, " "); have != "t_auto_0 t_auto_1 t_auto_2" {
		t.Errorf("have: %s\nwant: three tables", have)
	}
	if have := strings.Join(r.DataSources(), " "); have != "ds_0 ds_1" {
		t.Errorf("have: %s\nwant: ds_0 ds_1", have)
	}
	r = mustParse(t, fmt.Sprintf(file, "{type: MOD, props: {sharding-cout: 4}}"))
	expectWarnings(t, r, []string{`rule.yaml:10:5: the actual tables of auto table "t_auto" are not known: it has no sharding-count; only "t_auto" itself is filled`,
		`rule.yaml:10:28: unknown property "sharding-cout"`})
	r = mustParse(t, strings.Replace(fmt.Sprintf(file, "{type: MOD}"), "shardingAlgorithmName: a", "shardingAlgorithmName: b", 1))
	expectWarnings(t, r, []string{`rule.yaml:4:5: the actual tables of auto table "t_auto" are not known: it has no shardingStrategy with a shardingAlgorithmName of the rule`,
		`rule.yaml:6:85: the sharding algorithm "b" is not defined; did you mean "a"?`})
}

// TestParse_warnsOfSkew has files that shard by the generated key modulo n.
func TestParse_warnsOfSkew(t *testing.T) {
	const file = `rules:
- !SHARDING
  tables:
    t_order:
      tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: a}}
      keyGenerateStrategy: {column: ORDER_ID, keyGeneratorName: snowflake}
  keyGenerators: {snowflake: {type: %s, props: {%s}}}
  shardingAlgorithms: {a: {type: %s, props: {%s}}}
`
	for _, c := range []struct {
		typ, props, algorithm, its string
		want                       string // empty for no warning
	}{
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${order_id % 4}'", `modulo 4, but keys that are made one at a time end in 0 to 1: 2 of 4 shards get few rows; set max-vibration-offset: 3 in the props of key generator "snowflake"`},
		{"SNOWFLAKE", "", "MOD", "sharding-count: 16", "set max-vibration-offset: 15"},
		{"SNOWFLAKE", "max-vibration-offset: 1", "INLINE", "algorithm-expression: 't_$->{(order_id%4) + 1}'", "set max-vibration-offset: 3"},
		{"SNOWFLAKE", "max.vibration.offset: 3", "MOD", "sharding-count: 4", ""},
		{"SNOWFLAKE", "", "MOD", "sharding-count: 2", ""},
		{"SNOWFLAKE", "max-vibration-offset: 0", "MOD", "sharding-count: 2", "1 of 2 shards get few rows; set max-vibration-offset: 1"},
		{"SNOWFLAKE", "", "MOD", "sharding-count: 1", ""},
		// The time in a key goes through all remainders of an odd number.
		{"SNOWFLAKE", "", "MOD", "sharding-count: 3", "which of the shards they reach is left to the time at which each is made; set max-vibration-offset: 2"},
		{"SNOWFLAKE", "max-vibration-offset: 2", "MOD", "sharding-count: 3", ""},
		{"SNOWFLAKE", "", "MOD", "sharding-count: 12", "6 of 12 shards get few rows; set max-vibration-offset: 11"},
		{"SNOWFLAKE", "max-vibration-offset: 3", "MOD", "sharding-count: 12", "left to the time at which each is made; set max-vibration-offset: 11"},
		{"SNOWFLAKE", "", "MOD", "sharding-count: 10000", "set max-vibration-offset: 4095"},
		{"SNOWFLAKE", "max-vibration-offset: 4095", "MOD", "sharding-count: 10000", ""},
		// A layout of fewer sequences takes no greater offset.
		{"SNOWFLAKE", "layout: 41-16-6", "MOD", "sharding-count: 128", "the layout of key generator \"snowflake\" has 64 sequences: a worker's keys reach 64 of 128 shards, whatever max-vibration-offset is; give the layout 7 sequence bits"},
		{"SNOWFLAKE", "layout: 41-16-6, max-vibration-offset: 63", "MOD", "sharding-count: 128", "a worker's keys reach 64 of 128 shards"},
		{"SNOWFLAKE", "layout: 41-16-6", "MOD", "sharding-count: 384", "a worker's keys reach 192 of 384 shards"},
		{"SNOWFLAKE", "layout: 41-16-6", "MOD", "sharding-count: 64", "set max-vibration-offset: 63"},
		{"SNOWFLAKE", "layout: 41-16-6", "MOD", "sharding-count: 100", "set max-vibration-offset: 63"},
		{"SNOWFLAKE", "layout: 41-16-6, max-vibration-offset: 63", "MOD", "sharding-count: 64", ""},
		{"SNOWFLAKE", "layout: js53", "MOD", "sharding-count: 8192", "set max-vibration-offset: 8191"},
		{"SNOWFLAKE", "layout: 41-22-0", "MOD", "sharding-count: 4", "a worker's keys reach 1 of 4 shards"},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${order_id.longValue() % 4}'", "set max-vibration-offset: 3"},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${((long) order_id) % 4}'", "set max-vibration-offset: 3"},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${Math.abs(order_id) % 4}'", "set max-vibration-offset: 3"},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${Math.floorMod(order_id, 4)}'", "set max-vibration-offset: 3"},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${order_id % 16 % 4}'", "modulo 4, but"},
		{"SNOWFLAKE", "max-vibration-offset: 3", "INLINE", "algorithm-expression: 't_${order_id % 16 % 4}'", ""},
		{"SNOWFLAKE", "max-vibration-offset: 3", "INLINE", "algorithm-expression: 't_${(order_id >> 2) % 4}'", "modulo 16, but keys that are made one at a time end in 0 to 3: some of 4 shards get few rows; set max-vibration-offset: 15"},
		{"SNOWFLAKE", "max-vibration-offset: 1", "INLINE", "algorithm-expression: 't_${order_id % 4 % 2}'", ""},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${order_id % 4 == 0}'", ""},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${order_id % 12 % 4}'", "set max-vibration-offset: 3"},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${(order_id >> 12) % 4}'", ""},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${(order_id >> 22) % 4}'", ""},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${(order_id / 8) % 4}'", ""},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${user_id % 4}'", ""},
		{"SNOWFLAKE", "", "INLINE", "algorithm-expression: 't_${my_order_id % 4}'", ""},
		{"SNOWFLAKE", "", "HASH_MOD", "sharding-count: 4", ""},
		{"SNOWFLAKE", "layout: 41-14-8", "HASH_MOD", "sharding-count: 256", ""},
		{"SNOWFLAKE", "layout: 41-14-8", "HASH_MOD", "sharding-count: 512", "has 256 sequences: at any time a worker's keys reach no more of 512 shards"},
		{"UUID", "", "MOD", "sharding-count: 4", ""},
	} {
		yaml := fmt.Sprintf(file, c.typ, c.props, c.algorithm, c.its)
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		expectWarnings(t, mustParse(t, yaml), want)
	}
	r := mustParse(t, "shardingRule: {defaultTableStrategy: {inline: {shardingColumn: id, algorithmExpression: 't_${id % 4}'}}, tables: {t: {keyGenerator: {type: SNOWFLAKE, column: id}}}}")
	expectWarnings(t, r, []string{"rule.yaml:1:89: table \"t\" is sharded by its key id modulo 4"})
}
