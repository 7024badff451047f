package rule_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

const hashed = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: "ds_0.t_order_${0..3}, ds_1.t_order_4"
      tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: by_id}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: keys}
    t_user:
      keyGenerateStrategy: {column: id, keyGeneratorName: keys}
  shardingAlgorithms:
    by_id: {type: MOD, props: {sharding-count: 5}}
  keyGenerators:
    keys: {type: OWN, props: {dsn: "u:${HASH_PASSWORD::first}@tcp(db1:3306)/app"}}
    flakes: {type: SNOWFLAKE, props: {layout: wide}}
`

// The hash is that of the rule's meaning.
func TestHash(t *testing.T) {
	want := mustParse(t, hashed).Hash()
	if !regexp.MustCompile(`^[0-9a-f]{8}$`).MatchString(want) || new(rule.Rule).Hash() != "" {
		t.Errorf("have: %q, and %q of the zero rule", want, new(rule.Rule).Hash())
	}
	for _, c := range []struct{ old, new string }{
		{"rules:", "# a comment\nrules:"},
		{", ds_1", ",ds_1"},
		{"by_id", "other"},
		{"t_order:\n", "T_ORDER:\n"},
		{"{type: MOD,", "{type: mod,"},
		{"::first", "::second"},
		{"u:$", "other:$"},
	} {
		if have := mustParse(t, strings.ReplaceAll(hashed, c.old, c.new)).Hash(); have != want {
			t.Errorf("%s for %s changes the hash", c.new, c.old)
		}
	}
	hashes := map[string]string{want: "the rule"}
	for _, c := range []struct{ old, new string }{
		{"t_user", "t_users"},
		{"column: id", "column: user_id"},
		{"column: id,", "column: id, explicitKeys: keep,"},
		{"column: id,", "column: id, unlisted: pass,"},
		{"column: id,", "column: id, batchKeys: consecutive,"},
		{"${0..3}", "${0..4}"},
		{"shardingColumn: order_id", "shardingColumn: user_id"},
		{"sharding-count: 5", "sharding-count: 6"},
		{"wide", "narrow"},
		{"db1:3306", "db2:3306"},
		{"HASH_PASSWORD", "HASH_PASSWORD2"},
		{"keyGeneratorName: keys}\n    t_user", "keyGeneratorName: flakes}\n    t_user"},
	} {
		have := mustParse(t, strings.Replace(hashed, c.old, c.new, 1)).Hash()
		if hashes[have] != "" {
			t.Errorf("%s for %s: the hash of %s", c.new, c.old, hashes[have])
		}
		hashes[have] = c.new
	}
}

// The order of the file doesn't change the hash, and neither do environment variables: processes have
// their own.
func TestHash_ordersAndEnvironments(t *testing.T) {
	t.Setenv("HASH_WORKER", "1")
	const first = "rules:\n- !SHARDING\n  tables:\n    a: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}\n" +
		"    b: {keyGenerateStrategy: {column: id, keyGeneratorName: u}}\n" +
		"  keyGenerators:\n    g: {type: SNOWFLAKE, props: {worker-id: '${HASH_WORKER}', layout: wide}}\n    u: {type: UUID}\n"
	const second = "rules:\n- !SHARDING\n  keyGenerators:\n    u: {type: UUID}\n" +
		"    g: {type: SNOWFLAKE, props: {layout: wide, worker-id: '${HASH_WORKER}'}}\n  tables:\n" +
		"    b: {keyGenerateStrategy: {keyGeneratorName: u, column: id}}\n    a: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}\n"
	want := mustParse(t, first).Hash()
	t.Setenv("HASH_WORKER", "2")
	for _, text := range []string{first, second} {
		if have := mustParse(t, text).Hash(); have != want {
			t.Errorf("have: %s\nwant: %s\n%s", have, want, text)
		}
	}
}

// Passwords don't count, so that the hash shows nothing of them.
func TestHash_secrets(t *testing.T) {
	hashOf := func(password string) string {
		r, err := rule.New(rule.Config{
			Tables: []rule.TableConfig{{Name: "t", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
			Generators: map[string]rule.GeneratorConfig{"g": {Type: "OWN", Props: rule.Props{
				"dsn": spi.NewSecret("u:" + password + "@tcp(db1)/app")}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.Hash()
	}
	if hashOf("one") != hashOf("two") {
		t.Error("the hash depends on a password")
	}
}
