package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// TestRun runs the whole program.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, to := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, to, "127.0.0.1:0", "")
		_ = to.CloseWithError(err)
		ended <- err
	}()
	addresses := map[string]string{}
	lines := bufio.NewScanner(out)
	for len(addresses) < 5 && lines.Scan() {
		name, address, _ := strings.Cut(lines.Text(), " ")
		addresses[name] = strings.TrimSpace(address)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if span := addresses["span"]; !strings.Contains(span, "INSERT INTO t_order_") || strings.Contains(span, "order_id") {
		t.Errorf("first span\nhave: %s\nwant: an INSERT without a key", span)
	}
	for name, want := range map[string]string{"page": "<h1>shardkey</h1>", "metrics": "shardkey_keys_total", "expvar": `{"shardkey": {`, "ready": "ready\n"} {
		answer := must.Get(http.Get(addresses[name]))(t)
		for answer.StatusCode == http.StatusServiceUnavailable { // not ready within the second that /readyz waits
			_ = answer.Body.Close()
			answer = must.Get(http.Get(addresses[name]))(t)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d, %v, without %s", addresses[name], answer.StatusCode, err, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestShop(t *testing.T) {
	if testserver.Each(t, TestShop) {
		return
	}
	// These servers don't sync at commit, which the page warns of.
	checkShop(t, mustOpen(t, testserver.Database(t), ruleText), "warning", "innodb_flush_log_at_trx_commit")
}

func mustOpen(t *testing.T, dsn, rule string) *shop {
	t.Helper()
	s, err := openShop(t.Context(), io.Discard, dsn, rule)
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, s.db.Close()) })
	return s
}

// read requests one of the shop's addresses, and returns the status and the content.
func (s *shop) read(t *testing.T, address string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, httptest.NewRequest("GET", address, nil))
	return w.Code, w.Body.String()
}

// checkShop inserts some orders and checks all four addresses. The page has this state and message.
func checkShop(t *testing.T, s *shop, state, message string) {
	t.Helper()
	for user := range int64(10) {
		must.Do(t, s.order(t.Context(), user))
	}
	for table, want := range map[string]string{"t_order": "10", "t_invoice": "20", "t_token": "10"} {
		found := false
		_, metrics := s.read(t, "/metrics")
		for line := range strings.SplitSeq(metrics, "\n") {
			found = found || strings.HasPrefix(line, "shardkey_keys_total{") && strings.Contains(line, `db_collection_name="`+table+`"`) && strings.HasSuffix(line, "} "+want)
		}
		if !found {
			t.Errorf("the metrics have no %s keys of %s", want, table)
		}
	}
	_, vars := s.read(t, "/debug/vars")
	var figures struct {
		Shardkey struct{ Tables []struct{ Keys int64 } }
	}
	var page struct{ State string }
	_, shown := s.read(t, "/debug/shardkey/?format=json")
	if err := json.Unmarshal([]byte(shown), &page); err != nil || page.State != state {
		t.Errorf("%v, state %q: %s", err, page.State, shown)
	}
	if err := json.Unmarshal([]byte(vars), &figures); err != nil || len(figures.Shardkey.Tables) != 3 || figures.Shardkey.Tables[1].Keys != 20 {
		t.Errorf("expvar: %v: %s", err, vars)
	}
	for code := 0; code != 200; { // once within the second that /readyz waits
		code, _ = s.read(t, "/readyz")
	}
	if code, text := s.read(t, "/debug/shardkey/"); code != 200 || !strings.Contains(text, message) {
		t.Errorf("the page: %d", code)
	}
}

// withoutStore returns a rule whose worker IDs are on a server that doesn't exist.
func withoutStore(rule string) string {
	return strings.Replace(rule, "{type: SQL}", "{type: SQL, props: {dsn: 'root@tcp(127.0.0.1:1)/app'}}", 1)
}

// Without a worker ID, all addresses report the reason.
func TestShop_withoutWorkerIDs(t *testing.T) {
	if testserver.Each(t, TestShop_withoutWorkerIDs) {
		return
	}
	s := mustOpen(t, testserver.Database(t), withoutStore(ruleText))
	must.Fail(t, s.order(t.Context(), 1), "a key without a worker ID")
	for address, want := range map[string]string{
		"/readyz":          "generator snowflake for t_order.order_id: ",
		"/debug/shardkey/": `<p class="failing"><b>failing</b> snowflake: `,
		"/metrics":         `shardkey_generator_name="snowflake",shardkey_generator_type="SNOWFLAKE"} 0`,
	} {
		code, text := s.read(t, address)
		if !strings.Contains(text, want) || (address == "/readyz") != (code == http.StatusServiceUnavailable) {
			t.Errorf("%s: %d\nhave: %s\nwant: %s", address, code, text, want)
		}
	}
}
