package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testmust "github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

func TestStats_keysAndStatements(t *testing.T) {
	db, c := idleDB(t, benchRule(t))
	for range 3 {
		mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", 1)
	}
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (1), (2)")
	mustExec(t, db, "INSERT INTO t_order (order_id, a) VALUES (?, 1), (?, 2), (?, 3)", nil, 5, nil)
	mustExec(t, db, "INSERT INTO t_order (order_id, a) VALUES (7, 1)") // no key to generate
	mustExec(t, db, "INSERT INTO t_plain (a) VALUES (1)")
	must(NextKeys(t.Context(), db, "t_order", 10))(t)
	s := c.Stats()
	want := TableStats{Table: "t_order", Column: "order_id", Generator: "snowflake", Type: "SNOWFLAKE", Keys: 3 + 2 + 2 + 10, Statements: 5, Rows: 7}
	if len(s.Tables) != 1 {
		t.Fatalf("have: %d tables\nwant: 1", len(s.Tables))
	}
	have := s.Tables[0]
	measured := have.Generate.Sum > 0 || runtime.GOOS == "windows" // its clock may not move during a call
	if slices.Max(have.Generate.Counts) == 0 || !measured || len(have.Generate.Counts) != len(have.Generate.Bounds)+1 {
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
	must(another.(*conn).ExecContext(t.Context(), "INSERT INTO t_order (a) VALUES (?)", benchArgs(1)))(t)
	if s := c.Stats(); s.Plans.Hits == 0 || s.Plans.Misses != misses {
		t.Errorf("have: %+v\nwant: a hit more", s.Plans)
	}
}

// A failed call of the generator is no key. One in 64 calls is timed.
func TestStats_errorsAndTimes(t *testing.T) {
	fails := errors.New("no keys today")
	failing := false
	keys := integers(func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		if failing {
			return nil, fails
		}
		return keysOfInts(n, 1), nil
	})
	db, c := idleDB(t, generatorRule(t, keys, "t.id"))
	for range 100 {
		mustExec(t, db, "INSERT INTO t (a) VALUES (?)", 1)
	}
	failing = true
	for range 5 {
		if _, err := db.Exec("INSERT INTO t (a) VALUES (?)", 1); !errors.As(err, new(*GeneratorError)) || !errors.Is(err, fails) {
			t.Fatalf("have: %v\nwant: a *GeneratorError for %v", err, fails)
		}
	}
	have := c.Stats().Tables[0]
	if have.Keys != 100 || have.Statements != 100 || have.Rows != 100 || have.Errors != 5 || have.Type != "" {
		t.Errorf("have: %+v\nwant: 100 keys, and 5 errors", have)
	}
	timed := int64(0)
	for _, n := range have.Generate.Counts {
		timed += n
	}
	equal(t, timed, 2, "calls timed of 100")
}

// The counters of a rule continue after another rule replaces it. The log has each rule's hash.
func TestStats_rules(t *testing.T) {
	var log jsonLog
	db, c := idleDB(t, benchRule(t), WithLogger(log.logger()))
	before := time.Now()
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", 1)
	first := c.Stats().Rule
	if first.Generation != 1 || first.Name != "bench.yaml" || first.File != "" || first.Since.After(before) || first.Watched {
		t.Errorf("have: %+v\nwant: the first generation, of bench.yaml", first)
	}
	noError(t, c.SetRule(benchRule(t)))
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", 1)
	s := c.Stats()
	inUse := 0
	for _, line := range log.take(t) {
		if line["msg"] == "shardkey: rule in use" && line["hash"] == s.Rule.Hash && line["name"] == "bench.yaml" {
			inUse++
		}
	}
	equal(t, inUse, 2, "lines about the rule")
	equal(t, s.Rule.Hash, benchRule(t).Hash())
	if s.Rule.Generation != 2 || s.Rule.Since.Before(first.Since) || s.Tables[0].Keys != 2 {
		t.Errorf("have: %+v, %+v\nwant: the second generation, and both keys", s.Rule, s.Tables[0])
	}
}

func TestStats_reloads(t *testing.T) {
	path := ruleFile(t, watched("ds.t_order", 7))
	db, c, err := Open("u:secret@tcp(127.0.0.1:1)/app?shardkeyReload=24h&shardkeyRule=" + path)
	noError(t, err)
	defer db.Close()
	if s := c.Stats(); !s.Rule.Watched || s.Rule.File != path || s.Database != "tcp(127.0.0.1:1)/app" {
		t.Errorf("have: %+v\nwant: a file that is watched", s)
	}
	w := &watcher{file: path, connectors: map[*Connector]bool{c: true}}
	load := func() {
		w.last = w.last.next(path).next(path)
		w.update()
	}
	write(t, path, "rules: nonsense")
	load()
	if s := c.Stats().Rule; s.ReloadErrors == 0 || !strings.Contains(s.ReloadError, path) || s.Generation != 1 {
		t.Errorf("have: %+v\nwant: the file's error", s)
	}
	write(t, path, watched("ds.t_order", 7))
	load()
	if s := c.Stats().Rule; s.ReloadErrors == 0 || s.ReloadError != "" {
		t.Errorf("have: %+v\nwant: an error that is fixed", s)
	}
}

func TestStats_cachedStatements(t *testing.T) {
	k := newKeeping(t, &fakedb.Server{Statements: 1000, Kind: fakedb.Skipping}, "auto").warm()
	before := k.connector.Stats().StatementCache
	for range 5 {
		k.exec("INSERT INTO t_order (a) VALUES (?)", int64(1))
	}
	k.exec("SET NAMES utf8mb4")
	have := k.connector.Stats().StatementCache
	have.Hits, have.Misses, have.Dropped = have.Hits-before.Hits, have.Misses-before.Misses, have.Dropped-before.Dropped
	want := before
	want.Mode, want.Open, want.Limit, want.Hits, want.Misses, want.Dropped = "auto", 0, 125, 4, 1, before.Open+1
	equal(t, have, want)
}

func TestStats_json(t *testing.T) {
	db, c := idleDB(t, benchRule(t))
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", 1)
	text := string(must(json.Marshal(c.Stats()))(t))
	for _, want := range []string{
		`{"connections":1,"rule":{"name":"bench.yaml","hash":"`, `"generation":1,`, `"tables":[{"table":"t_order",`, `"keys":1,`, `"generate":{"count":1,`, `"boundsSeconds":[2.5e-7,`,
		`"generators":[{"name":"snowflake",`, `"workerId":1`, `"statementCache":{"mode":"auto",`, `"plans":{"entries":1,`,
	} {
		contains(t, text, want)
	}
}

// BenchmarkStats measures one call of Stats.
func BenchmarkStats(b *testing.B) {
	c := must(NewConnector(&fakedb.Server{Quiet: true}, benchRule(b)))(b)
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		c.Stats()
	}
}

// jsonLog collects the log as JSON.
type jsonLog struct{ testmust.Log }

func (l *jsonLog) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

func (l *jsonLog) debugLogger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// take returns the lines since its last call.
func (l *jsonLog) take(t *testing.T) (all []map[string]any) {
	t.Helper()
	for text := range strings.Lines(l.Take()) {
		var line map[string]any
		noError(t, json.Unmarshal([]byte(text), &line))
		all = append(all, line)
	}
	return all
}

func TestRefused_countedAndLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log jsonLog
		r := mustParseRule(t, watched("'ds.t_order_${0..1}'", 6))
		db, c := idleDB(t, r, WithLogger(log.logger()))
		log.take(t) // the rule in use
		refuse := func(query string, args ...any) {
			t.Helper()
			if _, err := db.ExecContext(t.Context(), query, args...); err == nil {
				t.Fatalf("%s\nhave: no error", query)
			}
		}
		for range 3 {
			refuse("INSERT INTO t_order_7 (a) VALUES ('secret')")
		}
		refuse("INSERT INTO t_order_1 (a) VALUES ('secret'")
		st, err := db.PrepareContext(t.Context(), "INSERT INTO t_order_8 (a) VALUES (?)")
		if err == nil {
			t.Fatalf("have: %v\nwant: an error", st)
		}
		have := log.take(t)
		want := []string{"unlisted t_order_7 <nil>", "unsupported t_order_1 1", "unlisted t_order_8 <nil>"}
		for i, line := range have {
			if i >= len(want) || line["level"] != "WARN" || fmt.Sprint(line["reason"], " ", line["table"], " ", line["line"]) != want[i] || strings.Contains(fmt.Sprint(line), "secret") {
				t.Errorf("line %d\nhave: %v\nwant: %q", i, line, want)
			}
		}
		equal(t, len(have), len(want))
		contains(t, fmt.Sprint(have[0]["error"]), "add it to actualDataNodes")
		equal(t, have[1]["error"] != nil, true, have[1])
		if n := c.Stats().Refused; n["unlisted"] != 4 || n["unsupported"] != 1 {
			t.Errorf("have: %v\nwant: 4 unlisted, 1 unsupported", n)
		}
		time.Sleep(time.Minute)
		refuse("INSERT INTO t_order_7 (a) VALUES ('secret')")
		if have := log.take(t); len(have) != 1 || have[0]["suppressed"] != 2.0 {
			t.Errorf("have: %v\nwant: a line, and 2 left out before it", have)
		}
	})
}

// Each reason has a sentinel. Errors begin with its text, and wrap it.
func TestStatementError_sentinels(t *testing.T) {
	for reason, sentinel := range sentinels {
		for _, of := range []StatementError{
			{}, {Err: fakedb.Err}, {Err: fmt.Errorf("%w: %w", sentinel, fakedb.Err)}, {Table: "t", Row: 3, Message: "it is wrong", Err: fakedb.Err},
		} {
			e := refuse(reason, of)
			begins := strings.HasPrefix(e.Error(), sentinel.Error()) && strings.Count(e.Error(), sentinel.Error()) == 1
			if !begins || !errors.Is(e, sentinel) || errors.Is(e, fakedb.Err) != (e.Err != nil) {
				t.Errorf("%+v\nhave: %v\nwant: %v", e, e, sentinel)
			}
		}
	}
	e := &StatementError{Reason: ReasonUnsupported, Table: "t", Row: 3, Line: 2, Char: 7, Near: `"x"`, Message: "it is wrong"}
	if have, want := e.Error(), "table t: row 3: line 2, column 7 near \"x\": it is wrong"; !strings.HasSuffix(have, want) {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
}

func TestRefused_canceledIsNotLogged(t *testing.T) {
	var log jsonLog
	var r refusals
	r.add(log.logger(), &StatementError{Reason: ReasonNoKey, Err: &GeneratorError{Generator: "g", Err: context.Canceled}})
	if log.String() != "" {
		t.Errorf("have: %s\nwant: nothing of a call that its caller gave up", log.String())
	}
}

// The store's error with its remedy is in a line of the worker-ID assigner, and not once more in full.
func TestRefused_storeErrorIsShort(t *testing.T) {
	var log jsonLog
	long := fmt.Errorf("%w: %s", spi.ErrStore, strings.Repeat("run this; ", 100))
	new(refusals).add(log.logger(), &StatementError{Reason: ReasonNoKey, Err: &GeneratorError{Generator: "g", Err: long}})
	line := log.take(t)[0]
	if why := fmt.Sprint(line["error"]); len(why) > 210 || !strings.HasSuffix(why, "…") || line["generator"] != "g" {
		t.Errorf("have: %v\nwant: the beginning of the error", line)
	}
}

// Names in statements can be arbitrary, so only a limited number is recorded.
func TestRefused_boundedTables(t *testing.T) {
	var r refusals
	written := 0
	for i := range 10 * maxRefused {
		if _, due := r.due(refusedKey{"unlisted", fmt.Sprint("t_", i)}, false); due {
			written++
		}
	}
	if len(r.seen) > maxRefused+1 || written > maxRefused+1 {
		t.Errorf("have: %d tables, %d lines\nwant: at most %d", len(r.seen), written, maxRefused+1)
	}
}

// isOwnQuery reports whether a line is about a query that the program hasn't sent.
func isOwnQuery(line map[string]any) bool { return line["msg"] == "shardkey: own query" }

func TestLog_asSentWithoutValues(t *testing.T) {
	var log jsonLog
	r := benchRule(t)
	db, c := idleDB(t, r, WithLogger(log.debugLogger()))
	log.take(t) // the rule's warnings
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", "secret")
	mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", "secret")
	mustExec(t, db, "INSERT INTO t_order (a, b) VALUES ('secret', 5), ('secret', 6) # secret")
	mustExec(t, db, "INSERT INTO t_plain (a) VALUES ('secret')")
	st := must(db.Prepare("INSERT INTO t_order (a) VALUES (?), (7)"))(t)
	must(st.Exec("secret"))(t)
	want := []string{
		"INSERT INTO t_order (a, `order_id`) VALUES (?, ?) 2 1",
		"INSERT INTO t_order (a, `order_id`) VALUES (?, ?) 2 1",
		"INSERT INTO t_order (a, b, `order_id`) VALUES (?, ?, ?), (?, ?, ?) 0 2",
		"INSERT INTO t_order (a, `order_id`) VALUES (?, ?), (?, ?) 3 2",
	}
	have := slices.DeleteFunc(log.take(t), isOwnQuery)
	for i, line := range have {
		if text := fmt.Sprint(line["statement"], " ", line["args"], " ", line["keys"]); i >= len(want) || text != want[i] || line["level"] != "DEBUG" ||
			line["generator"] != "snowflake" || strings.Contains(fmt.Sprint(line), "secret") {
			t.Errorf("line %d\nhave: %v\nwant: %q", i, line, want)
		}
	}
	equal(t, len(have), len(want))
	if s := c.Stats().Tables[0]; s.Keys != 6 {
		t.Errorf("have: %+v\nwant: 6 keys", s)
	}
}

// openHooked opens a rule with a hook.
func openHooked(t *testing.T, base *fakedb.Server, f func(context.Context, GeneratedKeys)) *sql.DB {
	t.Helper()
	db, _ := openFake(t, base, mustParseRule(t, ruleText(`
		t_order ds.t_order_${0..3} - user_id:m4 order_id:snowflake
		t_user  -                  - -          id:snowflake
		t_token -                  - -          id:uuid
	`, "", `
  shardingAlgorithms: {m4: {type: MOD, props: {sharding-count: 4}}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 3}}
    uuid: {type: UUID}
`)), Config{Server: "mysql"}, WithKeyHook(f))
	return db
}

type spanKey struct{}

func TestWithFilled_calledForEachInsert(t *testing.T) {
	for _, c := range []struct {
		name, text string
		args       []any
		want       []GeneratedKeys
	}{
		{"one row", "INSERT INTO t_user (name) VALUES (?)", []any{1}, []GeneratedKeys{{"t_user", "id", "snowflake", "SNOWFLAKE", 1, nil}}},
		{"several rows", "INSERT INTO t_order (user_id) VALUES (?), (?), (?)", []any{1, 2, 3}, []GeneratedKeys{{"t_order", "order_id", "snowflake", "SNOWFLAKE", 3, nil}}},
		{"some with a key", "INSERT INTO t_order (order_id, user_id) VALUES (NULL, ?), (?, ?)", []any{1, 5, 1}, []GeneratedKeys{{"t_order", "order_id", "snowflake", "SNOWFLAKE", 1, nil}}},
		{"all with a key", "INSERT INTO t_order (order_id, user_id) VALUES (?, ?)", []any{5, 1}, nil},
		{"texts as keys", "INSERT INTO t_token (name) VALUES (?), (?)", []any{1, 2}, []GeneratedKeys{{"t_token", "id", "uuid", "UUID", 2, nil}}},
		{"a query", "INSERT INTO t_user (name) SELECT name FROM src", nil, []GeneratedKeys{{"t_user", "id", "snowflake", "SNOWFLAKE", 2, nil}}},
		{"no INSERT", "UPDATE t_order SET user_id = ?", []any{1}, nil},
		{"another table", "INSERT INTO other (a) VALUES (?)", []any{1}, nil},
		{"refused", "INSERT INTO t_order_9 (user_id) VALUES (?)", []any{1}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told []GeneratedKeys
			var first []any
			base := &fakedb.Server{Query: func(query string) (driver.Rows, error) {
				if !strings.Contains(query, "COUNT") {
					return nil, driver.ErrSkip
				}
				return &fakedb.Rows{Names: []string{"n"}, Values: [][]driver.Value{{int64(2)}}}, nil
			}}
			db := openHooked(t, base, func(ctx context.Context, f GeneratedKeys) {
				equal(t, ctx.Value(spanKey{}), "span", "the context is another one")
				first = append(first, f.FirstKey)
				f.FirstKey = nil
				told = append(told, f)
			})
			var keys Keys
			ctx := WithKeys(context.WithValue(t.Context(), spanKey{}, "span"), &keys)
			for range 2 { // the second execution may take another path
				told, first = nil, nil
				_, _ = db.ExecContext(ctx, c.text, c.args...)
				equalSlices(t, told, c.want)
				if len(first) > 0 && first[0] != keys.Values()[0] {
					t.Errorf("first key\nhave: %v\nwant: %v", first[0], keys.Values()[0])
				}
			}
		})
	}
}

func TestWithFilled_panicIsAnError(t *testing.T) {
	for _, text := range []string{"INSERT INTO t_order (user_id) VALUES (?)", "INSERT INTO t_order (user_id) VALUES (?), (2)"} {
		base := &fakedb.Server{}
		db := openHooked(t, base, func(context.Context, GeneratedKeys) { panic("boom") })
		for range 2 {
			if _, err := db.ExecContext(t.Context(), text, 1); !errors.As(err, new(*panics.Error)) {
				t.Errorf("%s\nhave: %v\nwant: the error of a panic", text, err)
			}
		}
		if strings.Contains(strings.Join(base.Calls, " "), "INSERT") {
			t.Errorf("it was sent: %q", base.Calls)
		}
	}
}

// Debug lines of several INSERTs count their keys, and those of failed ones have the error's type.
func TestLogSent_attributes(t *testing.T) {
	var log jsonLog
	s := &fakedb.Server{}
	db, _ := openFake(t, s, generatorRule(t, counted(), "t.id", "u.id"), Config{Server: "other"}, WithLogger(log.debugLogger()))
	log.take(t) // the rule in use
	mustExec(t, db, "INSERT INTO t (a) VALUES (1), (2), (3)")
	s.Faults = []fakedb.Fault{{At: "INSERT", Err: fakedb.Err}}
	isError(t, errOf(db.Exec("INSERT INTO u (a) VALUES (1)")), fakedb.Err)
	var keys, errorTypes []any
	for _, line := range slices.DeleteFunc(log.take(t), isOwnQuery) {
		keys, errorTypes = append(keys, line["keys"]), append(errorTypes, line["error_type"])
	}
	if !slices.Equal(keys, []any{3.0, 1.0}) || errorTypes[0] != nil || errorTypes[1] == nil {
		t.Errorf("have: %v keys, errors %v\nwant: 3 keys, and 1 with an error", keys, errorTypes)
	}
}
