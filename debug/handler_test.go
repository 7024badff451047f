package debug_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/debug"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// get requests a page from a handler. pairs alternates names and values of parameters.
func get(t testing.TB, h http.Handler, pairs ...string) *httptest.ResponseRecorder {
	t.Helper()
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/debug/shardkey/?"+query.Encode(), nil))
	return w
}

// pageJSON is the part of the JSON form that the tests read.
type pageJSON struct {
	State      string
	Connectors []struct {
		State    string
		Messages []string
		Stats    struct {
			Tables []struct {
				Table string
				Keys  int64
			}
		}
		MoreTables int
	}
	Decoded []struct {
		Generator, Error string
		Parts            spi.KeyParts
		Belongs          []string
	}
	Plan *struct {
		Outcome, Reason string
		Plan            *driver.Plan
	}
}

// inWorld runs a test with a world at a fixed time.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 2, 3, 4, 5, 0, 0, time.UTC)))
		test(t, newWorld(t))
	})
}

// row returns the page's row of the generator leased.
func (w *world) row(t *testing.T) string {
	t.Helper()
	body := get(t, debug.Handler(w.connector)).Body.String()
	row, _, _ := strings.Cut(body[strings.Index(body, ">leased<"):], "</tr>")
	return row
}

func getJSON(t testing.TB, h http.Handler, pairs ...string) (p pageJSON) {
	t.Helper()
	w := get(t, h, append(pairs, "format", "json")...)
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%v, %s: %s", err, w.Header(), w.Body)
	}
	return p
}

func TestHandler_methods(t *testing.T) {
	s := httptest.NewServer(debug.Handler(newWorld(t).connector))
	defer s.Close()
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
		r := must.Get(http.NewRequest(method, s.URL+"/?key=1", nil))(t)
		w := must.Get(http.DefaultClient.Do(r))(t)
		_ = w.Body.Close()
		switch {
		case method == "GET" || method == "HEAD":
			if w.StatusCode != 200 {
				t.Errorf("%s: %s", method, w.Status)
			}
		case w.StatusCode != 405 || w.Header.Get("Allow") != "GET, HEAD":
			t.Errorf("%s: %s, Allow %q", method, w.Status, w.Header.Get("Allow"))
		}
	}
}

func TestHandler_headers(t *testing.T) {
	header := get(t, debug.Handler(newWorld(t).connector)).Header()
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
	} {
		must.Equal(t, header.Get(name), want, name)
	}
	policy := header.Get("Content-Security-Policy")
	closed := []string{"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"}
	for _, want := range closed {
		must.Contain(t, policy, want)
	}
	for _, open := range []string{"unsafe", "script-src", "http:", "*"} {
		if strings.Contains(policy, open) {
			t.Errorf("have: %s\nwant: no %s", policy, open)
		}
	}
}

// A form of 64 KiB is answered, a longer one isn't.
func TestHandler_parameters(t *testing.T) {
	h := debug.Handler(newWorld(t).connector)
	if w := get(t, h, "format", attack); w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), "<") {
		t.Errorf("unknown format: %d %s", w.Code, w.Body)
	}
	for _, number := range []string{"0", "-1", "2", "x", "99999999999999999999"} {
		must.Equal(t, get(t, h, "connector", number, "key", "1").Code, 200, "connector", number)
	}
	const longest = 64 << 10
	for _, name := range []string{"statement", "key"} {
		for n, want := range map[int]int{longest: http.StatusOK, longest + 1: http.StatusRequestURITooLong} {
			must.Equal(t, get(t, h, name, strings.Repeat("1", n-len(name)-1)).Code, want, name, "of", n, "bytes")
		}
	}
}

func TestHandler_withoutConnectors(t *testing.T) {
	for _, h := range []http.Handler{debug.Handler(), debug.Handler(nil, driver.ConnectorOf(nil))} {
		w := get(t, h, "key", "1", "statement", "SELECT 1")
		if w.Code != 200 || !strings.Contains(w.Body.String(), "has no connector") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if p := getJSON(t, h, "key", "1"); len(p.Connectors) != 0 || p.Decoded != nil {
			t.Errorf("%+v", p)
		}
	}
}

func TestHandler_afterClose(t *testing.T) {
	w := newWorld(t)
	_ = w.connector.Close()
	p := getJSON(t, debug.Handler(w.connector), "key", "1", "statement", "INSERT INTO t_user (a) VALUES (1)")
	if p.Connectors[0].State != "failing" || p.Plan.Outcome != "refused" {
		t.Errorf("%+v", p)
	}
}

func TestHandler_state(t *testing.T) {
	away := ": " + errAway.Error()
	for _, c := range []struct {
		name           string
		set            func(w *world)
		state, message string
	}{
		{"good", func(*world) {}, "ok", "keys can be generated"},
		{"lease not renewed", func(w *world) { w.storeAway(7 * time.Second) },
			"warning", "leased: no more keys in 7s unless the lease is renewed" + away},
		{"lease ended with an error", func(w *world) { w.storeAway(-3 * time.Second) },
			"failing", "leased: no keys: the lease ended 3s ago" + away},
		{"lease ended", func(w *world) { w.leased.set(spi.Health{Lease: &spi.LeaseHealth{Limit: time.Now().Add(-time.Second)}}) },
			"failing", "leased: no keys: the lease ended 1s ago and has not been renewed"},
		{"segment not fetched", func(w *world) {
			w.segment.set(spi.Health{Err: errAway, Segment: &spi.SegmentHealth{Left: new(int64(12))}})
		},
			"warning", "segment: 12 keys are left" + away},
		{"segment empty", func(w *world) { w.segment.set(spi.Health{Err: errAway, Segment: &spi.SegmentHealth{Left: new(int64)}}) },
			"failing", "segment" + away},
		{"warning", func(w *world) { w.segment.set(spi.Health{Warnings: []string{"keys are ahead of the clock"}}) },
			"warning", "segment: keys are ahead of the clock"},
		{"two with one error", func(w *world) {
			w.segment.set(spi.Health{Err: errAway})
			w.leased.set(spi.Health{Err: errAway})
		}, "failing", "leased" + away},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				c.set(w)
				h := debug.Handler(w.connector)
				p := getJSON(t, h)
				message := strings.Join(p.Connectors[0].Messages, "\n")
				if p.State != c.state || p.Connectors[0].State != c.state || message != c.message {
					t.Errorf("have: %s: %s\nwant: %s: %s", p.State, message, c.state, c.message)
				}
				must.Contain(t, get(t, h).Body.String(), `class="`+c.state+`"><b>`+c.state+`</b>`, "the page does not show it")
			})
		})
	}
}

func TestHandler_reloadError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rule.yaml")
	write := func(generator string) {
		content := "rules:\n- !SHARDING\n  tables:\n    t: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}\n" +
			"  keyGenerators:\n    g: {type: " + generator + "}\n"
		must.Do(t, os.WriteFile(file, []byte(content), 0o600))
	}
	write("UUID")
	synctest.Test(t, func(t *testing.T) {
		db, c, err := driver.Open("u:geheim@tcp(127.0.0.1:1)/d?shardkeyReload=1s&shardkeyRule="+file,
			driver.WithLogger(slog.New(slog.DiscardHandler)))
		must.Do(t, err)
		defer db.Close()
		write("UUIT")
		time.Sleep(5 * time.Second)
		h := debug.Handler(c)
		p := getJSON(t, h)
		if p.State != "warning" || !strings.Contains(p.Connectors[0].Messages[0], "UUIT") {
			t.Errorf("%+v", p)
		}
		body := get(t, h).Body.String()
		if strings.Contains(body, "geheim") || !strings.Contains(body, "tcp(127.0.0.1:1)/d") {
			t.Error("the page does not show the database, or shows a password")
		}
	})
}

// The last error of a generator isn't shown as that of each kind.
func TestHandler_lastErrorIsOfNoKind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.leased.set(spi.Health{Errors: map[string]int64{"deadline": 1, "store": 3}, LastError: errAway})
		body := get(t, debug.Handler(w.connector)).Body.String()
		_, table, _ := strings.Cut(body, ">Last error<")
		table, _, _ = strings.Cut(table, "</table>")
		must.Contain(t, table, `rowspan="2"`)
		must.Equal(t, strings.Count(table, "connection refused"), 1, "the error")
	})
}

const attack = `<script>window.hacked=1</script><img src=x onerror="window.hacked=1">"'` + "`{{.}}</style></textarea>"

func TestHandler_escapes(t *testing.T) {
	w := newWorldOf(t, "t_order", "leased"+attack)
	w.leased.set(spi.Health{Err: fmt.Errorf("error: %s", attack), Warnings: []string{attack},
		Errors: map[string]int64{attack: 1}, LastError: fmt.Errorf("%s", attack)})
	h := debug.Handler(w.connector, w.connector)
	for _, pairs := range [][]string{
		{}, {"key", attack}, {"statement", attack}, {"connector", attack}, {"key", `"><script>`},
		{"statement", "INSERT INTO t_user (`" + attack + "`) VALUES ('" + attack + "')"}, {"key", attack, "format", "json"},
	} {
		body := get(t, h, pairs...).Body.String()
		for _, raw := range []string{"<script>", "<img", "</style></textarea>"} {
			if strings.Contains(body, raw) {
				t.Errorf("%q: the page has %s", pairs, raw)
			}
		}
	}
}

func TestHandler_showsNoSecrets(t *testing.T) {
	const secret = "geheim123"
	props := rule.Props{"leaf.key": "k", "dsn": spi.NewSecret("u:" + secret + "@tcp(127.0.0.1:1)/d")}
	c := connect(t, rule.Config{
		Tables:     []rule.TableConfig{{Name: "t", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
		Generators: map[string]rule.GeneratorConfig{"g": {Type: "LEAF_SEGMENT", Props: props}},
	})
	if _, err := c.NextKeys(t.Context(), "t", 1); err == nil {
		t.Fatal("a key without a server")
	}
	for _, format := range []string{"", "json"} {
		body := get(t, debug.Handler(c), "format", format).Body.String()
		if strings.Contains(body, secret) || !strings.Contains(body, "127.0.0.1:1") {
			t.Errorf("format %q: %s", format, body)
		}
		must.Contain(t, body, driver.Version(), "format", format, "has no version")
	}
}

func TestHandler_decode(t *testing.T) {
	w := newWorld(t)
	h := debug.Handler(w.connector)
	keys := must.Get(w.connector.NextKeys(t.Context(), "t_user", 1))(t)
	key := keys[0].(int64)
	by := getJSON(t, h, "key", fmt.Sprintf(" %d ", key)).Decoded
	if len(by) != 1 || by[0].Generator != "snowflake" || by[0].Parts.WorkerID != 0 || by[0].Parts.Layout != "41-10-12" ||
		time.Since(by[0].Parts.Time) > time.Hour ||
		strings.Join(by[0].Belongs, " ") != fmt.Sprintf("t_user: ds.t_user_%d", key%4) {
		t.Errorf("%d: %+v", key, by)
	}
	for key, want := range map[string]string{
		"019abcde-f012-7345-8678-9abcdef01234": "<dd>2025-11-2",
		"9f0b2a3c4d5e4f60a1b2c3d4e5f60718":     "<dd>version 4",
		"019abcdef01273458678 9abcdef01234":    "<b>error</b> expected",
		"-1":                                   "<b>error</b>",
		"9223372036854775808":                  "<b>error</b> expected",
		"1e5":                                  "<b>error</b> expected",
	} {
		must.Contain(t, get(t, h, "key", key).Body.String(), want, key, "the page has no")
	}
}

func TestHandler_plan(t *testing.T) {
	w := newWorld(t)
	h := debug.Handler(w.connector)
	before, _ := json.Marshal(w.connector.Stats())
	for _, c := range []struct{ statement, outcome, shown string }{
		{"INSERT INTO t_order_3 (user_id) VALUES (?), (?)", "filled", "<li>rows 1 to 2: a key is generated</li>"},
		{"INSERT INTO t_order_3 (user_id) VALUES (?)", "filled",
			"INSERT INTO t_order_3 (user_id, `order_id`) VALUES (?, ?)</pre>"},
		{"INSERT INTO t_order_3 (user_id) VALUES (1)", "filled", "no arguments"},
		{"INSERT INTO t_user (user_id) VALUES (?), (7)", "filled",
			"<li>row 1: argument 1 is the key; for nil or 0 one is generated</li>"},
		{"INSERT INTO t_order (user_id) SELECT id FROM t_user LIMIT 1", "filled", "<li>row 1: a key is generated</li>"},
		{"UPDATE t_order SET a = 1", "passed", "sent unchanged"},
		{"INSERT INTO t_order (user_id VALUES (1)", "refused", "line 1, column"},
		{"INSERT INTO t_order_99 (user_id) VALUES (1)", "refused", "its name is similar"},
		{"INSERT INTO t_user_0 (user_id, name) VALUES (5, 'x')", "refused", "t_user_1"},
		{"INSERT INTO t_order VALUES (1)", "unknown", "columns of table"},
	} {
		if p := getJSON(t, h, "statement", c.statement).Plan; p.Outcome != c.outcome {
			t.Errorf("%s\nhave: %+v\nwant: %s", c.statement, p, c.outcome)
		}
		body := get(t, h, "statement", c.statement).Body.String()
		if !strings.Contains(body, "<b>"+c.outcome+"</b>") || !strings.Contains(body, c.shown) {
			t.Errorf("%s: the page has no %s or %s", c.statement, c.outcome, c.shown)
		}
	}
	if after, _ := json.Marshal(w.connector.Stats()); withoutTimes(after) != withoutTimes(before) {
		t.Errorf("a plan changed the connector\nbefore: %s\nafter:  %s", before, after)
	}
}

// withoutTimes removes the figures that change by themselves.
func withoutTimes(stats []byte) string {
	_, rest, _ := strings.Cut(string(stats), `"plans":`)
	return rest
}

func TestHandler_severalConnectors(t *testing.T) {
	one, two := newWorld(t), newWorldOf(t, "t_bill", "leased")
	h := debug.Handler(one.connector, nil, two.connector)
	const statement = "INSERT INTO t_bill (a) VALUES (1)"
	if p := getJSON(t, h, "statement", statement); p.Plan.Outcome != "passed" || len(p.Connectors) != 2 {
		t.Errorf("%+v", p)
	}
	if p := getJSON(t, h, "statement", statement, "connector", "2"); p.Plan.Outcome != "filled" {
		t.Errorf("%+v", p.Plan)
	}
	body := get(t, h, "connector", "2", "key", "1").Body.String()
	must.Contain(t, body, `<option value="2" selected>`, "the second connector is not selected")
	must.Do(t, one.connector.SetRule(two.connector.Rule()))
	p := getJSON(t, h, "statement", statement)
	if p.Plan.Outcome != "filled" || p.Connectors[0].Stats.Tables[0].Table != "t_bill" {
		t.Errorf("with another rule: %+v", p)
	}
}

func TestHandler_manyTables(t *testing.T) {
	config := rule.Config{Generators: map[string]rule.GeneratorConfig{"g": {Type: "UUID"}}}
	for i := range 5000 {
		table := rule.TableConfig{Name: fmt.Sprintf("t%d_x", i), KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}
		config.Tables = append(config.Tables, table)
	}
	c := connect(t, config)
	for table, n := range map[string]int{"t4321_x": 9, "t3_x": 5} {
		must.Get(c.NextKeys(t.Context(), table, n))(t)
	}
	body := get(t, debug.Handler(c)).Body.String()
	if len(body) > 200_000 || !strings.Contains(body, "and 4800 more tables") {
		t.Errorf("the page has %d bytes", len(body))
	}
	p := getJSON(t, debug.Handler(c)).Connectors[0]
	if t0, t1 := p.Stats.Tables[0], p.Stats.Tables[1]; len(p.Stats.Tables) != 200 || p.MoreTables != 4800 ||
		t0.Table != "t4321_x" || t0.Keys != 9 || t1.Table != "t3_x" {
		t.Errorf("have: %d tables and %d more, first %+v, %+v\nwant: the 200 with the most keys",
			len(p.Stats.Tables), p.MoreTables, t0, t1)
	}
}

// A list that is cut says how many are missing.
func TestHandler_cutLists(t *testing.T) {
	config := rule.Config{Generators: map[string]rule.GeneratorConfig{"g": {Type: "SNOWFLAKE", Props: rule.Props{"worker-id": 1}}}}
	mod := rule.StrategyConfig{Columns: []string{"id"}, Type: "MOD", Props: rule.Props{"sharding-count": 8}}
	for i := range 105 {
		config.Tables = append(config.Tables, rule.TableConfig{Name: fmt.Sprintf("t%d_x", i),
			ActualDataNodes: fmt.Sprintf("ds.t%d_x_${0..3}", i), TableStrategy: mod, KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}})
	}
	c := connect(t, config)
	body := get(t, debug.Handler(c)).Body.String()
	more := fmt.Sprintf("… and %d more warnings", len(c.Rule().Warnings())-100)
	must.Equal(t, strings.Contains(body, more), true, more)
	belongs := getJSON(t, debug.Handler(c), "key", "1").Decoded[0].Belongs
	must.Equal(t, belongs[len(belongs)-1], "… and 85 more tables")
}

func TestHandler_concurrently(t *testing.T) {
	w := newWorld(t)
	h := debug.Handler(w.connector)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				get(t, h, "key", "1", "statement", "INSERT INTO t_user (a) VALUES (1)")
				if _, err := w.connector.NextKeys(t.Context(), "t_user", 1+i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestHandler_figures(t *testing.T) {
	lease := func(left time.Duration) *spi.LeaseHealth {
		return &spi.LeaseHealth{Limit: time.Now().Add(left), Length: 10 * time.Second}
	}
	segment := func(left, size int64) *spi.SegmentHealth { return &spi.SegmentHealth{Left: new(left), Size: size} }
	for _, c := range []struct {
		name   string
		health func() spi.Health
		shown  string
	}{
		{"two segments", func() spi.Health { return spi.Health{Segment: segment(1584, 1000)} }, ">1,584 (1,000 per fetch)<"},
		{"no fetch yet", func() spi.Health { return spi.Health{Segment: segment(0, 0)} }, `title="Segment left">0<`},
		{"many keys", func() spi.Health { return spi.Health{Segment: segment(12345678, 0), Issued: 100} }, ">12,345,678<"},
		{"renewed", func() spi.Health { return spi.Health{Lease: lease(8 * time.Second)} }, `title="Renewed">04:04:58<`},
		{"starts later", func() spi.Health { return spi.Health{Lease: lease(25 * time.Second)} }, `title="Renewed"><`},
		{"no lease", func() spi.Health { return spi.Health{Lease: new(spi.LeaseHealth)} }, `title="Renewed"><`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.leased.set(c.health())
				w.segment.set(spi.Health{})
				must.Contain(t, w.row(t), c.shown)
			})
		})
	}
}

// The page shows the free worker IDs of stores that answer.
func TestHandler_freeWorkerIDs(t *testing.T) {
	held := spi.WorkerIDs{Max: 3, List: []spi.WorkerID{{ID: 0, State: "held"}, {ID: 1, State: "expired"}, {ID: 3, State: "ahead"}, {ID: 7, State: "held"}}}
	full := spi.WorkerIDs{Max: 0, List: []spi.WorkerID{{ID: 0, State: "held"}}}
	for _, c := range []struct {
		name string
		list func(context.Context) (spi.WorkerIDs, error)
		json string
		want string
	}{
		{"some", func(context.Context) (spi.WorkerIDs, error) { return held, nil }, `"leased": 2`, ">2<"},
		{"none", func(context.Context) (spi.WorkerIDs, error) { return full, nil }, `"leased": 0`, ">0<"},
		{"error", func(context.Context) (spi.WorkerIDs, error) { return full, errAway }, "", "><"},
		{"panic", func(context.Context) (spi.WorkerIDs, error) { panic("a store") }, "", "><"},
		{"no answer", func(ctx context.Context) (spi.WorkerIDs, error) { <-ctx.Done(); return held, ctx.Err() }, "", "><"},
		{"context ignored", func(context.Context) (spi.WorkerIDs, error) { time.Sleep(time.Hour); return held, nil }, "", "><"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.leased.workerIDs = c.list
				must.Contain(t, w.row(t), `title="Free worker IDs"`+c.want)
				_, rest, has := strings.Cut(get(t, debug.Handler(w.connector), "format", "json").Body.String(), `"freeWorkerIds": {`)
				if has != (c.json != "") || !strings.Contains(rest, c.json) {
					t.Errorf("have: %s\nwant: %s", rest, c.json)
				}
				time.Sleep(2 * time.Hour) // until the last call returns
			})
		})
	}
}
