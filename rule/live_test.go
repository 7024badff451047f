package rule_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

const shop = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_${0..1}.t_order_${0..15}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
    t_item:
      actualDataNodes: ds.app.t_item_${0..1}
      keyGenerateStrategy: {column: item_id, keyGeneratorName: SNOWFLAKE, explicitKeys: keep}
    app2.t_dot: {keyGenerateStrategy: {column: id, keyGeneratorName: uuid}}
    t_plain: {actualDataNodes: "ds.t_plain_${0..1}"}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 5, worker-id-assigner: Files}}
    uuid: {type: UUID, props: {worker-id-assigner: files}}
  workerIdAssigners:
    files: {type: FILE, props: {path: /tmp/a}}
    unused: {type: FILE, props: {path: /tmp/b}}
`

// lookup looks up the tables of a file, with the columns want, table and schema.
func lookup(t *testing.T, live *rule.Live, file string) {
	t.Helper()
	for _, c := range cases.Read(t, file, 3) {
		want, table, schema, have := c[0], c[1], c[2], ""
		if found := live.Lookup(schema, table); found != nil {
			have = found.Logical
		}
		must.Equal(t, have, want, schema, table)
	}
}

func TestLive_lookupFindsNames(t *testing.T) {
	g := mustOpen(t, mustParse(t, shop))
	lookup(t, g, "testdata/lookup.txt")
	want := rule.Table{
		Logical: "t_item", Column: "item_id", GeneratorName: "snowflake", GeneratorType: "SNOWFLAKE",
		Generator: g.Generator("snowflake"), ExplicitKeys: "keep", Unlisted: "refuse", ShardGuard: "refuse",
		Actual: []string{"app.t_item_0", "app.t_item_1"}, ActualCount: 2,
	}
	if have := *g.Lookup("", "t_item_0"); !reflect.DeepEqual(have, want) {
		t.Errorf("have: %+v\nwant: %+v", have, want)
	}
	if g.Lookup("", "t_order").ExplicitKeys != "fill" {
		t.Error("have: explicit keys kept\nwant: filled, which is the default")
	}
	// The driver caches data about a table by the table's pointer.
	if g.Lookup("", "t_order_1") != g.Lookup("x", "T_ORDER") {
		t.Error("have: two pointers for one table\nwant: one")
	}
}

func TestLive_oneInstanceOfEachName(t *testing.T) {
	r := mustParse(t, shop)
	g := mustOpen(t, r)
	if g.Lookup("", "t_order").Generator != g.Lookup("", "t_item").Generator {
		t.Error("have: two generators for one name\nwant: one")
	}
	if g.Generator("SnowFlake") != g.Lookup("", "t_order").Generator || g.Generator("none") != nil {
		t.Error("Generator finds by name, without case")
	}
	if other := mustOpen(t, r); other.Generator("snowflake") != g.Generator("snowflake") {
		t.Error("have: two connectors of one rule have a generator each\nwant: one")
	}
	a, b := g.Generator("snowflake").(*fake), g.Generator("uuid").(*fake)
	if a.assigner == nil || a.assigner != b.assigner {
		t.Errorf("have: assigners %v and %v\nwant: one", a.assigner, b.assigner)
	}
}

// TestLive_closeOrder checks that generators are closed before their assigners, and once.
func TestLive_closeOrder(t *testing.T) {
	g := must.Get(mustParse(t, shop).Open(spi.Host{}))(t)
	snowflake := g.Generator("snowflake").(*fake)
	snowflake.closeErr = errors.New("no way")
	made.Lock()
	made.order = nil
	made.Unlock()
	first := g.Close()
	if !errors.Is(first, snowflake.closeErr) || !strings.Contains(first.Error(), "shardkey: close key generator snowflake") {
		t.Errorf("have: %v\nwant: the generator's error and name", first)
	}
	if second := g.Close(); second == nil || second.Error() != first.Error() {
		t.Errorf("have: %v\nwant: %v", second, first)
	}
	must.EqualSlices(t, made.order, []string{"SNOWFLAKE", "UUID", "FILE"})
	must.Equal(t, snowflake.closed.Load(), 1, "times closed")
}

// TestParse_leavesNothingOpen checks that parsing a rule, valid or not, closes all generators that
// it made.
func TestParse_leavesNothingOpen(t *testing.T) {
	made.Lock()
	from := len(made.assigners)
	made.Unlock()
	mustParse(t, shop)
	for _, bad := range []string{"worker-id: 5", "type: UUID"} {
		must.Fail(t, must.Err(rule.Parse("bad", []byte(strings.Replace(shop, bad, bad+"x", 1)))), bad, "x")
	}
	made.Lock()
	defer made.Unlock()
	if len(made.assigners) == from {
		t.Error("have: no assigner made\nwant: those of the check")
	}
	for _, a := range made.assigners[from:] {
		must.Equal(t, a.closed.Load(), 1, "assigner of", a.path, "times closed")
	}
}

func TestLive_healthAndDescribe(t *testing.T) {
	t.Setenv("SK_PASSWORD", "tops3cret")
	g := mustOpen(t, mustParse(t, strings.Replace(shop, "worker-id: 5", `worker-id: 5, password: "${SK_PASSWORD}"`, 1)))
	must.Get(g.Generator("snowflake").GenerateKeys(t.Context(), spi.Column{}, 3))(t)
	status := g.Status()
	if len(status) != 3 || status[2].Name != "files" || !status[2].Assigner {
		t.Fatalf("have: %v\nwant: two generators and the assigner in use", status)
	}
	if h := status[0].Health; h.Issued != 3 || *h.WorkerID != 5 {
		t.Errorf("have: %+v\nwant: 3 issued by worker 5", h)
	}
	have := g.Describe()
	want := `rule rule.yaml
  key generator snowflake: SNOWFLAKE worker 5
  key generator uuid: UUID worker 0
  worker-ID assigner files: FILE worker 0
  table t_order: column order_id from snowflake (SNOWFLAKE), 16 actual tables: t_order_0, t_order_1, t_order_2, t_order_3, …
  table t_item: column item_id from snowflake (SNOWFLAKE), explicit keys kept, actual tables: app.t_item_0, app.t_item_1
  table app2.t_dot: column id from uuid (UUID)
  table t_plain: no generated key`
	must.Equal(t, have, want)
}

// TestLive_schemasTellTablesApart checks that schemas distinguish tables with the same name.
func TestLive_schemasTellTablesApart(t *testing.T) {
	r := mustParse(t, `
rules:
- !SHARDING
  tables:
    old: {actualDataNodes: "ds.y2023.t_${0..1}"}
    new: {actualDataNodes: "ds.y2024.t_${0..1}"}
  defaultKeyGenerateStrategy: {column: id, keyGeneratorName: u}
  keyGenerators: {u: {type: UUID}}
`)
	open := func(dsn string) *rule.Live {
		g := must.Get(r.Open(spi.Host{DSN: spi.NewSecret(dsn)}))(t)
		t.Cleanup(func() { _ = g.Close() })
		return g
	}
	for _, c := range []struct{ dsn, schema, table, want string }{
		{"", "y2023", "t_0", "old"},
		{"", "Y2024", "T_0", "new"},
		{"", "y2025", "t_0", ""},
		{"u:p@tcp(h)/y2024?parseTime=true", "", "t_0", "new"},
		{"u:p/@tcp(h)/Y2023", "", "t_1", "old"},
		{"u:p@tcp(h)/y2024", "y2023", "t_1", "old"},
		{"", "", "old", "old"},
		{"", "y2024", "old", ""},
	} {
		have := ""
		if table := open(c.dsn).Lookup(c.schema, c.table); table != nil {
			have = table.Logical
		}
		must.Equal(t, have, c.want, c.dsn, c.schema, ".", c.table)
	}
	for _, dsn := range []string{"", "/", "nonsense", "u@tcp(h)/app"} {
		g := open(dsn)
		table := g.Lookup("", "T_0")
		if table == nil || table != g.Lookup("", "t_0") {
			t.Fatalf("%q: have: %v\nwant: always the same table, that refuses", dsn, table)
		}
		_, err := table.Generator.GenerateKeys(context.Background(), spi.Column{}, 1)
		must.FailWith(t, err, `"t_0" is in several schemas`, dsn)
	}
}

func TestRule_zeroIsRefused(t *testing.T) {
	for _, r := range []*rule.Rule{nil, new(rule.Rule)} {
		if g, err := r.Open(spi.Host{}); err == nil || g != nil {
			t.Errorf("have: %v, %v\nwant: an error", g, err)
		}
	}
}

// Running statements keep the generators open after Close. Generators that another rule shares stay
// open even longer.
func TestLive_closedByItsLastUser(t *testing.T) {
	first := opened(t, mustParse(t, shop), spi.Host{})
	snowflake, uuid := first.Generator("snowflake").(*fake), first.Generator("uuid").(*fake)
	next := must.Get(first.Replace(mustParse(t, strings.Replace(shop, "worker-id: 5", "worker-id: 6", 1))))(t)
	want := func(when string, snowflakes, uuids int64) {
		t.Helper()
		if s, u := snowflake.closed.Load(), uuid.closed.Load(); s != snowflakes || u != uuids {
			t.Errorf("%s\nhave: snowflake closed %d times, uuid %d\nwant: %d, %d", when, s, u, snowflakes, uuids)
		}
	}
	for range 3 {
		if !first.Acquire() {
			t.Fatal("have: a rule that cannot be used\nwant: one that can")
		}
	}
	must.Do(t, first.Release())
	mustClose(t, first, first)
	want("closed while two statements run", 0, 0)
	if first.Acquire() {
		t.Error("have: a closed rule that can be used")
	}
	for range 2 {
		want("before the last release", 0, 0)
		if err := first.Release(); err != nil {
			t.Error(err)
		}
	}
	want("after the last release", 1, 0)
	mustClose(t, first, next)
	want("both closed", 1, 1)
	if first.Acquire() || next.Acquire() {
		t.Error("have: a closed rule that can be used")
	}
}

// TestLive_usedAndClosedAtOnce uses a rule in many goroutines while it is closed. A generator is
// open while it is acquired, and it is closed once.
func TestLive_usedAndClosedAtOnce(t *testing.T) {
	r := mustParse(t, oneTable("t", "{type: SNOWFLAKE}"))
	for range 20 {
		l := opened(t, r, spi.Host{})
		g := l.Generator("g").(*fake)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for l.Acquire() {
					if g.closed.Load() != 0 {
						t.Error("have: a closed generator in use\nwant: an open one")
					}
					if err := l.Release(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Go(func() { mustClose(t, l) })
		wg.Wait()
		if n := g.closed.Load(); n != 1 {
			t.Fatalf("have: closed %d times\nwant: once", n)
		}
	}
}

// A table is made at the first lookup. Later lookups return the same pointer.
func TestLiveLookup_oneTableForAll(t *testing.T) {
	r := must.Get(rule.New(rule.Config{
		Tables:     []rule.TableConfig{{Name: "t_order", ActualDataNodes: "t_order_${0..1}", KeyConfig: rule.KeyConfig{Column: "id", Generator: "ids"}}},
		Generators: map[string]rule.GeneratorConfig{"ids": {Type: "UUID"}},
	}))(t)
	live := must.Get(r.Open(spi.Host{}))(t)
	defer live.Close()
	found := make([]*rule.Table, 16)
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() { found[i] = live.Lookup("", []string{"t_order_0", "T_ORDER_1"}[i%2]) })
	}
	all.Wait()
	for _, table := range found {
		if table == nil || table != found[0] || table.Generator == nil {
			t.Errorf("have: %p with %v\nwant: %p with a generator", table, table.Generator, found[0])
		}
	}
	found[0].Actual[0] = "other"
	must.Equal(t, r.Tables()[0].Actual[0], "t_order_0", "the rule's own table, after a change of a live one")
}

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
	lookup(t, live, "testdata/patterns.txt")
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
	for _, c := range cases.Read(t, "testdata/unlisted.txt", 3) {
		want, table, schema, have := c[0], c[1], c[2], ""
		if e := live.Unlisted(schema, table); e != nil {
			have = e.Like.Logical
		}
		must.Equal(t, have, want, schema, table)
	}
	for table, want := range map[string]string{"t_fixed_4": "refuse", "q_2026_q1": "warn", "t_open_1": "pass"} {
		must.Equal(t, live.Unlisted("", table).Like.Unlisted, want, table)
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

// TestLive_unlistedOfOneTable has rules that list one actual table of a logical table. It is no family,
// so other tables are refused only if the rule says so. Numbers after _ or - are logged.
func TestLive_unlistedOfOneTable(t *testing.T) {
	live := mustOpen(t, mustParse(t, `
rules:
- !SHARDING
  tables:
    user2:
    home: {actualDataNodes: ds.address1}
    oauth1_token:
    t_order:
    order_2025:
    copies: {actualDataNodes: "ds_${0..3}.copy1"}
    strict: {keyGenerateStrategy: {column: id, unlisted: refuse}}
    single1:
    family: {actualDataNodes: "ds.single${2..3}"}
    t:
    few: {actualDataNodes: "ds.t_${0..1}"}
  defaultKeyGenerateStrategy: {column: id, keyGeneratorName: g}
  keyGenerators: {g: {type: UUID}}
`))
	for table, want := range map[string]string{
		"user3": "", "user20": "", "address2": "", "oauth2_token": "", "oauth10_token": "", "t_order3": "", "copy2": "",
		"user2_20261128": "user2 warn", "t_order_3": "t_order warn", "order_2026": "order_2025 warn", "order_2025_01": "order_2025 warn",
		"strict_1": "strict refuse", "strict1": "", "single4": "family refuse", "t_10": "few refuse", "t_2": "few refuse", "t-2": "t warn",
	} {
		have := ""
		if e := live.Unlisted("", table); e != nil {
			have = e.Like.Logical + " " + e.Like.Unlisted
		}
		must.Equal(t, have, want, table)
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
		{"", "z_2", "t_app", "warn"},
		{"app", "z_2", "t_app", "warn"},
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
