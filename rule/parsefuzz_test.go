package rule_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// FuzzRuleYAML parses any input. It must not panic, and each error is a *rule.Error with a place in
// the input. A rule that loads can be opened, finds its own tables, and can be closed.
func FuzzRuleYAML(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(f)
		f.Add(data)
	}
	for _, text := range []string{
		head + gens, shop, "", "---\n...\n", "rules: !SHARDING", "a: &a {<<: *a}\nrules: [!SHARDING *a]",
		"shardingRule: {tables: {t: {keyGenerator: {column: id}}}}",
		"rules: [!SHARDING {tables: {t: {actualDataNodes: '${0..9}${[1,2]}', keyGenerateStrategy: {column: id}}}}]",
		head + "  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: '$${NOT_SET::1}', dsns: [a, b]}}}",
		head + gens + "  workerIdAssigners: {a: {type: FILE, props: {path: /x}}}",
		patterns,
		"rules: [!SHARDING {tables: {t: {actualDataNodes: \"ds.t_$->{(1..3).collect{t -> t.toString().padLeft(2,'0')}}_${(0..9).step(3)}\", keyGenerateStrategy: {column: id}}}}]",
		"rules: [!SHARDING {tables: {t: {actualDataNodes: '<INTERVAL>P=t_;SP=yyyyMM;DIU=Months;DL=202301;DU=202312', keyGenerateStrategy: {column: id}}}}]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(checkYAML)
}

func checkYAML(t *testing.T, data []byte) {
	if len(data) > 1<<16 || longNumber.Match(data) {
		return // long ranges only take time
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
			found := g.Lookup(schema, table)
			if !ok || found == nil {
				found = g.Lookup("", actual)
			}
			if found == nil || found.Logical != info.Logical {
				t.Errorf("%s\nhave: %+v\nwant: table %s", actual, found, info.Logical)
			}
		}
	}
	_ = g.Describe()
	must.Do(t, g.Close())
}

// TestParse_survivesMutatedFiles runs the fuzzer's check on inputs that are almost rules, which
// random bytes rarely are. It drops, duplicates and swaps lines and words of valid rules.
func TestParse_survivesMutatedFiles(t *testing.T) {
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, 1))
	files := must.Get(filepath.Glob("testdata/*.yaml"))(t)
	loaded := 0
	for i := range 400 {
		data := must.Get(os.ReadFile(files[i%len(files)]))(t)
		text := string(data)
		for range 1 + rnd.IntN(3) {
			text = mutate(rnd, text)
		}
		checkYAML(t, []byte(text))
		if t.Failed() {
			t.Fatalf("seed %d, rule %d:\n%s", seed, i, text)
		}
		if _, err := rule.Parse("r", []byte(text)); err == nil {
			loaded++
		}
	}
	if loaded < 10 || loaded > 390 {
		t.Errorf("have: %d of 400 load\nwant: some, so that both ways are seen", loaded)
	}
}

var longNumber = regexp.MustCompile(`\.\.<?\s*[1-9]\d{4,5}\D`)

var wordOrNot = regexp.MustCompile(`\w+|[^\w]`)

func mutate(rnd *rand.Rand, text string) string {
	split := strings.SplitAfter(text, "\n")
	if rnd.IntN(2) == 0 {
		split = wordOrNot.FindAllString(text, -1)
	}
	if len(split) < 2 {
		return text
	}
	i, j := rnd.IntN(len(split)), rnd.IntN(len(split))
	switch rnd.IntN(4) {
	case 0:
		split = slices.Delete(split, i, i+1)
	case 1:
		split = slices.Insert(split, i, split[j])
	case 2:
		split[i], split[j] = split[j], split[i]
	case 3:
		split[i] = split[j]
	}
	return strings.Join(split, "")
}

func checkError(t *testing.T, data []byte, err error) {
	var e *rule.Error
	if !errors.As(err, &e) {
		t.Fatalf("have: %T %v\nwant: a *rule.Error", err, err)
	}
	lines := 1 + bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) +
		bytes.Count(data, []byte("\u0085")) + bytes.Count(data, []byte("\u2028")) + bytes.Count(data, []byte("\u2029"))
	if e.Line < 1 || e.Line > lines {
		t.Errorf("have: line %d of %d: %v\nwant: a line of the text", e.Line, lines, err)
	}
	if e.Column < 1 || e.Reason == "" || !strings.HasPrefix(err.Error(), "shardkey: fuzz.") {
		t.Errorf("have: %+v\nwant: a place and a reason", e)
	}
}
