package rule_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
)

// TestParse_syntaxErrorsSayTheCause has the slips that a YAML reader reports a
// line too high, without a column and without their cause.
func TestParse_syntaxErrorsSayTheCause(t *testing.T) {
	const head = "rules:\n- !SHARDING\n  tables:\n"
	for _, c := range []struct{ name, yaml, want string }{
		{"nodes in a flow map", head + "    t: {actualDataNodes: ds_${0..1}.t_${0..3}, keyGenerateStrategy: {column: id}}\n",
			`rule.yaml:4:29: not YAML: a value with ${…} inside { } or [ ] must be in quotes: "ds_${0..1}.t_${0..3}"`},
		{"environment in a flow map", head + "    t: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}\n  keyGenerators:\n    g: {type: UUID, props: {worker-id: ${WORKER_ID}}}\n",
			"rule.yaml:6:40: not YAML: a value with ${…} inside { }"},
		{"tab", head + "    t:\n\t  keyGenerateStrategy: {column: id}\n", "rule.yaml:5:1: not YAML: a line is indented with a tab"},
		{"tab after blanks", head + "    t:\n    \tkeyGenerateStrategy:\n", "rule.yaml:5:5: not YAML: a line is indented with a tab"},
		{"no-break space", head + "    t:\n    \u00a0 keyGenerateStrategy: {column: id}\n      x: 1\n", `rule.yaml:5:5: not YAML: there is the character '\u00a0'`},
		{"something else", head + "    t: [\n", "rule.yaml:4:1: not YAML: did not find expected node content"},
	} {
		_, err := rule.Parse("rule.yaml", []byte(c.yaml))
		if e := (*rule.Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nhave: %v\nwant: %s", c.name, err, c.want)
		}
	}
}

func TestParse_acceptsAYAMLDirective(t *testing.T) {
	const file = "%YAML 1.2\n---\nrules: [!SHARDING {tables: {t: {keyGenerateStrategy: {column: id}}}}]\n"
	if r := mustParse(t, file); len(r.Tables()) != 1 {
		t.Errorf("have: %v\nwant: one table", r)
	}
}

// TestParse_olderForms names the form of a file that has to be converted, and how.
func TestParse_olderForms(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"application.yml", "server: {port: 1}\nspring:\n  shardingsphere: {}\n", "application.yml:2:1: a Spring Boot file"},
		{"application.yml", "sharding.jdbc.config.sharding: {tables: }\n", "application.yml:1:1: a Spring Boot file"},
		{"a.properties", "spring.shardingsphere.sharding.tables.t.key-generator.column=id\n", "a.properties:1:1: a .properties file"},
		{"a.yaml", "rules:\n- !SHARDING\n  tables:\n    t: {keyGenerator: {column: id}}\n", `a.yaml:4:9: "keyGenerator" of an alpha version of ShardingSphere 5`},
		{"a.yaml", "rules:\n- !SHARDING\n  defaultKeyGenerator: {column: id}\n", `a.yaml:3:3: "defaultKeyGenerator" of an alpha version of ShardingSphere 5`},
		{"a.yaml", "shardingRule:\n  tables:\n    t: {keyGeneratorColumnName: id}\n", `a.yaml:3:9: "keyGeneratorColumnName" of ShardingSphere 3`},
		{"a.yaml", "shardingRule:\n  tables:\n    t: {keyGeneratorClass: a.B}\n", `a.yaml:3:9: "keyGeneratorClass" of ShardingSphere 2`},
		{"a.yaml", "shardingRule:\n  defaultKeyGeneratorClassName: a.B\n", `a.yaml:2:3: "defaultKeyGeneratorClassName" of ShardingSphere 3`},
	} {
		_, err := rule.Parse(c.file, []byte(c.text))
		want := "shardkey: " + c.want + " is not loaded as it is; convert the file: shardkey init --from FILE > rule.yaml"
		if e := (*rule.Error)(nil); !errors.As(err, &e) || err.Error() != want {
			t.Errorf("%s\nhave: %v\nwant: %s", c.text, err, want)
		}
	}
}

func TestParse_saysWhatToUseInstead(t *testing.T) {
	_, err := rule.Parse("rule.yaml", []byte(strings.Replace(whole("", ""), "type: SNOWFLAKE", "type: COSID_SNOWFLAKE", 1)))
	if err == nil || !strings.Contains(err.Error(), "use SNOWFLAKE with worker ids that are leased") {
		t.Errorf("have: %v\nwant: what to use", err)
	}
}

func TestParse_warnsOfOddProperties(t *testing.T) {
	expectWarnings(t, mustParse(t, strings.Replace(whole("", ""), "type: SNOWFLAKE", "type: SNOWFLAKE, props: {worker-id: 0123, datacenter-id: 1}", 1)), []string{
		`rule.yaml:7:53: property "worker-id" begins with a 0: other YAML readers take it for an octal number`,
		`rule.yaml:7:59: property "datacenter-id" of keyGenerators "snowflake" is ignored`,
	})
	_, err := rule.Parse("rule.yaml", []byte(strings.Replace(whole("", ""), "type: SNOWFLAKE", "type: SNOWFLAKE, props: {worker-id: [1]}", 1)))
	if err == nil || !strings.Contains(err.Error(), `property "worker-id" is "1": want an integer`) {
		t.Errorf("have: %v\nwant: an error for a list", err)
	}
}
