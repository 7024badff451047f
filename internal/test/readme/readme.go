// Package readme completes the program that README.md shows, for tests that build and run it.
package readme

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the tables are created without shardkey
)

// Program is the program in the section "Use it".
type Program struct {
	Dir string // has main.go and rule.yaml
	out *regexp.Regexp
}

// whole is a program around the statements of the page.
const whole = `package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	%s
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
%s
	return err
}
`

// New writes the program of the page at path to a new directory, and creates its tables in
// the database that dsn opens. The program opens that database.
func New(t testing.TB, path, dsn string) Program {
	t.Helper()
	page, err := os.ReadFile(path)
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
	createTables(t, dsn, blocks["sql"])

	const shown = "user:pass@tcp(127.0.0.1:3306)/shop?"
	if !strings.Contains(blocks["go"], shown) {
		t.Fatalf("%s: have: %s\nwant: the DSN %s", path, blocks["go"], shown)
	}
	if strings.Contains(dsn, "?") {
		dsn += "&"
	} else {
		dsn += "?"
	}
	p := Program{Dir: t.TempDir()}
	imported, statements, _ := strings.Cut(strings.Replace(blocks["go"], shown, dsn, 1), "\n")
	p.Write(t, "main.go", fmt.Sprintf(whole, strings.TrimPrefix(imported, "import "), statements))
	p.Write(t, "rule.yaml", blocks["yaml"])
	if blocks["text"] == "" {
		t.Fatalf("%s shows no output", path)
	}
	number := regexp.MustCompile(`\d+`)
	p.out = regexp.MustCompile("^" + number.ReplaceAllString(regexp.QuoteMeta(blocks["text"]), `\d{18,19}`) + "$")
	return p
}

func createTables(t testing.TB, dsn, statements string) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for create := range strings.SplitSeq(strings.TrimSpace(statements), ";\n") {
		if _, err := db.ExecContext(t.Context(), strings.TrimSuffix(create, ";")); err != nil {
			t.Fatalf("%s: %v", create, err)
		}
	}
}

// Write writes a file of the program.
func (p Program) Write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Check fails the test if the output isn't what the page shows, with other keys.
func (p Program) Check(t testing.TB, out []byte) {
	t.Helper()
	if !p.out.Match(out) {
		t.Errorf("have: %s\nwant: a match of %s", out, p.out)
	}
}
