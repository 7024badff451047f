package repository

import (
	"go/ast"
	"go/types"
	"maps"
	"regexp"
	"slices"
)

// registrations returns the types that the package registers for rules. A test of cmd/shardkey
// compares their properties with the documentation.
func (s *source) registrations() (lines []string) {
	s.calls(func(call *ast.CallExpr, f *types.Func) {
		kind, ok := map[string]string{
			"RegisterKeyGenerator":     "key generator",
			"RegisterWorkerIDAssigner": "worker-ID assigner",
		}[f.Name()]
		if ok && isOf(f, "spi") {
			name, _ := s.constant(call.Args[0])
			lines = append(lines, kind+" "+name)
		}
	})
	slices.Sort(lines)
	return lines
}

// driverNames returns the names that the package registers with database/sql.
func (s *source) driverNames() (lines []string) {
	s.calls(func(call *ast.CallExpr, f *types.Func) {
		if f.FullName() == "database/sql.Register" {
			if name, ok := s.constant(call.Args[0]); ok {
				lines = append(lines, "database/sql driver "+name)
			}
		}
	})
	return lines
}

// words returns the YAML keys that package rule reads: constants in camel case, and names in
// lookups.
func (s *source) words() (lines []string) {
	if s.dir != "rule" {
		return nil
	}
	lookups := []string{"text", "find", "keys"}
	camelCase := regexp.MustCompile(`^[a-z]+([A-Z][a-z]+)+$`)
	found := map[string]bool{}
	s.each(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, ok := s.constant(n); ok && camelCase.MatchString(text) {
				found[text] = true
			}
		case *ast.CallExpr:
			if f := s.callee(n); f == nil || f.Pkg() != s.pkg || !slices.Contains(lookups, f.Name()) {
				return
			}
			for _, arg := range n.Args {
				if text, ok := s.constant(arg); ok {
					found[text] = true
				}
			}
		}
	})
	for _, word := range slices.Sorted(maps.Keys(found)) {
		lines = append(lines, "word "+word)
	}
	return lines
}

// parameters returns the names of the DSN parameters.
func (s *source) parameters() (lines []string) {
	return s.constants(`^shardkey[A-Z]\w+$`, "driver", "DSN parameter ")
}

// metrics returns the names of metrics and of their attributes.
func (s *source) metrics() (lines []string) {
	return s.constants(`^shardkey\.[a-z.]+$`, "otelshardkey", "metric or attribute ")
}

// constants returns the string constants of a package that match a pattern.
func (s *source) constants(pattern, dir, prefix string) (lines []string) {
	if s.dir != dir {
		return nil
	}
	match := regexp.MustCompile(pattern)
	s.each(func(n ast.Node) {
		lit, ok := n.(*ast.BasicLit)
		if !ok {
			return
		}
		if text, ok := s.constant(lit); ok && match.MatchString(text) {
			lines = append(lines, prefix+text)
		}
	})
	slices.Sort(lines)
	return slices.Compact(lines)
}

// each calls visit with every node of the package.
func (s *source) each(visit func(ast.Node)) {
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			if n != nil {
				visit(n)
			}
			return true
		})
	}
}

// calls calls visit with every call of a named function.
func (s *source) calls(visit func(*ast.CallExpr, *types.Func)) {
	s.each(func(n ast.Node) {
		if call, ok := n.(*ast.CallExpr); ok {
			if f := s.callee(call); f != nil {
				visit(call, f)
			}
		}
	})
}

// callee returns the called function or method, or nil for a function value.
func (s *source) callee(call *ast.CallExpr) *types.Func {
	id, ok := call.Fun.(*ast.Ident)
	if sel, isSel := call.Fun.(*ast.SelectorExpr); isSel {
		id, ok = sel.Sel, true
	}
	if !ok {
		return nil
	}
	f, _ := s.info.Uses[id].(*types.Func)
	return f
}

func isOf(f *types.Func, dir string) bool {
	return f.Pkg() != nil && f.Pkg().Path() == module+"/"+dir
}
