package repository

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"math"
	"os"
	"os/exec"
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

// source is a package of this repository, type-checked for linux/amd64.
type source struct {
	dir string // relative to the root, with slashes
	pkg *types.Package
}

// loadSources type-checks the library packages of all modules, and the internal packages that
// they import. Other packages come from the compiler's export data.
func loadSources(t *testing.T) []*source {
	t.Helper()
	listed := listPackages(t)
	exports := map[string]string{}
	for _, p := range listed {
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	checked := map[string]*types.Package{}
	compiled := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	find := importerFunc(func(path string) (*types.Package, error) {
		if p := checked[path]; p != nil {
			return p, nil
		}
		return compiled.Import(path)
	})
	var sources []*source
	for _, p := range listed { // each package follows its imports
		if p.ImportPath != module && !strings.HasPrefix(p.ImportPath, module+"/") {
			continue
		}
		s := &source{dir: strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")}
		if s.dir == "" {
			s.dir = "."
		}
		must.Do(t, s.check(fset, p, find))
		checked[p.ImportPath] = s.pkg
		sources = append(sources, s)
	}
	slices.SortFunc(sources, func(a, b *source) int { return strings.Compare(a.dir, b.dir) })
	return sources
}

func (s *source) check(fset *token.FileSet, p listedPackage, find types.Importer) error {
	var files []*ast.File
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	cfg := types.Config{Importer: find, FakeImportC: true}
	var err error
	s.pkg, err = cfg.Check(p.ImportPath, fset, files, nil)
	return err
}

// isLibrary reports whether programs may import the package.
func (s *source) isLibrary() bool {
	return s.pkg.Name() != "main" && !slices.Contains(strings.Split(s.dir, "/"), "internal")
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
}

// listPackages returns the library packages of all modules and their dependencies. Each package
// follows its imports.
func listPackages(t *testing.T) (packages []listedPackage) {
	t.Helper()
	workspace := must.Get(filepath.Abs("go.work"))(t)
	args := append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles"}, libraryDirs(t)...)
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOWORK="+workspace, "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	must.Do(t, err, "go", strings.Join(args, " "), stderr.String())
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// libraryDirs returns the directories of all modules that contain packages for programs. It
// leaves out internal packages, commands, examples and benchmarks.
func libraryDirs(t *testing.T) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // a temporary file of an editor
		}
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != "." {
			skip := []string{"internal", "testdata", "examples", "bench", "cmd"}
			if slices.Contains(skip, name) || strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
		}
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return nil
	})
	must.Do(t, err)
	for i, dir := range dirs {
		dirs[i] = "./" + filepath.ToSlash(dir)
	}
	return dirs
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
