package rule_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// opened opens a rule for a data source. The test closes it.
func opened(t *testing.T, r *rule.Rule, host spi.Host) *rule.Live {
	t.Helper()
	l := must.Get(r.Open(host))(t)
	return l
}

func mustClose(t *testing.T, lives ...*rule.Live) {
	t.Helper()
	for _, l := range lives {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func writeRule(t *testing.T, path, text string) *rule.Rule {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	return mustLoad(t, path)
}

func mustLoad(t *testing.T, path string) *rule.Rule {
	t.Helper()
	r := must.Get(rule.Load(path))(t)
	return r
}

// oneTable returns a rule with one table and one generator.
func oneTable(nodes, generator string) string {
	return "rules:\n- !SHARDING\n  tables:\n    t:\n      actualDataNodes: " + nodes +
		"\n      keyGenerateStrategy: {column: id, keyGeneratorName: g}\n  keyGenerators:\n    g: " + generator + "\n"
}

type otherClock struct {
	spi.Clock
	odd func() // a clock for which == panics
}

func TestOpen_sharesWhatIsTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	text := oneTable("t_${0..3}", "{type: SNOWFLAKE, props: {worker-id: 3, password: a}}")
	first := opened(t, writeRule(t, path, text), spi.Host{})
	g := first.Generator("g").(*fake)
	t.Chdir(filepath.Dir(path))
	built := func() *rule.Rule {
		r := must.Get(rule.New(rule.Config{
			Tables:     []rule.TableConfig{{Name: "t", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
			Generators: map[string]rule.GeneratorConfig{"g": {Type: "SNOWFLAKE", Props: map[string]any{"worker-id": 3, "password": spi.NewSecret("a")}}},
		}))(t)
		return r
	}
	for _, c := range []struct {
		name   string
		rule   *rule.Rule
		host   spi.Host
		shared bool
	}{
		{"the same file", mustLoad(t, path), spi.Host{}, true},
		{"by another path", mustLoad(t, "./rule.yaml"), spi.Host{}, true},
		{"for another database that is not used", mustLoad(t, path), spi.Host{DSN: spi.NewSecret("u@tcp(h)/d")}, true},
		{"with the clock that is the default", mustLoad(t, path), spi.Host{Clock: spi.SystemClock}, true},
		{"with another clock", mustLoad(t, path), spi.Host{Clock: otherClock{odd: func() {}}}, false},
		{"the same text elsewhere", writeRule(t, filepath.Join(t.TempDir(), "rule.yaml"), text), spi.Host{}, false},
		{"other tables", writeRule(t, path, strings.Replace(text, "0..3", "0..9", 1)), spi.Host{}, true},
		{"the name spelt otherwise", writeRule(t, path, strings.Replace(text, "worker-id", "worker.ID", 1)), spi.Host{}, true},
		{"another worker ID", writeRule(t, path, strings.Replace(text, "3,", "4,", 1)), spi.Host{}, false},
		{"another type", writeRule(t, path, strings.Replace(text, "SNOWFLAKE", "UUID", 1)), spi.Host{}, false},
		{"built in Go", built(), spi.Host{}, false},
	} {
		l := opened(t, c.rule, c.host)
		if have := l.Generator("g") == first.Generator("g"); have != c.shared {
			t.Errorf("%s\nhave: shared %v\nwant: %v", c.name, have, c.shared)
		}
		mustClose(t, l, l) // the second call does nothing
		if g.closed.Load() != 0 {
			t.Fatalf("%s: the first one's generator is closed", c.name)
		}
	}
	a, b := opened(t, mustParse(t, text), spi.Host{}), opened(t, mustParse(t, text), spi.Host{})
	if a.Generator("g") == b.Generator("g") {
		t.Error("have: one generator of two rules that were parsed\nwant: two")
	}
	r := built()
	c, d := opened(t, r, spi.Host{}), opened(t, r, spi.Host{})
	if c.Generator("g") != d.Generator("g") {
		t.Error("have: two generators of one *Rule\nwant: one")
	}
	mustClose(t, a, b, c, d, first)
	if n := g.closed.Load(); n != 1 {
		t.Errorf("have: closed %d times by the last one\nwant: once", n)
	}
	again := opened(t, writeRule(t, path, text), spi.Host{})
	if again.Generator("g") == g {
		t.Error("have: the closed generator\nwant: another one")
	}
	mustClose(t, again)
}

func TestReplace_keepsWhatHasNotChanged(t *testing.T) {
	old := mustParse(t, shop)
	first, second := opened(t, old, spi.Host{}), opened(t, old, spi.Host{})
	snowflake, uuid := first.Generator("snowflake").(*fake), first.Generator("uuid").(*fake)
	next := mustParse(t, strings.Replace(shop, "worker-id: 5", "worker-id: 6", 1))
	var replaced []*rule.Live
	for _, l := range []*rule.Live{first, second} {
		r := must.Get(l.Replace(next))(t)
		replaced = append(replaced, r)
	}
	third := opened(t, next, spi.Host{})
	for _, l := range append(replaced, third) {
		if l.Generator("uuid") != uuid || l.Generator("snowflake") == snowflake || l.Generator("snowflake") != third.Generator("snowflake") {
			t.Errorf("have: uuid kept %v, snowflake kept %v\nwant: uuid, and one other snowflake", l.Generator("uuid") == uuid, l.Generator("snowflake") == snowflake)
		}
	}
	mustClose(t, first)
	if snowflake.closed.Load() != 0 {
		t.Error("have: closed while another uses it\nwant: open")
	}
	mustClose(t, second)
	if snowflake.closed.Load() != 1 || uuid.closed.Load() != 0 || uuid.assigner.(*fakeAssigner).closed.Load() != 0 {
		t.Errorf("have: snowflake closed %d times, uuid %d, its assigner %d\nwant: 1, 0, 0",
			snowflake.closed.Load(), uuid.closed.Load(), uuid.assigner.(*fakeAssigner).closed.Load())
	}
	mustClose(t, append(replaced, third)...)
	if uuid.closed.Load() != 1 || uuid.assigner.(*fakeAssigner).closed.Load() != 1 {
		t.Error("have: something is left open\nwant: all closed once")
	}
}

// If a generator's configuration changes but its assigner's doesn't, the generator keeps its worker
// ID.
func TestReplace_changedGeneratorKeepsItsAssigner(t *testing.T) {
	text := oneTable("t", "{type: SNOWFLAKE, props: {worker-id: 5, worker-id-assigner: files}}") + "  workerIdAssigners:\n    files: {type: FILE, props: {path: /kept}}\n"
	first := opened(t, mustParse(t, text), spi.Host{})
	next := must.Get(first.Replace(mustParse(t, strings.Replace(text, "worker-id: 5", "worker-id: 6", 1))))(t)
	was, is := first.Generator("g").(*fake), next.Generator("g").(*fake)
	if was == is || was.assigner != is.assigner {
		t.Errorf("have: the same generator %v, the same assigner %v\nwant: another generator with the same assigner", was == is, was.assigner == is.assigner)
	}
	moved, err := first.Replace(mustParse(t, strings.Replace(text, "/kept", "/else", 1)))
	if err != nil || moved.Generator("g") == was {
		t.Errorf("have: %v, the generator with the old assigner\nwant: another generator, since its assigner changed", err)
	}
	mustClose(t, moved)
	mustClose(t, first)
	if n := is.assigner.(*fakeAssigner).closed.Load(); n != 0 {
		t.Errorf("have: the assigner closed %d times while it is used\nwant: open", n)
	}
	mustClose(t, next)
	if n := is.assigner.(*fakeAssigner).closed.Load(); n != 1 {
		t.Errorf("have: the assigner closed %d times\nwant: once", n)
	}
}

// TestOpen_atOnce opens and closes one rule in many goroutines. At most one generator is open at
// any time.
func TestOpen_atOnce(t *testing.T) {
	r := mustParse(t, oneTable("t", "{type: SLOW}"))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				l, err := r.Open(spi.Host{})
				if err != nil {
					t.Error(err)
					return
				}
				if l.Generator("g").(*slow).closed.Load() != 0 {
					t.Error("have: a closed generator\nwant: an open one")
				}
				mustClose(t, l)
			}
		})
	}
	wg.Wait()
	if open, most := slowOpen.now.Load(), slowOpen.most.Load(); open != 0 || most != 1 {
		t.Errorf("have: %d open, %d at once\nwant: 0 and 1", open, most)
	}
}

// A factory that fails or panics leaves nothing open, and is called again the next time.
func TestOpen_failingFactory(t *testing.T) {
	r := mustParse(t, oneTable("t", "{type: FAILING, props: {worker-id-assigner: cluster}}")+"  workerIdAssigners:\n    cluster: {type: FILE, props: {path: /failing}}\n")
	for _, fails := range []string{"error", "panic", ""} {
		failing.Store(fails)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				defer func() { _ = recover() }()
				l, err := r.Open(spi.Host{})
				if (err != nil) != (fails != "") {
					t.Errorf("%q\nhave: %v", fails, err)
				}
				if err == nil {
					mustClose(t, l)
				} else if inner := (*rule.Error)(nil); fails == "error" && !errors.As(err, &inner) {
					t.Errorf("have: %v\nwant: a rule.Error", err)
				}
			})
		}
		wg.Wait()
	}
	failing.Store("")
	made.Lock()
	defer made.Unlock()
	for _, a := range made.assigners {
		if a.path == "/failing" && a.closed.Load() != 1 {
			t.Errorf("have: an assigner closed %d times\nwant: once", a.closed.Load())
		}
	}
}
