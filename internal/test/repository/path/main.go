// Command path prints the functions of this module that a warm INSERT of one row calls, from a call of
// database/sql on, methods of one line included. It fails if they have become more.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	module    = "github.com/shardkey/shardkey/"
	mostFuncs = 91
	mostFiles = 34
)

func main() {
	log.SetFlags(0)
	called := map[string][]string{} // functions by file
	const few, many = 100, 1100
	after := blocks(many)
	for block, n := range blocks(few) {
		if after[block]-n >= (many-few)*9/10 { // not only once in a while
			file, at, _ := strings.Cut(strings.TrimPrefix(block, module), ":")
			line, _ := strconv.Atoi(at[:strings.IndexByte(at, '.')])
			if f := function(file, line); !slices.Contains(called[file], f) {
				called[file] = append(called[file], f)
			}
		}
	}
	n := 0
	for _, file := range slices.Sorted(maps.Keys(called)) {
		n += len(called[file])
		fmt.Printf("%s: %s\n", file, strings.Join(slices.Sorted(slices.Values(called[file])), ", "))
	}
	fmt.Printf("%d functions in %d files\n", n, len(called))
	if n > mostFuncs || len(called) > mostFiles {
		log.Fatalf("want: at most %d functions in %d files", mostFuncs, mostFiles)
	}
}

// blocks returns how often each block of code ran when a benchmark had n iterations.
func blocks(n int) map[string]int {
	file := filepath.Join(os.TempDir(), "shardkey-path-"+strconv.Itoa(os.Getpid()))
	defer os.Remove(file)
	cmd := exec.Command("go", "test", "./driver", "-run=^$", "-bench=^BenchmarkWarmInsert$", fmt.Sprintf("-benchtime=%dx", n),
		"-covermode=count", "-coverpkg=./driver/...,./rewrite,./rule,./keygen/...,./internal/panics,./internal/sqltoken", "-coverprofile="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		log.Fatalf("%v: %s", err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	counts := map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 {
			counts[fields[0]], _ = strconv.Atoi(fields[2])
		}
	}
	return counts
}

// function returns the name of the function at a line.
func function(file string, line int) string {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && set.Position(f.Pos()).Line <= line && line <= set.Position(f.End()).Line {
			return f.Name.Name
		}
	}
	return "?"
}
