package rule_test

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestParse_golden parses valid and invalid rules: the files in testdata, and the sections of
// rules.txt. rules.golden has the description of each rule with its warnings, or the error.
func TestParse_golden(t *testing.T) {
	const golden = "testdata/rules.golden"
	rules := sections(t, "testdata/rules.txt")
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(t)
		rules = append(rules, section{filepath.Base(file), string(data)})
	}
	if *update {
		var b strings.Builder
		for _, s := range rules {
			b.WriteString("-- " + s.name + " --\n" + meaning(s.text))
		}
		must.Do(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want := sections(t, golden)
	if len(files) < 4 || len(want) != len(rules) {
		t.Fatalf("have: %d rules, %d files\nwant: %d; run with -update", len(rules), len(files), len(want))
	}
	for i, s := range rules {
		t.Run(s.name, func(t *testing.T) {
			if have := meaning(s.text); have != want[i].text || s.name != want[i].name {
				t.Errorf("%s\nhave:\n%s\nwant:\n%s", s.text, have, want[i].text)
			}
		})
	}
}

// section is a part of a file after a line "-- NAME --".
type section struct{ name, text string }

func sections(t testing.TB, file string) (all []section) {
	t.Helper()
	data := must.Get(os.ReadFile(file))(t)
	for _, part := range strings.Split("\n"+strings.TrimSuffix(string(data), "\n"), "\n-- ")[1:] {
		name, text, _ := strings.Cut(part+"\n", " --\n")
		all = append(all, section{name, text})
	}
	return all
}

// meaning returns the description of a rule with its warnings, or the error.
func meaning(text string) string {
	r, err := rule.Parse("rule.yaml", []byte(text))
	if e := (*rule.Error)(nil); errors.As(err, &e) {
		return fmt.Sprintf("%v\n%q\n", err, e.Word)
	}
	b := r.String() + "\n"
	for _, table := range r.Tables() {
		if table.Sharding != nil {
			b += fmt.Sprintf("  %s: %v\n", table.Logical, table.Sharding)
		}
	}
	for _, w := range r.Warnings() {
		b += w.Error() + "\n"
	}
	return b
}

// A syntax error in a map is reported where the map begins.
func TestParse_syntaxErrorPlaces(t *testing.T) {
	const begin = "rules:\n- !SHARDING\n  tables: {t: {keyGenerateStrategy: {column: id}}}\n  keyGenerators:\n    g:\n      type: UUID\n"
	for _, c := range []struct{ text, want string }{
		{begin + "      props: {worker-id: 1 max-vibration-offset: 3}\n", "rule.yaml:7:14: "},
		{begin + "      props: {worker-id: 1, max-vibration-offset: 3\n    h: {type: UUID}\n", "rule.yaml:7:14: "},
		{begin + "      props: {worker-id: '1'\n        max-vibration-offset: 3}\n", "rule.yaml:7:14: "},
		{begin + "      props: {hosts: ['a' 'b']}\n", "rule.yaml:7:22: "},
		{begin + "      props: {hosts: 'a'}}\n", "rule.yaml:6:7: "},
		{begin + "     props: {hosts: 'a'}\n", "rule.yaml:5:5: "},
		{`{"rules": [{"tables": {}]}`, "rule.yaml:1:23: "},
		{`{"rules": [{"tables": {}}]}`, `rule.yaml:1:12: no sharding rule: JSON has no tags, so write the rule as YAML, with "rules:"`},
		{`{"rules": [!SHARDING {"tables": {}}]}`, "no table has a key generator"},
	} {
		must.FailWith(t, must.Err(rule.Parse("rule.yaml", []byte(c.text))), c.want, c.text)
	}
}

func TestLoad_unreadableFile(t *testing.T) {
	dir := t.TempDir()
	_, err := rule.Load(filepath.Join(dir, "none.yaml"))
	must.Is(t, err, fs.ErrNotExist)
	if e, ok := errors.AsType[*rule.Error](err); !ok || e.File != filepath.Join(dir, "none.yaml") {
		t.Errorf("have: %#v\nwant: a *rule.Error with the file's name", err)
	}
	// Windows has no error for that.
	if _, err = rule.Load(dir); err == nil || runtime.GOOS != "windows" && !strings.Contains(err.Error(), "directory") {
		t.Errorf("have: %v\nwant: it is a directory", err)
	}
	_, err = rule.Load("none.yaml")
	if wd, _ := os.Getwd(); err == nil || !strings.Contains(err.Error(), wd) {
		t.Errorf("have: %v\nwant: the directory in which none.yaml was looked for", err)
	}
}

// TestParse_encodings parses the same rule with a byte order mark, with CRLF, in UTF-16, as JSON,
// and in the second document of a file.
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

func mustParse(t testing.TB, yaml string) *rule.Rule {
	t.Helper()
	return must.Get(rule.Parse("rule.yaml", []byte(yaml)))(t)
}

func mustOpen(t testing.TB, r *rule.Rule) *rule.Live {
	t.Helper()
	g := must.Get(r.Open(spi.Host{}))(t)
	t.Cleanup(func() { must.Do(t, g.Close()) })
	return g
}

// A short rule must not expand to gigabytes, and an error must not be as long as the name that it
// is about.
func TestParse_boundsAreInBytes(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, nodes := range map[string]string{
		"zeros":        "d.t_${" + strings.Repeat("0", 100_000) + "0..99999}",
		"zeros, up":    "d.t_${0.." + strings.Repeat("0", 100_000) + "99999}",
		"prefix":       "d." + long + "${0..1000000}",
		"suffix":       "d.t_${0..1000000}" + long,
		"source":       long + "${0..1000000}.t",
		"list":         "d.t_${['" + long + "','" + long + "']}${0..500000}",
		"parts":        "d.t_" + strings.Repeat("${0..9}", 90),
		"pad":          "d.t_${(0..99999).collect{it.toString().padLeft(100000, '0')}}",
		"concatenated": "d.t_${(0..99999).collect{'" + long + "' + it}}",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := rule.Parse("bytes.yaml", []byte("rules:\n- !SHARDING\n  tables: {t: {actualDataNodes: \""+nodes+"\", keyGenerateStrategy: {column: id}}}\n"))
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 500 {
			t.Errorf("%s: %d MB", name, used)
		}
		if err != nil && len(err.Error()) > 2000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

func TestParse_errorsAreShort(t *testing.T) {
	long := strings.Repeat("y", 256<<10)
	for _, text := range []string{
		"keyGenerators: {g: {type: SNOWFLAKE, props: {worker-id: " + long + "}}}", "keyGenerators: {g: {type: SNOWFLAKE, props: {" + long + ": 1}}}", "keyGenerators: {g: {type: " + long + "}}",
		"keyGenerators: {g: {type: SNOWFLAKE, props: {worker-id-assigner: " + long + "}}}", "keyGenerators: {g: {type: SNOWFLAKE, props: {layout: " + long + "}}}",
		"keyGenerators: {g: {type: SNOWFLAKE, props: {worker-id: '${HOME}" + long + "'}}}", "keyGenerators: {g: {type: SNOWFLAKE, props: {worker-id: '${" + long + "}'}}}", "keyGenerators: {g: {" + long + ": x}}", long + ": 1",
	} {
		_, err := rule.Parse("long.yaml", []byte("rules:\n- !SHARDING\n  tables: {t: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}}\n  "+text+"\n"))
		if err != nil && len(err.Error()) > 4000 {
			t.Errorf("%.60s\nan error of %d bytes", text, len(err.Error()))
		}
	}
}

// head is the beginning of a rule with a key for the table t. The generators follow it.
const head = `rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
`

// gens completes head. It begins in line 5.
const gens = `  keyGenerators:
    snowflake: {type: SNOWFLAKE}
`

// TestError_showsNoSecrets checks that errors contain no values of environment variables.
func TestError_showsNoSecrets(t *testing.T) {
	t.Setenv("SHARDKEY_SECRET", "tops3cret")
	for _, props := range []string{
		`what: "${SHARDKEY_SECRET}"`,
		`worker-id: "${SHARDKEY_SECRET}"`,
		`worker-id: "1${SHARDKEY_SECRET}"`,
		`worker-id: ["${SHARDKEY_SECRET}", b]`,
		`password: "${SHARDKEY_SECRET}", unknown: "${SHARDKEY_SECRET}"`,
		`password: "${SHARDKEY_SECRET}${SHARDKEY_NOT_SET}"`,
		`worker-id-assigner: "${SHARDKEY_SECRET}"`,
	} {
		_, err := rule.Parse("r", []byte(head+"  keyGenerators: {snowflake: {type: "+typeOf(props)+", props: {"+props+"}}}"))
		must.Fail(t, err, props)
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v", e, e), "tops3cret") {
				t.Errorf("%s\nhave: %v\nwant: nothing of the variable's value", props, e)
			}
		}
	}
}

// Replacing a short value in the message would reveal it, so the whole message is left out.
func TestError_showsNoShortSecrets(t *testing.T) {
	for _, value := range []string{"p", "is", "wrong", ".*", "1"} {
		t.Setenv("SHARDKEY_SECRET", value)
		for _, props := range []string{`what: "${SHARDKEY_SECRET}"`, `what: moon, a: ["${SHARDKEY_SECRET}"], b: "${SHARDKEY_SECRET}"`} {
			_, err := rule.Parse("r", []byte(head+"  keyGenerators: {snowflake: {type: BROKEN, props: {"+props+"}}}"))
			const whole = "the moon is wrong"
			if have := fmt.Sprint(err); strings.Contains(have, "${SHARDKEY_SECRET} is") || !strings.Contains(have, whole) && !strings.Contains(have, "not shown") {
				t.Errorf("%q, %s\nhave: %v\nwant: the whole reason or none of it", value, props, err)
			}
		}
	}
}

func typeOf(props string) string {
	if strings.HasPrefix(props, "what") {
		return "BROKEN"
	}
	return "SNOWFLAKE"
}

func withSecrets(login, hosts, password any) rule.Config {
	cfg := config()
	cfg.Generators["uuid"] = rule.GeneratorConfig{Type: "SECRETS", Props: rule.Props{"login": login, "hosts": hosts, "password": password}}
	return cfg
}

// Package fmt prints a string in a map with some verbs, even if the map has a String method.
func TestNew_refusesSecretsAsStrings(t *testing.T) {
	s := spi.NewSecret("pw")
	for name, cfg := range map[string]rule.Config{
		"login":    withSecrets("pw", s, s),
		"hosts":    withSecrets(s, []string{"pw"}, s),
		"password": withSecrets(s, s, 12345),
	} {
		_, err := rule.New(cfg)
		if at, ok := errors.AsType[*rule.Error](err); !ok || at.Path != fmt.Sprintf("Generators[\"uuid\"].Props[%q]", name) || !strings.Contains(err.Error(), "spi.Secret") || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s\nhave: %v\nwant: an error at the property that asks for a spi.Secret", name, err)
		}
	}
}

// A Config that New accepts contains no secret that can be printed.
func TestConfig_printsNoSecrets(t *testing.T) {
	const canary = "01732654417"
	s := spi.NewSecret(canary)
	cfg := withSecrets(s, []spi.Secret{s, s}, s)
	must.Get(rule.New(cfg))(t)
	var shown bytes.Buffer
	text, jsonText, structured := slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil), json.NewEncoder(&shown)
	for _, v := range []any{cfg, &cfg, cfg.Generators, cfg.Generators["uuid"], cfg.Generators["uuid"].Props, cfg.Generators["uuid"].Props["hosts"], s, &s} {
		for verb := ' '; verb < 0x7f; verb++ {
			for _, flags := range []string{"", "+", "#", " ", "0", "-9.3"} {
				fmt.Fprintf(&shown, "%"+flags+string(verb)+"\n", v)
			}
		}
		slog.New(text).Info("x", "v", v)
		slog.New(jsonText).Info("x", "v", v)
		_ = structured.Encode(v) // an error contains no value
		_ = gob.NewEncoder(&shown).Encode(v)
		if b, err := yaml.Marshal(v); err == nil {
			shown.Write(b)
		}
	}
	for _, form := range []string{canary, hex.EncodeToString([]byte(canary)), base64.StdEncoding.EncodeToString([]byte(canary))[:12]} {
		if strings.Contains(strings.ToLower(shown.String()), strings.ToLower(form)) {
			t.Errorf("a Config shows its secret as %s", form)
		}
	}
}

// TestDocs_rulesLoad parses the rule files in docs/reference/rule-files.md.
func TestDocs_rulesLoad(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/reference/rule-files.md"))(t)
	_, after, _ := strings.Cut(string(text), "```yaml\n")
	file, _, ok := strings.Cut(after, "```")
	// Replace the types that this package's tests don't register; see fakes_test.go.
	file = strings.ReplaceAll(strings.ReplaceAll(file, "type: SQL", "type: FILE"), `dsn: "app:secret@tcp(db:3306)/ids", namespace: shop`, "path: /tmp")
	r, err := rule.Parse("rule.yaml", []byte(file))
	if !ok || err != nil || len(r.Warnings()) > 0 {
		t.Errorf("%s\nhave: %v, %v\nwant: a rule without warnings", file, r, err)
	}
}

// TestDocs_shardingIsUnderstood parses the rule files in the pages about sharding.
func TestDocs_shardingIsUnderstood(t *testing.T) {
	var files []string
	for _, path := range []string{"../docs/guides/shards.md", "../docs/reference/sharding.md"} {
		text := must.Get(os.ReadFile(path))(t)
		files = append(files, strings.Split(string(text), "```yaml\n")[1:]...)
	}
	for _, file := range files {
		file, _, _ = strings.Cut(file, "```")
		file = strings.Replace(file, "SNOWFLAKE, props: {worker-id: 17, gene", "UNSEEN, props: {gene", 1) // registered by this package's tests
		r, err := rule.Parse("rule.yaml", []byte(file))
		if err != nil || len(r.Warnings()) > 0 || r.Tables()[0].Sharding.Err != nil {
			t.Errorf("%s\nhave: %v, %v\nwant: a rule that is understood", file, r, err)
		}
	}
	must.Equal(t, len(files), 5, "files")
}

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
	must.Equal(t, r.String(), want)
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
		if e, ok := errors.AsType[*rule.Error](err); !ok || !strings.Contains(err.Error(), c.want) || e.Line != 0 {
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
	must.Contain(t, g.Describe(), "key generator uuid: READY worker 0")
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
