package rule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
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

// TestParse_warnsOfMinus has data nodes whose names have a minus. A minus that is written is meant.
func TestParse_warnsOfMinus(t *testing.T) {
	for nodes, warned := range map[string]bool{
		"ds.t_order_${0-1}": true, "ds.t_order_${0-1}, ds.t_order_${2 - 1}": true, "ds_${0-1}.t_order_$->{0-3}": true,
		"ds.t-order-${0..1}": false, "ds.t_order_${1-1}": false, "ds.t_order_${['a-b', 'c']}": false, "ds-0.t_order_${0..1}": false,
		"ds.t_order_${yyyy-MM}": false,
	} {
		r := mustParse(t, `rules: [!SHARDING {tables: {t_order: {actualDataNodes: "`+nodes+`", keyGenerateStrategy: {column: id}}}}]`)
		want := []string(nil)
		if warned {
			want = []string{`computes the name "t_order_-`}
		}
		expectWarnings(t, r, want)
	}
}

// TestParse_warnsOfKeysWithoutPlace has strategies by the key that can't be computed for the keys of the
// generator, and others that can.
func TestParse_warnsOfKeysWithoutPlace(t *testing.T) {
	const snowflake = "SNOWFLAKE, props: {worker-id-assigner: a}"
	inline := func(expression string) string { return `INLINE, props: {algorithm-expression: "` + expression + `"}` }
	const mod, hash = "MOD, props: {sharding-count: 2}", "HASH_MOD, props: {sharding-count: 2}"
	for _, c := range []struct {
		generator, database, table string
		want                       []string
	}{
		{"UUID", mod, inline("t_order_${order_id % 2}"), []string{"can't place a key of UUID, so INSERTs without an explicit key are refused: " +
			"cannot apply INLINE to the value of order_id: String % Integer"}},
		{"UUID", mod, hash, nil},
		{"UUID", mod, inline("t_order_${Math.abs(order_id.hashCode()) % 2}"), nil},
		{"UNSEEN", mod, inline("t_order_${order_id.substring(0, 1)}"), nil}, // its keys aren't known
	} {
		r := mustParse(t, twoStrategies(2, 2, c.database, "user_id", c.table, "order_id", c.generator))
		expectWarnings(t, r, c.want)
	}
	r := mustParse(t, twoStrategies(2, 2, mod, "user_id", inline("t_order_${order_id.substring(0, 1)}"), "order_id", snowflake)+
		"  workerIdAssigners: {a: {type: FILE, props: {path: /tmp}}}\n")
	expectWarnings(t, r, []string{"can't place a key of SNOWFLAKE"})
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
		{"one column, MOD 2 and MOD 4", twoStrategies(2, 4, mod(2), user, mod(4), user, "UNSEEN"), empty(4, 8)},
		{"one column, HASH_MOD 2 and HASH_MOD 4", twoStrategies(2, 4, hash(2), user, hash(4), user, "UNSEEN"), empty(4, 8)},
		{"one column, the same modulus", twoStrategies(4, 4, mod(4), user, inline("t_order_${user_id % 4}"), user, "UNSEEN"), empty(12, 16)},
		{"one column, moduli 2 and 3", twoStrategies(2, 3, mod(2), user, mod(3), user, "UNSEEN"), nil},
		{"one column, moduli 4 and 6", twoStrategies(4, 6, mod(4), user, mod(6), user, "UNSEEN"), empty(12, 24)},
		{"one column, divided first", twoStrategies(2, 4, inline("ds_${user_id % 2}"), user, inline("t_order_${user_id.intdiv(2) % 4}"), user, "UNSEEN"), nil},
		{"one column, divided by too little", twoStrategies(4, 4, inline("ds_${user_id % 4}"), user, inline("t_order_${user_id.intdiv(2) % 4}"), user, "UNSEEN"), empty(8, 16)},
		{"hash of an expression", twoStrategies(2, 4, inline("ds_${Math.abs(name.hashCode()) % 2}"), "name", inline("t_order_${Math.abs(name.hashCode()) % 4}"), "name", "UNSEEN"), empty(4, 8)},
		{"two columns", twoStrategies(2, 4, mod(2), user, mod(4), order, "UNSEEN"), nil},
		{"gene of a hash", twoStrategies(2, 4, hash(2), user, mod(4), order, gene), empty(4, 8)},
		{"gene of a number", twoStrategies(2, 4, mod(2), user, inline("t_order_${order_id % 4}"), order, gene), empty(4, 8)},
		{"gene, divided first", twoStrategies(2, 4, hash(2), user, inline("t_order_${order_id.intdiv(2) % 4}"), order, gene), nil},
		{"more tables than remainders", twoStrategies(2, 8, mod(2), user, mod(4), order, "UNSEEN"), empty(8, 16)},
		{"number and hash: the same below 2^31 alone", twoStrategies(2, 4, mod(2), user, hash(4), user, "UNSEEN"), nil},
		{"pairs that aren't listed", strings.Replace(twoStrategies(2, 4, inline("ds_${user_id % 2}"), user, mod(4), user, "UNSEEN"), "ds_${0..1}.t_order_${0..3}", "ds_0.t_order_${0..1}, ds_1.t_order_${2..3}", 1),
			[]string{`rows of table "t_order" can belong to ds_1.t_order_1, which actualDataNodes doesn't list`, empty(2, 4)[0]}},
		{"pairs that are listed", strings.Replace(twoStrategies(2, 4, inline("ds_${user_id.intdiv(2) % 2}"), user, mod(4), user, "UNSEEN"), "ds_${0..1}.t_order_${0..3}", "ds_0.t_order_${0..1}, ds_1.t_order_${2..3}", 1), nil},
		{"fewer tables than the modulus", twoStrategies(2, 2, mod(2), user, mod(4), order, "UNSEEN"), []string{`tableStrategy of table "t_order" selects the table "t_order_2"`}},
		{"fewer databases than the modulus", twoStrategies(2, 4, hash(3), user, mod(4), order, "UNSEEN"), []string{`databaseStrategy of table "t_order" selects the data source "ds_2"`}},
		{"ranges are not looked at", twoStrategies(2, 4, mod(2), user, "BOUNDARY_RANGE, props: {sharding-ranges: '5, 6, 7'}", user, "UNSEEN"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) { expectWarnings(t, mustParse(t, tt.yaml), tt.want) })
	}
}

// A mistake in a strategy or its algorithm, which leaves rows unchecked, is a warning. What is right
// in ShardingSphere isn't.
func TestParse_warnsOfWrongSharding(t *testing.T) {
	const file = `rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: t_order_${0..1}
      tableStrategy: {%s}
      keyGenerateStrategy: {column: order_id}
    t_other:
      actualDataNodes: t_other_${0..1}
      tableStrategy: {%[1]s}
      keyGenerateStrategy: {column: order_id}
  shardingAlgorithms: {m: {%s}}
`
	const byUser = "standard: {shardingColumn: user_id, shardingAlgorithmName: m}"
	inline := func(expression string) string {
		return `type: INLINE, props: {algorithm-expression: "` + expression + `"}`
	}
	interval := func(unit string) string {
		return "type: INTERVAL, props: {datetime-pattern: yyyy-MM-dd, datetime-lower: 2026-01-01, datetime-upper: 2027-01-01, " +
			"sharding-suffix-pattern: yyyyMM, datetime-interval-unit: " + unit + "}"
	}
	for _, c := range []struct{ strategy, algorithm, want string }{
		{byUser, inline("t_order_${user_id % }"), `rule.yaml:12:72: cannot evaluate the sharding of table "t_order": tableStrategy: ` +
			`algorithm-expression: expected a value, found "}" at character 21; the sharding column is user_id`},
		{byUser, inline("t_order_${uid % 2}"), `"uid" is not defined at character 11; the sharding column is user_id`},
		{byUser, inline("t_order_${User_id % 2}"), `expected the sharding column user_id (case-sensitive), found "User_id"`},
		{byUser, inline("t_order_${user_id.hashcode() % 2}"), `expected the method hashCode, found "hashcode"`},
		{byUser, inline("t_order_${user_id % 0}"), "division by zero; the sharding column is user_id"},
		{byUser, inline("t_order_${1 + 1}"), "algorithm-expression doesn't use the sharding column user_id"},
		{byUser, "type: INLNE", `found INLNE; did you mean "INLINE"?`},
		{byUser, "type: HASH-MOD, props: {sharding-count: 2}", `found HASH-MOD; did you mean "HASH_MOD"?`},
		{byUser, "type: MOD", "sharding-count is missing"},
		{byUser, "type: MOD, props: {sharding-count: two}", `sharding-count: expected an integer of at least 1, found "two"`},
		{byUser, interval("MONHTS"), `expected a unit such as DAYS or MONTHS, found "MONHTS"`},
		{"standard: {shardingAlgorithmName: m}", "type: MOD, props: {sharding-count: 2}", "shardingColumn is missing"},
		{"standard: {shardingColumn: user_id}", "type: MOD, props: {sharding-count: 2}", "expected shardingAlgorithmName or algorithmExpression"},
		{byUser, inline("t_order_${user_id.foo() % 2}"), ""},
		{byUser, inline("t_order_${Math.max(user_id, 1)}"), ""},
		{byUser, inline("t_order_${user_id / 2}"), ""},
		{byUser, interval("DECADES"), ""},
		{byUser, "type: CLASS_BASED, props: {strategy: STANDARD, algorithmClassName: a.B}", ""},
		{byUser, "type: OUR_OWN", ""},
		{"hint: {shardingAlgorithmName: m}", "type: HINT_INLINE", ""},
	} {
		r := mustParse(t, fmt.Sprintf(file, c.strategy, c.algorithm))
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if strings.HasPrefix(c.want, "expected shardingAlgorithmName") {
			want = append(want, c.want) // in each of the tables, which only share the algorithm
		}
		if expectWarnings(t, r, want); r.Tables()[0].Sharding.Err == nil {
			t.Errorf("%s\nhave: the sharding %v\nwant: none", c.algorithm, r.Tables()[0].Sharding)
		}
	}
}

// Fewer tables than the algorithm selects are a warning if it depends on a remainder.
func TestParse_warnsOfMissingTables(t *testing.T) {
	const file = `rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: %s
      tableStrategy: {standard: {shardingColumn: uid, shardingAlgorithmName: m%s}}
      keyGenerateStrategy: {column: order_id}
  shardingAlgorithms: {m: {type: %s}}
`
	inline := func(expression string) string { return `INLINE, props: {algorithm-expression: "` + expression + `"}` }
	for _, c := range []struct{ nodes, algorithm, missing string }{
		{"t_order_${0..1}", "MOD, props: {sharding-count: 4}", "t_order_2"},
		{"t_order_${0..3}", "MOD, props: {sharding-count: 4}", ""},
		{"t_order_${1..4}", "MOD, props: {sharding-count: 4}", "t_order_0"},
		{"t_order_${0..1}", "MOD, props: {sharding-count: 2147483647}", "t_order_2"},
		{"ds_${0..1}.t_order_${0..1}", "HASH_MOD, props: {sharding-count: 4}", "t_order_2"},
		{"ds_${0..1}.t_order_${0..3}", "HASH_MOD, props: {sharding-count: 4}", ""},
		{"t_order_${0..1}", inline("t_order_${uid % 4}"), "t_order_2"},
		{"t_order_${0..3}", inline("t_order_${uid % 4}"), ""},
		{"T_ORDER_${0..3}", inline("t_order_${uid % 4}"), ""},
		{"t_order_${0..3}", inline("t_order_${uid % 100000}"), "t_order_4"},
		{"t_order_${0..3}", inline("t_order_${uid % 8 % 4}"), ""},
		{"t_order_${0..3}", inline("t_order_${uid & 7}"), "t_order_4"},
		{"t_order_${0..3}", inline("t_order_${uid.intdiv(1000000) % 5}"), "t_order_4"},
		{"t_order_${0..4}", inline("t_order_${uid.intdiv(1000000) % 5}"), ""},
		{"t_order_${0..3}", inline("t_order_${(uid % 5).toString().padLeft(1, '0')}"), "t_order_4"},
		{"t_order_${0..9}", inline("t_order_${(uid % 10).toString().padLeft(2, '0')}"), "t_order_00"},
		{"t_order_${0..3}", inline("t_order_${Math.floorMod(uid, 5)}"), "t_order_4"},
		{"t_order_${0..3}", inline("t_order_${uid.hashCode() % 5}"), "t_order_-1"},
		{"t_order_${0..3}", inline("t_order_${uid.hashCode() % 4}"), "t_order_-1"},
		{"t_order_${0..3}", inline("t_order_${Math.abs(uid.hashCode()) % 4}"), ""},
		{"t_order_${0..3}", inline("t_order_${Math.abs(uid.hashCode() % 5)}"), "t_order_4"},
		{"t_order_${0..3}", inline("t_order_${(uid.hashCode() % 4 + 4) % 4}"), ""},
		{"t_order_${0..3}", inline("t_order_${(uid - 1000) % 4}"), ""},
		{"t_order_${0..3}", inline("t_order_uid % 4"), "t_order_uid % 4"},
		{"t_order_${0..1}", inline("t_order_${uid.intdiv(1000)}"), ""}, // not countable
		{"t_order_${0..1}", inline("t_order_${uid % 2}_${uid % 3}"), "t_order_0_0"},
		{"t_order_${0..1}", "BOUNDARY_RANGE, props: {sharding-ranges: '1,2,3'}", ""}, // such values may not occur
	} {
		var want []string
		if c.missing != "" {
			want = []string{fmt.Sprintf(`tableStrategy of table "t_order" selects the table %q, which actualDataNodes doesn't list`, c.missing)}
		}
		t.Run(c.nodes+" "+c.algorithm, func(t *testing.T) {
			expectWarnings(t, mustParse(t, fmt.Sprintf(file, c.nodes, "", c.algorithm)), want)
			// The hash of an Integer is its value.
			if !strings.Contains(c.algorithm, "hashCode") {
				expectWarnings(t, mustParse(t, fmt.Sprintf(file, c.nodes, ", javaType: Integer", c.algorithm)), want)
			}
		})
	}
}

// Warnings of open generators and assigners have the place of their definition.
func TestLive_Warnings(t *testing.T) {
	spi.RegisterKeyGenerator("RISKY", func(p spi.Props) (spi.KeyGenerator, error) { return &risky{}, nil })
	r := mustParse(t, `rules:
- !SHARDING
  tables:
    t_a: {actualDataNodes: ds.t_a, keyGenerateStrategy: {column: id, keyGeneratorName: risky}}
  keyGenerators:
    quiet: {type: UUID}
    risky: {type: RISKY}
`)
	l := must.Get(r.Open(spi.Host{}))(t)
	defer func() { must.Do(t, l.Close()) }()
	have := l.Warnings()
	if len(have) != 1 || have[0].Line != 7 || !strings.Contains(have[0].Error(), ": risky: it is a risk") {
		t.Errorf("have: %v\nwant: a warning of risky in line 7", have)
	}
}

type risky struct{ fake }

func (*risky) Health() spi.Health { return spi.Health{Warnings: []string{"shardkey: it is a risk"}} }

// A table that is sharded by its own key is warned of if keys that are alone in their millisecond
// don't reach all its tables.
func TestWarnings_keysThatAreAlone(t *testing.T) {
	const order = "order_id"
	mod := func(n int) string { return fmt.Sprintf("MOD, props: {sharding-count: %d}", n) }
	inline := func(text string) string {
		return fmt.Sprintf("INLINE, props: {algorithm-expression: '%s'}", text)
	}
	for _, tt := range []struct {
		name, database, databaseBy, table, by, generator string
		databases, tables                                int
		want                                             []string
	}{
		{"MOD", mod(1), "user_id", mod(16), order, "SNOWFLAKE", 1, 16, []string{"reach 2 of 16 tables; set max-vibration-offset: 15"}},
		{"expression", mod(1), "user_id", inline("t_order_${order_id % 16}"), order, "SNOWFLAKE, props: {max-vibration-offset: 3}", 1, 16,
			[]string{"reach 4 of 16 tables; set max-vibration-offset: 15"}},
		{"enough", mod(1), "user_id", mod(16), order, "SNOWFLAKE, props: {max-vibration-offset: 15}", 1, 16, nil},
		{"two tables", mod(1), "user_id", mod(2), order, "SNOWFLAKE", 1, 2, nil},
		{"odd", mod(1), "user_id", mod(13), order, "SNOWFLAKE", 1, 13, nil},
		{"odd factor", mod(1), "user_id", mod(12), order, "SNOWFLAKE", 1, 12, []string{"reach 6 of 12 tables; set max-vibration-offset: 11"}},
		{"hash of the key", mod(1), "user_id", "HASH_MOD, props: {sharding-count: 16}", order, "SNOWFLAKE", 1, 16, nil},
		{"another column", mod(1), "user_id", mod(16), "user_id", "SNOWFLAKE", 1, 16, nil},
		{"other keys", mod(1), "user_id", mod(16), order, "UNSEEN", 1, 16, nil},
		{"data sources", mod(8), order, mod(1), "user_id", "SNOWFLAKE", 8, 1, []string{"reach 2 of 8 data sources; set max-vibration-offset: 7"}},
		{"divided", inline("ds_${order_id % 2}"), order, inline("t_order_${order_id.intdiv(2) % 4}"), order, "SNOWFLAKE", 2, 4,
			[]string{"reach 1 of 4 tables; set max-vibration-offset: 7"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expectWarnings(t, mustParse(t, twoStrategies(tt.databases, tt.tables, tt.database, tt.databaseBy, tt.table, tt.by, tt.generator)), tt.want)
		})
	}
}
