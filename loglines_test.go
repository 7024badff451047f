package shardkey_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logLine is a call of a logger in the code, or a row of the table in the docs.
type logLine struct {
	level, message string
	attributes     []string
	where          string
}

// TestLogLines_areInTheDocs compares all calls of a logger with the table in
// docs/operating.md: level, message and attributes.
func TestLogLines_areInTheDocs(t *testing.T) {
	page, err := os.ReadFile("docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]logLine{}
	row := regexp.MustCompile("(?m)^\\| (INFO|WARN|ERROR|DEBUG) \\| `([^`]+)` \\| ([^|]*) \\|")
	word := regexp.MustCompile("`([a-z_]+)`")
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		line := logLine{level: m[1], message: m[2]}
		for _, w := range word.FindAllStringSubmatch(m[3], -1) {
			line.attributes = append(line.attributes, w[1])
		}
		rows[line.message] = line
	}
	calls := logCalls(t)
	if len(calls) < 15 {
		t.Fatalf("have: %d calls of a logger\nwant: more", len(calls))
	}
	seen := map[string]bool{}
	for _, c := range calls {
		seen[c.message] = true
		want, ok := rows[c.message]
		slices.Sort(c.attributes)
		slices.Sort(want.attributes)
		if !ok || want.level != c.level || !slices.Equal(c.attributes, want.attributes) {
			t.Errorf("%s: docs/operating.md, Log lines\nhave: %s %q\nwant: %s %q %q", c.where, want.level, want.attributes, c.level, c.message, c.attributes)
		}
	}
	for message := range rows {
		if !seen[message] {
			t.Errorf("docs/operating.md has a line that no code logs: %q", message)
		}
	}
}

// logCalls are the calls of the modules that programs use.
func logCalls(t *testing.T) (all []logLine) {
	t.Helper()
	for _, root := range []string{"driver", "rule", "internal/rewrite", "spi", "keygen", "gormshardkey", "otelshardkey", "debug", "internal/guard"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return ignoreMissing(err)
			}
			all = append(all, packageLogCalls(t, path)...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

func packageLogCalls(t *testing.T, dir string) (all []logLine) {
	t.Helper()
	set := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	constants := map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
				if text, ok := constantText(v.Values[0], nil); ok {
					constants[v.Names[0].Name] = text
				}
			}
			return true
		})
	}
	for _, f := range files {
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if line, ok := asLogCall(n, fn, constants); ok {
					line.where = set.Position(n.Pos()).String()
					all = append(all, line)
				}
				return true
			})
		}
	}
	return all
}

// asLogCall takes a call of a method of slog.Logger apart.
func asLogCall(n ast.Node, in *ast.FuncDecl, constants map[string]string) (line logLine, ok bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return line, false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return line, false
	}
	name, withContext := strings.CutSuffix(method.Sel.Name, "Context")
	if !slices.Contains([]string{"Info", "Warn", "Error", "Debug"}, name) || !isLogger(method.X) {
		return line, false
	}
	args := call.Args
	if withContext {
		args = args[1:]
	}
	line.level = strings.ToUpper(name)
	if line.message, ok = constantText(args[0], constants); !ok {
		line.message = "(no constant)"
	}
	if call.Ellipsis.IsValid() {
		line.attributes = appended(in)
	} else {
		line.attributes = keysOf(args[1:])
	}
	return line, true
}

// isLogger goes by the name: log, logger, Logger, slog, or a call of slog.Default.
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.HasSuffix(strings.ToLower(x.Name), "log") || strings.HasSuffix(strings.ToLower(x.Name), "logger")
	case *ast.SelectorExpr:
		return isLogger(x.Sel)
	case *ast.CallExpr:
		if f, ok := x.Fun.(*ast.SelectorExpr); ok {
			return f.Sel.Name == "Default" || isLogger(f.Sel)
		}
	}
	return false
}

// constantText is a text literal, a sum of such, or a constant of the package.
func constantText(x ast.Expr, constants map[string]string) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil && x.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := constantText(x.X, constants)
		right, also := constantText(x.Y, constants)
		return left + right, ok && also
	case *ast.Ident:
		text, ok := constants[x.Name]
		return text, ok
	}
	return "", false
}

// keysOf are the texts at even places.
func keysOf(args []ast.Expr) (keys []string) {
	for i := 0; i < len(args); i += 2 {
		if text, ok := constantText(args[i], nil); ok {
			keys = append(keys, text)
		}
	}
	return keys
}

// appended are the keys of all lists of attributes in a function.
func appended(in *ast.FuncDecl) (keys []string) {
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if list, ok := n.Type.(*ast.ArrayType); ok && list.Len == nil {
				keys = append(keys, keysOf(n.Elts)...)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "append" {
				keys = append(keys, keysOf(n.Args[1:])...)
			}
		}
		return true
	})
	return keys
}
