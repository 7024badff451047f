package repository

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// modules are the directories of the modules that programs may require, and of modules whose
// packages follow the same rules. The client of a store is in the module of the store's package.
var modules = []string{".", "cmd/shardkey", "gormshardkey", "internal/test/engines", "internal/test/migrations", "keygen/etcd", "keygen/redis", "keygen/zookeeper", "otelshardkey"}

// mayImport lists the packages of this repository that each package may import, as drawn in
// CONTRIBUTING.md. A directory includes its subdirectories.
var mayImport = map[string][]string{
	"":                       {},
	"spi":                    {"internal/panics", "internal/registry", "internal/secrets"},
	"keygen":                 {"spi", "keygen", "internal/panics", "internal/plainsession", "internal/sqlerr", "internal/sqlstate"},
	"rule":                   {"rule/internal", "spi", "internal/panics", "internal/nearest", "internal/policy", "internal/registry", "internal/secrets", "internal/yamltree"},
	"rule/internal/expr":     {"internal/nearest"},
	"rule/internal/sharding": {"internal/nearest", "rule/internal/expr"},
	"rewrite":                {"internal/sqltoken"},
	"driver/internal/base":   {"internal/sqlerr"},
	"driver":                 {"driver/internal/base", "driver/internal/facts", "driver/internal/fill", "driver/internal/outcome", "driver/internal/session", "rewrite", "internal/tidb", "rule", "spi", "keygen", "internal/columntype", "internal/panics", "internal/nearest", "internal/policy", "internal/sqlerr", "internal/sqltoken"},
	"internal/tidb":          {"rewrite", "internal/sqltoken"},
	"gormshardkey":           {"driver"},
	"cmd":                    {"cmd", "doctor", "driver", "internal", "keygen", "rewrite", "rule", "spi"},
	"internal/columntype":    {"internal/sqltoken"},
	"doctor":                 {"rule", "spi", "internal/columntype", "internal/panics", "internal/policy", "internal/schema", "internal/sqlstate", "internal/sqltoken"},
	"internal/panics":        {},
	"internal/nearest":       {},
	"internal/policy":        {},
	"internal/schema":        {"internal/columntype", "internal/sqltoken"},
	"internal/registry":      {},
	"internal/secrets":       {},
	"internal/sqlerr":        {},
	"internal/sqlstate":      {},
	"internal/sqltoken":      {},
	"internal/yamltree":      {},
	"internal":               {"internal", "driver", "keygen", "rewrite", "rule", "spi"},
	"internal/test/router":   {},
	"internal/test/fakedb":   {},
	"internal/test/server":   {"internal/test/server", "spi"},
	"otelshardkey":           {"driver", "rule", "spi"},
	"debug":                  {"driver", "rule", "spi", "internal/explain", "internal/panics"},
	"internal/explain":       {"rewrite"},

	// A store for users must not import internal packages.
	"keygen/etcd":      {"spi", "keygen/workerid"},
	"keygen/redis":     {"spi", "keygen/snowflake", "keygen/workerid"},
	"keygen/zookeeper": {"spi", "keygen/snowflake", "keygen/workerid"},

	"driver/internal/facts":   {"driver/internal/base", "rewrite", "internal/columntype", "internal/sqlerr", "internal/sqltoken"},
	"driver/internal/fill":    {"driver/internal/base", "driver/internal/facts", "internal/columntype", "internal/panics", "internal/policy", "internal/sqltoken", "rewrite", "rule", "spi"},
	"driver/internal/outcome": {"driver/internal/facts", "rewrite", "internal/sqltoken"},
	"driver/internal/session": {"driver/internal/base", "driver/internal/facts", "driver/internal/outcome", "rewrite", "internal/sqlerr", "internal/sqltoken"},
}

// mustNotReach lists libraries that a program must not link when it imports a package. A package
// that doesn't use a server must not need that server's client.
var mustNotReach = map[string][]string{
	"spi":     {"github.com/", "go.yaml.in/", "golang.org/x/"},
	"rule":    {"github.com/pingcap/"},
	"keygen":  {"github.com/pingcap/"},
	"rewrite": {"database/sql", "github.com/go-sql-driver/", "go.yaml.in/"},
	"driver": {"github.com/redis/", "github.com/go-zookeeper/", "go.etcd.io/", "google.golang.org/",
		"github.com/DATA-DOG/", module + "/internal/test/server", module + "/internal/schema", module + "/doctor", module + "/cmd/"},
	"keygen/snowflake": {"github.com/", "go.yaml.in/"},
	"keygen/redis":     {"github.com/go-zookeeper/", "go.etcd.io/"},
	"keygen/etcd":      {"github.com/go-zookeeper/", "github.com/redis/"},
	"keygen/zookeeper": {"github.com/redis/", "go.etcd.io/"},
}

// onlyIn lists the packages that may import a library directly.
var onlyIn = map[string][]string{
	"go.yaml.in/yaml/":    {"rule", "internal/yamltree", "cmd/shardkey/internal/convert"},
	"github.com/pingcap/": {"internal/tidb", "cmd/shardkey/internal/lint"},
	"github.com/spf13/":   {"cmd/shardkey"},
}

type goPackage struct {
	ImportPath    string
	Imports, Deps []string
}

// name returns the package's path inside the module.
func (p goPackage) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func TestImportDirections(t *testing.T) {
	for _, p := range listImports(t) {
		allowed, known := mayImport[owner(p.name())]
		if !known {
			t.Errorf("package %s has no line in mayImport, nor a place in the picture of CONTRIBUTING.md", p.name())
		}
		for _, path := range p.Imports {
			ours, ok := strings.CutPrefix(path, module+"/")
			if ok && !slices.ContainsFunc(allowed, func(dir string) bool { return within(ours, dir) }) {
				t.Errorf("%s imports %s\nwant: only %v", p.name(), ours, allowed)
			}
			for library, only := range onlyIn {
				if strings.HasPrefix(path, library) && !slices.Contains(only, p.name()) {
					t.Errorf("%s imports %s\nwant: only %v do", p.name(), path, only)
				}
			}
		}
	}
}

func TestBuildsStaySmall(t *testing.T) {
	for _, p := range listImports(t) {
		for dir, libraries := range mustNotReach {
			if !within(p.name(), dir) {
				continue
			}
			for _, library := range libraries {
				if i := slices.IndexFunc(p.Deps, func(dep string) bool { return reaches(dep, library) }); i >= 0 {
					t.Errorf("who imports %s compiles %s", p.name(), p.Deps[i])
				}
			}
		}
	}
}

// reaches reports whether a dependency is the library. A library that ends in a slash is a prefix
// of import paths, except for our own.
func reaches(dep, library string) bool {
	if within(dep, module) && !within(library, module) {
		return false
	}
	return dep == library || strings.HasSuffix(library, "/") && strings.HasPrefix(dep, library)
}

// owner returns the longest directory in mayImport that contains the package.
func owner(name string) string {
	best := "none"
	for dir := range mayImport {
		if dir == name || dir != "" && within(name, dir) {
			if best == "none" || len(dir) > len(best) {
				best = dir
			}
		}
	}
	return best
}

func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// TestCore_imports: package outcome has no context, clock, log or connection. Packages fill and rewrite
// have no connection either.
func TestCore_imports(t *testing.T) {
	not := map[string][]string{
		"driver/internal/outcome": {"context", "time", "log", "log/slog", "database/sql/driver", "sync"},
		"driver/internal/fill":    {"database/sql", "github.com/go-sql-driver/mysql", module + "/driver/internal/session"},
		"rewrite":                 {"context", "io", "net", "os", "log/slog", "database/sql"},
	}
	for _, p := range listImports(t) {
		for _, path := range not[p.name()] {
			if slices.Contains(p.Imports, path) {
				t.Errorf("%s imports %s", p.name(), path)
			}
		}
	}
}

// listImports lists the modules' packages with the imports of their non-test files.
func listImports(t *testing.T) []goPackage {
	t.Helper()
	touchSources(t)
	var packages []goPackage
	for _, dir := range modules {
		out := runGo(t, dir, nil, "list", "-json=ImportPath,Imports,Deps", "./...")
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p goPackage
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			packages = append(packages, p)
		}
	}
	return packages
}

// runGo runs the go command in a directory, with go.work unless env has GOWORK=off.
func runGo(t *testing.T, dir string, env []string, args ...string) []byte {
	t.Helper()
	workspace := must.Get(filepath.Abs("go.work"))(t)
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOWORK="+workspace), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return must.Get(cmd.Output())(t, "in", dir, "go", strings.Join(args, " "), stderr.String())
}

// touchSources reads every source file. The go command doesn't see the files that child processes
// read, and would use a cached test result after they change. It sees absolute paths only, because
// TestMain changes the directory before the command begins to watch.
func touchSources(t *testing.T) {
	t.Helper()
	root := must.Get(filepath.Abs("."))(t)
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && (ext == ".go" || ext == ".mod" || ext == ".sum") {
			_, err = os.Stat(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file of an editor
		}
		return err
	})
	must.Do(t, err)
}
