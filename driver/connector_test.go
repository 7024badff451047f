package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

func mustConnector(t *testing.T, base driver.Connector, r *rule.Rule) *Connector {
	t.Helper()
	return must(NewConnector(base, r))(t)
}

// liveOf checks the number of open generators with a tag.
func liveOf(t *testing.T, when string, tag int, want int64) {
	t.Helper()
	equal(t, testGenerators[tag].Load(), want, when, "generators")
}

// The last connection closes the generators of a closed connector: a transaction may still need keys. A
// second sql.DB opens them again.
func TestConnector_closesGenerators(t *testing.T) {
	base := &fakedb.Server{}
	c := mustConnector(t, base, taggedRule(t, "t", 1))
	for range 3 {
		db := sql.OpenDB(c)
		tx := must(db.Begin())(t)
		liveOf(t, "open", 1, 1)
		check(t, errors.Join(db.Close(), c.Close()))
		liveOf(t, "in a transaction", 1, 1)
		noError(t, tx.Commit())
		liveOf(t, "closed", 1, 0)
	}
	equal(t, base.Closed, 1, "the base's connector was closed", "times")
	isError(t, c.SetRule(testRule(t)), spi.ErrClosed, "SetRule after Close")
}

func TestConnector_setRule(t *testing.T) {
	db, c := openFake(t, &fakedb.Server{}, taggedRule(t, "t", 4))
	running := c.rules.Load()
	if !running.generators.Acquire() {
		t.Fatal("the current rule cannot be used")
	}
	next := taggedRule(t, "t", 5)
	noError(t, c.SetRule(next))
	equal(t, c.Rule(), next, "Rule returns another one")
	liveOf(t, "the old one while it is used", 4, 1)
	liveOf(t, "the new one", 5, 1)
	noError(t, running.generators.Release())
	liveOf(t, "the old one, left", 4, 0)
	if running.generators.Acquire() {
		t.Error("a closed rule can be used")
	}
	isError(t, c.SetRule(nil), ErrNoRule, "SetRule(nil)")
	equal(t, c.Rule(), next, "a refused rule was taken")
	noError(t, db.Close())
	liveOf(t, "all closed", 5, 0)
}

// A statement that both rules pass through unchanged remains one statement of the underlying
// driver.
func TestStmt_preparedBeforeSetRule(t *testing.T) {
	base := &fakedb.Server{}
	db, c := openFake(t, base, testRule(t))
	st := must(db.Prepare("UPDATE t SET a = ?"))(t)
	defer st.Close()
	for range 3 {
		must(st.Exec(1))(t)
		noError(t, c.SetRule(testRule(t)))
	}
	if calls := strings.Join(base.Calls, "\n"); strings.Count(calls, "prepareContext") != 1 {
		t.Errorf("the base saw\n%s", calls)
	}
}

func TestConnector_lookupFollowsTheRule(t *testing.T) {
	c := mustConnector(t, &fakedb.Server{}, taggedRule(t, "t", 6))
	defer c.Close()
	if table := c.Lookup("", "T"); table == nil || table.Column != "id" {
		t.Errorf("t: %+v", table)
	}
	equal(t, c.Lookup("", "u"), nil, "u, which has no rule")
	noError(t, c.SetRule(taggedRule(t, "u", 6)))
	if c.Lookup("", "t") != nil || c.Lookup("any", "u") == nil {
		t.Error("Lookup goes by the rule that was replaced")
	}
}

func TestNewConnector_refuses(t *testing.T) {
	if c, err := NewConnector(nil, testRule(t)); c != nil || err == nil {
		t.Errorf("nil base: %v, %v", c, err)
	}
	if c, err := NewConnector(&fakedb.Server{}, nil); c != nil || !errors.Is(err, ErrNoRule) {
		t.Errorf("nil rule: %v, %v", c, err)
	}
	if c, err := NewConnector(&fakedb.Server{}, new(rule.Rule)); c != nil || err == nil {
		t.Errorf("zero rule: %v, %v", c, err)
	}
}

// A zero Connector returns errors instead of keys.
func TestConnector_zeroHasNoRule(t *testing.T) {
	c := new(Connector)
	_, planErr := c.Plan("INSERT INTO t (a) VALUES (1)")
	_, keysErr := c.NextKeys(t.Context(), "t", 1)
	for name, err := range map[string]error{
		"Ping": sql.OpenDB(c).PingContext(t.Context()), "Plan": planErr, "NextKeys": keysErr, "Ready": c.Ready(t.Context()),
	} {
		isError(t, err, ErrNoRule, name)
	}
}

// loop is a wrapper that wraps itself.
type loop struct{ driver.Conn }

func (l loop) Unwrap() driver.Conn { return l }

// nilWrapper is a wrapper around nil.
type nilWrapper struct{ driver.Conn }

func (w nilWrapper) Unwrap() driver.Conn { return w.Conn }

// raw wraps a driver, as otelsql does with connections.
type raw struct{ c *Connector }

func (r raw) Unwrap() driver.Driver { return r.c.Driver() }

type panicking struct{}

func (panicking) Unwrap() driver.Conn { panic("boom") }

func TestConnectorOf_whatItIsGiven(t *testing.T) {
	db, c := openFake(t, &fakedb.Server{}, testRule(t))
	dbConn := must(db.Conn(t.Context()))(t)
	defer dbConn.Close()
	for _, ours := range []any{c, db, dbConn, c.Driver(), struct{ *sql.DB }{db}, raw{c}} {
		equal(t, ConnectorOf(ours), c, ours)
	}
	st := must(db.Prepare("SELECT 1"))(t)
	defer st.Close()
	tx := must(db.Begin())(t)
	defer tx.Rollback()
	gone := must(db.Conn(t.Context()))(t)
	noError(t, gone.Close())
	for _, not := range []any{st, tx, gone, &sql.Row{}, (*conn)(nil), (*wrapped)(nil), (driver.Conn)(nil), (*nilWrapper)(nil), nilWrapper{}, panicking{}} {
		equal(t, ConnectorOf(not), nil, not)
	}
	closed, shut := openFake(t, &fakedb.Server{}, testRule(t))
	noError(t, closed.Close())
	equal(t, ConnectorOf(closed), shut, "a closed database")
	err := dbConn.Raw(func(raw any) error {
		equal(t, ConnectorOf(raw), c, raw)
		return nil
	})
	check(t, err)
	other := sql.OpenDB(&fakedb.Server{})
	defer other.Close()
	for _, not := range []any{nil, (*sql.DB)(nil), (*sql.Conn)(nil), (*Connector)(nil), new(sql.DB), new(sql.Conn), other, Driver{}, loop{}, "db", new(sql.Tx)} {
		equal(t, ConnectorOf(not), nil, not)
	}
}

// readyKeys is a generator that implements spi.ReadyReporter.
type readyKeys struct {
	textKeys
	err error
}

func (g *readyKeys) Ready(ctx context.Context) error {
	if g.err == nil {
		return ctx.Err()
	}
	return g.err
}

// healthyKeys is a generator that reports its health, but not whether it is ready.
type healthyKeys struct {
	textKeys
	err error
}

func (g *healthyKeys) Health() spi.Health { return spi.Health{Err: g.err} }

type panickingKeys struct{ textKeys }

func (panickingKeys) Ready(context.Context) error { panic("boom") }

func TestReady_namesGeneratorAndTables(t *testing.T) {
	asked, healthy := &readyKeys{}, &healthyKeys{}
	table := func(name, generator string) rule.TableConfig {
		return rule.TableConfig{Name: name, KeyConfig: rule.KeyConfig{Column: "id", Generator: generator}}
	}
	r := must(rule.New(rule.Config{
		Tables: []rule.TableConfig{table("a", "asked"), table("b", "healthy"), table("c", "ASKED"), table("d", "plain"), table("e", "asked"), table("f", "asked")},
		Generators: map[string]rule.GeneratorConfig{
			"asked": {Generator: asked}, "healthy": {Generator: healthy}, "plain": {Generator: textKeys{}},
			"unused": {Generator: &readyKeys{err: fakedb.Err}},
		},
	}))(t)
	db, c := idleDB(t, r)
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("have: %v\nwant: ready", err)
	}
	asked.err = spi.ErrLeaseLost
	err := c.Ready(t.Context())
	if not, ok := errors.AsType[*GeneratorError](err); !ok || !errors.Is(err, spi.ErrLeaseLost) || not.Generator != "asked" || not.Table != "a" {
		t.Errorf("have: %v\nwant: a GeneratorError for asked", err)
	}
	healthy.err = spi.ErrStore
	if err := c.Ready(t.Context()); !errors.Is(err, spi.ErrStore) || !errors.Is(err, spi.ErrLeaseLost) || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("have: %v\nwant: both", err)
	}
	asked.err, healthy.err = nil, nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	isError(t, c.Ready(ctx), context.Canceled)
	noError(t, db.Close())
	isError(t, c.Ready(t.Context()), spi.ErrClosed)
}

func TestReady_panicIsAnError(t *testing.T) {
	_, c := idleDB(t, generatorRule(t, panickingKeys{}, "t.id"))
	if err := c.Ready(t.Context()); !errors.As(err, new(*GeneratorError)) || !strings.Contains(err.Error(), "panicked: boom") {
		t.Errorf("have: %v\nwant: the panic", err)
	}
}

// leasedRule returns a rule with many data sources. Its worker IDs are leased, and its layout has
// 16 of them.
func leasedRule(assigner string) string {
	return ruleText("t_order ds_${0..63}.t_order - - id:snowflake", "", `
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {layout: js53, worker-id-assigner: cluster}}}
  workerIdAssigners: {cluster: `+assigner+"}\n")
}

// shardDSN returns the DSN of a shard, with an address that refuses connections.
func shardDSN(i int, path string) string {
	return fmt.Sprintf("u%d:p@tcp(127.0.0.1:1)/shard_%d?parseTime=%v&shardkeyRule=%s", i, i, i%2 == 0, path)
}

// records lists the worker IDs in a FILE store.
func records(t *testing.T, dir string) []string {
	t.Helper()
	return must(filepath.Glob(filepath.Join(dir, "*", "[0-9]*.json")))(t)
}

// Databases for each shard or tenant share one worker ID.
func TestShared_oneLeaseForManyDatabases(t *testing.T) {
	testserver.NeedsFlock(t)
	dir := t.TempDir()
	path := ruleFile(t, leasedRule("{type: FILE, props: {path: "+dir+"}}"))
	before := runtime.NumGoroutine()
	var all []*sql.DB
	seen := map[int64]bool{}
	for i := range 64 {
		db := mustOpen(t, "shardkey", shardDSN(i, path))
		all = append(all, db)
		seen[keyOf(t, db, "t_order")] = true
	}
	if have := records(t, dir); len(have) != 1 || len(seen) != 64 {
		t.Errorf("have: %d worker IDs (%v), %d keys\nwant: 1 and 64", len(have), have, len(seen))
	}
	for i, db := range all {
		if i == 63 && ConnectorOf(db).Stats().Generators[0].Health.WorkerID == nil {
			t.Error("have: no worker ID when one database is left\nwant: the one")
		}
		check(t, db.Close())
	}
	waitGoroutines(before)
	text, err := os.ReadFile(records(t, dir)[0])
	if err != nil || !strings.Contains(string(text), `"free_from"`) {
		t.Errorf("have: %s, %v\nwant: released", text, err)
	}
}

// waitGoroutines waits until there are at most before goroutines.
func waitGoroutines(before int) {
	for runtime.NumGoroutine() > before { // go test's timeout shows those that are left
		runtime.Gosched()
	}
}

// Databases are opened and closed in parallel. Keys must be unique, and all worker IDs must be
// released.
func TestShared_openedAndClosedAtOnce(t *testing.T) {
	testserver.NeedsFlock(t)
	dir := t.TempDir()
	path := ruleFile(t, leasedRule("{type: FILE, props: {path: "+dir+"}}"))
	var seen sync.Map
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 8 {
				db, err := sql.Open("shardkey", shardDSN(i, path))
				if err != nil {
					t.Error(err)
					return
				}
				if _, twice := seen.LoadOrStore(keyOf(t, db, "t_order"), true); twice {
					t.Error("a key twice")
				}
				check(t, db.Close())
			}
		})
	}
	wg.Wait()
	for _, path := range records(t, dir) {
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), `"free_from"`) {
			t.Errorf("have: %s, %v\nwant: released", text, err)
		}
	}
}

func TestShared_stateInEachDatabase(t *testing.T) {
	path := ruleFile(t, leasedRule("{type: SQL}"))
	inner, dsnErr := (*rule.Error)(nil), (*DSNError)(nil)
	_, err := sql.Open("shardkey", shardDSN(0, path))
	if !errors.Is(err, rule.ErrOwnDatabase) || !errors.As(err, &inner) || inner.Line != 8 || !errors.As(err, &dsnErr) {
		t.Errorf("several data sources\nhave: %v\nwant: ErrOwnDatabase of line 8", err)
	}
	for name, generator := range map[string]string{
		"SQL":          "{type: SNOWFLAKE, props: {worker-id-assigner: cluster}}\n  workerIdAssigners:\n    cluster: {type: SQL}",
		"LEAF_SEGMENT": "{type: LEAF_SEGMENT, props: {leaf.key: t}}",
		"TICKET":       "{type: TICKET}",
	} {
		text := "rules:\n- !SHARDING\n  tables:\n    t_order:\n      keyGenerateStrategy: {column: id, keyGeneratorName: g}\n  keyGenerators:\n    g: " + generator + "\n"
		write(t, path, text)
		for _, by := range []string{path, "registered"} {
			r, err := rule.Load(path)
			if err == nil {
				err = RegisterRule("registered", r)
			}
			noError(t, err)
			first := mustOpen(t, "shardkey", shardDSN(0, by))
			again := mustOpen(t, "shardkey", strings.Replace(shardDSN(0, by), "u0:p", "other:secret", 1))
			if _, err := sql.Open("shardkey", shardDSN(1, by)); !errors.Is(err, rule.ErrOwnDatabase) || !strings.Contains(err.Error(), "tcp(127.0.0.1:1)/shard_0 and tcp(127.0.0.1:1)/shard_1") {
				t.Errorf("%s by %s\nhave: %v\nwant: ErrOwnDatabase", name, by, err)
			}
			check(t, errors.Join(first.Close(), again.Close()))
			check(t, mustOpen(t, "shardkey", shardDSN(1, by)).Close())
		}
		write(t, path, strings.Replace(strings.Replace(text, "t_order:\n", "t_order:\n      actualDataNodes: a.t_order,b.t_order\n", 1),
			map[string]string{"SQL": "type: SQL", "TICKET": "type: TICKET", "LEAF_SEGMENT": "leaf.key: t"}[name],
			map[string]string{"SQL": "type: SQL, props: {own-database: yes}", "TICKET": "type: TICKET, props: {own-database: yes}", "LEAF_SEGMENT": "leaf.key: t, own-database: yes"}[name], 1))
		if err := errors.Join(mustOpen(t, "shardkey", shardDSN(0, path)).Close(), mustOpen(t, "shardkey", shardDSN(1, path)).Close()); err != nil {
			t.Errorf("%s that is meant so\nhave: %v", name, err)
		}
	}
	DeregisterRule("registered")
}

// The rule in docs/guides/databases.md loads, and the page's statements about it hold.
func TestDocs_severalDatabases(t *testing.T) {
	file := blocks(t, "guides/databases.md", "yaml")[0]
	equal(t, len(mustParseRule(t, file).DataSources()), 4, "data sources")
	isError(t, errOf(rule.Parse("rule.yaml", []byte(strings.Replace(file, `, dsn: "app:pass@tcp(ids:3306)/ids"`, "", 1)))), rule.ErrOwnDatabase, "without its dsn")
}
