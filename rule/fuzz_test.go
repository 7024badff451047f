package rule_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// FuzzRuleYAML reads anything: no panic, each error is a *rule.Error that
// points into the text, and a rule that loads opens, finds its own tables, and
// closes.
func FuzzRuleYAML(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{
		head + gens, shop, "", "---\n...\n", "rules: !SHARDING", "a: &a {<<: *a}\nrules: [!SHARDING *a]",
		"shardingRule: {tables: {t: {keyGenerator: {column: id}}}}",
		"rules: [!SHARDING {tables: {t: {actualDataNodes: '${0..9}${[1,2]}', keyGenerateStrategy: {column: id}}}}]",
		head + "  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: '$${NOT_SET::1}', dsns: [a, b]}}}",
		head + gens + "  workerIdAssigners: {a: {type: FILE, props: {path: x}}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("000")) || len(data) > 1<<16 {
			t.Skip("large ranges only cost time")
		}
		r, err := rule.Parse("fuzz.yaml", data)
		if err != nil {
			checkError(t, data, err)
			return
		}
		g, err := r.Open(spi.Host{})
		if err != nil {
			t.Fatalf("it loads and does not open: %v", err)
		}
		for _, info := range r.Tables() {
			if info.Column == "" || info.Logical == "" || g.Lookup("", info.Logical) == nil {
				t.Errorf("have: %+v, not found\nwant: a table with name and column", info)
			}
			for _, actual := range info.Actual {
				schema, table, ok := strings.Cut(actual, ".")
				if !ok {
					schema, table = "", actual
				}
				if found := g.Lookup(schema, table); found == nil || found.Logical != info.Logical {
					t.Errorf("%s\nhave: %+v\nwant: table %s", actual, found, info.Logical)
				}
			}
		}
		_ = g.Describe()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

func checkError(t *testing.T, data []byte, err error) {
	var e *rule.Error
	if !errors.As(err, &e) {
		t.Fatalf("have: %T %v\nwant: a *rule.Error", err, err)
	}
	lines := 1 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) +
		bytes.Count(data, []byte("\u0085")) + bytes.Count(data, []byte("\u2028")) + bytes.Count(data, []byte("\u2029"))
	if e.Line < 0 || e.Line > lines || e.Line == 0 && !errors.Is(err, rule.ErrNoKeys) {
		t.Errorf("have: line %d of %d: %v\nwant: a line of the text", e.Line, lines, err)
	}
	if e.Line > 0 && e.Column < 1 || e.Reason == "" || !strings.HasPrefix(err.Error(), "shardkey: fuzz.yaml:") {
		t.Errorf("have: %+v\nwant: a place and a reason", e)
	}
}
