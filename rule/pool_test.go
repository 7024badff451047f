package rule_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// opened opens a rule for a data source. The test closes it.
func opened(t *testing.T, r *rule.Rule, host spi.Host) *rule.Live {
	t.Helper()
	return must.Get(r.Open(host))(t)
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
	return must.Get(rule.Load(path))(t)
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
		return must.Get(rule.New(rule.Config{
			Tables:     []rule.TableConfig{{Name: "t", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
			Generators: map[string]rule.GeneratorConfig{"g": {Type: "SNOWFLAKE", Props: map[string]any{"worker-id": 3, "password": spi.NewSecret("a")}}},
		}))(t)
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
		must.Equal(t, l.Generator("g") == first.Generator("g"), c.shared, c.name, "shared")
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
	must.Equal(t, g.closed.Load(), 1, "times closed by the last one")
	again := opened(t, writeRule(t, path, text), spi.Host{})
	if again.Generator("g") == g {
		t.Error("have: the closed generator\nwant: another one")
	}
	mustClose(t, again)
}

// A closed rule has nothing to share.
func TestReplace_opensAClosedRuleAgain(t *testing.T) {
	r := mustParse(t, shop)
	first := opened(t, r, spi.Host{})
	g := first.Generator("snowflake")
	mustClose(t, first)
	again := must.Get(first.Replace(r))(t)
	if again.Generator("snowflake") == g {
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
	must.Equal(t, is.assigner.(*fakeAssigner).closed.Load(), 0, "times closed while it is used")
	mustClose(t, next)
	must.Equal(t, is.assigner.(*fakeAssigner).closed.Load(), 1, "times closed")
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

func TestLoad_sharesRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	text := oneTable("t_${0..3}", "{type: UUID}")
	first := writeRule(t, path, text)
	if mustLoad(t, path) != first {
		t.Error("have: another rule of the same content\nwant: the same")
	}
	if writeRule(t, path, text+"# a comment\n") == first {
		t.Error("have: the same rule of another content")
	}
	t.Chdir(filepath.Dir(path))
	if r := mustLoad(t, "rule.yaml"); r.Name() != "rule.yaml" {
		t.Errorf("have: the name %s of another path\nwant: rule.yaml", r.Name())
	}
	if r := mustParse(t, text); r == mustParse(t, text) {
		t.Error("have: Parse returned a rule twice, so its connectors share generators")
	}
	unused := weak.Make(first)
	runtime.KeepAlive(first)
	first = nil
	runtime.GC()
	if unused.Value() != nil {
		t.Error("have: a rule that nothing uses")
	}
}

func TestLoad_variables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	t.Setenv("SHARDKEY_TEST_WORKER", "3")
	first := writeRule(t, path, oneTable("t", `{type: SNOWFLAKE, props: {worker-id: "${SHARDKEY_TEST_WORKER}", password: "${SHARDKEY_TEST_NONE::a}"}}`))
	if mustLoad(t, path) != first {
		t.Error("have: another rule with the same variables")
	}
	t.Setenv("SHARDKEY_TEST_WORKER", "4")
	second := mustLoad(t, path)
	if second == first {
		t.Error("have: the rule with the variable's earlier value")
	}
	t.Setenv("SHARDKEY_TEST_NONE", "a") // the default's value, but set
	if mustLoad(t, path) == second {
		t.Error("have: the rule without the variable")
	}
}

// Files that could block their reader, or never end, are errors.
func TestLoad_refusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink("/dev/zero", link); err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no /dev/zero")
	}
	long := filepath.Join(dir, "long.yaml")
	f, err := os.Create(long)
	if err == nil {
		err = f.Truncate(64<<20 + 1)
	}
	must.Do(t, err)
	_ = f.Close()
	for path, want := range map[string]string{
		link: "expected a regular file, found a device", dir: "found a directory", long: "longer than 67108864 bytes",
	} {
		must.FailWith(t, must.Err(rule.Load(path)), want, path)
	}
}

func TestLoad_warnsOfWriters(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other permissions")
	}
	path := filepath.Join(t.TempDir(), "rule.yaml")
	writeRule(t, path, oneTable("t", "{type: UUID}"))
	for _, c := range []struct {
		mode os.FileMode
		want []string
	}{
		{0o644, nil}, {0o666, []string{"every user can write the file"}}, {0o664, []string{"the users of its group can write"}}, {0o600, nil},
	} {
		must.Do(t, os.Chmod(path, c.mode))
		expectWarnings(t, mustLoad(t, path), c.want)
	}
}

const (
	own       = "{type: OWN}"
	ownDSN    = "{type: OWN, props: {dsn: u@tcp(one)/ids}}"
	ownMeant  = "{type: OWN, props: {own-database: yes}}"
	twoShards = "ds_${0..1}.t_${0..3}"
)

// withAssigner returns a rule with a generator that uses an assigner, and an unused generator that
// uses another one.
func withAssigner(nodes, assigner string) string {
	return oneTable(nodes, "{type: SNOWFLAKE, props: {worker-id-assigner: cluster}}\n    unused: {type: UUID, props: {worker-id-assigner: idle}}") +
		"  workerIdAssigners:\n    cluster: " + assigner + "\n    idle: {type: OWN}\n"
}

// spreadTable returns a rule with a databaseStrategy, either the table's own or the default one,
// and without data nodes.
func spreadTable(where, generator string) string {
	strategy := "{standard: {shardingColumn: u, shardingAlgorithmName: two}}"
	if where == "" {
		return strings.Replace(oneTable("t", generator), "actualDataNodes: t", "databaseStrategy: "+strategy, 1) + twoAlgorithm
	}
	return strings.Replace(oneTable("t", generator), "      actualDataNodes: t\n", "", 1) + "  defaultDatabaseStrategy: " + strategy + "\n" + twoAlgorithm
}

const twoAlgorithm = "  shardingAlgorithms: {two: {type: MOD, props: {sharding-count: 2}}}\n"

func TestParse_stateInEachDatabase(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a generator", oneTable(twoShards, own), `rule.yaml:8:5: key generator "g" keeps its state in the connector's own database, but the tables are in several data sources (ds_0, ds_1), and each would generate the same keys; add the property dsn with one database for all of them; own-database: yes permits it where rows never move between the databases`},
		{"an assigner", withAssigner(twoShards, own), `rule.yaml:11:5: worker-ID assigner "cluster" keeps its state`},
		{"any number of data sources", oneTable("ds_${*}.t_${0..3}", own), "(ds_${*})"},
		{"schemas of two data sources", oneTable("a.s.t,b.s.t", own), "(a, b)"},
		{"a databaseStrategy without data nodes", spreadTable("", own), `a databaseStrategy distributes table "t" over several data sources`},
		{"the rule's default", spreadTable("default", own), `a databaseStrategy distributes table "t"`},
		{"one data source", oneTable("ds_0.t_${0..15}", own), ""},
		{"two schemas of one", oneTable("ds.a.t,ds.b.t", own), ""},
		{"a dsn", oneTable(twoShards, ownDSN), ""},
		{"an assigner's dsn", withAssigner(twoShards, ownDSN), ""},
		{"meant so", oneTable(twoShards, ownMeant), ""},
		{"an assigner meant so", withAssigner(twoShards, ownMeant), ""},
		{"said twice", oneTable(twoShards, "{type: OWN, props: {dsn: u@tcp(one)/ids, own-database: yes}}"), `property "own-database": expected no value, found "yes"`},
		{"of a type without", oneTable(twoShards, "{type: UUID, props: {own-database: yes}}"), `property "own-database": expected no value, found "yes"`},
		{"neither yes nor no", oneTable("t", "{type: OWN, props: {own-database: maybe}}"), `property "own-database": expected true or false, found "maybe"`},
		{"no", oneTable(twoShards, "{type: OWN, props: {own-database: no}}"), "keeps its state"},
	} {
		_, err := rule.Parse("rule.yaml", []byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nhave: %v\nwant: %s", c.name, err, c.want)
		}
		inner := (*rule.Error)(nil)
		if strings.Contains(c.want, "keeps its state") && (!errors.Is(err, rule.ErrOwnDatabase) || !errors.As(err, &inner) || inner.Line == 0) {
			t.Errorf("%s\nhave: %#v\nwant: a rule.Error with a place that is ErrOwnDatabase", c.name, err)
		}
	}
}

func TestOpen_oneRuleForTwoDatabases(t *testing.T) {
	for _, text := range []string{oneTable("t_${0..3}", own), withAssigner("t_${0..3}", own)} {
		r := mustParse(t, text)
		first := opened(t, r, spi.Host{DSN: spi.NewSecret("u:geheim@tcp(Shard0)/shop?timeout=1s")})
		for _, same := range []string{
			"u:geheim@tcp(shard0)/shop",
			"other:pw@tcp(shard0:3306)/shop?parseTime=true&loc=UTC",
			"", // the rule doesn't show whether there are several databases
		} {
			l, err := r.Open(spi.Host{DSN: spi.NewSecret(same)})
			if err != nil {
				t.Errorf("%s\nhave: %v\nwant: the same database", same, err)
				continue
			}
			if shared := l.Generator("g") == first.Generator("g"); shared != (same != "") && text == oneTable("t_${0..3}", own) {
				t.Errorf("%s\nhave: shared %v", same, shared)
			}
			mustClose(t, l)
		}
		for _, other := range []string{"u:geheim@tcp(shard1)/shop", "u:geheim@tcp(shard0:3307)/shop", "u:geheim@tcp(shard0)/shop2", "u:geheim@unix(/shard0)/shop"} {
			l, err := r.Open(spi.Host{DSN: spi.NewSecret(other)})
			inner := (*rule.Error)(nil)
			if l != nil || !errors.Is(err, rule.ErrOwnDatabase) || !errors.As(err, &inner) || inner.Line == 0 {
				t.Errorf("%s\nhave: %v\nwant: ErrOwnDatabase", other, err)
				continue
			}
			if strings.Contains(err.Error(), "geheim") || !strings.Contains(err.Error(), "tcp(shard0:3306)/shop") {
				t.Errorf("%s\nhave: %v\nwant: both databases, and no password", other, err)
			}
		}
		mustClose(t, first)
		// Opening the rule for another database after closing the first one is allowed.
		mustClose(t, opened(t, r, spi.Host{DSN: spi.NewSecret("u@tcp(shard1)/shop")}))
	}
}

// The file changes between two opens, and the generator with the state has another name.
func TestOpen_oneRuleForTwoDatabasesRenamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rule.yaml")
	text := withAssigner("t_${0..3}", own)
	first := opened(t, writeRule(t, file, text), spi.Host{DSN: spi.NewSecret("u@tcp(a)/d")})
	defer mustClose(t, first)
	renamed := writeRule(t, file, strings.ReplaceAll(text, "cluster", "all"))
	must.Is(t, must.Err(renamed.Open(spi.Host{DSN: spi.NewSecret("u@tcp(b)/d")})), rule.ErrOwnDatabase)
	mustClose(t, opened(t, renamed, spi.Host{DSN: spi.NewSecret("u@tcp(a)/d")}))
}

func TestOpen_ownDatabaseMeant(t *testing.T) {
	r := mustParse(t, oneTable(twoShards, ownMeant))
	a, b := opened(t, r, spi.Host{DSN: spi.NewSecret("u@tcp(a)/d")}), opened(t, r, spi.Host{DSN: spi.NewSecret("u@tcp(b)/d")})
	if a.Generator("g") == b.Generator("g") {
		t.Error("have: one generator for two databases\nwant: one for each")
	}
	again := opened(t, r, spi.Host{DSN: spi.NewSecret("v@tcp(b)/d")})
	if again.Generator("g") != b.Generator("g") {
		t.Error("have: two generators in one database\nwant: one")
	}
	mustClose(t, a, b, again)
}

// A generator that no table uses generates no duplicate keys.
func TestOpen_unusedStore(t *testing.T) {
	r := mustParse(t, oneTable(twoShards, "{type: UUID}\n    unused: {type: OWN}"))
	mustClose(t, opened(t, r, spi.Host{DSN: spi.NewSecret("u@tcp(a)/d")}), opened(t, r, spi.Host{DSN: spi.NewSecret("u@tcp(b)/d")}))
}
