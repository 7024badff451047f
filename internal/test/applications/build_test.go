package applications

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

// root is this repository.
const root = "../../.."

// A binary is a compiled test, or a program that prepares its database, and its directory.
type binary struct {
	file, dir string
	args      []string
}

// build compiles the tests of a program, in a copy of its module. In the copy, go-sql-driver has a
// hook for connectors, which a generated file in each tested package sets. No -trimpath: tests find their
// files by runtime.Caller.
func (p *program) build(t *testing.T) (all []binary) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "program")
	p.dir = copied
	copyModule(t, p.module+"@"+p.version, copied)
	for name, file := range p.files {
		write(t, filepath.Join(copied, name), read(t, filepath.Join("testdata", file)))
	}
	absolute := must.Get(filepath.Abs(root))(t)
	run(t, copied, "go", "mod", "edit", "-require=github.com/shardkey/shardkey@v0.0.0",
		"-replace=github.com/shardkey/shardkey="+absolute, "-replace=github.com/go-sql-driver/mysql="+hookedDriver(t))
	for _, module := range p.unavailable {
		run(t, copied, "go", "mod", "edit", "-replace="+module+"="+emptyModule(t, module))
	}
	sums := filepath.Join(copied, "go.sum")
	write(t, sums, read(t, sums)+read(t, filepath.Join(root, "go.sum")))
	p.tables = nil
	for _, file := range p.schema {
		p.tables = append(p.tables, used.ReplaceAllString(read(t, filepath.Join(copied, file)), ""))
	}
	if len(p.setup) > 0 {
		file := filepath.Join(filepath.Dir(copied), "setup")
		run(t, copied, "nice", "-n", "5", "go", "build", "-o", file, p.setup[0])
		all = append(all, binary{file, copied, p.setup[1:]})
	}
	for i, pkg := range p.packages {
		dir := filepath.Join(copied, pkg)
		name := strings.TrimSpace(run(t, copied, "go", "list", "-f", "{{.Name}}", "./"+pkg))
		// The functions init of a package run in the order of its files' names.
		hook := strings.Replace(read(t, "testdata/hook.go.txt"), "package hook", "package "+name, 1)
		write(t, filepath.Join(dir, "0_shardkey_test.go"), hook)
		file := filepath.Join(filepath.Dir(copied), fmt.Sprintf("%d.test", i))
		run(t, copied, "nice", "-n", "5", "go", "test", "-vet=off", "-tags="+p.tags, "-c", "-o", file, "./"+pkg)
		args := append([]string{"-test.v=test2json", "-test.timeout=" + limit.String()}, p.args...)
		all = append(all, binary{file, dir, args})
	}
	return all
}

var used = regexp.MustCompile(`(?m)^USE \S+;`)

// hookedDriver returns a copy of go-sql-driver that passes new connectors to a hook.
func hookedDriver(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mysql")
	version := strings.TrimSpace(run(t, root, "go", "list", "-m", "-f", "{{.Version}}", "github.com/go-sql-driver/mysql"))
	copyModule(t, "github.com/go-sql-driver/mysql@"+version, dir)
	for _, edit := range []struct {
		file, old, new string
		times          int
	}{
		{"driver.go", "return newConnector(cfg), nil", "return hooked(newConnector(cfg))", 2},
		{"driver.go", "c := newConnector(cfg)\n",
			"c, err := hooked(newConnector(cfg))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n", 1},
		{"packets.go", "func (mc *mysqlConn) writeCommandPacketStr(command byte, arg string) error {",
			"func (mc *mysqlConn) writeCommandPacketStr(command byte, arg string) error {\n\trecord(arg)", 1},
	} {
		file := filepath.Join(dir, edit.file)
		text := read(t, file)
		if have := strings.Count(text, edit.old); have != edit.times {
			t.Fatalf("%s has %q %d times, want %d", edit.file, edit.old, have, edit.times)
		}
		write(t, file, strings.ReplaceAll(text, edit.old, edit.new))
	}
	write(t, filepath.Join(dir, "hook.go"), read(t, "testdata/driver.go.txt"))
	return dir
}

// emptyModule returns the directory of a module that replaces one that not every proxy has.
func emptyModule(t *testing.T, module string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module "+module+"\n")
	write(t, filepath.Join(dir, "empty.go"), "package empty\n")
	return dir
}

// copyModule copies a module from the module cache.
func copyModule(t *testing.T, module, to string) {
	t.Helper()
	var downloaded struct{ Dir string }
	must.Do(t, json.Unmarshal([]byte(run(t, t.TempDir(), "go", "mod", "download", "-json", module)), &downloaded))
	must.Do(t, os.CopyFS(to, os.DirFS(downloaded.Dir)))
	must.Do(t, filepath.WalkDir(to, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o755)
	}))
}

// run runs a command outside of go.work and returns its standard output.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	return runWith(t, outside(), dir, name, args...)
}

func runWith(t *testing.T, env []string, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, stderr.String())
	}
	return string(out)
}

// outside returns the environment for a module outside of go.work.
func outside() []string {
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false", "CGO_ENABLED=0")
}

func read(t *testing.T, file string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(file))(t))
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
}
