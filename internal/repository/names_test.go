package repository

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// registrations returns the types that each package registers for rules, with the properties that
// their factories read.
func registrations(sources []*source) map[string][]string {
	g := newGraph(sources)
	lines := map[string][]string{}
	for _, s := range sources {
		s.calls(func(call *ast.CallExpr, f *types.Func) {
			kind, ok := map[string]string{
				"RegisterKeyGenerator":     "key generator",
				"RegisterWorkerIDAssigner": "worker-ID assigner",
			}[f.Name()]
			if !ok || !isOf(f, "spi") {
				return
			}
			name, _ := s.constant(call.Args[0])
			props := strings.Join(g.properties(s, call.Args[1]), ", ")
			lines[s.dir] = append(lines[s.dir], strings.TrimSuffix(fmt.Sprintf("%s %s: %s", kind, name, props), ": "))
		})
		slices.Sort(lines[s.dir])
	}
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

// graph leads from a factory to the properties that it reads. It follows functions, and names of
// properties that are passed to functions.
type graph struct {
	bodies map[*types.Func]body
	// named are the parameters that are names of properties, by function.
	named map[*types.Func]map[int]bool
}

type body struct {
	in   *source
	decl *ast.FuncDecl
}

// isGetter reports whether f is a method of spi.Props that reads the property named by its first
// argument.
func isGetter(f *types.Func) bool {
	recv := f.Signature().Recv()
	if recv == nil || !isOf(f, "spi") || !strings.HasSuffix(recv.Type().String(), "/spi.Props") {
		return false
	}
	params := f.Signature().Params()
	return f.Exported() && params.Len() > 0 && params.At(0).Name() == "name" && f.Name() != "Wrong" && f.Name() != "IsSecret"
}

func newGraph(sources []*source) *graph {
	g := &graph{bodies: map[*types.Func]body{}, named: map[*types.Func]map[int]bool{}}
	for _, s := range sources {
		s.each(func(n ast.Node) {
			if decl, ok := n.(*ast.FuncDecl); ok && decl.Body != nil {
				g.bodies[s.info.Defs[decl.Name].(*types.Func)] = body{s, decl}
			}
		})
	}
	for found := true; found; {
		found = false
		for f, b := range g.bodies {
			found = g.findNamed(f, b) || found
		}
	}
	return g
}

// findNamed finds the parameters that a function passes on as names of properties. It reports
// whether it found a new one.
func (g *graph) findNamed(f *types.Func, b body) (found bool) {
	params := f.Signature().Params()
	ast.Inspect(b.decl.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		for _, arg := range g.nameArgs(b.in, call) {
			id, ok := arg.(*ast.Ident)
			if !ok {
				continue
			}
			for i := range params.Len() {
				if b.in.info.Uses[id] == params.At(i) && !g.named[f][i] {
					if g.named[f] == nil {
						g.named[f] = map[int]bool{}
					}
					g.named[f][i], found = true, true
				}
			}
		}
		return true
	})
	return found
}

// nameArgs returns the arguments of a call that are names of properties.
func (g *graph) nameArgs(in *source, call *ast.CallExpr) (args []ast.Expr) {
	f := in.callee(call)
	switch {
	case f == nil:
	case isGetter(f):
		args = append(args, call.Args[0])
	default:
		for i := range g.named[f] {
			if i < len(call.Args) {
				args = append(args, call.Args[i])
			}
		}
	}
	return args
}

// properties returns the names of the properties that a factory reads.
func (g *graph) properties(in *source, factory ast.Expr) []string {
	found := map[string]bool{}
	seen := map[*types.Func]bool{}
	var walk func(in *source, n ast.Node)
	walk = func(in *source, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				for _, arg := range g.nameArgs(in, n) {
					if name, ok := in.constant(arg); ok {
						found[name] = true
					}
				}
			case *ast.Ident:
				f, ok := in.info.Uses[n].(*types.Func)
				if !ok || seen[f] {
					return true
				}
				seen[f] = true
				if isOf(f, "spi") && f.Name() == "HostDSN" {
					found["own-database"] = true
				}
				if b, ok := g.bodies[f]; ok {
					walk(b.in, b.decl.Body)
				}
			}
			return true
		})
	}
	walk(in, factory)
	return slices.Sorted(maps.Keys(found))
}
