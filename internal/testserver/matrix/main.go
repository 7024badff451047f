// Command matrix makes the compatibility matrix of the documentation out of what
// a test run noted, or holds a file to it:
//
//	make unit
//	go run ./internal/testserver/matrix -write bin/record docs/internals/compatibility.md
//
// Without -write it fails when the file says something else than what ran.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/testserver"
)

func main() {
	write := flag.Bool("write", false, "write the file")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: matrix [-write] record file")
		os.Exit(2)
	}
	if runtime.GOARCH != "amd64" && !*write {
		fmt.Println("matrix: not compared, as MySQL 5.6 runs on amd64 only")
		return
	}
	if err := run(*write, flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(write bool, record, file string) error {
	noted, err := os.ReadFile(record)
	if err != nil {
		return err
	}
	want := render(string(noted))
	if write {
		return os.WriteFile(file, []byte(want), 0o644)
	}
	have, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if string(have) != want {
		return fmt.Errorf("%s does not say what ran: make matrix writes it again\n%s", file, differing(string(have), want))
	}
	return nil
}

// differing are the lines that only one of two texts has.
func differing(have, want string) string {
	var b strings.Builder
	for _, side := range []struct{ sign, text, other string }{{"-", have, want}, {"+", want, have}} {
		others := strings.Split(side.other, "\n")
		for line := range strings.Lines(side.text) {
			if line = strings.TrimSuffix(line, "\n"); !slices.Contains(others, line) {
				fmt.Fprintln(&b, side.sign, line)
			}
		}
	}
	return b.String()
}

const head = `# Tests on each server

The tests write this page: it shows the last run of all tests, and its servers. make test fails if
the page differs from its run; make matrix writes the page from the last run. "all" is every test or
case, except for those under the second heading; "some" is a selection of the tests.

`

// render makes the page of a record's lines.
func render(noted string) string {
	versions := map[string]string{}                  // by server
	ran := map[string]map[string]string{}            // what, by server
	needs := map[string]map[string]map[string]bool{} // servers, what, tests
	for line := range strings.Lines(noted) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case f[0] == "server" && len(f) == 3:
			versions[f[1]] = f[2]
		case f[0] == "ran" && len(f) == 4:
			put(ran, f[1], f[2], f[3])
		case f[0] == "needs" && len(f) == 4:
			if needs[f[2]] == nil {
				needs[f[2]] = map[string]map[string]bool{}
			}
			put(needs[f[2]], f[1], f[3], true)
		}
	}
	return head + ranTable(versions, ran) + needsTable(needs)
}

func put[V any](m map[string]map[string]V, a, b string, v V) {
	if m[a] == nil {
		m[a] = map[string]V{}
	}
	m[a][b] = v
}

func ranTable(versions map[string]string, ran map[string]map[string]string) string {
	var b strings.Builder
	names := testserver.Names()
	b.WriteString("| | ")
	for _, name := range names {
		fmt.Fprintf(&b, "%s | ", versions[name])
	}
	b.WriteString("without a server |\n|" + strings.Repeat(" --- |", len(names)+2) + "\n")
	for _, what := range sorted(ran) {
		fmt.Fprintf(&b, "| %s |", what)
		for _, name := range append(names, "") {
			fmt.Fprintf(&b, " %s |", ran[what][name])
		}
		b.WriteString("\n")
	}
	return b.String()
}

func needsTable(needs map[string]map[string]map[string]bool) string {
	var b strings.Builder
	b.WriteString("\n## What only some servers have\n\n| what | servers | the tests with cases that need it |\n| --- | --- | --- |\n")
	for _, servers := range sorted(needs) {
		for _, what := range sorted(needs[servers]) {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", what, servers, strings.Join(sorted(needs[servers][what]), ", "))
		}
	}
	return b.String()
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
