// Package examples_test compiles the Go code of the documentation.
package examples_test

import (
	"bytes"
	"fmt"
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

	"go.yaml.in/yaml/v3"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
)

// imports are the packages that a fragment may use, by name.
var imports = map[string]string{
	"context": "context", "sql": "database/sql", "errors": "errors", "expvar": "expvar", "fmt": "fmt", "log": "log", "http": "net/http",
	"slog": "log/slog", "os": "os", "testing": "testing", "time": "time", "json": "encoding/json", "embed": "embed",
	"driver": "github.com/shardkey/shardkey/driver", "rule": "github.com/shardkey/shardkey/rule", "spi": "github.com/shardkey/shardkey/spi",
	"rewrite": "github.com/shardkey/shardkey/rewrite", "strings": "strings",
	"snowflake":    "github.com/shardkey/shardkey/keygen/snowflake",
	"gormshardkey": "github.com/shardkey/shardkey/gormshardkey", "debug": "github.com/shardkey/shardkey/debug", "otelshardkey": "github.com/shardkey/shardkey/otelshardkey",
	"otel": "go.opentelemetry.io/otel", "metric": "go.opentelemetry.io/otel/sdk/metric", "prometheus": "go.opentelemetry.io/otel/exporters/prometheus",
	"gorm": "gorm.io/gorm", "mysql": "gorm.io/driver/mysql", "sharding": "gorm.io/sharding", "otelsql": "github.com/XSAM/otelsql", "sqlx": "github.com/jmoiron/sqlx",
}

// given declares the variables that fragments may use without declaring them.
const given = `
var (
	ctx       context.Context
	db        *sql.DB
	dsn       string
	err       error
	connector *driver.Connector
	logger    *slog.Logger
	r         *rule.Rule
	t         *testing.T
	table     *rule.Table
	users     *rule.Sharding
	shards    []*sql.DB
	orderID, userID, amount int64
	a, b      *driver.Connector

	query    string
	args     []any
	opts     rewrite.Options
	cache    map[string]*rewrite.Plan
	keys     []any
	session  struct {
		Mode, Charset string
		QueryInt      func(query string, args ...any) uint64
	}
	options  func(any) rewrite.Options
	generate func(*rewrite.Insert, int) ([]any, error)
	report   func(line, char int, message string)
	send     func(statement string) error
	ids      interface{ Next(int) ([]any, error) }
)
`

// TestPages_goCompiles type-checks each block of Go in the documentation: whole files, and
// fragments, which it completes with the declarations that they assume.
func TestPages_goCompiles(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../*.md", "../docs/*/*.md", "*.md"} {
		found := must.Get(filepath.Glob(pattern))(t)
		pages = append(pages, found...)
	}
	type block struct {
		where, text string
		file        *ast.File
	}
	var blocks []block
	set, paths := token.NewFileSet(), []string{"context", "database/sql", "log/slog"}
	for _, page := range pages {
		if page == "../docs/start/tutorial.md" {
			continue // examples/tutorial has its files
		}
		text, err := os.ReadFile(page)
		must.Do(t, err)
		for i, m := range regexp.MustCompile("(?ms)^[ ]*```go\n(.*?)^[ ]*```").FindAllStringSubmatch(string(text), -1) {
			b := block{where: fmt.Sprintf("%s, block %d", page, i+1), text: whole(m[1])}
			if b.file, err = parser.ParseFile(set, b.where, b.text, 0); err != nil {
				t.Errorf("%v\n%s", err, b.text)
				continue
			}
			for _, spec := range b.file.Imports {
				paths = append(paths, strings.Trim(spec.Path.Value, `"`))
			}
			blocks = append(blocks, b)
		}
	}
	if len(blocks) < 12 {
		t.Fatalf("have: %d blocks\nwant: more", len(blocks))
	}
	config := types.Config{Importer: compiled(t, set, paths)}
	for _, b := range blocks {
		config.Error = func(err error) {
			// A fragment may declare variables that it doesn't use.
			if !strings.Contains(err.Error(), "declared and not used") && !strings.Contains(err.Error(), "imported and not used") {
				t.Errorf("%v", err)
			}
		}
		_, _ = config.Check("page", set, []*ast.File{b.file}, nil) // config.Error collects the errors
	}
}

// TestPages_kubernetes decodes the manifest of docs/guides/kubernetes.md and loads its rule.
func TestPages_kubernetes(t *testing.T) {
	page, err := os.ReadFile("../docs/guides/kubernetes.md")
	must.Do(t, err)
	_, after, _ := strings.Cut(string(page), "```yaml\n")
	manifest, _, _ := strings.Cut(after, "```")
	var objects [3]struct {
		Kind       string
		Data       map[string]string
		StringData map[string]string `yaml:"stringData"`
	}
	decoder := yaml.NewDecoder(strings.NewReader(manifest))
	for i, kind := range []string{"ConfigMap", "Secret", "Deployment"} {
		if err := decoder.Decode(&objects[i]); err != nil || objects[i].Kind != kind {
			t.Fatalf("have: %s, %v\nwant: %s", objects[i].Kind, err, kind)
		}
	}
	t.Setenv("SHARDKEY_STORE_DSN", objects[1].StringData["store"])
	r, err := rule.Parse("rule.yaml", []byte(objects[0].Data["rule.yaml"]))
	if err != nil || len(r.Warnings()) > 0 {
		t.Fatalf("have: %v, %v\nwant: a rule without warnings", r, err)
	}
	must.Do(t, driver.RegisterRule(t.Name(), r))
	db, _, err := driver.Open(objects[1].StringData["database"] + "&shardkeyRule=" + t.Name())
	must.Do(t, err)
	_ = db.Close()
}

// whole completes a fragment, which may be imports, declarations or statements, to a file.
func whole(text string) string {
	if strings.HasPrefix(text, "package ") || strings.Contains(text, "\npackage ") {
		return text
	}
	text = regexp.MustCompile(`(?m)^\s*…$`).ReplaceAllString(text, "")
	var b strings.Builder
	b.WriteString("package page\n")
	used := map[string]bool{"context": true, "sql": true, "slog": true, "driver": true, "rule": true, "rewrite": true, "testing": true}
	for _, m := range regexp.MustCompile(`\b([a-z]\w*)\.[A-Z]`).FindAllStringSubmatch(text, -1) {
		used[m[1]] = true
	}
	own := regexp.MustCompile(`(?m)^import .*$`)
	for _, line := range own.FindAllString(text, -1) {
		if path := strings.Fields(line)[1]; strings.HasPrefix(path, `"`) {
			used[filepath.Base(strings.Trim(path, `"`))] = false
		}
		fmt.Fprintln(&b, line)
	}
	text = own.ReplaceAllString(text, "")
	for name := range used {
		if path, ok := imports[name]; ok && used[name] {
			fmt.Fprintf(&b, "import %s %q\n", name, path)
		}
	}
	b.WriteString(given)
	if regexp.MustCompile(`(?m)^(func|type|var|//go:embed) `).MatchString(text) && !regexp.MustCompile(`(?m)^\w+(, \w+)* :?= `).MatchString(text) {
		return b.String() + text
	}
	return b.String() + "func _() error {\n" + text + "\nreturn nil\n}\n"
}

// compiled returns an importer for packages that the go command has compiled.
func compiled(t *testing.T, set *token.FileSet, paths []string) types.Importer {
	t.Helper()
	slices.Sort(paths)
	work, err := filepath.Abs("../go.work") // the pages use packages of all modules
	must.Do(t, err)
	var stderr bytes.Buffer
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, slices.Compact(paths)...)...)
	list.Stderr, list.Env = &stderr, append(os.Environ(), "GOWORK="+work)
	out := must.Get(list.Output())(t, stderr.String())
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
}
