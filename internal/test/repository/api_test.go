package repository

import (
	"cmp"
	"flag"
	"fmt"
	"go/types"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

var update = flag.Bool("update", false, "write the recorded files instead of comparing with them")

// TestAPI_isAsRecorded compares the exported names of all modules with testdata/api.txt, so that
// each change is visible and deliberate.
//
// It counts constants, variables, functions, types and methods. It records struct fields, interface
// methods and promoted methods without counting them.
func TestAPI_isAsRecorded(t *testing.T) {
	var b strings.Builder
	total := 0
	for _, s := range loadSources(t) {
		names, promoted := s.exported()
		lines := slices.Concat(names, promoted)
		if len(lines) == 0 {
			continue
		}
		total += len(names)
		fmt.Fprintf(&b, "package %s // %d\n%s\n\n", s.dir, len(names), strings.Join(lines, "\n"))
	}
	fmt.Fprintf(&b, "// %d names\n", total)
	compare(t, "testdata/api.txt", b.String())
}

// compare compares text with a file of the root directory, or writes the file with -update.
func compare(t *testing.T, name, text string) {
	t.Helper()
	if *update {
		must.Do(t, os.WriteFile(name, []byte(text), 0o644))
	}
	recorded := must.Get(os.ReadFile(name))(t)
	have, want := strings.Split(text, "\n"), strings.Split(string(recorded), "\n")
	for i := range max(len(have), len(want)) {
		h, w := lineOf(have, i), lineOf(want, i)
		if h != w {
			t.Fatalf("%s is not up to date: run \"go test ./internal/test/repository -run API -update\" and review the diff\n"+
				"%s:%d\nhave: %s\nwant: %s", name, name, i+1, h, w)
		}
	}
}

func lineOf(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end of file)"
}

// exported returns the package's exported declarations, sorted, and the promoted methods of its
// types.
func (s *source) exported() (names, promoted []string) {
	scope := s.pkg.Scope()
	for _, name := range scope.Names() {
		obj := scope.Lookup(name)
		if !obj.Exported() {
			continue
		}
		names = append(names, s.declaration(obj))
		if typ, ok := obj.(*types.TypeName); ok && !typ.IsAlias() {
			own, other := s.methods(typ)
			names, promoted = append(names, own...), append(promoted, other...)
		}
	}
	slices.Sort(names)
	slices.Sort(promoted)
	return names, promoted
}

func (s *source) declaration(obj types.Object) string {
	switch obj := obj.(type) {
	case *types.Const:
		return fmt.Sprintf("const %s %s = %s", obj.Name(), s.typeName(obj.Type()), obj.Val().ExactString())
	case *types.Var:
		return fmt.Sprintf("var %s %s", obj.Name(), s.typeName(obj.Type()))
	case *types.Func:
		return "func " + obj.Name() + s.signature(obj)
	}
	typ := obj.(*types.TypeName)
	if typ.IsAlias() {
		return fmt.Sprintf("type %s = %s", typ.Name(), s.typeName(types.Unalias(typ.Type())))
	}
	return fmt.Sprintf("type %s %s", typ.Name(), s.underlying(typ.Type().Underlying()))
}

// methods returns the methods of a type. own includes the methods of embedded unexported types of
// the package. promoted are the methods of other embedded types.
func (s *source) methods(typ *types.TypeName) (own, promoted []string) {
	if types.IsInterface(typ.Type()) {
		return nil, nil
	}
	set := types.NewMethodSet(types.NewPointer(typ.Type()))
	for i := range set.Len() {
		sel := set.At(i)
		f := sel.Obj().(*types.Func)
		if !f.Exported() {
			continue
		}
		recv := f.Signature().Recv().Type()
		star := ""
		if p, ok := recv.(*types.Pointer); ok {
			star, recv = "*", p.Elem()
		}
		line := fmt.Sprintf("func (%s%s) %s%s", star, typ.Name(), f.Name(), s.signature(f))
		switch from, ok := recv.(*types.Named); {
		case len(sel.Index()) == 1:
			own = append(own, line)
		case ok && from.Obj().Pkg() == s.pkg && !from.Obj().Exported():
			own = append(own, line)
		default:
			line = fmt.Sprintf("func (%s) %s%s", typ.Name(), f.Name(), s.signature(f))
			promoted = append(promoted, line+" // of "+s.typeName(recv))
		}
	}
	return own, promoted
}

func (s *source) signature(f *types.Func) string {
	return strings.TrimPrefix(s.typeName(f.Signature()), "func")
}

func (s *source) typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == s.pkg {
			return ""
		}
		return p.Name()
	})
}

// underlying returns a type's structure, one line for each exported field or method.
func (s *source) underlying(t types.Type) string {
	var lines []string
	kind, hidden := "", false
	switch t := t.(type) {
	case *types.Struct:
		kind = "struct"
		for i := range t.NumFields() {
			f := t.Field(i)
			if !f.Exported() {
				hidden = true
				continue
			}
			line := f.Name() + " " + s.typeName(f.Type())
			if f.Embedded() {
				line = s.typeName(f.Type())
			}
			if tag := reflect.StructTag(t.Tag(i)); tag != "" {
				line += " `" + string(tag) + "`"
			}
			lines = append(lines, line)
		}
	case *types.Interface:
		kind = "interface"
		for i := range t.NumEmbeddeds() {
			lines = append(lines, s.typeName(t.EmbeddedType(i)))
		}
		for i := range t.NumExplicitMethods() {
			if m := t.ExplicitMethod(i); m.Exported() {
				lines = append(lines, m.Name()+s.signature(m))
			} else {
				hidden = true
			}
		}
	default:
		return s.typeName(t)
	}
	if hidden {
		lines = append(lines, "…")
	}
	if len(lines) == 0 || len(lines) == 1 && hidden {
		return kind + " { " + cmp.Or(strings.Join(lines, ""), "}") + strings.Repeat(" }", len(lines))
	}
	return kind + " {\n\t" + strings.Join(lines, "\n\t") + "\n}"
}
