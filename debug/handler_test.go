package debug_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/debug"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// get asks a handler for a page, with pairs of parameters.
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

// pageJSON is what the tests read of the JSON form.
type pageJSON struct {
	State      string
	Connectors []struct {
		Name, State string
		Says        []string
		Warnings    []string
		Stats       struct {
			Tables     []struct{ Table string }
			Generators []struct{ Name string }
		}
	}
	Decoded *struct {
		Error string
		By    []struct {
			Generator, Error, Note, Layout string
			Time                           time.Time
			WorkerID, Sequence             int64
			Belongs                        []string
		}
	}
	Plan *struct {
		Outcome, Says, Sent string
		Inserts             []struct {
			Into, Table, Column, Generator string
			Rows                           []string
		}
	}
}

func getJSON(t testing.TB, h http.Handler, pairs ...string) (p pageJSON) {
	t.Helper()
	w := get(t, h, append(pairs, "format", "json")...)
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%v, %s: %s", err, w.Header(), w.Body)
	}
	return p
}

func TestHandler_answersGetAndHeadOnly(t *testing.T) {
	h := debug.Handler(newWorld(t).connector)
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/?key=1", nil))
		switch method {
		case "GET":
			if w.Code != 200 || !strings.Contains(w.Body.String(), "<!DOCTYPE html>") {
				t.Errorf("%s: %d", method, w.Code)
			}
		case "HEAD":
			if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "0" {
				t.Errorf("%s: %d with %d bytes", method, w.Code, w.Body.Len())
			}
		default:
			if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s: %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

func TestHandler_headers(t *testing.T) {
	header := get(t, debug.Handler(newWorld(t).connector)).Header()
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
	} {
		if have := header.Get(name); have != want {
			t.Errorf("%s\nhave: %s\nwant: %s", name, have, want)
		}
	}
	policy := header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("have: %s\nwant: %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http:") || strings.Contains(policy, "*") {
		t.Errorf("the policy is open: %s", policy)
	}
}

func TestHandler_wrongQuestions(t *testing.T) {
	h := debug.Handler(newWorld(t).connector)
	if w := get(t, h, "format", "xml"); w.Code != http.StatusBadRequest {
		t.Errorf("an unknown format: %d %s", w.Code, w.Body)
	}
	if w := get(t, h, "statement", strings.Repeat("x", 1<<17)); w.Code != http.StatusRequestURITooLong {
		t.Errorf("a long statement: %d", w.Code)
	}
	for _, number := range []string{"0", "-1", "2", "x", "99999999999999999999"} {
		if w := get(t, h, "connector", number, "key", "1"); w.Code != 200 {
			t.Errorf("connector %s: %d", number, w.Code)
		}
	}
}

func TestHandler_withoutConnectors(t *testing.T) {
	for _, h := range []http.Handler{debug.Handler(), debug.Handler(nil, driver.ConnectorOf(nil))} {
		w := get(t, h, "key", "1", "statement", "SELECT 1")
		if w.Code != 200 || !strings.Contains(w.Body.String(), "was given no connector") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if p := getJSON(t, h, "key", "1"); len(p.Connectors) != 0 || p.Decoded != nil {
			t.Errorf("%+v", p)
		}
	}
}

func TestHandler_afterClose(t *testing.T) {
	w := newWorld(t)
	h := debug.Handler(w.connector)
	_ = w.connector.Close()
	p := getJSON(t, h, "key", "1", "statement", "INSERT INTO t_user (a) VALUES (1)")
	if p.Connectors[0].State != "failing" || p.Plan.Outcome != "refused" {
		t.Errorf("%+v", p)
	}
}

// What an operator is told first.
func TestHandler_state(t *testing.T) {
	for _, c := range []struct {
		name        string
		set         func(w *world, now time.Time)
		state, says string
	}{
		{"all is well", func(*world, time.Time) {}, "ok", "keys can be made"},
		{"the store is away, and the lease goes on", func(w *world, now time.Time) { w.storeAway(now, 7*time.Second) }, "warning", `leased (t_order): keys stop in 7 s, at 2026-02-03 04:05:07 UTC, unless the lease is renewed before: shardkey: key store: SQL at db1:3306: connection refused`},
		{"the lease has ended", func(w *world, now time.Time) { w.storeAway(now, -3*time.Second) }, "failing", `leased (t_order): no keys: the lease of worker id 17 ended 3 s ago and could not be renewed: shardkey: key store: SQL at db1:3306: connection refused`},
		{"it has ended without an error", func(w *world, now time.Time) {
			w.leased.set(spi.Health{WorkerID: new(int64(17)), LeaseLimit: now.Add(-time.Second)})
		}, "failing", "leased (t_order): no keys: the lease of worker id 17 ended 1 s ago and has not been renewed"},
		{"segments cannot be fetched", func(w *world, now time.Time) {
			w.segment.set(spi.Health{Err: errAway, SegmentLeft: new(int64(12345)), SegmentSize: 100000})
		}, "warning", "segment (t_invoice): 12\u202f345 keys are left: shardkey: key store: SQL at db1:3306: connection refused"},
		{"and none are left", func(w *world, now time.Time) { w.segment.set(spi.Health{Err: errAway, SegmentSize: 100}) }, "failing", "segment (t_invoice): shardkey: key store: SQL at db1:3306: connection refused"},
		{"a standing risk", func(w *world, now time.Time) {
			w.segment.set(spi.Health{Warnings: []string{"keys are ahead of the clock"}})
		}, "warning", "segment (t_invoice): keys are ahead of the clock"},
	} {
		synctest.Test(t, func(t *testing.T) { // time stands still
			time.Sleep(time.Until(time.Date(2026, 2, 3, 4, 5, 0, 0, time.UTC)))
			w := newWorld(t)
			c.set(w, time.Now())
			h := debug.Handler(w.connector)
			p := getJSON(t, h)
			says := strings.Join(p.Connectors[0].Says, "\n")
			if p.State != c.state || p.Connectors[0].State != c.state || says != c.says {
				t.Errorf("%s\nhave: %s: %s\nwant: %s: %s", c.name, p.State, says, c.state, c.says)
			}
			if html := get(t, h).Body.String(); !strings.Contains(html, `class="verdict `+c.state+`"`) {
				t.Errorf("%s: the page does not show it", c.name)
			}
		})
	}
}

func TestHandler_reloadError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rule.yaml")
	const good = "rules:\n- !SHARDING\n  tables:\n    t: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}\n  keyGenerators:\n    g: {type: UUID}\n"
	writeFile(t, file, good)
	synctest.Test(t, func(t *testing.T) {
		db, c, err := driver.Open("u:geheim@tcp(127.0.0.1:1)/d?shardkeyReload=1s&shardkeyRule="+file, driver.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		writeFile(t, file, strings.Replace(good, "UUID", "UUIT", 1))
		time.Sleep(5 * time.Second)
		h := debug.Handler(c)
		p := getJSON(t, h)
		if p.State != "warning" || !strings.Contains(p.Connectors[0].Says[0], "UUIT") {
			t.Errorf("%+v", p)
		}
		if body := get(t, h).Body.String(); strings.Contains(body, "geheim") || !strings.Contains(body, "tcp(127.0.0.1:1)/d") {
			t.Error("the page does not show the database, or shows a password")
		}
	})
}

const attack = `<script>window.hacked=1</script><img src=x onerror="window.hacked=1">"'` + "`{{.}}</style></textarea>"

// Whatever is typed, named or said is text on the page.
func TestHandler_escapes(t *testing.T) {
	w := newWorldOf(t, "t_order", "leased"+attack)
	w.leased.set(spi.Health{Err: fmt.Errorf("said: %s", attack), Warnings: []string{attack}, Errors: map[string]int64{attack: 1}, LastError: fmt.Errorf("%s", attack)})
	h := debug.Handler(w.connector, w.connector)
	for _, pairs := range [][]string{
		{}, {"key", attack}, {"statement", attack}, {"statement", "INSERT INTO t_user (`" + attack + "`) VALUES ('" + attack + "')"},
		{"connector", attack}, {"key", `"><script>`, "format", "html"},
	} {
		body := get(t, h, pairs...).Body.String()
		for _, raw := range []string{"<script>window", "<img", "</style></textarea>", `"><script>`} {
			if strings.Contains(body, raw) {
				t.Errorf("%q: the page has %s", pairs, raw)
			}
		}
	}
	if w := get(t, h, "format", "json", "key", attack); strings.Contains(w.Body.String(), "<script>") {
		t.Errorf("JSON: %s", w.Body)
	}
	if w := get(t, h, "format", attack); strings.Contains(w.Body.String(), "<") {
		t.Errorf("an unknown format: %s", w.Body)
	}
}

func TestHandler_showsNoSecrets(t *testing.T) {
	const secret = "geheim123"
	r, err := rule.New(rule.Config{
		Tables: []rule.TableConfig{{Name: "t", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
		Generators: map[string]rule.GeneratorConfig{"g": {Type: "LEAF_SEGMENT", Props: rule.Props{"leaf.key": "k",
			"dsn": spi.NewSecret("u:" + secret + "@tcp(127.0.0.1:1)/d")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := driver.NewConnector(base{}, r, driver.Config{Server: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.NextKeys(t.Context(), "t", 1); err == nil {
		t.Fatal("no server is there")
	}
	h := debug.Handler(c)
	for _, format := range []string{"html", "json"} {
		if body := get(t, h, "format", format).Body.String(); strings.Contains(body, secret) || !strings.Contains(body, "127.0.0.1:1") {
			t.Errorf("%s: %s", format, body)
		}
	}
}

func TestHandler_decode(t *testing.T) {
	w := newWorld(t)
	h := debug.Handler(w.connector)
	keys, err := w.connector.NextKeys(t.Context(), "t_user", 1)
	if err != nil {
		t.Fatal(err)
	}
	key := keys[0].(int64)
	by := getJSON(t, h, "key", fmt.Sprintf(" %d ", key)).Decoded.By
	if len(by) != 1 || by[0].Generator != "snowflake" || by[0].WorkerID != 6 || by[0].Layout != "41-10-12" || time.Since(by[0].Time) > time.Hour ||
		len(by[0].Belongs) != 1 || by[0].Belongs[0] != fmt.Sprintf("t_user: ds.t_user_%d", key%4) {
		t.Errorf("%d: %+v", key, by)
	}
	for key, want := range map[string]string{
		"019abcde-f012-7345-8678-9abcdef01234": "version 7, made 2025-11-2",
		"019abcdef01273458678 9abcdef01234":    "",
		"9f0b2a3c4d5e4f60a1b2c3d4e5f60718":     "version 4: it does not say",
		"-1":                                   "",
		"9223372036854775808":                  "",
		"abc":                                  "",
		"1e5":                                  "",
	} {
		d := getJSON(t, h, "key", key).Decoded
		said := d.Error
		for _, by := range d.By {
			said += by.Error + by.Note
		}
		if want == "" && (said == "" || len(d.By) > 0 && d.By[0].Error == "") || !strings.Contains(said, want) {
			t.Errorf("%s\nhave: %s\nwant: %s", key, said, want)
		}
	}
}

func TestHandler_plan(t *testing.T) {
	w := newWorld(t)
	h := debug.Handler(w.connector)
	for _, c := range []struct{ statement, outcome, says, rows, sent string }{
		{"INSERT INTO t_order_3 (user_id) VALUES (?), (?)", "filled", "", "rows 1 to 2: a key is generated", "INSERT INTO t_order_3 (user_id, `order_id`) VALUES (?, ?), (?, ?)"},
		{"INSERT INTO t_order_3 (user_id) VALUES (1)", "filled", "no arguments", "row 1: a key is generated", "INSERT INTO t_order_3 (user_id, `order_id`) VALUES (1, ?)"},
		{"INSERT INTO t_order (order_id, user_id) VALUES (?, 1), (7, 1)", "filled", "", "row 1: argument 1 is the key; for nil or 0 one is generated; row 2: the key is kept as it is written", "INSERT INTO t_order (order_id, user_id) VALUES (?, 1), (7, 1)"},
		{"INSERT INTO t_order (user_id) SELECT id FROM t_user", "filled", "", "the query is read to its end, and each of its rows is inserted with a key: SELECT id FROM t_user", ""},
		{"UPDATE t_order SET a = 1", "passes", "sent unchanged", "", ""},
		{"DROP TABLE t_order", "passes", "sent unchanged", "", ""},
		{"INSERT INTO t_order (user_id VALUES (1)", "refused", "at line 1", "", ""},
		{"INSERT INTO t_order_99 (user_id) VALUES (1)", "refused", "not listed in the rule", "", ""},
		{"INSERT INTO t_order VALUES (1)", "refused", "columns of table", "", ""},
		{"INSERT INTO t_user_0 (user_id, name) VALUES (5, 'x')", "refused", "t_user_1", "", ""},
	} {
		before := w.connector.Stats()
		p := getJSON(t, h, "statement", c.statement).Plan
		rows := ""
		if len(p.Inserts) > 0 {
			rows = strings.Join(p.Inserts[0].Rows, "; ")
		}
		if p.Outcome != c.outcome || !strings.Contains(p.Says, c.says) || rows != c.rows || p.Sent != c.sent {
			t.Errorf("%s\nhave: %+v\nwant: %s, %s, %s, %s", c.statement, p, c.outcome, c.says, c.rows, c.sent)
		}
		after := w.connector.Stats()
		if before.Connections != after.Connections || before.Tables[0].Keys != after.Tables[0].Keys || before.Plans != after.Plans ||
			before.Verification != after.Verification || len(after.Refused) > 0 {
			t.Errorf("%s: it did something\nbefore: %+v\nafter:  %+v", c.statement, before, after)
		}
	}
}

func TestHandler_choosesTheConnector(t *testing.T) {
	one, two := newWorld(t), newWorldOf(t, "t_bill", "leased")
	h := debug.Handler(one.connector, nil, two.connector)
	const statement = "INSERT INTO t_bill (a) VALUES (1)"
	if p := getJSON(t, h, "statement", statement); p.Plan.Outcome != "passes" || len(p.Connectors) != 2 {
		t.Errorf("%+v", p)
	}
	if p := getJSON(t, h, "statement", statement, "connector", "2"); p.Plan.Outcome != "filled" {
		t.Errorf("%+v", p.Plan)
	}
	if body := get(t, h, "connector", "2", "key", "1").Body.String(); !strings.Contains(body, `<option value="2" selected>`) {
		t.Error("the second connector is not chosen")
	}
}

func TestHandler_anotherRule(t *testing.T) {
	w := newWorld(t)
	h := debug.Handler(w.connector)
	getJSON(t, h)
	if err := w.connector.SetRule(newWorldOf(t, "t_bill", "other").connector.Rule()); err != nil {
		t.Fatal(err)
	}
	p := getJSON(t, h, "statement", "INSERT INTO t_bill (a) VALUES (1)")
	if p.Plan.Outcome != "filled" || p.Connectors[0].Stats.Tables[0].Table != "t_bill" {
		t.Errorf("%+v", p)
	}
}

// A page of a large rule stays a page.
func TestHandler_manyTables(t *testing.T) {
	config := rule.Config{Generators: map[string]rule.GeneratorConfig{"g": {Type: "UUID"}}}
	for i := range 5000 {
		config.Tables = append(config.Tables, rule.TableConfig{Name: fmt.Sprintf("t%d_x", i), KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}})
	}
	r, err := rule.New(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := driver.NewConnector(base{}, r)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for table, n := range map[string]int{"t4321_x": 9, "t4999_x": 1, "t3_x": 5} {
		if _, err := c.NextKeys(t.Context(), table, n); err != nil {
			t.Fatal(err)
		}
	}
	body := get(t, debug.Handler(c)).Body.String()
	if len(body) > 200_000 || !strings.Contains(body, "and 4\u202f800 more tables") || !strings.Contains(body, "t4321_x") {
		t.Errorf("the page has %d bytes, or not the busiest table", len(body))
	}
	text := get(t, debug.Handler(c), "format", "json").Body.Bytes()
	var page struct {
		Connectors []struct {
			Stats driver.Stats `json:"stats"`
		} `json:"connectors"`
	}
	if err := json.Unmarshal(text, &page); err != nil {
		t.Fatal(err)
	}
	tables, keys := page.Connectors[0].Stats.Tables, int64(0)
	for _, table := range tables {
		keys += table.Keys
	}
	if last := tables[len(tables)-1]; len(tables) != 201 || last.Table != "_OTHER" || keys != 15 || last.Keys != 0 || tables[198].Table != "t4321_x" {
		t.Errorf("have: %d tables with %d keys, the last ones %+v\nwant: the 200 busiest and the sum over the others, with 15", len(tables), keys, tables[len(tables)-3:])
	}
}

func TestHandler_manyAtOnce(t *testing.T) {
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
