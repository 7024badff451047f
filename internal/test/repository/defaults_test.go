package repository

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
)

// TestConfiguration_defaults compares the defaults of properties in docs/reference/configuration.md
// with the constants that the code passes to Props. It compares a property's defaults of all types
// together.
func TestConfiguration_defaults(t *testing.T) {
	inCode, inPage := map[string][]string{}, defaultsOfPage(t)
	for _, dir := range must.Get(filepath.Glob("keygen/*"))(t) {
		for name, defaults := range defaultsOfCode(t, dir) {
			inCode[name] = append(inCode[name], defaults...)
		}
	}
	for _, inWords := range []string{"alphabet", "min-step", "tick", "worker-id"} {
		delete(inCode, inWords)
	}
	for name, defaults := range inCode {
		for _, d := range defaults {
			if !slices.Contains(inPage[name], d) {
				t.Errorf("%s\nhave: %q\nwant: %q in docs/reference/configuration.md", name, inPage[name], d)
			}
		}
		for _, d := range inPage[name] {
			if d != "" && d != "–" && !slices.Contains(defaults, d) {
				t.Errorf("%s\nhave: %q in docs/reference/configuration.md\nwant: %q", name, d, defaults)
			}
		}
	}
	if len(inCode) < 15 {
		t.Errorf("have: %d properties\nwant: more", len(inCode))
	}
}

// defaultsOfPage returns the properties in the tables of the page, with their defaults.
func defaultsOfPage(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	_, page, _ := strings.Cut(pages(t)["docs/reference/configuration.md"], "\n## Generators\n")
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\| ([^|]*) \\|").FindAllStringSubmatch(page, -1) {
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1)
		defaults := strings.Split(row[2], "; ")
		for i, name := range names {
			d := defaults[0]
			if len(defaults) == len(names) {
				d = defaults[i]
			}
			d, _, _ = strings.Cut(d, ", ") // renew: 3s, or a third of a shorter lease
			found[name[1]] = append(found[name[1]], strings.Trim(d, "`"))
		}
	}
	return found
}

// defaultsOfCode returns the constant defaults in the calls of Props' methods in a package.
func defaultsOfCode(t *testing.T, dir string) map[string][]string {
	t.Helper()
	set, sources := token.NewFileSet(), []*ast.File(nil)
	for file, text := range files(t, func(name string) bool { return strings.HasSuffix(name, ".go") }) {
		if path.Dir(file) == dir && !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(file, "_other.go") {
			sources = append(sources, must.Get(parser.ParseFile(set, file, text, 0))(t))
		}
	}
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: onlyTime{}, Error: func(error) {}} // other packages are missing
	_, _ = config.Check(dir, set, sources, &info)
	found := map[string][]string{}
	for _, f := range sources {
		ast.Inspect(f, func(n ast.Node) bool {
			if name, d, ok := defaultOf(n, info.Types); ok {
				found[name] = append(found[name], d)
			}
			return true
		})
	}
	return found
}

// onlyTime imports the durations of package time, which is enough for the constants of the properties.
type onlyTime struct{}

func (onlyTime) Import(path string) (*types.Package, error) {
	if path != "time" {
		return nil, fmt.Errorf("%s isn't needed", path)
	}
	pkg := types.NewPackage(path, path)
	for name, d := range map[string]time.Duration{
		"Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
	} {
		pkg.Scope().Insert(types.NewConst(token.NoPos, pkg, name, types.Typ[types.Int64], constant.MakeInt64(int64(d))))
	}
	pkg.MarkComplete()
	return pkg, nil
}

// defaultOf returns the property and the default of a call such as p.Int("size", 21, 2, 255), if it
// is a constant that isn't empty.
func defaultOf(n ast.Node, values map[ast.Expr]types.TypeAndValue) (name, d string, ok bool) {
	call, _ := n.(*ast.CallExpr)
	if call == nil || len(call.Args) < 2 {
		return "", "", false
	}
	method, _ := call.Fun.(*ast.SelectorExpr)
	property, _ := call.Args[0].(*ast.BasicLit)
	if method == nil || property == nil || property.Kind != token.STRING || !slices.Contains([]string{"String", "Int", "Duration", "Enum"}, method.Sel.Name) {
		return "", "", false
	}
	name = strings.Trim(property.Value, `"`)
	switch v := values[call.Args[1]].Value; {
	case v == nil:
		return "", "", false
	case v.Kind() == constant.String:
		d = constant.StringVal(v)
	case method.Sel.Name == "Duration":
		n, _ := constant.Int64Val(v)
		d = regexp.MustCompile(`([hm])0[ms](0s)?$`).ReplaceAllString(time.Duration(n).String(), "$1")
	default:
		d = v.ExactString()
	}
	return name, d, d != ""
}
