package rule_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestParse_golden loads whole files in each of the three forms and compares what
// the rule understood with FILE.golden.
func TestParse_golden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("have: %d files, %v\nwant: the forms and more", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, err := rule.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			have := strings.ReplaceAll(r.String(), `\`, "/") + "\n"
			for _, w := range r.Warnings() {
				have += w.Error() + "\n"
			}
			golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(have), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if have != string(want) {
				t.Errorf("have:\n%s\nwant:\n%s", have, want)
			}
		})
	}
}

// TestParse_formsAgree finds the same tables and columns in one rule written in the
// three forms. (The names of the generators differ: version 4 has none.)
func TestParse_formsAgree(t *testing.T) {
	type key struct {
		Logical, Column, Type string
		Fill                  bool
		Actual                string
	}
	keys := func(file string, skip string) (keys []key) {
		r, err := rule.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range r.Tables() {
			if i.Logical != skip {
				keys = append(keys, key{i.Logical, i.Column, i.GeneratorType, i.ExplicitKeys == "fill", strings.Join(i.Actual, " ")})
			}
		}
		return keys
	}
	v5, v554 := keys("testdata/v5.yaml", ""), keys("testdata/v554.yaml", "")
	if !slices.Equal(v5, v554) {
		t.Errorf("have: %v\nwant: %v", v554, v5)
	}
	// Version 4 has no auto tables.
	v5, v4 := keys("testdata/v5.yaml", "t_auto"), keys("testdata/v4.yaml", "")
	if !slices.Equal(v5, v4) {
		t.Errorf("have: %v\nwant: %v", v4, v5)
	}
}

func TestLoad_unreadableFile(t *testing.T) {
	dir := t.TempDir()
	_, err := rule.Load(filepath.Join(dir, "none.yaml"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("have: %v\nwant: fs.ErrNotExist in the chain", err)
	}
	var e *rule.Error
	if !errors.As(err, &e) || e.File != filepath.Join(dir, "none.yaml") {
		t.Errorf("have: %#v\nwant: a *rule.Error with the file's name", err)
	}
	if _, err = rule.Load(dir); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("have: %v\nwant: it is a directory", err)
	}
	_, err = rule.Load("none.yaml")
	if wd, _ := os.Getwd(); err == nil || !strings.Contains(err.Error(), wd) {
		t.Errorf("have: %v\nwant: the directory in which none.yaml was looked for", err)
	}
}

// TestParse_encodings reads the same rule after a byte order mark, with CRLF, in
// UTF-16, as JSON would be, and in the second document of a file.
func TestParse_encodings(t *testing.T) {
	const text = "rules:\n- !SHARDING\n  tables: {t: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}}\n  keyGenerators: {g: {type: UUID}}\n"
	utf16 := []byte{0xff, 0xfe}
	for _, c := range []byte(text) {
		utf16 = append(utf16, c, 0)
	}
	for name, data := range map[string][]byte{
		"bom":       []byte("\ufeff" + text),
		"crlf":      []byte(strings.ReplaceAll(text, "\n", "\r\n")),
		"utf-16":    utf16,
		"flow":      []byte(`{"rules": [!SHARDING {"tables": {"t": {"keyGenerateStrategy": {"column": "id"}}}}]}`),
		"documents": []byte("---\nprops: {sql-show: true}\n---\n" + text + "---\n# nothing\n"),
		"class tag": []byte(strings.Replace(text, "!SHARDING", "!!org.apache.shardingsphere.sharding.yaml.config.YamlShardingRuleConfiguration", 1)),
	} {
		r, err := rule.Parse(name, data)
		if err != nil {
			t.Errorf("%s: have: %v\nwant: no error", name, err)
			continue
		}
		if tables := r.Tables(); len(tables) != 1 || tables[0].Column != "id" {
			t.Errorf("%s: have: %v\nwant: table t, column id", name, tables)
		}
	}
}

// TestParse_severalRules shares generators across the sharding rules of a file, and
// keeps each one's default to its own tables.
func TestParse_severalRules(t *testing.T) {
	r := mustParse(t, `
rules:
- !SHARDING
  tables: {a: }
  defaultKeyGenerateStrategy: {column: a_id, keyGeneratorName: g}
  keyGenerators: {g: {type: UUID}}
- !SHARDING
  tables: {b: }
  defaultKeyGenerateStrategy: {column: b_id, keyGeneratorName: g}
---
shardingRule:
  tables: {c: , d: {keyGenerator: {column: d_id, type: UUID}}}
`)
	g := mustOpen(t, r)
	for _, c := range []struct{ table, column, generator string }{
		{"a", "a_id", "g"}, {"b", "b_id", "g"}, {"c", "", ""}, {"d", "d_id", "d"},
	} {
		table := g.Lookup("", c.table)
		if table == nil {
			table = &rule.Table{}
		}
		if table.Column != c.column || table.GeneratorName != c.generator {
			t.Errorf("table %s\nhave: %q from %q\nwant: %q from %q", c.table, table.Column, table.GeneratorName, c.column, c.generator)
		}
	}
	if g.Lookup("", "a").Generator != g.Lookup("", "b").Generator {
		t.Error("have: two generators\nwant: one for one name")
	}
}

// TestParse_defaults fills in what strategies leave out, as ShardingSphere does.
func TestParse_defaults(t *testing.T) {
	for _, c := range []struct{ name, yaml, want string }{
		{"no generator, no default", `
rules: [!SHARDING {tables: {t: {keyGenerateStrategy: {column: id}}}}]`,
			"t.id from default SNOWFLAKE"},
		{"no generator, default", `
rules: [!SHARDING {tables: {t: {keyGenerateStrategy: {column: id}}}, defaultKeyGenerateStrategy: {column: x, keyGeneratorName: u}, keyGenerators: {u: {type: UUID}}}]`,
			"t.id from u"},
		{"no column, default", `
rules: [!SHARDING {tables: {t: {keyGenerateStrategy: {keyGeneratorName: u}}}, defaultKeyGenerateStrategy: {column: y}, keyGenerators: {u: {type: UUID}}}]`,
			"t.y from u"},
		{"empty strategy", `
rules: [!SHARDING {tables: {t: {keyGenerateStrategy: }}, defaultKeyGenerateStrategy: {column: x}}]`,
			"t.x from default SNOWFLAKE"},
		{"explicit keys beside the column", `
rules: [!SHARDING {tables: {own: {keyGenerateStrategy: {column: id}}, both: , set: {keyGenerateStrategy: {explicitKeys: fill}}, gen: {keyGenerateStrategy: {keyGeneratorName: u}}}, defaultKeyGenerateStrategy: {column: x, keyGeneratorName: u, explicitKeys: KEEP}, keyGenerators: {u: {type: UUID}}}]`,
			"own.id from u, both.x from u kept, set.x from u, gen.x from u kept"},
		{"keys of a batch", `
rules: [!SHARDING {tables: {own: {keyGenerateStrategy: {column: id}}, both: , any: {keyGenerateStrategy: {batchKeys: ANY}}, gen: {keyGenerateStrategy: {keyGeneratorName: u}}}, defaultKeyGenerateStrategy: {column: x, keyGeneratorName: u, batchKeys: consecutive}, keyGenerators: {u: {type: UUID}}}]`,
			"own.id from u, both.x from u consecutive, any.x from u, gen.x from u consecutive"},
		{"5.5.4: keys of a batch", `
rules: [!SHARDING {tables: {t: }, keyGenerateStrategies: {s: {logicTable: t, keyGenerateColumn: id, batchKeys: consecutive}}}]`,
			"t.id from default SNOWFLAKE consecutive"},
		{"4: keys of a batch", `
shardingRule: {tables: {t: {keyGenerator: {column: id, batchKeys: consecutive}}}}`,
			"t.id from default SNOWFLAKE consecutive"},
		{"default without column", `
rules: [!SHARDING {tables: {t: {keyGenerateStrategy: {column: id}}, v: }, defaultKeyGenerateStrategy: {keyGeneratorName: u}, keyGenerators: {u: {type: UUID}}}]`,
			"t.id from u"},
		{"4: no type, no default", `
shardingRule: {tables: {t: {keyGenerator: {column: id}}}}`,
			"t.id from default SNOWFLAKE"},
		{"4: no type, default", `
shardingRule: {tables: {t: {keyGenerator: {column: id}}}, defaultKeyGenerator: {type: UUID}}`,
			"t.id from defaultKeyGenerator"},
		{"4: default only", `
shardingRule: {tables: {t: }, defaultKeyGenerator: {type: UUID, column: x}}`,
			"t.x from defaultKeyGenerator"},
	} {
		infos := mustParse(t, c.yaml).Tables()
		var have []string
		for _, i := range infos {
			one := i.Logical + "." + i.Column + " from " + i.GeneratorName
			if i.ExplicitKeys == "keep" {
				one += " kept"
			}
			if i.Consecutive {
				one += " consecutive"
			}
			have = append(have, one)
		}
		if strings.Join(have, ", ") != c.want {
			t.Errorf("%s\nhave: %v\nwant: %v", c.name, have, c.want)
		}
	}
}

// TestParse_aliasesAndMerges follows anchors, aliases and merges as YAML has them.
func TestParse_aliasesAndMerges(t *testing.T) {
	r := mustParse(t, `
strategy: &id {column: id, keyGeneratorName: g}
base: &base {keyGenerateStrategy: *id}
other: &other {keyGenerateStrategy: {column: never}, actualDataNodes: "ds.c_${0..1}"}
rules:
- !SHARDING
  tables:
    a: *base
    b: {<<: *base, actualDataNodes: "ds.b_${0..1}"}
    c: {<<: [*base, *other]}
  keyGenerators:
    g: &g
      type: UUID
    h: *g
`)
	var have []string
	for _, i := range r.Tables() {
		have = append(have, i.Logical+"."+i.Column+" "+strings.Join(i.Actual, ","))
	}
	want := []string{"a.id a", "b.id b_0,b_1", "c.id c_0,c_1"}
	if !slices.Equal(have, want) {
		t.Errorf("have: %v\nwant: %v", have, want)
	}
}

func mustParse(t testing.TB, yaml string) *rule.Rule {
	t.Helper()
	r, err := rule.Parse("rule.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustOpen(t testing.TB, r *rule.Rule) *rule.Live {
	t.Helper()
	g, err := r.Open(spi.Host{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}
