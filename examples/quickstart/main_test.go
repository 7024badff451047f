package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

func TestRunEmbedded(t *testing.T) { checkRun(t, "") }

func TestRunOnServer(t *testing.T) {
	if testserver.Each(t, TestRunOnServer) {
		return
	}
	checkRun(t, testserver.Database(t))
}

// checkRun runs the whole program and checks its output.
func checkRun(t *testing.T, dsn string) {
	t.Helper()
	var out strings.Builder
	must.Do(t, run(t.Context(), &out, dsn), out.String())
	t.Log(out.String())
	rows := regexp.MustCompile(`(?m)^  t_order_[01] .* (\d{15,}) .* 123 `).FindAllString(out.String(), -1)
	must.Equal(t, len(rows), 14, "rows with a key of worker 123")
	for _, want := range []string{
		"the same key twice",
		"AUTO_INCREMENT   14 rows,  7 keys repeat",
		"shardkey         14 rows,  0 keys repeat",
	} {
		must.Contain(t, out.String(), want)
	}
}

// TestRun_matchesReadme checks that the program prints the lines in README.md.
func TestRun_matchesReadme(t *testing.T) {
	readme := must.Get(os.ReadFile("../../README.md"))(t)
	_, shown, _ := strings.Cut(string(readme), "```text\n")
	shown, _, ok := strings.Cut(shown, "```")
	var out strings.Builder
	must.Do(t, run(t.Context(), &out, ""))
	for line := range strings.Lines(shown) {
		if !strings.Contains(out.String(), "\n"+line) && strings.TrimSpace(line) != "…" {
			t.Errorf("README.md shows %q\nhave: %s", line, out.String())
		}
	}
	if !ok || strings.Count(shown, "\n") < 2 {
		t.Errorf("README.md shows %q\nwant: more lines", shown)
	}
}

func TestRunLeavesOthersTables(t *testing.T) {
	if testserver.Each(t, TestRunLeavesOthersTables) {
		return
	}
	dsn := testserver.Database(t)
	cfg := must.Get(mysql.ParseDSN(dsn))(t)
	other, err := openShop(t.Context(), cfg, "mysql", "", "BIGINT PRIMARY KEY", "t_order_1", "t_mine")
	must.Do(t, err)
	err = run(t.Context(), new(strings.Builder), dsn)
	if err == nil || !strings.Contains(err.Error(), "t_order_1") || !strings.Contains(err.Error(), "an empty database") {
		t.Errorf("have: %v\nwant: an error that names t_order_1 and says what to do", err)
	}
	if err := other.close(); err != nil { // fails unless both tables still exist
		t.Error(err)
	}
}
