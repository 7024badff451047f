package rule_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	testrouter "github.com/shardkey/shardkey/internal/test/router"
	"github.com/shardkey/shardkey/rule"
)

// shardingOf parses a rule and returns the sharding of its first table.
func shardingOf(t testing.TB, text string) *rule.Sharding {
	t.Helper()
	r := must.Get(rule.Parse("rule.yaml", []byte(text)))(t)
	s := r.Tables()[0].Sharding
	if s == nil {
		t.Fatalf("have: no sharding of %s", text)
	}
	return s
}

// tableRule returns a rule with one table that has these settings.
func tableRule(settings, algorithms string) string {
	return "rules:\n- !SHARDING\n  tables:\n    t_order:\n      " + strings.ReplaceAll(settings, "\n", "\n      ") + `
      keyGenerateStrategy: {column: order_id, keyGeneratorName: u}
  keyGenerators: {u: {type: UUID}}
  shardingAlgorithms:
    ` + strings.ReplaceAll(algorithms, "\n", "\n    ") + "\n"
}

func expectPlace(t *testing.T, s *rule.Sharding, want string, values ...any) {
	t.Helper()
	place, err := s.Place(values)
	have := place.String()
	if err != nil {
		have = err.Error()
	}
	if have != want && (err == nil || !strings.Contains(have, want)) {
		t.Errorf("%v\nhave: %s\nwant: %s", values, have, want)
	}
}

func TestSharding_twoStrategies(t *testing.T) {
	s := shardingOf(t, tableRule(`actualDataNodes: ds_${0..1}.t_order_${0..3}
databaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: d}}
tableStrategy: {standard: {shardingColumn: ORDER_ID, shardingAlgorithmName: t}}`,
		`d: {type: INLINE, props: {algorithm-expression: 'ds_${user_id % 2}'}}
t: {type: MOD, props: {sharding-count: 4}}`))
	if strings.Join(s.Columns, " ") != "user_id ORDER_ID" || s.Err != nil {
		t.Errorf("have: %v, %v", s.Columns, s.Err)
	}
	expectPlace(t, s, "ds_1.t_order_3", 7, 7)
	expectPlace(t, s, "ds_0.t_order_1", int64(8), uint8(9))
	expectPlace(t, s, "ds_0.t_order_3", 0, "7")
	expectPlace(t, s, "ds_0.t_order_3", 0, -1)
	expectPlace(t, s, `selects a name that does not exist`, -1, 0)
	expectPlace(t, s, "String % Integer is not supported", "7", 0)
	expectPlace(t, s, "the value is NULL", 1, nil)
	expectPlace(t, s, "found a []uint8", []byte("7"), 1)
	expectPlace(t, s, "1 values for 2 sharding columns", 1)
	var e *rule.PlaceError
	if _, err := s.Place([]any{1, nil}); !errors.As(err, &e) || e.Column != "ORDER_ID" || e.Table != "t_order" {
		t.Errorf("have: %#v", err)
	}
}

func TestSharding_defaultsAndOlderForms(t *testing.T) {
	const key = "keyGenerator: {type: UUID, column: id}"
	s := shardingOf(t, `shardingRule:
  tables:
    t_order: {actualDataNodes: "ds${0..1}.t_order$->{0..1}", tableStrategy: {inline: {shardingColumn: order_id, algorithmExpression: "t_order$->{order_id % 2}"}}, `+key+`}
  defaultDatabaseStrategy: {inline: {shardingColumn: user_id, algorithmExpression: "ds${user_id % 2}"}}
`)
	expectPlace(t, s, "ds1.t_order0", 3, 4)
	s = shardingOf(t, `rules:
- !SHARDING
  tables:
    t_order: {actualDataNodes: "ds0.t_order_$->{0..1}", databaseStrategy: {none: }, keyGenerateStrategy: {column: id, keyGeneratorName: u}}
  defaultDatabaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: a}}
  defaultTableStrategy: {standard: {shardingAlgorithmName: a}}
  defaultShardingColumn: k
  shardingAlgorithms: {a: {type: HASH_MOD, props: {sharding-count: 2}}}
  keyGenerators: {u: {type: UUID}}
`)
	expectPlace(t, s, "ds0.t_order_1", 3)
	if strings.Join(s.Columns, " ") != "k" {
		t.Errorf("have: %v", s.Columns)
	}
	for _, list := range []string{"[x, T_Order]", "x, t_order"} {
		r, err := rule.Parse("rule.yaml", []byte("rules:\n- !SHARDING\n  broadcastTables: "+list+`
  tables: {t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: u}}}
  defaultDatabaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: a}}
  keyGenerators: {u: {type: UUID}}
`))
		if err != nil || r.Tables()[0].Sharding != nil {
			t.Errorf("%s\nhave: %v, %v\nwant: a table that is not sharded", list, r, err)
		}
	}
}

func TestSharding_autoTables(t *testing.T) {
	s := shardingOf(t, `rules:
- !SHARDING
  autoTables:
    t_order:
      actualDataSources: ds_${0..2}
      shardingStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: a}}
      keyGenerateStrategy: {column: id, keyGeneratorName: u}
  shardingAlgorithms: {a: {type: VOLUME_RANGE, props: {range-lower: 10, range-upper: 45, sharding-volume: 10}}}
  keyGenerators: {u: {type: UUID}}
`)
	expectPlace(t, s, "ds_0.t_order_0", 9)
	expectPlace(t, s, "ds_1.t_order_4", 44)
	expectPlace(t, s, "ds_2.t_order_5", 45)
}

func TestSharding_otherShapes(t *testing.T) {
	const byID = "{standard: {shardingColumn: id, shardingAlgorithmName: a}}"
	const mod4 = "a: {type: MOD, props: {sharding-count: 4}}"
	// One table in each data source.
	s := shardingOf(t, tableRule("actualDataNodes: ds_${0..3}.t_order\ndatabaseStrategy: "+byID, mod4))
	expectPlace(t, s, "ds_2.t_order", 6)
	// Each table is in one data source, and there is no databaseStrategy.
	s = shardingOf(t, tableRule("actualDataNodes: ds_0.t_order_${[0, 2]}, ds_1.t_order_${[1, 3]}\ntableStrategy: "+byID, mod4))
	expectPlace(t, s, "ds_0.t_order_2", 6)
	// Each data source has the same tables, so the data source isn't determined.
	s = shardingOf(t, tableRule("actualDataNodes: ds_${0..1}.t_order_${0..3}\ntableStrategy: "+byID, mod4))
	expectPlace(t, s, "t_order_2", 6)
	if !strings.HasSuffix(s.String(), "in any data source") {
		t.Errorf("have: %s", s)
	}
	// Each data source has different tables.
	s = shardingOf(t, tableRule("actualDataNodes: ds_0.t_order_${0..1}, ds_1.t_order_${2..3}\ndatabaseStrategy: "+byID+"\ntableStrategy: "+byID, mod4))
	expectPlace(t, s, "ds_0.t_order_0", 4)
	expectPlace(t, s, `MOD selects "t_order_1", which does not exist`, 9) // exists in ds_1
	s = shardingOf(t, tableRule("actualDataNodes: t_order_${(0..15).collect{it.toString().padLeft(2, '0')}}\ntableStrategy: "+byID, "a: {type: MOD, props: {sharding-count: 16}}"))
	expectPlace(t, s, "t_order_05", 21)
	s = shardingOf(t, tableRule("actualDataNodes: ds.app.t_order_${0..3}\ntableStrategy: "+byID, mod4))
	expectPlace(t, s, "ds.app.t_order_2", 6)
	s = shardingOf(t, tableRule("actualDataNodes: ds.t_order_${2026}${['01', '02']}\ntableStrategy: {standard: {shardingColumn: created, shardingAlgorithmName: a}}",
		"a: {type: INTERVAL, props: {datetime-pattern: 'yyyy-MM-dd HH:mm:ss', datetime-lower: '2026-01-01 00:00:00', datetime-upper: '2026-02-28 00:00:00', sharding-suffix-pattern: yyyyMM, datetime-interval-unit: MONTHS}}"))
	expectPlace(t, s, "ds.t_order_202602", time.Date(2026, 2, 28, 23, 59, 59, 0, time.Local))
	expectPlace(t, s, "not between datetime-lower", "2026-03-01 00:00:00")
}

func TestSharding_javaType(t *testing.T) {
	const nodes = "actualDataNodes: ds.t_order_${0..3}\ntableStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: a%s}}"
	for _, c := range []struct {
		javaType string
		value    any
		want     string
	}{
		{"", -1, "t_order_0"}, // Long
		{", javaType: Long", -1, "t_order_0"},
		{", javaType: Long", "-1", "t_order_0"},
		{", javaType: Integer", -1, "t_order_1"},
		{", javaType: String", -1, "t_order_0"}, // "-1"
		{", javaType: String", "-1", "t_order_0"},
		{", javaType: Integer", int64(1) << 40, "can't be converted to Integer"},
		{", javaType: Integer", "x", "can't be converted to Integer"},
		{", javaType: Long", 1.5, "found a float64"},
		{"", uint64(1) << 63, "hashCode() of a BigInteger is not supported"},
	} {
		s := shardingOf(t, tableRule(strings.ReplaceAll(nodes, "%s", c.javaType), "a: {type: HASH_MOD, props: {sharding-count: 4}}"))
		want := c.want
		if strings.HasPrefix(want, "t_") {
			want = "ds." + want
		}
		expectPlace(t, s, want, c.value)
	}
	for javaType, want := range map[string]string{
		"javaType: integer":     `rule.yaml:6:90: javaType: expected Integer, Long, BigInteger, BigDecimal, String`,
		"javaTyp: Integer":      `unknown key "javaTyp"`,
		"javaType: 'Long,Long'": "javaType has 2 classes for 1 sharding columns",
	} {
		text := tableRule(strings.ReplaceAll(nodes, "%s", ", "+javaType), "a: {type: MOD, props: {sharding-count: 4}}")
		_, err := rule.Parse("rule.yaml", []byte(text))
		must.FailWith(t, err, want, javaType)
	}
}

func TestSharding_notUnderstood(t *testing.T) {
	const nodes = "actualDataNodes: ds_${0..1}.t_order_${0..3}\n"
	byID := func(algorithm string) string {
		return nodes + "tableStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: " + algorithm + "}}"
	}
	for _, c := range []struct{ table, algorithms, want string }{
		{nodes + "tableStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: a, javaType: BigDecimal}}", "a: {type: MOD, props: {sharding-count: 4}}", "rule.yaml:6:90: cannot evaluate the sharding of table \"t_order\": tableStrategy: javaType BigDecimal"},
		{nodes + "tableStrategy: {complex: {shardingColumns: 'id, user_id', shardingAlgorithmName: a}}", "a: {type: COMPLEX_INLINE, props: {algorithm-expression: 't_order_${(id + user_id) % 4}'}}", "rule.yaml:10:5: cannot evaluate the sharding of table \"t_order\": tableStrategy: expected the type BOUNDARY_RANGE, "},
		{byID("a"), "a: {type: CLASS_BASED, props: {strategy: STANDARD}}", "rule.yaml:10:5: cannot evaluate the sharding of table \"t_order\": tableStrategy: expected the type BOUNDARY_RANGE, "},
		{byID("b"), "a: {type: MOD}", `rule.yaml:6:77: cannot evaluate the sharding of table "t_order": tableStrategy: the sharding algorithm "b" is not defined`},
		{byID("a"), "a: {type: MOD, props: {sharding-count: x}}", `rule.yaml:10:44: cannot evaluate the sharding of table "t_order": tableStrategy: sharding-count: expected an integer of at least 1, found "x"`},
		{byID("a"), "a: {type: INLINE, props: {algorithm-expression: 't_${id.foo() % 2}'}}", `rule.yaml:10:53: cannot evaluate the sharding of table "t_order": tableStrategy: algorithm-expression: "foo" is not supported at character 8`},
		{byID("a"), "a: {type: INLINE, props: {algorithm-expression: 't_${ID % 2}'}}", `expected the sharding column id (case-sensitive), found "ID"`},
		{byID("a"), "a: {type: INLINE, props: {algorithm-expression: 't_${1 % 2}'}}", `doesn't use the sharding column id`},
		{nodes + "tableStrategy: {hint: {shardingAlgorithmName: a}}", "a: {type: MOD}", "a hint comes from the application"},
		{nodes + "tableStrategy: {standart: {shardingAlgorithmName: a}}", "a: {type: MOD}", `expected standard, complex, inline, hint or none, found "standart"`},
		{nodes + "tableStrategy: {standard: {shardingColumn: id, preciseAlgorithmClassName: com.example.A}}", "a: {type: MOD}", "Java classes aren't supported"},
		{nodes + "tableStrategy: {standard: {shardingAlgorithmName: a}}", "a: {type: MOD, props: {sharding-count: 4}}", "shardingColumn is missing"},
		{nodes + "tableStrategy: {complex: {shardingColumns: 'a,b', shardingAlgorithmName: a}}", "a: {type: MOD, props: {sharding-count: 4}}", "expected one sharding column for MOD, found 2"},
		{nodes + "databaseStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: a}}", "a: {type: MOD, props: {sharding-count: 2}}", `data source "ds_0" has several actual tables, but the table has no tableStrategy`},
		{"actualDataNodes: t_order_${0..3}\ndatabaseStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: a}}\ntableStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: a}}", "a: {type: MOD, props: {sharding-count: 2}}", "a data node has no data source"},
		{"actualDataNodes: ds.t_order_${*}\ntableStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: a}}", "a: {type: MOD, props: {sharding-count: 2}}", "the actual tables that match t_order_${*} aren't known"},
		{"tableStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: a}}", "a: {type: MOD, props: {sharding-count: 2}}", "the table has no actualDataNodes"},
	} {
		s := shardingOf(t, tableRule(c.table, c.algorithms))
		var e *rule.Error
		if s.Err == nil || !errors.As(s.Err, &e) || !strings.Contains(e.Error(), c.want) || s.Columns != nil {
			t.Errorf("%s\n%s\nhave: %v\nwant: %s", c.table, c.algorithms, s.Err, c.want)
			continue
		}
		if _, err := s.Place([]any{1}); err != s.Err {
			t.Errorf("have: %v\nwant: %v", err, s.Err)
		}
	}
	r, err := rule.Parse("rule.yaml", []byte(tableRule("actualDataNodes: ds.t_order", "a: {type: MOD}")))
	if err != nil || r.Tables()[0].Sharding != nil {
		t.Errorf("have: %v, %v\nwant: no sharding", err, r.Tables()[0].Sharding)
	}
}

func TestSharding_Place_withoutAllocation(t *testing.T) {
	s := shardingOf(t, tableRule(`actualDataNodes: ds_${0..1}.t_order_${0..3}
databaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: d}}
tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: t}}`,
		`d: {type: HASH_MOD, props: {sharding-count: 2}}
t: {type: INLINE, props: {algorithm-expression: 't_order_${order_id % 4}'}}`))
	values := []any{"user", int64(931430767001669673)}
	n := testing.AllocsPerRun(100, func() { must.Get(s.Place(values))(t) })
	must.Equal(t, n, 0, "allocations")
}

func TestNew_sharding(t *testing.T) {
	config := func(table rule.StrategyConfig) rule.Config {
		return rule.Config{
			Tables: []rule.TableConfig{{
				Name: "t_order", ActualDataNodes: "ds_${0..1}.t_order_${0..3}", KeyConfig: rule.KeyConfig{Column: "id", Generator: "u"},
				DatabaseStrategy: rule.StrategyConfig{Columns: []string{"user_id"}, JavaTypes: []string{"Integer"}, Type: "hash_mod", Props: map[string]any{"sharding-count": 2}},
				TableStrategy:    table,
			}},
			Generators: map[string]rule.GeneratorConfig{"u": {Type: "UUID"}},
		}
	}
	byID := rule.StrategyConfig{Columns: []string{"id"}, Type: "INLINE", Props: map[string]any{"algorithm-expression": "t_order_${id % 4}"}}
	r, err := rule.New(config(byID))
	must.Do(t, err)
	s := r.Tables()[0].Sharding
	expectPlace(t, s, "ds_1.t_order_3", -1, 7)
	if want := "data source by user_id (in Java Integer) with HASH_MOD 2, table by id with INLINE t_order_${id % 4}"; s.String() != want {
		t.Errorf("have: %s\nwant: %s", s, want)
	}
	other := byID
	other.Type = "SNAIL"
	r, err = rule.New(config(other))
	if err != nil || !strings.Contains(r.Tables()[0].Sharding.String(), `rule: Tables[0] "t_order".TableStrategy.Type: cannot evaluate the sharding of table "t_order": TableStrategy: expected the type BOUNDARY_RANGE`) {
		t.Errorf("have: %v, %v", r.Tables()[0].Sharding, err)
	}
	for _, c := range []struct {
		change func(*rule.StrategyConfig)
		want   string
	}{
		{func(c *rule.StrategyConfig) { c.JavaTypes = []string{"int"} }, `TableStrategy.JavaTypes: javaType: expected Integer`},
		{func(c *rule.StrategyConfig) { c.Props = map[string]any{"algorithm-expression": []string{"x"}} }, `TableStrategy.Props["algorithm-expression"]: expected a string, a boolean or an integer as property`},
	} {
		other := byID
		c.change(&other)
		must.FailWith(t, must.Err(rule.New(config(other))), c.want)
	}
}

func TestPlaces_ofEachKindOfTable(t *testing.T) {
	r := must.Get(rule.Parse("places.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_${0..1}.t_order_${0..1}, ds_9.other.t_order_x
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
    t_log:
      actualDataNodes: ds_0.t_log_${yyyyMM}
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
    t_plain:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
    crm.t_note:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  autoTables:
    t_auto:
      actualDataSources: ds_${0..1}
      shardingStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: mod}}
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  shardingAlgorithms:
    mod: {type: MOD, props: {sharding-count: 3}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 1, max-vibration-offset: 2}}
`)))(t)
	for table, want := range map[string]string{
		"T_ORDER":    "[ds_0.t_order_0 ds_0.t_order_1 ds_1.t_order_0 ds_1.t_order_1 ds_9.other.t_order_x]",
		"t_log":      "[ds_0.t_log_${yyyyMM}]",
		"t_plain":    "[t_plain]",
		"crm.t_note": "[crm.t_note]",
		"t_auto":     "[ds_0.t_auto_0 ds_1.t_auto_1 ds_0.t_auto_2]",
		"t_none":     "[]",
	} {
		must.Equal(t, fmt.Sprint(slices.Collect(r.Places(table))), want, table)
	}
	for p := range r.Places("t_order") {
		if p.Table != "t_order_0" {
			t.Errorf("have: %v after the first was enough", p)
		}
		break
	}
}

// TestSharding_asTheRouter compares the places of random rows of random rules with the places from
// a router. The router is written from ShardingSphere's documentation.
func TestSharding_asTheRouter(t *testing.T) {
	const rules, rows = 120, 300
	r := rand.New(rand.NewPCG(13, 1))
	placed, types := 0, map[string]int{}
	for range rules {
		rr := testrouter.RandomRule(r)
		text := rr.Text("order_id", "{type: UUID}", "")
		parsed := must.Get(rule.Parse("rule.yaml", []byte(text)))(t, text)
		s := parsed.Tables()[0].Sharding
		if s.Err != nil {
			t.Fatalf("%s\nhave: %v", text, s.Err)
		}
		for range rows {
			row := rr.Row()
			var values []any
			for _, c := range s.Columns {
				values = append(values, row[c])
			}
			have, err := s.Place(values)
			want, wantErr := rr.Router.Route(row)
			if (err == nil) != (wantErr == nil) || err == nil && (have.DataSource != want.DataSource || have.Table != want.Table) {
				t.Fatalf("%s\n%v\nhave: %v, %v\nwant: %v, %v", text, row, have, err, want, wantErr)
			}
			if err == nil {
				placed++
				if rr.Router.Table != nil {
					types[rr.Router.Table.Type]++
				}
			}
		}
	}
	if placed < rules*rows/2 || len(types) < 6 {
		t.Errorf("have: %d of %d rows placed, %v\nwant: half of them, by every algorithm", placed, rules*rows, types)
	}
	t.Logf("%d of %d rows placed: %v", placed, rules*rows, types)
}

// TestShard_asTheRouter checks random rows of random rules against a random actual table.
// Shard.Place reports that a row belongs to the table exactly if the router does. The keys that
// Shard.Keys accepts for a row belong to the table.
func TestShard_asTheRouter(t *testing.T) {
	const rules, rows = 50, 40
	r := rand.New(rand.NewPCG(13, 2))
	here, fitted := 0, 0
	for range rules {
		rr := testrouter.RandomRule(r)
		text := rr.Text("order_id", "{type: UUID}", "")
		parsed := must.Get(rule.Parse("rule.yaml", []byte(text)))(t)
		s := parsed.Tables()[0].Sharding
		for range rows {
			node := rr.Router.Nodes[rr.IntN(len(rr.Router.Nodes))]
			row := rr.Row()
			want, wantErr := rr.Router.Route(row)
			if wantErr == nil && rr.IntN(2) == 0 {
				node.Table = want.Table
			}
			schema := ""
			if rr.IntN(2) == 0 {
				schema = node.DataSource
			}
			x := s.Shard(schema, node.Table)
			if x == nil {
				continue
			}
			var values []any
			for _, c := range x.Columns {
				values = append(values, row[c])
			}
			place, is, err := x.Place(values)
			if wantErr != nil && err == nil && schema == "" {
				continue // the data source is wrong, and the table's name doesn't depend on it
			}
			wantHere := wantErr == nil && want.Table == node.Table && (schema == "" || want.DataSource == schema)
			if is != wantHere || (err == nil) != (wantErr == nil) || is && !strings.EqualFold(place.Table, node.Table) || err == nil && place.Table != want.Table {
				t.Fatalf("%s\n%v in %s.%s\nhave: %v, %v, %v\nwant: %v, %v", text, row, schema, node.Table, is, place, err, wantHere, want)
			}
			if is {
				here++
			}
			if rr.IntN(4) > 0 {
				continue
			}
			belongs, n, err := x.Keys("order_id", values)
			must.Do(t, err, text, values)
			if belongs != nil {
				key := rr.Int64N(math.MaxInt64 / 2)
				for range 16 * n {
					if key++; belongs(key) {
						break
					}
				}
				if !belongs(key) {
					continue
				}
				row["order_id"] = key
				found, err := rr.Router.Route(row)
				if err != nil && schema == "" {
					continue
				}
				if err != nil || found.Table != node.Table || schema != "" && found.DataSource != schema {
					t.Fatalf("%s\nkey %d for %s.%s\nhave: %v, %v", text, key, schema, node.Table, found, err)
				}
				fitted++
			}
		}
	}
	if here < rules*rows/8 || fitted < rules*rows/64 {
		t.Errorf("have: %d rows in their table, %d keys that fit, of %d", here, fitted, rules*rows)
	}
}

func TestShard_none(t *testing.T) {
	s := shardingOf(t, tableRule(`actualDataNodes: ds_${0..1}.t_order
databaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: d}}`, `d: {type: MOD, props: {sharding-count: 2}}`))
	for _, name := range [][2]string{{"", "t_order"}, {"app", "t_order"}, {"", "t_other"}} {
		if x := s.Shard(name[0], name[1]); x != nil {
			t.Errorf("%v\nhave: %v\nwant: nil", name, x)
		}
	}
	if x := s.Shard("DS_1", "T_ORDER"); x == nil || len(x.Columns) != 1 {
		t.Errorf("have: %v\nwant: the table of ds_1", x)
	}
	if x := (*rule.Sharding)(nil).Shard("", "t"); x != nil {
		t.Errorf("have: %v\nwant: nil", x)
	}
}
