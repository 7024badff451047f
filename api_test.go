package shardkey_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api.txt instead of comparing with it")

const apiFile = "testdata/api.txt"

// TestAPI_isAsRecorded compares what the packages of all modules export with
// testdata/api.txt, so that each change of the API is seen and meant. Constants,
// variables, functions, types and methods are names and are counted; the fields
// of structs and the methods of interfaces stand below their types.
func TestAPI_isAsRecorded(t *testing.T) {
	var b strings.Builder
	total := 0
	for _, dir := range libraryDirs(t) {
		names := exportedNames(t, dir)
		if len(names) == 0 {
			continue
		}
		total += len(names)
		fmt.Fprintf(&b, "package %s // %d\n%s\n\n", filepath.ToSlash(dir), len(names), strings.Join(names, "\n"))
	}
	fmt.Fprintf(&b, "// %d names\n", total)
	if *update {
		if err := os.WriteFile(apiFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Split(b.String(), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(have) || have[i] != line {
			t.Fatalf("the API is not as in %s: run \"go test -run API . -update\" and look at what git diff shows\n%s:%d\nhave: %s\nwant: %s",
				apiFile, apiFile, i+1, slices.Concat(have, make([]string, i+1))[i], line)
		}
	}
}

// libraryDirs lists the directories of all modules that may hold packages for
// users: no internal ones, examples and benchmarks.
func libraryDirs(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := d.Name()
		if slices.Contains([]string{"internal", "testdata", "examples", "bench"}, name) || path != "." && strings.HasPrefix(name, ".") {
			return filepath.SkipDir
		}
		dirs = append(dirs, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// exportedNames returns the declarations that a package exports on linux/amd64;
// none for a program and for a directory without Go files.
func exportedNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.BuildTags = "linux", "amd64", nil
	info, err := ctx.ImportDir(dir, 0)
	if noGo := (*build.NoGoError)(nil); errors.As(err, &noGo) || err == nil && info.IsCommand() {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range append(info.GoFiles, info.CgoFiles...) {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, module+"/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	values := func(groups ...*doc.Value) {
		for _, group := range groups {
			for _, name := range group.Names {
				if ast.IsExported(name) {
					names = append(names, group.Decl.Tok.String()+" "+name)
				}
			}
		}
	}
	funcs := func(list ...*doc.Func) {
		for _, f := range list {
			names = append(names, printed(t, f.Decl))
		}
	}
	values(p.Consts...)
	values(p.Vars...)
	funcs(p.Funcs...)
	for _, typ := range p.Types {
		names = append(names, printed(t, typ.Decl))
		values(typ.Consts...)
		values(typ.Vars...)
		funcs(typ.Funcs...)
		funcs(typ.Methods...)
	}
	slices.Sort(names)
	return names
}

// printed returns a declaration as gofmt writes it, without a function's body.
func printed(t *testing.T, node ast.Decl) string {
	t.Helper()
	if f, ok := node.(*ast.FuncDecl); ok {
		f.Body = nil
	}
	var b bytes.Buffer
	style := printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}
	if err := style.Fprint(&b, token.NewFileSet(), node); err != nil {
		t.Fatal(err)
	}
	const hidden = "// contains filtered or unexported fields"
	text := strings.ReplaceAll(b.String(), "{\n\n}"+hidden+"\n", "{ … }")
	return strings.ReplaceAll(text, "\n}"+hidden+"\n", "\n\t…\n}")
}
