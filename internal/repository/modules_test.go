package repository

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rootRequires are the requirements of the root module. Each is in the module graph of every
// program that imports the driver, so add one only after careful thought.
var rootRequires = []string{
	"github.com/DATA-DOG/go-sqlmock",
	"github.com/go-sql-driver/mysql",
	"github.com/google/uuid",
	"github.com/pingcap/tidb/pkg/parser",
	"go.yaml.in/yaml/v3",
}

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
		Path     string
		Indirect bool
	}
	Replace []struct{ Old, New struct{ Path string } }
	Use     []struct{ DiskPath string }
}

func TestModules_rootRequiresFew(t *testing.T) {
	var have []string
	for _, r := range readMod(t, ".", "mod").Require {
		if !r.Indirect {
			have = append(have, r.Path)
		}
	}
	if slices.Sort(have); !slices.Equal(have, rootRequires) {
		t.Errorf("the root's go.mod\nhave: %q\nwant: %q", have, rootRequires)
	}
}

func TestModules_storeClientsStayApart(t *testing.T) {
	touchSources(t)
	for _, dir := range []string{".", "keygen/etcd", "keygen/redis", "keygen/zookeeper", "gormshardkey", "otelshardkey"} {
		graph := listModules(t, dir, nil)
		for client, owner := range storeClients {
			if have := slices.Contains(graph, client); have != (dir == owner) {
				t.Errorf("module %s: %s is in its graph: %v", dir, client, have)
			}
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
	have := listModules(t, newUserModule(t), []string{"GOFLAGS=-mod=mod"})
	if !slices.Equal(have, want) {
		t.Errorf("go list -m all, %d modules\nhave: %q\nwant: %q", len(have), have, want)
	}
}

// newUserModule creates a module that imports the driver, and returns its directory.
func newUserModule(t *testing.T) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("go.sum") // avoids queries for checksums
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  fmt.Sprintf("module example.com/user\n\ngo 1.26.0\n\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", module, root),
		"go.sum":  string(sums),
		"main.go": "package main\n\nimport _ \"" + module + "/driver\"\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
		return slices.Contains([]string{"internal/tools", "internal/engines/vtcombo"}, dir) || strings.Contains(dir, "testdata")
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

// Until the first release, each inner module finds our other modules by a relative path.
func TestModules_replaceOurs(t *testing.T) {
	for _, dir := range moduleDirs(t) {
		mod := readMod(t, dir, "mod")
		for _, r := range mod.Require {
			ours, ok := strings.CutPrefix(r.Path, module)
			if !ok {
				continue
			}
			replaced := false
			for _, rep := range mod.Replace {
				replaced = replaced || rep.Old.Path == r.Path && filepath.Join(dir, rep.New.Path) == filepath.Join(".", ours)
			}
			if !replaced {
				t.Errorf("%s/go.mod does not replace %s by the directory", dir, r.Path)
			}
		}
	}
}

// moduleDirs returns the directories of this repository with a go.mod, sorted.
func moduleDirs(t *testing.T) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "go.mod" {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(dirs)
	return dirs
}

// readMod reads the go.mod of a directory, or its go.work if kind is "work".
func readMod(t *testing.T, dir, kind string) goMod {
	t.Helper()
	name := filepath.Join(dir, "go."+kind)
	if _, err := os.Stat(name); err != nil {
		t.Fatal(err)
	}
	var mod goMod
	if err := json.Unmarshal(runGo(t, ".", nil, kind, "edit", "-json", name), &mod); err != nil {
		t.Fatal(err)
	}
	return mod
}

// listModules returns the paths of a module's graph.
func listModules(t *testing.T, dir string, env []string) []string {
	t.Helper()
	return strings.Fields(string(runGo(t, dir, env, "list", "-m", "-f", "{{.Path}}", "all")))
}
