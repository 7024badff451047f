package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one change of the source that takes a rule out.
type mutant struct {
	// what is what the code does then, and so the rule that it takes out. It
	// names the mutant.
	what string
	// in is where: a top-level declaration of the group's package, as take or
	// Generator.take, or a file that is not Go.
	in string
	// old, which stands there once, is replaced by new.
	old, new string
	// by is the test that notices, TestTake or TestTake/mariadb; or several, with |
	// between them; or "" for all of the package.
	by string
	// pkg is the directory of their package; "" for the group's.
	pkg string
	// exempt is why it is not tried: another rule does the same, or only a power cut
	// or a race can tell. It is "" for all but a few.
	exempt string
}

// pattern is by as go test -run takes it.
func (m mutant) pattern() string {
	if m.by == "" {
		return ""
	}
	tests := strings.Split(m.by, "|")
	for i, t := range tests {
		tests[i] = "^" + strings.ReplaceAll(t, "/", "$/^") + "$"
	}
	return strings.Join(tests, "|")
}

// group is the mutants of one package.
type group struct {
	dir     string // of the package, from the root
	servers bool   // its tests need servers
	mutants []mutant
}

// groups are all of them.
var groups = []group{snowflakes, ticks, leafs, uuids, nanoids, drivers, statementsAndRules, ruleSharing, redises, tickets, etcds, zookeepers, workerids, mysqldbs, genesOfRows, geneNumbers}

// mutated is a file with the rule taken out.
type mutated struct {
	path string // from the root
	text []byte
}

// apply changes the source below root. It is an error when the text is not there
// exactly once.
func (m mutant) apply(root, dir string) (mutated, error) {
	path, text, from, to, err := find(filepath.Join(root, dir), m.in)
	if err != nil {
		return mutated{}, fmt.Errorf("%s: %s: %w", dir, m.what, err)
	}
	place := string(text[from:to])
	if n := strings.Count(place, m.old); n != 1 || m.old == m.new {
		return mutated{}, fmt.Errorf("%s: %s: %s in %s is there %d times, and must be there once:\n%s", dir, m.what, m.in, path, n, m.old)
	}
	changed := string(text[:from]) + strings.Replace(place, m.old, m.new, 1) + string(text[to:])
	path, err = filepath.Rel(root, path)
	return mutated{path, []byte(changed)}, err
}

// find returns the file of a package that has a declaration, and where it is in
// it; or, for the name of a file that is not Go, all of that.
func find(dir, name string) (path string, text []byte, from, to int, err error) {
	if ext := filepath.Ext(name); ext == ".lua" {
		path = filepath.Join(dir, name)
		text, err = os.ReadFile(path)
		return path, text, 0, len(text), err
	}
	files, err := sources(dir)
	if err != nil {
		return "", nil, 0, 0, err
	}
	for _, path := range files {
		if text, err = os.ReadFile(path); err != nil {
			return "", nil, 0, 0, err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return "", nil, 0, 0, err
		}
		for _, decl := range file.Decls {
			if declares(decl, name) {
				return path, text, fset.Position(decl.Pos()).Offset, fset.Position(decl.End()).Offset, nil
			}
		}
	}
	return "", nil, 0, 0, fmt.Errorf("%s has no declaration of %s", dir, name)
}

// sources are the Go files of a package without its tests.
func sources(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	var some []string
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") {
			some = append(some, f)
		}
	}
	return some, err
}

func declares(decl ast.Decl, name string) bool {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return receiver(d)+d.Name.Name == name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && v.Names[0].Name == name {
				return true
			}
		}
	}
	return false
}

// receiver is "Type." of a method, "" of a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	return fmt.Sprint(t) + "."
}
