package repository

import (
	"cmp"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

const module = "github.com/shardkey/shardkey"

// TestMain runs the tests in the root directory.
func TestMain(m *testing.M) {
	if must.Race() {
		fmt.Println("skipped with -race, which makes these tests slow and finds nothing in them: make repository")
		return
	}
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// source is a library package of this repository, as it is compiled for linux/amd64.
type source struct {
	dir string // relative to the root, with slashes
	pkg *types.Package
}

// loadSources returns the packages that programs may import, of all modules, sorted.
func loadSources(t *testing.T) (sources []*source) {
	t.Helper()
	touchSources(t)
	args := []string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, dir := range released(t) {
		if dir != "cmd/shardkey" {
			args = append(args, "./"+filepath.ToSlash(dir)+"/...")
		}
	}
	out := runGo(t, ".", []string{"GOOS=linux", "GOARCH=amd64", "GOFLAGS="}, args...)
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, path := range slices.Sorted(maps.Keys(exports)) {
		if !within(path, module) || slices.Contains(strings.Split(path, "/"), "internal") {
			continue
		}
		if pkg := must.Get(compiled.Import(path))(t); pkg.Name() != "main" {
			dir := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(path, module), "/"), ".")
			sources = append(sources, &source{dir, pkg})
		}
	}
	return sources
}

// size is a row of the table "Size" in docs/reference/support.md.
type size struct {
	modules, packages int // that are linked, without the program's own and the standard library
	megabytes         float64
}

func (s size) cells() string {
	return fmt.Sprintf("%d | %d | %.1f MB", s.modules, s.packages, s.megabytes)
}

// TestSize builds programs that import only a driver, and compares what they link with that
// page. A binary may differ by 5 %, because the Go version changes it.
func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: nothing is built")
	}
	touchSources(t)
	have := []size{
		sizeOf(t, newPlainModule(t), ""),
		sizeOf(t, newUserModule(t, "driver"), ""),
		sizeOf(t, newUserModule(t, "driver"), "shardkey_noparser"),
	}
	cells := regexp.MustCompile(`(\d+) \| (\d+) \| ([\d.]+) MB`)
	const page = "docs/reference/support.md"
	text := must.Get(os.ReadFile(page))(t)
	if *update {
		i := -1
		text = cells.ReplaceAllFunc(text, func([]byte) []byte { i++; return []byte(have[i].cells()) })
		must.Do(t, os.WriteFile(page, text, 0o644))
	}
	rows := cells.FindAllStringSubmatch(string(text), -1)
	if len(rows) != len(have) {
		t.Fatalf("%s: have: %d rows\nwant: %d", page, len(rows), len(have))
	}
	for i, row := range rows {
		megabytes := must.Get(strconv.ParseFloat(row[3], 64))(t)
		h := have[i]
		if row[1] != strconv.Itoa(h.modules) || row[2] != strconv.Itoa(h.packages) || math.Abs(megabytes-h.megabytes) > 0.05*h.megabytes {
			t.Errorf("%s, row %d\nhave: %s\nwant: %s; -update writes it", page, i+1, row[0], h.cells())
		}
	}
}

// newPlainModule makes a module that imports go-sql-driver as the root requires it.
func newPlainModule(t *testing.T) string {
	t.Helper()
	dir := newUserModule(t, "driver")
	const driver = "github.com/go-sql-driver/mysql"
	version := ""
	for _, r := range readMod(t, ".", "mod").Require {
		if r.Path == driver {
			version = r.Version
		}
	}
	main := must.Get(os.ReadFile(filepath.Join(dir, "main.go")))(t)
	for name, text := range map[string]string{
		"go.mod":  "module example.com/user\n\ngo 1.26.0\n\nrequire " + driver + " " + version + "\n",
		"main.go": strings.Replace(string(main), module+"/driver", driver, 1),
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// sizeOf builds the program of a module for linux/amd64.
func sizeOf(t *testing.T, dir, tags string) (s size) {
	t.Helper()
	env := []string{"GOWORK=off", "GOFLAGS=-mod=mod -trimpath -buildvcs=false", "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"}
	list := runGo(t, dir, env, "list", "-deps", "-tags", tags, "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	modules := strings.Fields(string(list)) // one for each package
	s.packages = len(modules) - 1
	slices.Sort(modules)
	s.modules = len(slices.Compact(modules)) - 1
	runGo(t, dir, env, "build", "-tags", tags, "-ldflags=-s -w", "-o", "program", ".")
	info := must.Get(os.Stat(filepath.Join(dir, "program")))(t)
	s.megabytes = float64(info.Size()) / 1e6
	return s
}
