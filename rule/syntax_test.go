package rule_test

import (
	"errors"
	"fmt"
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

func TestParse_springErrorsPointIntoTheFile(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"application.yml", "spring:\n  application: {name: x}\n", "application.yml:1:1: no sharding rule below spring.shardingsphere.rules.sharding of this Spring Boot file"},
		{"application.yml", "spring:\n  shardingsphere:\n    rules.sharding:\n      tables:\n        t_order:\n          key-generate-stragety.column: id\n",
			`application.yml:6:11: unknown key "keyGenerateStragety" in table "t_order"; known: actualDataNodes, keyGenerateStrategy, keyGenerator; did you mean "keyGenerateStrategy"?`},
		{"a.properties", "a=b\nspring.shardingsphere.rules.sharding.tables.t.key-generate-strategy.column=id\nspring.shardingsphere.rules.sharding.tables.t.key-generate-strategy.key-generator-name=g\n",
			`a.properties:3:88: key generator "g" is not defined`},
		{"a.properties", "spring.shardingsphere.sharding.tables.t=id\nspring.shardingsphere.sharding.tables.t.key-generator.column=id\n", `"t" has a value of its own and others below it`},
		{"a.properties", springFive + "spring.shardingspere.rules.sharding.tables.u.key-generate-strategy.column=id\n",
			`a.properties:2:1: "spring.shardingspere.rules.sharding.tables.u.key-generate-strategy.column" is not below spring.shardingsphere.rules.sharding, as the sharding rule is`},
		{"a.properties", "", "a.properties:1:1: no sharding rule"},
	} {
		_, err := rule.Parse(c.file, []byte(c.text))
		if e := (*rule.Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nhave: %v\nwant: %s", c.text, err, c.want)
		}
	}
}

const springFive = "spring.shardingsphere.rules.sharding.tables.t.key-generate-strategy.column=id\n"

// What other rules and other versions have in the same file does not hinder.
func TestParse_warnsOfSpringSettingsElsewhere(t *testing.T) {
	r, err := rule.Parse("a.properties", []byte(springFive+
		"spring.shardingsphere.rule.sharding.tables.u.binding-tables=id\n"+
		"spring.shardingsphere.sharding.tables.v.key-generator.column=id\n"+
		"spring.shardingsphere.rules.encrypt.tables.t.columns.c.cipher=x\n"+
		"spring.shardingsphere.rules.readwrite-splitting.data-sources.ds.write-data-source-name=w\n"))
	if err != nil {
		t.Fatal(err)
	}
	expectWarnings(t, r, []string{
		`a.properties:2:1: "spring.shardingsphere.rule.sharding.tables.u.binding-tables" is not below`,
		`a.properties:3:1: "spring.shardingsphere.sharding.tables.v.key-generator.column" is not below spring.shardingsphere.rules.sharding, as the sharding rule is: it is ignored`,
	})
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

// TestParse_boundsSpringFiles has aliases that lead back to themselves, and such
// that multiply.
func TestParse_boundsSpringFiles(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 {x: 1, y: 2}\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d {x: *a%d, y: *a%d}\n", i, i, i-1, i-1)
	}
	for name, text := range map[string]string{
		"elsewhere": "spring: &a\n  x: *a\n  y: {z: *a}\n",
		"in itself": "spring.shardingsphere.rules.sharding: &a\n  x: *a\n  y: {z: *a}\n",
		"bomb":      bomb.String() + "spring.shardingsphere.rules.sharding: *a29\n",
	} {
		_, err := rule.Parse("application.yml", []byte(text))
		want := "too many settings"
		if name == "elsewhere" {
			want = "no sharding rule below spring.shardingsphere"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nhave: %v\nwant: %s", name, err, want)
		}
	}
	deep := "spring.shardingsphere.sharding" + strings.Repeat(".a", 1<<20) + "=1\n"
	if _, err := rule.Parse("application.properties", []byte(deep)); err == nil || !strings.Contains(err.Error(), "too many settings") {
		t.Errorf("deep\nhave: %v\nwant: too many settings", err)
	}
}
