package driver

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// idleDB is a database over a base that does nothing.
func idleDB(t *testing.T, r *rule.Rule, opts ...Option) (*sql.DB, *Connector) {
	t.Helper()
	c := must(NewConnector(idleConnector{}, r, append(opts, Config{Server: "other"})...))(t)
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	return db, c
}

func TestStats_keysAndStatements(t *testing.T) {
	db, c := idleDB(t, benchRule(t))
	for range 3 {
		mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", 1)
	}
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (1), (2)")
	mustExec(t, db, "INSERT INTO t_order (order_id, a) VALUES (?, 1), (?, 2), (?, 3)", nil, 5, nil)
	mustExec(t, db, "INSERT INTO t_order (order_id, a) VALUES (7, 1)") // nothing to fill
	mustExec(t, db, "INSERT INTO t_plain (a) VALUES (1)")
	must(NextKeys(t.Context(), db, "t_order", 10))(t)
	s := c.Stats()
	want := TableStats{Table: "t_order", Column: "order_id", Generator: "snowflake", Type: "SNOWFLAKE", Keys: 3 + 2 + 2 + 10, Statements: 5, Rows: 7}
	if len(s.Tables) != 1 {
		t.Fatalf("have: %d tables\nwant: 1", len(s.Tables))
	}
	have := s.Tables[0]
	if have.Generate.Count() == 0 || have.Generate.Sum <= 0 || len(have.Generate.Counts) != len(have.Generate.Bounds)+1 {
		t.Errorf("have: %+v\nwant: the first call's time", have.Generate)
	}
	have.Generate = Histogram{}
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("\nhave: %+v\nwant: %+v", have, want)
	}
	if s.Connections != 1 || s.Plans.Entries == 0 || s.Plans.Bytes == 0 || s.Plans.Misses == 0 {
		t.Errorf("have: %+v\nwant: a connection and plans", s)
	}
	misses := s.Plans.Misses
	another := must(c.Connect(t.Context()))(t)
	defer another.Close()
	must(connOf(another).ExecContext(t.Context(), "INSERT INTO t_order (a) VALUES (?)", benchArgs[:1]))(t)
	if s := c.Stats(); s.Plans.Hits == 0 || s.Plans.Misses != misses {
		t.Errorf("have: %+v\nwant: a hit more", s.Plans)
	}
}

// A call of the generator that fails is no key, and one in 64 calls is timed.
func TestStats_errorsAndTimes(t *testing.T) {
	fails := errors.New("no keys today")
	keys := &scriptedKeys{next: 1}
	r := must(rule.New(rule.Config{
		Tables:     []rule.TableConfig{{Name: "t", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
		Generators: map[string]rule.GeneratorConfig{"g": {Generator: keys}},
	}))(t)
	db, c := idleDB(t, r)
	for range 100 {
		mustExec(t, db, "INSERT INTO t (a) VALUES (?)", 1)
	}
	keys.fails = true
	var failed *GeneratorError
	for range 5 {
		if _, err := db.Exec("INSERT INTO t (a) VALUES (?)", 1); !errors.As(err, &failed) {
			t.Fatalf("have: %v\nwant: a *GeneratorError for %v", err, fails)
		}
	}
	have := c.Stats().Tables[0]
	if have.Keys != 100 || have.Statements != 100 || have.Rows != 100 || have.Errors != 5 || have.Type != "" {
		t.Errorf("have: %+v\nwant: 100 keys, and 5 errors", have)
	}
	equal(t, have.Generate.Count(), 2, "calls timed of 100")
}

// What a rule counts stays when another rule replaces it.
func TestStats_rules(t *testing.T) {
	db, c := idleDB(t, benchRule(t))
	before := time.Now()
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", 1)
	first := c.Stats().Rule
	if first.Generation != 1 || first.Name != "bench.yaml" || first.File != "" || first.Since.After(before) || first.Watched {
		t.Errorf("have: %+v\nwant: the first generation, of bench.yaml", first)
	}
	noError(t, c.SetRule(benchRule(t)))
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", 1)
	s := c.Stats()
	if s.Rule.Generation != 2 || s.Rule.Since.Before(first.Since) || s.Tables[0].Keys != 2 {
		t.Errorf("have: %+v, %+v\nwant: the second generation, and both keys", s.Rule, s.Tables[0])
	}
}

func TestStats_reloads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rule.yaml")
	write(t, path, watched("ds.t_order", 7))
	db, c, err := Open("u:secret@tcp(127.0.0.1:1)/app?shardkeyReload=24h&shardkeyRule=" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if s := c.Stats(); !s.Rule.Watched || s.Rule.File != path || s.Database != "tcp(127.0.0.1:1)/app" {
		t.Errorf("have: %+v\nwant: a file that is watched", s)
	}
	w := &watcher{file: path}
	w.changed()
	write(t, path, "rules: nonsense")
	w.changed()
	w.update()
	if s := c.Stats().Rule; s.ReloadErrors == 0 || !strings.Contains(s.ReloadError, path) || s.Generation != 1 {
		t.Errorf("have: %+v\nwant: the file's error", s)
	}
	write(t, path, watched("ds.t_order", 7))
	w.changed()
	w.update()
	if s := c.Stats().Rule; s.ReloadErrors == 0 || s.ReloadError != "" {
		t.Errorf("have: %+v\nwant: an error that is mended", s)
	}
}

func TestStats_keptStatements(t *testing.T) {
	k := newKeeping(t, &keepingBase{max: 1000}, "auto").warm()
	before := k.connector.Stats().Kept
	for range 5 {
		k.exec("INSERT INTO t_order (a) VALUES (?)", int64(1))
	}
	k.exec("SET NAMES utf8mb4")
	have := k.connector.Stats().Kept
	have.Hits, have.Misses, have.Dropped = have.Hits-before.Hits, have.Misses-before.Misses, have.Dropped-before.Dropped
	if want := (KeptStats{Mode: "auto", Limit: 125, Hits: 4, Misses: 1, Dropped: before.Open + 1}); have != want {
		t.Errorf("\nhave: %+v\nwant: %+v", have, want)
	}
}

func TestStats_closedConnector(t *testing.T) {
	db, c := idleDB(t, benchRule(t))
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", 1)
	_ = db.Close()
	s := c.Stats()
	if s.Connections != 0 || s.Tables[0].Keys != 1 || !errors.Is(s.Generators[0].Health.Err, spi.ErrClosed) {
		t.Errorf("have: %+v\nwant: what was counted, and a generator that is closed", s)
	}
}

func TestStats_json(t *testing.T) {
	db, c := idleDB(t, benchRule(t))
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", 1)
	text := must(json.Marshal(c.Stats()))(t)
	var have map[string]any
	noError(t, json.Unmarshal(text, &have))
	for path, want := range map[string]any{
		"connections": 1.0, "rule.name": "bench.yaml", "rule.generation": 1.0,
		"tables.0.table": "t_order", "tables.0.keys": 1.0, "tables.0.generate.count": 1.0, "tables.0.generate.boundsSeconds.0": 250e-9,
		"generators.0.name": "snowflake", "generators.0.health.workerId": 1.0,
		"kept.mode": "auto", "plans.entries": 1.0,
	} {
		if v := at(have, strings.Split(path, ".")); v != want {
			t.Errorf("%s\nhave: %v\nwant: %v\nin: %s", path, v, want, text)
		}
	}
}

// at is a value within decoded JSON.
func at(v any, path []string) any {
	for _, name := range path {
		switch of := v.(type) {
		case map[string]any:
			v = of[name]
		case []any:
			v = of[name[0]-'0']
		}
	}
	return v
}

func TestHistogram_buckets(t *testing.T) {
	var h histogram
	for _, d := range []time.Duration{0, 250, 251, time.Second, 5 * time.Second, 5*time.Second + 1, time.Hour} {
		h.add(d)
	}
	have := h.stats()
	want := make([]int64, len(bounds)+1)
	want[0], want[1], want[10], want[11], want[12] = 2, 1, 1, 1, 2
	if !slices.Equal(have.Counts, want) || have.Count() != 7 || have.Sum != 502+11*time.Second+time.Hour {
		t.Errorf("have: %+v\nwant: %v", have, want)
	}
}

// BenchmarkStats is what one look costs.
func BenchmarkStats(b *testing.B) {
	c := must(NewConnector(idleConnector{}, benchRule(b)))(b)
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		c.Stats()
	}
}
