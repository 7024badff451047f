package lint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// loader reads the named packages and the packages of their module that they import, with
// function bodies. Of other packages it reads the declarations that these need. The go command only
// lists the packages: it compiles nothing and runs no cgo, so that a large program takes seconds.
type loader struct {
	fset   *token.FileSet
	info   types.Info  // of files
	files  []*ast.File // with function bodies, those of imported packages first
	roots  []*packages.Package
	loaded map[*packages.Package]*types.Package
	errs   map[*packages.Package]error // the first one of each package
}

// load loads the packages that patterns name. progress is called before each step.
func load(patterns []string, tests bool, progress func(string)) (*loader, error) {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps |
		packages.NeedModule
	progress("listing packages")
	// Without a C compiler, the go command leaves out files with cgo unless told otherwise.
	env := append([]string{"CGO_ENABLED=1"}, os.Environ()...)
	roots, err := packages.Load(&packages.Config{Mode: mode, Tests: tests, Env: env}, patterns...)
	if err != nil {
		return nil, err
	}
	// The main package of a test is generated.
	roots = slices.DeleteFunc(roots, func(p *packages.Package) bool { return strings.HasSuffix(p.ID, ".test") })
	if len(roots) == 0 {
		return nil, fmt.Errorf("no packages match %s", strings.Join(patterns, " "))
	}
	all := 0
	packages.Visit(roots, nil, func(*packages.Package) { all++ })
	progress(fmt.Sprintf("loading %d packages", all))
	l := &loader{
		fset: token.NewFileSet(), info: newInfo(), roots: roots,
		loaded: map[*packages.Package]*types.Package{}, errs: map[*packages.Package]error{},
	}
	for _, p := range roots {
		if len(p.GoFiles) == 0 && len(p.Errors) > 0 {
			return nil, missing(p)
		}
		l.load(p)
	}
	return l, nil
}

func missing(p *packages.Package) error {
	if _, err := os.Stat(p.PkgPath); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: no such file, directory or package; the path of a directory begins with ./", p.PkgPath)
	}
	return fmt.Errorf("package %s: %s", p.PkgPath, p.Errors[0].Msg)
}

// warnings returns the errors of the packages whose statements are checked.
func (ld *loader) warnings() (list []string) {
	for p, err := range ld.errs {
		if ld.own(p) {
			list = append(list, fmt.Sprintf("package %s: %v; its statements may be missing", p.PkgPath, err))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// own reports whether the bodies of a package's functions are read.
func (ld *loader) own(p *packages.Package) bool {
	return p.Module != nil && p.Module.Main || slices.Contains(ld.roots, p)
}

// load type-checks a package. It tolerates errors, since most statements can be read anyway.
func (ld *loader) load(p *packages.Package) *types.Package {
	if p.PkgPath == "unsafe" {
		return types.Unsafe
	}
	if t, ok := ld.loaded[p]; ok {
		return t
	}
	ld.loaded[p] = types.NewPackage(p.PkgPath, p.Name) // for an import cycle
	fail := func(err error) {
		if failed := (types.Error{}); !errors.As(err, &failed) || !failed.Soft {
			ld.errs[p] = cmp.Or(ld.errs[p], err)
		}
	}
	for _, e := range p.Errors {
		fail(e)
	}
	config := types.Config{Importer: importer{ld, p}, Error: fail, FakeImportC: true}
	if config.IgnoreFuncBodies = !ld.own(p); config.IgnoreFuncBodies {
		// These files aren't kept, and the file set would keep their lines.
		fset := token.NewFileSet()
		ld.loaded[p], _ = config.Check(p.PkgPath, fset, ld.parse(p, fset, fail), nil)
		return ld.loaded[p]
	}
	p.Syntax = ld.parse(p, ld.fset, fail)
	info := newInfo()
	ld.loaded[p], _ = config.Check(p.PkgPath, ld.fset, p.Syntax, &info)
	ld.files = append(ld.files, p.Syntax...)
	ld.add(&info)
	return ld.loaded[p]
}

// add adds the information about a package. It drops the types of expressions that aren't strings,
// which are the most.
func (ld *loader) add(info *types.Info) {
	for e, t := range info.Types {
		if t.IsType() || t.Value != nil || isString(t.Type) || t.Type != nil && isList(t.Type) {
			ld.info.Types[e] = t
		}
	}
	maps.Copy(ld.info.Defs, info.Defs)
	for id, o := range info.Uses {
		if _, isPackage := o.(*types.PkgName); !isPackage {
			ld.info.Uses[id] = o
		}
	}
	maps.Copy(ld.info.Selections, info.Selections)
}

func (ld *loader) parse(p *packages.Package, fset *token.FileSet, fail func(error)) (files []*ast.File) {
	for _, name := range p.GoFiles {
		content, err := os.ReadFile(name)
		if err != nil {
			fail(err)
			continue
		}
		file, err := parser.ParseFile(fset, name, content, parser.SkipObjectResolution)
		if err != nil {
			fail(err)
		}
		if file == nil {
			continue
		}
		if !ld.own(p) || isGenerated(content) && !mentionsSQL.Match(content) {
			reduce(file, p)
		}
		files = append(files, file)
	}
	return files
}

var mentionsSQL = regexp.MustCompile(`(?i)\b(insert|replace)\b|\.(exec|query|prepare|raw|table|into)\w*\(`)

// isGenerated reports whether a file is generated, for example by protoc. Such files are large.
func isGenerated(content []byte) bool {
	return bytes.Contains(content, []byte("// Code generated ")) && bytes.Contains(content, []byte(" DO NOT EDIT.\n"))
}

type importer struct {
	l *loader
	p *packages.Package
}

func (i importer) Import(path string) (*types.Package, error) {
	if p := i.p.Imports[path]; p != nil {
		return i.l.load(p), nil
	}
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	return nil, fmt.Errorf("package %s is not there", path)
}

// reduce removes the bodies of functions and the elements of literals, and then the imports that
// the declarations don't need. Most packages that a program depends on aren't read at all.
func reduce(file *ast.File, p *packages.Package) {
	used := map[string]bool{}
	for n := range ast.Preorder(file) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			n.Body = nil
			unname(n.Recv)
		case *ast.FuncType:
			unname(n.Params)
			unname(n.Results)
		case *ast.FuncLit:
			n.Body.List = nil
		case *ast.CompositeLit:
			n.Elts = nil
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok {
				used[id.Name] = true
			}
		}
	}
	file.Decls = slices.DeleteFunc(file.Decls, func(d ast.Decl) bool {
		imports, ok := d.(*ast.GenDecl)
		if !ok || imports.Tok != token.IMPORT {
			return false
		}
		imports.Specs = slices.DeleteFunc(imports.Specs, func(s ast.Spec) bool {
			name := nameOf(s.(*ast.ImportSpec), p)
			return name != "." && !used[name]
		})
		return len(imports.Specs) == 0
	})
}

// unname removes the names of parameters, which the type checker would keep.
func unname(list *ast.FieldList) {
	if list != nil {
		for _, field := range list.List {
			for _, name := range field.Names {
				name.Name = "_"
			}
		}
	}
}

func nameOf(i *ast.ImportSpec, p *packages.Package) string {
	if i.Name != nil {
		return i.Name.Name
	}
	path, _ := strconv.Unquote(i.Path.Value)
	if of := p.Imports[path]; of != nil {
		return of.Name
	}
	return path // unsafe or C
}

func newInfo() types.Info {
	return types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
}
