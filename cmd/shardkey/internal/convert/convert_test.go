package convert_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/convert"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// forms returns files of all forms by name.
func forms(t testing.TB) map[string]string {
	t.Helper()
	files := sections(t, "testdata/forms.txt")
	paths, _ := filepath.Glob("testdata/*.yaml")
	properties, _ := filepath.Glob("testdata/*.properties")
	for _, path := range append(paths, properties...) {
		data := must.Get(os.ReadFile(path))(t)
		files[filepath.Base(path)] = string(data)
	}
	return files
}

// sections splits a file into named files, each after a line "-- NAME --".
func sections(t testing.TB, path string) map[string]string {
	t.Helper()
	all := must.Get(os.ReadFile(path))(t)
	files := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(string(all), "-- "), "\n-- ") {
		name, content, _ := strings.Cut(part, " --\n")
		files[name] = strings.TrimSuffix(content, "\n") + "\n"
	}
	return files
}

// file converts a file with this name and content. The places in left and in the error begin
// with the name.
func file(t testing.TB, name, content string) (out []byte, left []string, err error) {
	t.Helper()
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile(name, []byte(content), 0o600))
	return convert.File(name)
}

// TestFile_golden converts files of all forms. For each of them, testdata/forms.golden has the
// meaning of the result, the parts that are left out, and the result.
func TestFile_golden(t *testing.T) {
	golden := must.Get(filepath.Abs("testdata/forms.golden"))(t)
	want := sections(t, golden)
	all := forms(t)
	if len(all) < 24 {
		t.Fatalf("have: %d files\nwant: all forms", len(all))
	}
	have := ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			out, left, err := file(t, name, all[name])
			must.Do(t, err, out)
			r := must.Get(rule.Parse("rule.yaml", out))(t, string(out))
			one := understood(t, r) + strings.Join(append(left, ""), "\n") + string(out)
			have += "-- " + name + " --\n" + one
			if one != want[name] && !*update {
				t.Errorf("have:\n%s\nwant:\n%s", one, want[name])
			}
			again, _, err := file(t, "rule.yaml", string(out))
			if err != nil || string(again) != string(out) {
				t.Errorf("the result converted again\nhave: %s%v\nwant: %s", again, err, out)
			}
		})
	}
	if *update {
		must.Do(t, os.WriteFile(golden, []byte(have), 0o644))
	}
}

// TestFile_rules converts the rule files of the repository, which load unchanged. The result
// must have the same meaning.
func TestFile_rules(t *testing.T) {
	t.Setenv("SHARDKEY_STORE_DIR", "/tmp")
	loaded := 0
	for _, pattern := range []string{"rule/testdata", "cmd/shardkey/testdata", "driver/testdata", "examples/*"} {
		paths, _ := filepath.Glob(filepath.Join("../../../..", pattern, "*.yaml"))
		for _, path := range paths {
			r, err := rule.Load(path)
			if err != nil {
				continue
			}
			loaded++
			out, _, err := convert.File(path)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			converted, err := rule.Parse("rule.yaml", out)
			if err != nil {
				t.Errorf("%s: %v\n%s", path, err, out)
				continue
			}
			if have, want := understood(t, converted), understood(t, r); have != want {
				t.Errorf("%s\nhave:\n%s\nwant:\n%s", path, have, want)
			}
		}
	}
	if loaded < 12 {
		t.Errorf("have: %d rule files\nwant: all that load", loaded)
	}
}

const propertiesFour = "spring.shardingsphere.sharding.tables.t.key-generator."

const springFive = "spring.shardingsphere.rules.sharding.tables.t.key-generate-strategy.column: id\n"

// TestFile_errors checks that errors have places in the input, not in the result.
func TestFile_errors(t *testing.T) {
	for _, tc := range []struct{ file, content, want string }{
		{"application.yml", "spring:\n  application: {name: x}\n", "application.yml:1:1: no sharding rule"},
		{"a.properties", "a=b\n", "a.properties:1:1: no sharding rule"},
		{"a", "# x\r\n\n a.b[0] = b\n", "a:1:1: no sharding rule"},
		{"application.yml", "x: 1\nsharding.jdbc.config.sharding.tables.t.key-generator-column-name: id\n",
			"application.yml:2:1: no sharding rule: the settings of ShardingSphere 3 aren't converted; rename"},
		{"a.properties", "sharding.jdbc.datasource.names=x\nsharding.jdbc.config.sharding.tables.t.key-generator-column-name=id\n",
			"a.properties:2:1: no sharding rule: the settings of ShardingSphere 3 aren't converted; rename"},
		{"a.properties", propertiesFour + "type=SNOWFLAKE\n" + propertiesFour + "column=\xb6\xa9\n",
			"a.properties:2:1: the line isn't in UTF-8"},
		{"a.properties", propertiesFour + "type=\\u12\n", "a.properties:1:1: expected a property"},
		{"a.properties", propertiesFour + "type=\\\n  SNOWFLAKE\n\n" + propertiesFour + "props.worker.id=@worker@\n",
			"a.properties:4:71: found a placeholder of Maven: replace it"},
		{"a.properties", propertiesFour + "type: SNOWFLAKE\n" + propertiesFour + "props.worker=1\n" + propertiesFour + "column=id\n",
			`a.properties:2:1: key generator "t": unknown property "worker"`},
		{"a.properties", "spring.profiles=dev\n" + propertiesFour + "column=id\n#---\nspring.profiles[0]=prod\n" + propertiesFour + "column=x\n",
			"a.properties:4:1: 2 documents have sharding rules, and this one is only for a profile (spring.profiles.[0]: prod)"},
		{"a.yml", springFive + "---\nspring: {config: {activate: {on-profile: prod}}}\n" + springFive,
			"a.yml:3:1: 2 documents have sharding rules, and this one is only for a profile (spring.config.activate.on-profile: prod)"},
		{"a.yml", "spring:\n  profiles:\n    active: @profile@\n" + springFive, "a.yml:3:13: invalid YAML: found a placeholder of Maven"},
		{"a.yml", springFive + "x: [a, @b.c@]\n", "a.yml:2:8: invalid YAML: found a placeholder of Maven"},
		{"a.yml", springFive + "spring.shardingsphere.rules.sharding.tables.t.actual-data-nodes: 'a_@b@'\n", "a.yml:2:66: found a placeholder of Maven"},
		{"a.yml", "spring.shardingsphere.sharding.tables.t.table-strategy.inline:\n  sharding-column: a\n  algorithm-expression: t\n" +
			"  key-generator.column: id\n",
			`a.yml:4:3: "keyGenerator" is nested too deep, in "standard" of "tableStrategy" of table "t": move it up`},
		{"a.yaml", "- x\n", "a.yaml:1:1: expected a map with rules"},
		{"a.yaml", "rules: {a: b}\n", "a.yaml:1:8: expected a list of rules"},
		{"a.yaml", "a: &x {<<: [1]}\nrules:\n- !SHARDING {tables: *x}\n",
			"a.yaml:1:13: the value of <<: expected a map, found a string"},
		{"a.yaml", "rules:\n# \xd6\xd0\n- !SHARDING {}\n", "a.yaml:2:1: invalid YAML: the line isn't in UTF-8; save the file in UTF-8"},
		{"a.yaml", "rules:\n\t- !SHARDING\n", "a.yaml:2:1: invalid YAML: expected spaces as indentation, found a tab"},
		{"application.yml", "spring:\n  shardingsphere:\n    rules.sharding:\n      tables:\n        t_order:\n          key-generate-stragety.column: id\n",
			`application.yml:6:11: unknown key "keyGenerateStragety" in table "t_order"; known: actualDataNodes, keyGenerateStrategy`},
		{"a.yml", "a: b\n" + springFive + "spring.shardingsphere.rules.sharding.tables.t.key-generate-strategy.key-generator-name: g\n",
			`a.yml:3:89: key generator "g" is not defined`},
		{"a.yml", "spring.shardingsphere.sharding.tables.t: id\nspring.shardingsphere.sharding.tables.t.key-generator.column: id\n",
			`a.yml:2:1: "t" is set twice, or has both a value and nested settings (see line 1)`},
		{"a.yml", springFive + springFive, `a.yml:2:1: "column" is set twice`},
		{"a.yml", springFive + "spring.shardingspere.rules.sharding.tables.u.key-generate-strategy.column: id\n",
			`a.yml:2:1: unknown prefix of "spring.shardingspere.rules.sharding.tables.u.key-generate-strategy.column": ` +
				`expected spring.shardingsphere.rules.sharding`},
		{"a.yaml", "x-a: 1\n\nshardingRule:\n  tables:\n    t: {keyGenerator: {column: id, typ: UUID}}\n", `a.yaml:5:36: unknown key "typ" in keyGenerateStrategy`},
		{"a.yaml", "shardingRule:\n  tables:\n    t: {keyGenerator: {column: id, type: TICKTOCK}}\n", `a.yaml:3:42: unknown key generator type "TICKTOCK"`},
		{"a.yaml", "shardingRule:\n  tables:\n    t: {keyGenerator: {column: id, type: SNOWFLAKE, props: {worker: 1}}}\n", `a.yaml:3:61: key generator "t": unknown property "worker"`},
		{"a.yaml", "shardingRule:\n  tables:\n    t: {keyGenerator: {column: id, type: SNOWFLAKE, props: {path: \"${NOT_SET}\"}}}\n", `a.yaml:3:67: property "path": the environment variable NOT_SET is not set`},
		{"a.yaml", "shardingRule:\n  tables:\n    t: {keyGenerator: {column: id}}\n    t: {keyGenerator: {column: id}}\n", `a.yaml:4:5: duplicate key "t" in the tables (line 3)`},
		{"a.yaml", "shardingRule:\n  tables:\n    t: {keyGeneratorColumnName: id}\n", `a.yaml:3:9: unknown key "keyGeneratorColumnName" in table "t"`},
		{"a.yaml", "shardingRule:\n  tables:\n    t: {keyGenerator: {column: [id]}}\n", `a.yaml:3:32: column: expected a string, found a list`},
	} {
		_, _, err := file(t, tc.file, tc.content)
		if !errors.As(err, new(*rule.Error)) || !strings.HasPrefix(err.Error(), "shardkey: "+tc.want) ||
			strings.Contains(err.Error(), "shardkey init") { // which the user has just run
			t.Errorf("%s\nhave: %v\nwant: %s", tc.content, err, tc.want)
		}
	}
	for content, want := range map[string]string{"\xff\xfea\x00": "it is in UTF-16", strings.Repeat(" ", 64<<20+1): "longer than 67108864 bytes"} {
		_, _, err := file(t, "a.properties", content)
		must.FailWith(t, err, want)
	}
	if _, _, err := convert.File("none.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("have: %v\nwant: fs.ErrNotExist", err)
	}
}

// TestFile_doesNotLoad checks that File returns a rule that doesn't load together with the
// error. The program that loads it may have more types or another environment.
func TestFile_doesNotLoad(t *testing.T) {
	out, left, err := file(t, "a.yaml", "shardingRule:\n  tables:\n    t: {keyGenerator: {column: id, type: COM_EXAMPLE}}\n  props: {}\n")
	if err == nil || !strings.Contains(string(out), "type: COM_EXAMPLE") || len(left) != 1 || !strings.HasPrefix(left[0], "a.yaml:4: props: ") {
		t.Errorf("have: %s%q %v\nwant: the rule, what is left out, and an error", out, left, err)
	}
}

// TestFile_bounds converts files whose aliases contain themselves, or multiply.
func TestFile_bounds(t *testing.T) {
	bomb := "a0: &a0 {x: y}\n"
	for i := range 30 {
		bomb += strings.ReplaceAll(strings.ReplaceAll("aN: &aN {x: *aM, y: *aM}\n", "N", string(rune('A'+i))), "M", string(rune('A'+i-1)))
	}
	bomb = strings.ReplaceAll(bomb, "@", "0")
	for name, content := range map[string]string{
		"elsewhere": "spring: &a\n  x: *a\n  y: {z: *a}\n",
		"in itself": "spring.shardingsphere.rules.sharding: &a\n  x: *a\n  y: {z: *a}\n",
		"merge":     "rules:\n- !SHARDING &a {<<: *a}\n",
		"bomb":      bomb + "spring.shardingsphere.rules.sharding: *a^\n",
		"rule bomb": bomb + "shardingRule: {tables: *a^}\n",
		"depth":     "spring.shardingsphere.sharding" + strings.Repeat(".a", 1<<20) + ": 1\n",
	} {
		if _, _, err := file(t, "a.yaml", content); err == nil || len(err.Error()) > 1<<12 {
			t.Errorf("%s\nhave: %.100v\nwant: a short error", name, err)
		}
	}
}

// FuzzFile converts random files. File must not panic. It must return a rule that loads, or an
// error with its place in the file.
func FuzzFile(f *testing.F) {
	for _, content := range forms(f) {
		f.Add(content)
	}
	path := f.TempDir() + "/a.yaml"
	f.Fuzz(func(t *testing.T, content string) {
		must.Do(t, os.WriteFile(path, []byte(content), 0o600))
		out, _, err := convert.File(path)
		var e *rule.Error
		switch {
		case err != nil && (!errors.As(err, &e) || e.File != path || e.Line < 1 || strings.Contains(e.Reason, "shardkey init")):
			t.Errorf("have: %#v\nwant: a *rule.Error with its place in the file", err)
		case err == nil:
			if _, err := rule.Parse("rule.yaml", out); err != nil {
				t.Errorf("%s\nhave: %v\nwant: a rule that loads", out, err)
			}
		}
	})
}

// maker is a generator or assigner that describes its properties.
type maker struct{ props string }

func (m maker) Describe() string { return m.props }

func (maker) GenerateKeys(context.Context, spi.Column, int) ([]any, error) { return nil, nil }

func (maker) GenerateInt64Keys(context.Context, spi.Column, []int64) error { return nil }

func (maker) AcquireWorkerID(context.Context, int64) (spi.WorkerIDLease, error) { return nil, nil }

// newMaker reads the properties that the test files use.
func newMaker(typ string, p spi.Props) (maker, error) {
	m := maker{typ}
	for _, name := range strings.Fields("worker-id max-vibration-offset max-tolerate-time-difference-milliseconds layout login password path namespace " +
		"dsn version size leaf.key tick epoch") {
		if p.Has(name) {
			m.props += fmt.Sprintf(" %s=%q", name, p.String(name, ""))
		}
	}
	if p.Has("hosts") {
		m.props += fmt.Sprintf(" hosts=%q", p.List("hosts"))
	}
	_, err := p.WorkerIDAssigner("worker-id-assigner")
	return m, err
}

func init() {
	for _, typ := range []string{"SNOWFLAKE", "UUID", "NANOID", "LEAF_SEGMENT"} {
		spi.RegisterKeyGenerator(typ, func(p spi.Props) (spi.KeyGenerator, error) { return newMaker(typ, p) })
	}
	for _, typ := range []string{"FILE", "STATIC", "SQL"} {
		spi.RegisterWorkerIDAssigner(typ, func(p spi.Props) (spi.WorkerIDAssigner, error) { return newMaker(typ, p) })
	}
}

// understood describes the meaning of a rule: its generators with their properties, its tables,
// their places, and their sharding.
func understood(t *testing.T, r *rule.Rule) string {
	t.Helper()
	live := must.Get(r.Open(spi.Host{}))(t)
	defer live.Close()
	_, text, _ := strings.Cut(live.Describe(), "\n")
	lines := strings.Split(text, "\n")
	for _, table := range r.Tables() {
		lines = append(lines, table.Logical+" stands in"+places(r, table.Logical))
		switch s := table.Sharding; {
		case s == nil:
		case s.Err != nil:
			lines = append(lines, table.Logical+" is sharded in a way that is not understood")
		default:
			lines = append(lines, table.Logical+" is sharded: "+s.String())
		}
	}
	slices.Sort(lines)
	return strings.Join(append(lines, fmt.Sprintf("  data sources %v", r.DataSources())), "\n") + "\n"
}

func places(r *rule.Rule, table string) (text string) {
	for p := range r.Places(table) {
		text += " " + p.String()
	}
	return text
}
