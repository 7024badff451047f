// Command mutants changes the code of packages, one operator at a time, and runs their tests
// on each change. It compares the changes that no test finds with survivors.txt:
//
//	go run ./internal/test/repository/mutants keygen/nanoid
//
// It fails if a change survives that the file doesn't list with a reason, or if a test now
// finds a change in the file. Gremlins, a tool of internal/test/tools, makes the changes. The tests
// run with -short, so code that only tests with a server cover isn't changed. Gremlins reports
// the number of changes that are left out as "not covered".
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	directory = "internal/test/repository/mutants/"
	list      = directory + "survivors.txt"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: mutants package ...")
		os.Exit(2)
	}
	text, err := os.ReadFile(list)
	reasons, listErr := parse(string(text))
	err = errors.Join(err, listErr)
	for _, dir := range os.Args[1:] {
		survivors, failed := run(filepath.Clean(dir))
		if failed == nil {
			failed = compare(reasons, filepath.Clean(dir), survivors)
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// report is the report that Gremlins writes.
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

// run returns the changes in a directory and its subdirectories that survive the tests.
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
	// The time limit is three times the time of the tests, plus one minute.
	patience := 3 + int(time.Minute/time.Since(began))
	err = goCommand("tool", "-modfile=internal/test/tools/go.mod", "gremlins", "unleash", "./"+dir,
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

// survivors returns the changes that no test finds, each named by package, function, kind and
// line of code. Equal names get a suffix #n.
func (r *report) survivors(dir string) (names []string, err error) {
	seen := map[string]int{}
	for _, f := range r.Files {
		path := filepath.Join(dir, f.Name)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(source), "\n")
		slices.SortFunc(f.Mutations, func(a, b mutation) int {
			return 1000*(a.Line-b.Line) + a.Column - b.Column
		})
		for _, m := range f.Mutations {
			code, _, _ := strings.Cut(lines[m.Line-1], " // ") // a reworded comment doesn't change the name
			name := fmt.Sprintf("%s %s %s: %s", filepath.ToSlash(filepath.Dir(path)), function(lines[:m.Line]), m.Type,
				strings.TrimSpace(code))
			if seen[name]++; seen[name] > 1 {
				name += fmt.Sprintf(" #%d", seen[name])
			}
			if m.Status == "LIVED" {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

var declared = regexp.MustCompile(`^func (?:\(.*?(\w+)(?:\[[^]]*\])?\) )?(\w+)`)

// function returns the name of the function that contains the last line, with its receiver's
// type.
func function(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if m := declared.FindStringSubmatch(line); m != nil {
			return strings.TrimPrefix(m[1]+"."+m[2], ".")
		}
		if line == "}" || line == ")" {
			break // end of another declaration
		}
	}
	return "-"
}

// compare returns an error if the survivors of a directory differ from the list.
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

// parse parses a list: each change on a line, followed by its reason on indented lines.
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
			return nil, fmt.Errorf("%s: expected a change and its reason, found %q %q", list, name, reason)
		}
	}
	return reasons, nil
}
