// Command mutants changes the code of packages, one operator at a time, and runs their
// tests on each change. It compares the changes that no test finds with survivors.txt:
//
//	go run ./internal/repository/mutants keygen/nanoid
//
// It fails if a change survives that the file doesn't list with a reason, or if one in the
// file is found by a test by now. Gremlins, of internal/tools, makes the changes. The tests
// run with -short: give a change that only a test with a server finds that reason.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	directory = "internal/repository/mutants/"
	list      = directory + "survivors.txt"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: mutants package ...")
		os.Exit(2)
	}
	reasons, err := readList()
	for _, dir := range os.Args[1:] {
		survivors, runErr := run(filepath.Clean(dir))
		err = errors.Join(err, runErr, compare(reasons, filepath.Clean(dir), survivors))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// report is what gremlins writes.
type report struct {
	Files []struct {
		Name      string `json:"file_name"` // relative to the directory
		Mutations []mutation
	}
}

type mutation struct {
	Type, Status string
	Line, Column int
}

// run returns the changes in a directory and those below that survive the tests.
func run(dir string) ([]string, error) {
	file, err := os.CreateTemp("", "mutants-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	began := time.Now()
	if err := goCommand("test", "./"+dir+"/..."); err != nil {
		return nil, err
	}
	// A test that runs three times as long and a minute doesn't end.
	patience := 3 + int(time.Minute/time.Since(began))
	err = goCommand("tool", "-modfile=internal/tools/go.mod", "gremlins", "unleash", "./"+dir,
		"--config", directory+"gremlins.yaml", "--timeout-coefficient", strconv.Itoa(patience), "-o", file.Name())
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.NewDecoder(file).Decode(&r); err != nil {
		return nil, err
	}
	return r.survivors(dir)
}

func goCommand(args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-short -count=1 -failfast -vet=off "+os.Getenv("GOFLAGS"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// survivors names the changes that no test finds, each by its package, function, kind and
// line of code. The n-th of several that are equal has the suffix #n.
func (r *report) survivors(dir string) (names []string, err error) {
	seen := map[string]int{}
	for _, f := range r.Files {
		path := filepath.Join(dir, f.Name)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(source), "\n")
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(f.Mutations, func(a, b mutation) int {
			return 1000*(a.Line-b.Line) + a.Column - b.Column
		})
		for _, m := range f.Mutations {
			name := fmt.Sprintf("%s %s %s: %s", filepath.ToSlash(filepath.Dir(path)), function(set, syntax, m.Line), m.Type,
				strings.TrimSpace(lines[m.Line-1]))
			if seen[name]++; seen[name] > 1 {
				name += fmt.Sprintf(" #%d", seen[name])
			}
			if m.Status == "LIVED" || m.Status == "NOT COVERED" {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// function returns the name of the function that a line is in, with its receiver's type.
func function(set *token.FileSet, file *ast.File, line int) string {
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || line < set.Position(f.Pos()).Line || line > set.Position(f.End()).Line {
			continue
		}
		if f.Recv == nil {
			return f.Name.Name
		}
		return strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + f.Name.Name
	}
	return "-"
}

// compare returns an error if the survivors of a directory aren't those that the list has.
func compare(reasons map[string]string, dir string, survivors []string) (err error) {
	for _, name := range survivors {
		if _, ok := reasons[name]; !ok {
			err = errors.Join(err, fmt.Errorf("no test finds, and %s doesn't list:\n%s", list, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		in, _, _ := strings.Cut(name, " ")
		if (in == dir || strings.HasPrefix(in, dir+"/")) && !slices.Contains(survivors, name) {
			err = errors.Join(err, fmt.Errorf("%s lists what a test finds, or what isn't there:\n%s", list, name))
		}
	}
	return err
}

func readList() (reasons map[string]string, err error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	return parse(string(text))
}

// parse reads a list: each change on a line, with its reason on indented lines below.
func parse(text string) (map[string]string, error) {
	reasons, name := map[string]string{}, ""
	for line := range strings.Lines(text) {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "" || strings.HasPrefix(line, "#"):
		case line[0] == ' ' || line[0] == '\t':
			reasons[name] += trimmed
		default:
			name = trimmed
			reasons[name] = ""
		}
	}
	for name, reason := range reasons {
		if name == "" || reason == "" {
			return nil, fmt.Errorf("%s: a change without a reason, or a reason without a change: %q %q", list, name, reason)
		}
	}
	return reasons, nil
}
