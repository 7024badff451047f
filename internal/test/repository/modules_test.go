package repository

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// storeClients are the libraries that only the modules of their stores require.
var storeClients = map[string]string{
	"github.com/redis/go-redis/v9": "keygen/redis",
	"go.etcd.io/etcd/client/v3":    "keygen/etcd",
	"google.golang.org/grpc":       "keygen/etcd",
	"github.com/go-zookeeper/zk":   "keygen/zookeeper",
	"gorm.io/gorm":                 "gormshardkey",
	"github.com/spf13/cobra":       "cmd/shardkey",
}

// goMod is the output of go mod edit -json, or go work edit -json.
type goMod struct {
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct {
		Old struct{ Path, Version string }
		New struct{ Path string }
	}
	Use []struct{ DiskPath string }
}

func TestModules_storeClientsStayApart(t *testing.T) {
	touchSources(t)
	for _, dir := range released(t) {
		if dir == "cmd/shardkey" {
			continue // it has all of them
		}
		graph := listModules(t, newUserModule(t, dir))
		for client, owner := range storeClients {
			must.Equal(t, slices.Contains(graph, client), dir == owner, "module", dir, client, "is in its graph")
		}
	}
}

// A program that imports the driver has exactly these modules in its graph. Each of them affects
// the program's choice of versions.
func TestModules_userOfDriver(t *testing.T) {
	touchSources(t)
	want := []string{
		"example.com/user",
		"filippo.io/edwards25519", // required by go-sql-driver
		"github.com/DATA-DOG/go-sqlmock",
		"github.com/coreos/go-semver", // this and the following are required by the parser
		"github.com/go-sql-driver/mysql",
		"github.com/google/uuid",
		"github.com/pingcap/errors",
		"github.com/pingcap/failpoint",
		"github.com/pingcap/log",
		"github.com/pingcap/tidb/pkg/parser",
		module,
		"go.uber.org/atomic",
		"go.uber.org/multierr",
		"go.uber.org/zap",
		"go.yaml.in/yaml/v3",
		"golang.org/x/text",
		"gopkg.in/natefinch/lumberjack.v2",
	}
	have := listModules(t, newUserModule(t, "driver"))
	must.EqualSlices(t, have, want, "go list -m all", len(have), "modules")
}

// newUserModule creates a module that imports a package and finds our modules in this tree,
// and returns its directory.
func newUserModule(t *testing.T, pkg string) string {
	t.Helper()
	root := must.Get(os.Getwd())(t)
	goMod, sums := "module example.com/user\n\ngo 1.26.0\n\n", "" // sums avoids queries for checksums
	for _, dir := range released(t) {
		path := strings.TrimSuffix(module+"/"+dir, "/.")
		goMod += fmt.Sprintf("replace %s => %q\n", path, filepath.Join(root, dir))
		if within(strings.TrimSuffix(module+"/"+pkg, "/."), path) {
			goMod += fmt.Sprintf("require %s v0.0.0\n", path)
		}
		text := must.Get(os.ReadFile(filepath.Join(dir, "go.sum")))(t)
		sums += string(text)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  goMod,
		"go.sum":  sums,
		"main.go": fmt.Sprintf("package main\n\nimport (\n\t\"database/sql\"\n\n\t_ %q\n)\n\nfunc main() { _, _ = sql.Open(\"\", \"\") }\n", strings.TrimSuffix(module+"/"+pkg, "/.")),
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// go.work lists every module except the tools and the server for tests, which need the versions
// of their own go.mod.
func TestModules_workspace(t *testing.T) {
	var have []string
	for _, use := range readMod(t, ".", "work").Use {
		have = append(have, filepath.Clean(use.DiskPath))
	}
	want := slices.DeleteFunc(moduleDirs(t), func(dir string) bool {
		return slices.Contains([]string{"internal/test/tools", "internal/test/engines/vtcombo"}, dir) || strings.Contains(dir, "testdata")
	})
	if slices.Sort(have); !slices.Equal(have, want) {
		t.Errorf("go.work\nhave: %q\nwant: %q", have, want)
	}
	for _, dir := range modules {
		if !slices.Contains(have, dir) {
			t.Errorf("go.work has no %s, which this test lists", dir)
		}
	}
}

// TestModules_version compares the versions at which our modules require each other: they
// are equal, go.work replaces exactly these by the directories, and no go.mod replaces one.
func TestModules_version(t *testing.T) {
	version := ""
	want := map[string]string{}
	for _, dir := range moduleDirs(t) {
		mod := readMod(t, dir, "mod")
		for _, r := range mod.Require {
			ours, ok := strings.CutPrefix(r.Path, module)
			if !ok {
				continue
			}
			if version == "" {
				version = r.Version
			}
			must.Equal(t, r.Version, version, dir, "/go.mod requires", r.Path, "and another one")
			want[r.Path+" "+r.Version] = filepath.Join(".", ours)
		}
		for _, r := range mod.Replace {
			if strings.HasPrefix(r.Old.Path, module) || slices.Contains(released(t), dir) {
				t.Errorf("%s/go.mod replaces %s", dir, r.Old.Path)
			}
		}
	}
	have := map[string]string{}
	for _, r := range readMod(t, ".", "work").Replace {
		if strings.HasPrefix(r.Old.Path, module) {
			have[r.Old.Path+" "+r.Old.Version] = filepath.Clean(r.New.Path)
		}
	}
	if !maps.Equal(have, want) {
		t.Errorf("the replacements in go.work\nhave: %v\nwant: %v", have, want)
	}
}

// TestModules_importPublic: a released module imports no internal package of another one,
// because programs combine them in different versions. The command is built from its own
// go.mod, which fixes the versions of the others.
func TestModules_importPublic(t *testing.T) {
	for _, dir := range released(t) {
		if dir == "cmd/shardkey" {
			continue
		}
		path := strings.TrimSuffix(module+"/"+dir, "/.")
		var other []string
		for _, d := range released(t) {
			if p := strings.TrimSuffix(module+"/"+d, "/."); p != path && len(p) > len(path) {
				other = append(other, p)
			}
		}
		out := runGo(t, dir, nil, "list", "-f", "{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}\n{{end}}", "./...")
		for line := range strings.Lines(string(out)) {
			pkg, imported, _ := strings.Cut(strings.TrimSpace(line), " ")
			internal := strings.Contains(imported, "/internal/") && within(imported, module)
			own := within(imported, path) && !slices.ContainsFunc(other, func(p string) bool { return within(imported, p) })
			if internal && !own {
				t.Errorf("%s imports %s of another module", pkg, imported)
			}
		}
	}
}

// TestChangelog: sections are "Unreleased", if there is one, then versions with dates, the
// last one first. Without "Unreleased" the first is the version that the modules require.
func TestChangelog(t *testing.T) {
	text := must.Get(os.ReadFile("CHANGELOG.md"))(t)
	version := ""
	for _, r := range readMod(t, "otelshardkey", "mod").Require {
		if r.Path == module {
			version = strings.TrimPrefix(r.Version, "v")
		}
	}
	sections := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(sections) > 0 && sections[0][1] == "Unreleased" {
		sections = sections[1:]
	}
	newest := "0.0.0" // nothing is released
	var dates []string
	for i, s := range sections {
		m := regexp.MustCompile(`^(\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$`).FindStringSubmatch(s[1])
		if m == nil {
			t.Fatalf("have: %q\nwant: a section such as \"0.1.0 (2026-01-31)\"", s[1])
		}
		if i == 0 {
			newest = m[1]
		}
		dates = append(dates, m[2])
	}
	must.Equal(t, newest, version, "the version that the modules require")
	if slices.Reverse(dates); !slices.IsSorted(dates) {
		t.Errorf("have: the dates %v\nwant: the last one first", dates)
	}
}

// released returns the directories of the modules that programs can require.
func released(t *testing.T) []string {
	return slices.DeleteFunc(moduleDirs(t), func(dir string) bool {
		top, _, _ := strings.Cut(filepath.ToSlash(dir), "/")
		return slices.Contains([]string{"bench", "examples", "internal"}, top) || strings.Contains(dir, "testdata")
	})
}

// moduleDirs returns the directories of this repository with a go.mod, sorted.
func moduleDirs(t *testing.T) []string {
	t.Helper()
	var dirs []string
	must.Do(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "go.mod" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	}))
	slices.Sort(dirs)
	return dirs
}

// readMod reads the go.mod of a directory, or its go.work if kind is "work".
func readMod(t *testing.T, dir, kind string) goMod {
	t.Helper()
	name := filepath.Join(dir, "go."+kind)
	must.Get(os.Stat(name))(t)
	var mod goMod
	must.Do(t, json.Unmarshal(runGo(t, ".", nil, kind, "edit", "-json", name), &mod))
	return mod
}

// listModules returns the paths of the graph of a module that doesn't need go.work.
func listModules(t *testing.T, dir string) []string {
	t.Helper()
	return strings.Fields(string(runGo(t, dir, []string{"GOWORK=off", "GOFLAGS=-mod=mod"}, "list", "-m", "-f", "{{.Path}}", "all")))
}
