package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// exported returns the metrics that the program exports, and all of their labels. One generator
// has failed, so the metrics of errors are among them.
func exported(t *testing.T) (metrics, labels map[string]bool) {
	t.Helper()
	text := strings.Replace(ruleText, "  keyGenerators:\n", "    t_missing:\n      keyGenerateStrategy: {column: id, keyGeneratorName: missing}\n"+
		"  keyGenerators:\n    missing: {type: LEAF_SEGMENT, props: {leaf.key: missing}}\n", 1)
	s := mustOpen(t, testserver.Database(t), text)
	must.Do(t, s.order(t.Context(), 1))
	if _, err := s.connector.NextKeys(t.Context(), "t_missing", 1); err == nil {
		t.Fatal("a key of a segment that is not there")
	}
	if err := s.order(t.Context(), 1); err != nil { // it queries the statement limit
		t.Fatal(err)
	}
	_, page := s.read(t, "/metrics")
	metrics, labels = map[string]bool{}, map[string]bool{"instance": true, "job": true}
	for _, line := range regexp.MustCompile(`(?m)^(shardkey_\w+)(?:\{(.*)\})? `).FindAllStringSubmatch(page, -1) {
		metrics[line[1]] = true
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(line[2], -1) {
			labels[label[1]] = true
		}
	}
	return metrics, labels
}

// checkExpr checks that the names in a query are exported metrics and labels.
func checkExpr(t *testing.T, where, expr string, metrics, labels map[string]bool) {
	t.Helper()
	used := regexp.MustCompile(`shardkey_\w+`).FindAllString(regexp.MustCompile(`\{[^}]*\}|\b(by|without) \([^)]*\)`).ReplaceAllString(expr, ""), -1)
	if len(used) == 0 {
		t.Errorf("%s: no metric of ours in %s", where, expr)
	}
	for _, name := range used {
		if !metrics[name] {
			t.Errorf("%s: %s is not exported", where, name)
		}
	}
	for _, selector := range regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`).FindAllStringSubmatch(expr, -1) {
		if !labels[selector[1]] {
			t.Errorf("%s: no metric has the label %s", where, selector[1])
		}
	}
	for _, list := range regexp.MustCompile(`\b(?:by|without) \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(list[1], ",") {
			if !labels[strings.TrimSpace(label)] {
				t.Errorf("%s: no metric has the label %s", where, label)
			}
		}
	}
	if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") {
		t.Errorf("%s: brackets: %s", where, expr)
	}
}

// checkTemplate checks that the labels in a template are exported.
func checkTemplate(t *testing.T, where, text, form string, labels map[string]bool) {
	t.Helper()
	for _, label := range regexp.MustCompile(form).FindAllStringSubmatch(text, -1) {
		if !labels[label[1]] {
			t.Errorf("%s shows the label %s, which no metric has", where, label[1])
		}
	}
}

type dashboard struct {
	Title, UID string
	Panels     []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ RefID, Expr, LegendFormat string }
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

// The dashboard and the alerts use only exported metrics, and each exported metric is on the
// dashboard.
func TestFiles_nameWhatIsExported(t *testing.T) {
	metrics, labels := exported(t)

	var d dashboard
	text := must.Get(os.ReadFile("grafana-dashboard.json"))(t)
	must.Do(t, json.Unmarshal(text, &d))
	var ids []int
	for _, p := range d.Panels {
		if slices.Contains(ids, p.ID) || p.Title == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: its id, title, targets or place", p.ID, p.Title)
		}
		ids = append(ids, p.ID)
		for _, target := range p.Targets {
			checkExpr(t, p.Title, target.Expr, metrics, labels)
			checkTemplate(t, p.Title, target.LegendFormat, `\{\{(\w+)\}\}`, labels)
		}
	}
	for name := range metrics {
		if !strings.Contains(string(text), name) {
			t.Errorf("%s is not on the dashboard", name)
		}
	}
	for _, v := range d.Templating.List {
		if metric := regexp.MustCompile(`label_values\((\w+), (\w+)\)`).FindStringSubmatch(v.Definition); v.Definition != "" && (metric == nil || !metrics[metric[1]] || !labels[metric[2]]) {
			t.Errorf("variable %s: %s", v.Name, v.Definition)
		}
	}

	var alerts struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	must.Do(t, yaml.Unmarshal(must.Get(os.ReadFile("alerts.yml"))(t), &alerts))
	const runbook = "docs/guides/runbook.md"
	documented := string(must.Get(os.ReadFile("../../" + runbook))(t))
	n := 0
	for _, g := range alerts.Groups {
		for _, r := range g.Rules {
			n++
			checkExpr(t, r.Alert, r.Expr, metrics, labels)
			checkTemplate(t, r.Alert, r.Annotations["summary"], `\$labels\.(\w+)`, labels)
			if r.Annotations["summary"] == "" || r.Labels["severity"] != "critical" && r.Labels["severity"] != "warning" {
				t.Errorf("%s has no summary or severity", r.Alert)
			}
			_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "https://github.com/shardkey/shardkey/blob/main/"+runbook+"#")
			row := regexp.MustCompile("(?m)^\\| `" + r.Alert + "` .*\\(#" + anchor + "\\) \\|$")
			if anchor == "" || !row.MatchString(documented) {
				t.Errorf("%s: %s is not the paragraph of %s in %s", r.Alert, anchor, r.Alert, runbook)
			}
		}
	}
	if inDocs := strings.Count(documented, "| `Shardkey"); inDocs != n || n < 8 {
		t.Errorf("%d alerts, %d in %s", n, inDocs, runbook)
	}
	table := string(must.Get(os.ReadFile("../../docs/reference/metrics.md"))(t))
	for _, name := range regexp.MustCompile("`(shardkey_\\w+)`").FindAllStringSubmatch(table, -1) {
		if !metrics[name[1]] {
			t.Errorf("docs/reference/metrics.md has %s, which is not exported", name[1])
		}
	}
	for name := range metrics {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("docs/reference/metrics.md does not have %s", name)
		}
	}
}

// promtool returns the path of Prometheus' promtool: in the PATH, or in the cache of
// .ci/install-servers.
func promtool(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err == nil {
		return path
	}
	cache, err := os.UserCacheDir()
	if err == nil {
		path, err = exec.LookPath(filepath.Join(cache, "shardkey", "servers", "promtool"))
	}
	if err != nil {
		testserver.Missing(t, "promtool", fmt.Errorf("promtool is not installed, make servers fetches it (Debian): %w", err))
	}
	return path
}

// promtool accepts the files, and the tests of the alerts pass.
func TestFiles_promtool(t *testing.T) {
	promtool := promtool(t)
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"test", "rules", "alerts_test.yml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// promtool reports no problem with the names and types of the metrics.
func TestFiles_promtoolChecksTheMetrics(t *testing.T) {
	promtool := promtool(t)
	s := mustOpen(t, testserver.Database(t), ruleText)
	must.Do(t, s.order(t.Context(), 1))
	_, page := s.read(t, "/metrics")
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(page)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
