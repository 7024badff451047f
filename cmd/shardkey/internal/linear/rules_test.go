package linear

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// readRule parses and opens a rule, and looks each of its tables up.
func readRule(t *testing.T, text string) {
	r, err := rule.Parse("rule.yaml", []byte(text))
	if err != nil {
		return
	}
	live, err := r.Open(spi.Host{DSN: spi.NewSecret("u:p@tcp(127.0.0.1:1)/app")})
	if err != nil {
		return
	}
	for _, table := range r.Tables() {
		live.Lookup("", table.Logical)
	}
	must.Do(t, live.Close())
}

// rules are rules of n parts.
var rules = []struct {
	name string
	rule func(n int) string
}{
	{"generators", func(n int) string { return tables(n, "t%d: {%k}") + list(n, "keyGenerators", "g%d: {type: UUID}") }},
	{"generators with assigners", func(n int) string {
		return tables(n, "t%d: {%k}") + list(n, "keyGenerators", "g%d: {type: SNOWFLAKE, props: {worker-id-assigner: a%[1]d}}") +
			list(n, "workerIdAssigners", "a%d: {type: FILE, props: {path: x}}")
	}},
	{"generators with state in their own database", func(n int) string {
		return tables(n, "t%d: {%k}") + list(n, "keyGenerators", "g%d: {type: TICKET}")
	}},
	{"generators without tables", func(n int) string { return tables(1, "t%d: {%k}") + list(n, "keyGenerators", "g%d: {type: UUID}") }},
	{"undefined generators", func(n int) string {
		return tables(1, "t%d: {keyGenerateStrategy: {column: id, keyGeneratorName: none}}") + list(n, "keyGenerators", "g%d: {type: UUID}")
	}},
	{"unknown properties", func(n int) string { return withProps(repeat(n, "p%d: a, ")) }},
	{"ignored properties", func(n int) string { return withProps("<<: [" + repeat(n, "{datacenter-id: 1, p%d: a}, ") + "]") }},
	{"a long list as a property", func(n int) string { return withProps("hosts: [" + repeat(n, "a%d, ") + "]") }},
	{"variables in a property", func(n int) string { return withProps("layout: '" + repeat(n, "${A%d::x}") + "'") }},
	{"tables", func(n int) string { return tables(n, "t%d: {%s}") }},
	{"tables without a key", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: d.t%[1]d}") + "    k: {keyGenerateStrategy: {column: id}}\n"
	}},
	{"tables of 5.5.4", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: d.t%[1]d}") + list(n, "keyGenerateStrategies", "s%d: {logicTable: t%[1]d, keyGenerateColumn: id}")
	}},
	{"sequences", func(n int) string {
		return tables(1, "t%d: {%s}") + list(n, "keyGenerateStrategies", "s%d: {logicTable: t0, keyGenerateColumn: id, keyGenerateType: sequence}")
	}},
	{"data nodes", func(n int) string { return tables(1, "t%d: {actualDataNodes: '"+repeat(n, "ds.t_%d,")+"', %s}") }},
	{"schemas", func(n int) string { return tables(1, "t%d: {actualDataNodes: '"+repeat(n, "ds.s%d.t,")+"', %s}") }},
	{"schemas of tables", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: ds.s%[1]d.same, %s}")
	}},
	{"schemas without keys", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: ds.same, keyGenerateStrategy: {none: }}") +
			"    k: {keyGenerateStrategy: {column: id}}\n"
	}},
	{"patterns", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: 'ds.t%[1]d_${*}', %s}")
	}},
	{"patterns of one table", func(n int) string {
		return tables(1, "t%d: {actualDataNodes: '"+repeat(n, "ds.t%d_${*},")+"', %s}")
	}},
	{"patterns and tables", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: 'ds.t%[1]d_${*}', %s}") +
			repeat(n, "    u%d: {actualDataNodes: 'ds.u%[1]d_1', keyGenerateStrategy: {column: id}}\n")
	}},
	{"unknown keys", func(n int) string { return tables(n, "t%d: {colour: red, %s}") }},
	{"unknown keys of one table", func(n int) string { return tables(1, "t%d: {"+repeat(n, "colour%d: red, ")+"%s}") }},
	{"unknown root keys", func(n int) string { return tables(1, "t%d: {%s}") + repeat(n, "colour%d: red\n") }},
	{"sharding algorithms", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: 'ds.t%[1]d_${0..1}', tableStrategy: {standard: {shardingColumn: u, shardingAlgorithmName: a%[1]d}}, "+
			"%s}") + list(n, "shardingAlgorithms", "a%d: {type: MOD, props: {sharding-count: 2}}")
	}},
	{"undefined sharding algorithms", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: 'ds.t%[1]d_${0..1}', tableStrategy: {standard: {shardingColumn: u, shardingAlgorithmName: b%[1]d}}, "+
			"%s}") + list(n, "shardingAlgorithms", "a%d: {type: MOD, props: {sharding-count: 2}}")
	}},
	{"odd sharding algorithms", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: 'ds.t%[1]d_${0..1}', tableStrategy: {standard: {shardingColumn: u, shardingAlgorithmName: a%[1]d}}, "+
			"%s}") + list(n, "shardingAlgorithms", "a%d: {type: BOUNDARY_RANGE, props: {sharding-ranges: '1,x'}}")
	}},
	{"wrong sharding algorithms", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: 'ds.t%[1]d_${0..1}', tableStrategy: {standard: {shardingColumn: u, shardingAlgorithmName: a%[1]d}}, "+
			"%s}") + list(n, "shardingAlgorithms", "a%d: {type: INLINE, props: {algorithm-expression: 't_${u % }'}}")
	}},
	{"unknown properties of an algorithm", func(n int) string {
		return tables(1, "t%d: {%s}") + "  shardingAlgorithms: {a: {type: MOD, props: {" + repeat(n, "p%d: 1, ") + "}}}\n"
	}},
	{"sharding columns", func(n int) string {
		return tables(1, "t%d: {actualDataNodes: 'ds.t_${0..1}', tableStrategy: {complex: {shardingColumns: '"+repeat(n, "u%d,")+
			"', javaType: '"+repeat(n-1, "Long,")+"Long', shardingAlgorithmName: a}}, %s}")
	}},
	{"broadcast tables", func(n int) string { return tables(1, "t%d: {%s}") + "  broadcastTables: [" + repeat(n, "b%d,") + "]\n" }},
	{"auto tables", func(n int) string {
		return tables(1, "t%d: {%s}") + list(n, "autoTables", "a%d: {actualDataSources: ds, shardingStrategy: {standard: {shardingColumn: u, shardingAlgorithmName: m}}, "+
			"keyGenerateStrategy: {column: id}}") + "  shardingAlgorithms: {m: {type: MOD, props: {sharding-count: 2}}}\n"
	}},
	{"auto tables without algorithm", func(n int) string {
		return tables(1, "t%d: {%s}") + list(n, "autoTables", "a%d: {actualDataSources: ds, keyGenerateStrategy: {column: id}}")
	}},
	{"shard bits", func(n int) string {
		return tables(n, "t%d: {%k}") + list(n, "keyGenerators", "g%d: {type: SNOWFLAKE, props: {gene-column: u%[1]d, gene-bits: 2}}")
	}},
	{"merges", func(n int) string {
		return tables(n, "t%d: {<<: {actualDataNodes: d.t%[1]d}, %s}")
	}},
	{"documents", func(n int) string {
		return tables(1, "t%d: {%s}") + strings.Repeat("---\nprops: {a: b}\n", n)
	}},
	{"rules", func(n int) string {
		var b strings.Builder
		b.WriteString("rules:\n")
		for i := range n {
			fmt.Fprintf(&b, "- !SHARDING {tables: {t%d: {keyGenerateStrategy: {column: id}}}}\n", i)
		}
		return b.String()
	}},
	{"wrong anchors", func(n int) string { return "a: " + strings.Repeat("*b ", n) }},
	{"syntax", func(n int) string { return "rules:\n" + strings.Repeat("- {a: ds_${0..1}\n", n) }},
}

// tables returns the beginning of a rule with n tables. In a table, %d is its number, %s stands for
// a strategy, and %k for one with the generator of the same number.
func tables(n int, table string) string {
	table = strings.NewReplacer("%s", "keyGenerateStrategy: {column: id}",
		"%k", "keyGenerateStrategy: {column: id, keyGeneratorName: g%[1]d}").Replace(table)
	return "rules:\n- !SHARDING\n" + list(n, "tables", table)
}

// withProps returns a rule whose generator has these properties.
func withProps(props string) string {
	return tables(1, "t%d: {%k}") + "  keyGenerators: {g0: {type: SNOWFLAKE, props: {" + props + "}}}\n"
}

// list returns a map of n entries under a key.
func list(n int, key, entry string) string { return "  " + key + ":\n" + repeat(n, "    "+entry+"\n") }

// repeat returns n copies of a text, each with its number.
func repeat(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.TrimSuffix(fmt.Sprintf(text, i), fmt.Sprintf("%%!(EXTRA int=%d)", i)))
	}
	return b.String()
}
