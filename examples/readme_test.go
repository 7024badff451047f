package examples_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
)

// TestReadme_useIt builds the program of README.md, and runs it with the tables and the rule of
// that page on each server.
func TestReadme_useIt(t *testing.T) {
	if testserver.Each(t, TestReadme_useIt) {
		return
	}
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, use, _ := strings.Cut(string(page), "\n## Use it\n")
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```").FindAllStringSubmatch(use, -1) {
		if blocks[m[1]] == "" {
			blocks[m[1]] = m[2]
		}
	}
	dsn := testserver.Database(t)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for create := range strings.SplitSeq(strings.TrimSpace(blocks["sql"]), ";\n") {
		if _, err := db.ExecContext(t.Context(), strings.TrimSuffix(create, ";")); err != nil {
			t.Fatalf("%s: %v", create, err)
		}
	}
	const shown = "user:pass@tcp(127.0.0.1:3306)/shop?"
	if !strings.Contains(blocks["go"], shown) {
		t.Fatalf("have: %s\nwant: the DSN %s", blocks["go"], shown)
	}
	with := dsn + "?"
	if strings.Contains(dsn, "?") {
		with = dsn + "&"
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"rule.yaml": blocks["yaml"], "main.go": strings.Replace(blocks["go"], shown, with, 1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir = dir
	out, err := cmd.Output() // the log is on standard error
	if err != nil {
		t.Fatal(err)
	}
	pattern := "^" + regexp.MustCompile(`\d+`).ReplaceAllString(regexp.QuoteMeta(blocks["text"]), `\d{18,19}`) + "$"
	if !regexp.MustCompile(pattern).Match(out) || blocks["text"] == "" {
		t.Errorf("have: %s\nwant: as %s", out, blocks["text"])
	}
}
