package rule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
)

// config returns a valid rule, which the tests change.
func config() rule.Config {
	return rule.Config{
		Tables: []rule.TableConfig{
			{Name: "t_order", ActualDataNodes: "ds.t_order_${0..1}", KeyConfig: rule.KeyConfig{Column: "order_id", Generator: "snowflake"}},
			{Name: "t_item", KeyConfig: rule.KeyConfig{Column: "item_id", ExplicitKeys: "keep"}},
			{Name: "t_log"},
		},
		Default: rule.KeyConfig{Column: "id", Generator: "uuid"},
		Generators: map[string]rule.GeneratorConfig{
			"snowflake": {Type: "snowflake", Props: map[string]any{"worker-id": 5, "worker-id-assigner": "files"}},
			"uuid":      {Type: "UUID"},
		},
		WorkerIDAssigners: map[string]rule.WorkerIDAssignerConfig{
			"files": {Type: "FILE", Props: map[string]any{"path": "/tmp"}},
		},
	}
}

func TestNew_equalsTheSameYAML(t *testing.T) {
	r := must.Get(rule.New(config()))(t)
	const want = `rule rule
  table t_order: column order_id from snowflake (SNOWFLAKE), actual tables: t_order_0, t_order_1
  table t_item: column item_id from uuid (UUID), explicit keys kept
  table t_log: column id from uuid (UUID)`
	if have := r.String(); have != want {
		t.Errorf("have:\n%s\nwant:\n%s", have, want)
	}
	must.Equal(t, r.Name(), "rule")
	g := mustOpen(t, r)
	if f := g.Generator("snowflake").(*fake); f.worker != 5 || f.assigner == nil {
		t.Errorf("have: worker %d, assigner %v\nwant: 5 and one", f.worker, f.assigner)
	}
}

func TestNew_errorsNameThePath(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*rule.Config)
		want  string
	}{
		{"zero", func(c *rule.Config) { *c = rule.Config{} }, "shardkey: rule: no table has a key generator"},
		{"no keys", func(c *rule.Config) { *c = rule.Config{Tables: []rule.TableConfig{{Name: "a"}}} }, `shardkey: rule: Tables[0] "a": no table has a key generator`},
		{"no name", func(c *rule.Config) { c.Tables[1].Name = "" }, `shardkey: rule: Tables[1] "": table "": the name is empty`},
		{"same name", func(c *rule.Config) { c.Tables[1].Name = "T_ORDER" }, `shardkey: rule: Tables[1] "T_ORDER": table "T_ORDER" is already defined as "t_order" (Tables[0] "t_order")`},
		{"nodes", func(c *rule.Config) { c.Tables[0].ActualDataNodes = "ds.${a}" }, `shardkey: rule: Tables[0] "t_order".ActualDataNodes: the data nodes`},
		{"overlap", func(c *rule.Config) { c.Tables[2].ActualDataNodes = "ds.t_order_0" }, `Tables[2] "t_log".ActualDataNodes: table "t_order" and table "t_log" both`},
		{"generator", func(c *rule.Config) { c.Tables[0].Generator = "snow" }, `Tables[0] "t_order".Generator: key generator "snow" is not defined; defined: snowflake, uuid; did you mean "snowflake"?`},
		{"column", func(c *rule.Config) { c.Default = rule.KeyConfig{}; c.Tables[0].Column = " " }, `the key of table "t_order" has no column`},
		{"explicit keys", func(c *rule.Config) { c.Tables[0].ExplicitKeys = "kep" }, `Tables[0] "t_order".ExplicitKeys: explicitKeys: expected fill or keep, found "kep"`},
		{"type", func(c *rule.Config) { c.Generators["uuid"] = rule.GeneratorConfig{Type: "UUDI"} }, `Generators["uuid"].Type: unknown key generator type "UUDI"`},
		{"no type", func(c *rule.Config) { c.Generators["uuid"] = rule.GeneratorConfig{} }, `Generators["uuid"]: "uuid" has no type`},
		{"same generator", func(c *rule.Config) { c.Generators["UUID"] = rule.GeneratorConfig{Type: "UUID"} }, `is defined twice`},
		{"property", func(c *rule.Config) { c.Generators["uuid"] = uuidWith("worker-id", 4096) }, `Generators["uuid"].Props["worker-id"]: key generator "uuid": property "worker-id": expected an integer in 0..1023, found "4096"`},
		{"property's kind", func(c *rule.Config) { c.Generators["uuid"] = uuidWith("worker-id", 1.5) }, `expected a string, a spi.Secret, a slice of either, a boolean, an integer, a time.Duration or a time.Time, found a float64`},
		{"assigner", func(c *rule.Config) { c.WorkerIDAssigners = nil }, `Generators["snowflake"].Props["worker-id-assigner"]: worker-ID assigner "files" is not defined`},
		{"assigner's type", func(c *rule.Config) { c.WorkerIDAssigners["x"] = rule.WorkerIDAssignerConfig{Type: "SQL"} }, `import _ "github.com/shardkey/shardkey/driver"`},
		{"ready and type", func(c *rule.Config) {
			c.Generators["uuid"] = rule.GeneratorConfig{Type: "UUID", Generator: new(fake)}
		}, `Type must be empty, and Props`},
	} {
		cfg := config()
		c.spoil(&cfg)
		_, err := rule.New(cfg)
		var e *rule.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || e.Line != 0 {
			t.Errorf("%s\nhave: %v\nwant: %s", c.name, err, c.want)
		}
	}
}

func uuidWith(name string, value any) rule.GeneratorConfig {
	return rule.GeneratorConfig{Type: "UUID", Props: map[string]any{name: value}}
}

// TestNew_acceptsGoValuesAsProperties checks that the getters of spi.Props understand Go values.
func TestNew_acceptsGoValuesAsProperties(t *testing.T) {
	type text string
	list := []string{"a", "b"}
	at := time.Date(2020, 2, 3, 4, 5, 6, 7000000, time.UTC)
	cfg := config()
	cfg.Generators["uuid"] = rule.GeneratorConfig{Type: "props", Props: map[string]any{
		"int": int8(-3), "uint": uint64(1 << 63), "bool": true, "duration": 90 * time.Second,
		"time": at, "list": list, "text": text("x"), "env": "${HOME}",
	}}
	must.Get(rule.New(cfg))(t)
	list[0] = "changed afterwards"
	have := made.props
	n, err := have.Int("int", 0, -10, 10)
	check(t, "int", n, int64(-3), err)
	check(t, "uint", have.String("uint", ""), "9223372036854775808", nil)
	b, err := have.Bool("bool", false)
	check(t, "bool", b, true, err)
	d, err := have.Duration("duration", 0, 0, time.Hour)
	check(t, "duration", d, 90*time.Second, err)
	tm, err := have.Time("time", time.Time{})
	check(t, "time", tm, at, err)
	check(t, "list", strings.Join(have.List("list"), "+"), "a+b", nil)
	check(t, "text", have.String("text", ""), "x", nil)
	check(t, "env", have.String("env", ""), "${HOME}", nil)
}

func check[T comparable](t *testing.T, name string, have, want T, err error) {
	t.Helper()
	if have != want || err != nil {
		t.Errorf("%s\nhave: %v, %v\nwant: %v", name, have, err, want)
	}
}

// TestNew_leavesReadyGeneratorsOpen checks that closing a rule doesn't close a generator built in
// Go.
func TestNew_leavesReadyGeneratorsOpen(t *testing.T) {
	ready := &fake{typ: "READY"}
	cfg := config()
	cfg.Generators["uuid"] = rule.GeneratorConfig{Generator: ready}
	r := must.Get(rule.New(cfg))(t)
	g := mustOpen(t, r)
	if g.Lookup("", "t_log").Generator != ready {
		t.Error("have: another generator\nwant: the one given")
	}
	if err := g.Close(); err != nil || ready.closed.Load() != 0 {
		t.Errorf("have: closed %d times, %v\nwant: left open", ready.closed.Load(), err)
	}
	if !strings.Contains(g.Describe(), "key generator uuid: READY worker 0") {
		t.Errorf("have: %s", g.Describe())
	}
}

// A table's setting overrides the default's, even if it is the value for a missing setting.
func TestNew_settingsOverrideTheDefaults(t *testing.T) {
	c := config()
	c.Default.Column, c.Default.ExplicitKeys, c.Default.ShardGuard, c.Default.Unlisted = "id", "keep", "off", "pass"
	c.Tables[1].KeyConfig = rule.KeyConfig{ExplicitKeys: "Fill", ShardGuard: "refuse", Unlisted: "warn"}
	r := must.Get(rule.New(c))(t)
	for i, want := range []string{1: "fill refuse warn", 2: "keep off pass"} {
		if want == "" {
			continue
		}
		table := r.Tables()[i]
		must.Equal(t, table.ExplicitKeys+" "+table.ShardGuard+" "+table.Unlisted, want, table.Logical)
	}
}
