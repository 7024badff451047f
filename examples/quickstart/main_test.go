package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

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

// checkRun runs the whole program. Its output has the lines that README.md shows.
func checkRun(t *testing.T, dsn string) {
	t.Helper()
	var out strings.Builder
	must.Do(t, run(t.Context(), &out, dsn), out.String())
	rows := regexp.MustCompile(`(?m)^t_order_[01] .* (\d{15,}) .* 123 `).FindAllString(out.String(), -1)
	must.Equal(t, len(rows), 14, "rows with a key of worker 123")
	must.Contain(t, out.String(), "the same key twice")
	readme := must.Get(os.ReadFile("../../README.md"))(t)
	_, shown, _ := strings.Cut(string(readme), "```text\n")
	shown, _, _ = strings.Cut(shown, "```")
	must.Equal(t, strings.Count(shown, "\n"), 2, "lines of output in README.md")
	for line := range strings.Lines(shown) {
		must.Contain(t, out.String(), "\n"+line)
	}
}

func TestRunLeavesOthersTables(t *testing.T) {
	if testserver.Each(t, TestRunLeavesOthersTables) {
		return
	}
	dsn := testserver.Database(t)
	other := must.Open(t, "mysql", dsn)
	must.Get(other.Exec("CREATE TABLE t_order_1 (id INT)"))(t)
	err := run(t.Context(), new(strings.Builder), dsn)
	must.FailWith(t, err, "t_order_1")
	must.FailWith(t, err, "an empty database")
	must.Get(other.Exec("DROP TABLE t_order_1"))(t) // fails if it doesn't exist
	must.Fail(t, must.Err(other.Exec("DROP TABLE t_order_0")), "t_order_0 is left")
}
