package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// Each mutant still fits the source, and is Go that compiles: a list that
// does not would show nothing.
func TestMutants_fitTheSource(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range groups {
		check := newChecker(t, filepath.Join(root, g.dir))
		for _, m := range g.mutants {
			name := g.dir + ": " + m.what
			if seen[name] {
				t.Errorf("%s: there are two of that name", name)
			}
			seen[name] = true
			changed, err := m.apply(root, g.dir)
			if err != nil {
				t.Error(err)
				continue
			}
			if err := check(changed); err != nil {
				t.Errorf("%s: it does not compile: %v", name, err)
			}
		}
	}
}

// The tests that mutants name are there.
func TestMutants_nameTests(t *testing.T) {
	tests := map[string][]string{}
	for _, g := range groups {
		for _, m := range g.mutants {
			dir := g.dir
			if m.pkg != "" {
				dir = m.pkg
			}
			if tests[dir] == nil {
				tests[dir] = testsOf(t, filepath.Join(root, dir))
			}
			for _, by := range strings.Split(m.by, "|") {
				test, server, _ := strings.Cut(by, "/")
				if test != "" && !slices.Contains(tests[dir], test) {
					t.Errorf("%s: %s: %s has no %s", g.dir, m.what, dir, test)
				}
				if server != "" && !slices.Contains(tests[dir], "Each "+test) {
					t.Errorf("%s: %s: %s does not run on each server, so that %s runs nothing", g.dir, m.what, test, by)
				}
			}
		}
	}
}

var eachCall = regexp.MustCompile(`testserver\.Each\(t, (Test\w+)\)`)

// testsOf are the functions of a package's tests, and again, after "Each ", those
// that testserver.Each runs.
func testsOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range eachCall.FindAllSubmatch(text, -1) {
			names = append(names, "Each "+string(m[1]))
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// newChecker returns what checks the types of a package with one file changed,
// against the export data of what the package imports.
func newChecker(t *testing.T, dir string) func(mutated) error {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles", ".")
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	type listed struct {
		ImportPath, Export string
		GoFiles            []string
	}
	export := map[string]string{}
	var pkg listed // the package itself comes last
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		pkg = listed{}
		if err := d.Decode(&pkg); err != nil {
			t.Fatal(err)
		}
		export[pkg.ImportPath] = pkg.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
	parsed := map[string]*ast.File{}
	for _, name := range pkg.GoFiles {
		if parsed[name], err = parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
	}
	if len(parsed) == 0 {
		t.Fatalf("%s has no source", dir)
	}
	return func(m mutated) error {
		if filepath.Ext(m.path) != ".go" {
			return nil
		}
		changed, err := parser.ParseFile(fset, m.path, m.text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		var files []*ast.File
		for name, file := range parsed {
			if name == filepath.Base(m.path) {
				file = changed
			}
			files = append(files, file)
		}
		config := types.Config{Importer: imports}
		_, err = config.Check(pkg.ImportPath, fset, files, nil)
		return err
	}
}
