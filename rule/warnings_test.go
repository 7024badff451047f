package rule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
)

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

// twoStrategies returns a rule with a database strategy and a table strategy on two columns.
// generator generates the keys.
func twoStrategies(databases, tables int, database, databaseBy, table, tableBy, generator string) string {
	return fmt.Sprintf(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_${0..%d}.t_order_${0..%d}
      databaseStrategy: {standard: {shardingColumn: %s, shardingAlgorithmName: d}}
      tableStrategy: {standard: {shardingColumn: %s, shardingAlgorithmName: t}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: k}
  keyGenerators:
    k: {type: %s}
  shardingAlgorithms:
    d: {type: %s}
    t: {type: %s}
`, databases-1, tables-1, databaseBy, tableBy, generator, database, table)
}

func TestParse_warnsOfEmptyTables(t *testing.T) {
	mod := func(n int) string { return fmt.Sprintf("MOD, props: {sharding-count: %d}", n) }
	hash := func(n int) string { return fmt.Sprintf("HASH_MOD, props: {sharding-count: %d}", n) }
	inline := func(expression string) string { return `INLINE, props: {algorithm-expression: "` + expression + `"}` }
	const gene, user, order = "UNSEEN, props: {" + fourBits + "}", "user_id", "order_id"
	empty := func(n, of int) []string {
		return []string{fmt.Sprintf(`%d of the %d actual tables of table "t_order" get no rows`, n, of)}
	}
	for _, tt := range []struct {
		name, yaml string
		want       []string
	}{
		{"one column, MOD 2 and MOD 4", twoStrategies(2, 4, mod(2), user, mod(4), user, "UUID"), empty(4, 8)},
		{"one column, HASH_MOD 2 and HASH_MOD 4", twoStrategies(2, 4, hash(2), user, hash(4), user, "UUID"), empty(4, 8)},
		{"one column, the same modulus", twoStrategies(4, 4, mod(4), user, inline("t_order_${user_id % 4}"), user, "UUID"), empty(12, 16)},
		{"one column, moduli 2 and 3", twoStrategies(2, 3, mod(2), user, mod(3), user, "UUID"), nil},
		{"one column, moduli 4 and 6", twoStrategies(4, 6, mod(4), user, mod(6), user, "UUID"), empty(12, 24)},
		{"one column, divided first", twoStrategies(2, 4, inline("ds_${user_id % 2}"), user, inline("t_order_${user_id.intdiv(2) % 4}"), user, "UUID"), nil},
		{"one column, divided by too little", twoStrategies(4, 4, inline("ds_${user_id % 4}"), user, inline("t_order_${user_id.intdiv(2) % 4}"), user, "UUID"), empty(8, 16)},
		{"hash of an expression", twoStrategies(2, 4, inline("ds_${Math.abs(name.hashCode()) % 2}"), "name", inline("t_order_${Math.abs(name.hashCode()) % 4}"), "name", "UUID"), empty(4, 8)},
		{"two columns", twoStrategies(2, 4, mod(2), user, mod(4), order, "UUID"), nil},
		{"gene of a hash", twoStrategies(2, 4, hash(2), user, mod(4), order, gene), empty(4, 8)},
		{"gene of a number", twoStrategies(2, 4, mod(2), user, inline("t_order_${order_id % 4}"), order, gene), empty(4, 8)},
		{"gene, divided first", twoStrategies(2, 4, hash(2), user, inline("t_order_${order_id.intdiv(2) % 4}"), order, gene), nil},
		{"more tables than remainders", twoStrategies(2, 8, mod(2), user, mod(4), order, "UUID"), empty(8, 16)},
		{"number and hash: the same below 2^31 alone", twoStrategies(2, 4, mod(2), user, hash(4), user, "UUID"), nil},
		{"ranges are not looked at", twoStrategies(2, 4, mod(2), user, "BOUNDARY_RANGE, props: {sharding-ranges: '5, 6, 7'}", user, "UUID"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) { expectWarnings(t, mustParse(t, tt.yaml), tt.want) })
	}
}
