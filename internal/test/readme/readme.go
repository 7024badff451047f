// Package readme extracts the program that README.md shows, for tests that build and run it.
package readme

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/must"
)

// Program is the program in the section "Use it".
type Program struct {
	Dir string // has main.go and rule.yaml
	out *regexp.Regexp
}

// New writes the program of the page at path to a new directory, and creates its tables in
// the database that dsn opens. The program opens that database.
func New(t testing.TB, path, dsn string) Program {
	t.Helper()
	_, use, _ := strings.Cut(string(must.Get(os.ReadFile(path))(t)), "\n## Use it\n")
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```").FindAllStringSubmatch(use, -1) {
		if blocks[m[1]] == "" {
			blocks[m[1]] = m[2]
		}
	}
	db := must.Open(t, "mysql", dsn) // the tables are created without shardkey
	for create := range strings.SplitSeq(strings.TrimSuffix(blocks["sql"], ";\n"), ";\n") {
		must.Get(db.ExecContext(t.Context(), create))(t, create)
	}

	const shown = "user:pass@tcp(127.0.0.1:3306)/shop?"
	must.Contain(t, blocks["go"], shown, path)
	if strings.Contains(dsn, "?") {
		dsn += "&"
	} else {
		dsn += "?"
	}
	p := Program{Dir: t.TempDir()}
	p.Write(t, "main.go", strings.Replace(blocks["go"], shown, dsn, 1))
	p.Write(t, "rule.yaml", blocks["yaml"])
	if blocks["text"] == "" {
		t.Fatalf("%s shows no output", path)
	}
	number := regexp.MustCompile(`\d+`)
	p.out = regexp.MustCompile("^" + number.ReplaceAllString(regexp.QuoteMeta(blocks["text"]), `\d{18,19}`) + "$")
	return p
}

// Write writes a file of the program.
func (p Program) Write(t testing.TB, name, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(p.Dir, name), []byte(content), 0o600))
}

// Check fails the test if the output isn't what the page shows, with other keys.
func (p Program) Check(t testing.TB, out []byte) {
	t.Helper()
	if !p.out.Match(out) {
		t.Errorf("have: %s\nwant: a match of %s", out, p.out)
	}
}
