package rule_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
)

const patterns = `
rules:
- !SHARDING
  tables:
    t_order: {actualDataNodes: "ds_${0..1}.t_order_${*}"}
    t_log: {actualDataNodes: "ds.t_log_${yyyyMM}, ds.t_log_old"}
    t_visit: {actualDataNodes: "ds.app.t_${['x','y']}_${yyyy}_${dd}"}
    t_fixed: {actualDataNodes: "ds.t_fixed_${0..3}"}
    t_quarter: {actualDataNodes: "ds.q_${2024..2025}_q${1..4}", keyGenerateStrategy: {column: id, unlisted: warn}}
    t_plain:
    t_open: {keyGenerateStrategy: {column: id, keyGeneratorName: g, unlisted: pass}}
    t_keyless: {actualDataNodes: "ds.t_keyless_${0..1}", keyGenerateStrategy: {none: }}
  defaultKeyGenerateStrategy: {column: id, keyGeneratorName: g}
  keyGenerators: {g: {type: UUID}}
`

func TestLive_lookupMatchesPatterns(t *testing.T) {
	live := mustOpen(t, mustParse(t, patterns))
	for _, c := range []struct{ schema, table, want string }{
		{"", "t_order", "t_order"},
		{"", "t_order_0", "t_order"},
		{"", "T_ORDER_007", "t_order"},
		{"any", "t_order_12345678901234567890", "t_order"},
		{"", "t_order_", ""},
		{"", "t_order_1a", ""},
		{"", "t_log_202612", "t_log"},
		{"", "t_log_old", "t_log"},
		{"", "t_log_202613", ""},
		{"app", "t_x_2026_01", "t_visit"},
		{"", "t_y_2026_31", "t_visit"},
		{"other", "t_y_2026_31", ""},
		{"", "t_y_2026_32", ""},
		{"", "t_fixed_3", "t_fixed"},
	} {
		have := ""
		if table := live.Lookup(c.schema, c.table); table != nil {
			have = table.Logical
		}
		if have != c.want {
			t.Errorf("%s.%s\nhave: %q\nwant: %q", c.schema, c.table, have, c.want)
		}
	}
	if live.Lookup("", "t_order_1") != live.Lookup("", "t_order_2") {
		t.Error("have: two pointers for one table\nwant: one")
	}
	if have, want := live.Lookup("", "t_order_1").String(), "table t_order: column id from g (UUID), actual tables like t_order_${*}"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
}

func TestPatterns_mustNotMeetOtherTables(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"ds.t_${*}", "ds.t_${0..3}", `table "a" has a pattern t_${*}, but table "b" has t_0`},
		{"ds.t_${*}", "ds.t_1${*}", `but table "b" has t_1${*}`},
		{"ds.t_${*}2", "ds.t_1${*}", `but table "b" has t_1${*}`},
		{"ds.t_${yyyyMM}", "ds.t_${*}", `but table "b" has t_${*}`},
		{"ds.t_${yyyy_MM}", "ds.t_${*}", ""},
		{"ds.t_${yyyyMM}", "ds.t_999999", ""},
		{"ds.app.t_${*}", "ds.app2.t_${*}", ""},
		{"ds.app.t_${*}", "ds.t_${*}", `but table "b" has t_${*}`},
		{"ds.t_${*}", "ds.t_${*}x", ""},
	} {
		for _, key := range []string{"{column: id}", "{none: }"} {
			yaml := "rules: [!SHARDING {tables: {a: {actualDataNodes: '" + c.a + "', keyGenerateStrategy: {column: id}}, b: {actualDataNodes: '" + c.b + "', keyGenerateStrategy: " + key + "}}}]"
			want := c.want
			if key == "{none: }" {
				want = strings.ReplaceAll(want, `table "b"`, "a table without a key")
			}
			_, err := rule.Parse("rule.yaml", []byte(yaml))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s and %s\nhave: %v\nwant: %s", c.a, c.b, err, want)
			}
		}
	}
}

func TestLive_unlistedLooksLikeARuledTable(t *testing.T) {
	live := mustOpen(t, mustParse(t, patterns))
	for _, c := range []struct {
		schema, table string
		want          string // the sharded table; empty for none
	}{
		{"", "t_fixed_4", "t_fixed"},
		{"any", "T_FIXED_04", "t_fixed"},
		{"", "t_fixed-4", "t_fixed"},
		{"", "t_fixed_2026_01", "t_fixed"},
		{"", "t_open_1", "t_open"},
		{"", "q_2026_q1", "t_quarter"},
		{"", "t_log_202613", "t_log"},
		{"", "t_visit_3", "t_visit"},
		{"other", "t_visit_3", ""}, // a table of another schema
		// Listed, or not similar to a listed name.
		{"", "t_fixed_3", ""},
		{"", "t_order_99", ""},
		{"", "t_fixed_x", ""},
		{"", "t_fixed_4_bak", ""},
		{"", "q_2026_r1", ""},
		{"", "t_keyless_1", ""},
		{"", "", ""},
	} {
		have := ""
		e := live.Unlisted(c.schema, c.table)
		if e != nil {
			have = e.Like.Logical
		}
		if have != c.want {
			t.Errorf("%s.%s\nhave: %q\nwant: %q", c.schema, c.table, have, c.want)
		}
	}
	for table, want := range map[string]string{"t_fixed_4": "refuse", "q_2026_q1": "warn", "t_open_1": "pass"} {
		if have := live.Unlisted("", table).Like.Unlisted; have != want {
			t.Errorf("%s\nhave: %v\nwant: %v", table, have, want)
		}
	}
	var err error = live.Unlisted("", "T_fixed_4")
	const want = `shardkey: table "T_fixed_4" isn't in the rule, but its name is similar to the actual tables of "t_fixed" (t_fixed_0, t_fixed_1, t_fixed_2, …); add it to actualDataNodes`
	if e := (*rule.UnlistedTableError)(nil); !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("have: %v\nwant: %s", err, want)
	}
	// A pattern for new tables doesn't help if the name has no month of it.
	if have := live.Unlisted("", "t_log_202613").Error(); strings.Contains(have, "${*}") || !strings.Contains(have, "correct the name") {
		t.Errorf("have: %s\nwant: the advice to correct the name", have)
	}
}

// TestLive_unlistedKnowsWhatIsListed has names that differ from a sharded table's in
// their numbers only, but are another table's, or in another schema.
func TestLive_unlistedKnowsWhatIsListed(t *testing.T) {
	live := mustOpen(t, mustParse(t, `
rules:
- !SHARDING
  tables:
    t_ruled: {actualDataNodes: "ds.s_2", keyGenerateStrategy: {keyGeneratorName: g}}
    t_plain: {actualDataNodes: "ds.s_1", keyGenerateStrategy: {none: }}
    t_app: {actualDataNodes: "ds.app.z_1", keyGenerateStrategy: {column: id}}
    t_log: {actualDataNodes: "ds.lg_${yyyyMM}", keyGenerateStrategy: {column: id}}
    t_day: {actualDataNodes: "ds.day_${yyyy_MM}_x", keyGenerateStrategy: {column: id}}
  defaultKeyGenerateStrategy: {column: id, unlisted: pass}
  keyGenerators: {g: {type: UUID}}
`))
	for _, c := range []struct {
		schema, table, want string
		policy              string
	}{
		{"", "s_3", "t_ruled", "pass"}, // the default's, as the column is
		{"", "s_1", "", ""},
		{"", "z_2", "t_app", "refuse"},
		{"app", "z_2", "t_app", "refuse"},
		{"other", "z_2", "", ""},
		// Names that almost match a pattern.
		{"", "LG_202613", "t_log", "refuse"}, {"", "lg_20260102", "t_log", "refuse"}, {"", "day_2026_1_x", "t_day", "refuse"},
		{"", "lg_202612", "", ""}, {"", "day_2026_12_x", "", ""}, {"", "lg_x", "", ""}, {"", "day_2026_x", "", ""}, {"", "lg", "", ""},
	} {
		have, policy := "", ""
		if e := live.Unlisted(c.schema, c.table); e != nil {
			have, policy = e.Like.Logical, e.Like.Unlisted
		}
		if have != c.want || policy != c.policy {
			t.Errorf("%s.%s\nhave: %q, %q\nwant: %q, %q", c.schema, c.table, have, policy, c.want, c.policy)
		}
	}
}
