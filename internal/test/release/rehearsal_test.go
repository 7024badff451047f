package release

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/internal/test/readme"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

const rootModule = "github.com/shardkey/shardkey"

// TestRehearsal releases a version of this tree in a copy, and uses it from a module proxy in a
// directory, as a program does that has nothing of this repository. With SHARDKEY_RELEASES=2, as make
// release-check sets it, it releases a second one, too.
func TestRehearsal(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it runs for minutes")
	}
	_ = testserver.SQL(t) // skips the test now, rather than in minutes
	tree := copyTree(t)
	p := &proxy{dir: t.TempDir(), cache: t.TempDir()}
	page := filepath.Join(tree, "README.md")

	const first, second = "v1.998.0", "v1.999.0" // above each version that is released
	modules := releaseCopy(t, tree, p, first)
	checkRelease(t, tree)
	t.Run("get", func(t *testing.T) {
		for _, path := range modules {
			if path != rootModule+"/cmd/shardkey" {
				p.user(t, t.TempDir(), path+"@"+first)
			}
		}
	})
	t.Run("install", func(t *testing.T) {
		bin := t.TempDir()
		p.run(t, t.TempDir(), []string{"GOBIN=" + bin}, "install", rootModule+"/cmd/shardkey@"+first)
		have := runProgram(t, bin, "shardkey", "version")
		if want := "shardkey " + first + " "; !strings.HasPrefix(have, want) {
			t.Errorf("have: %s\nwant: %s…", have, want)
		}
	})
	t.Run("readme", func(t *testing.T) {
		program := readme.New(t, page, testserver.Database(t))
		p.user(t, program.Dir, rootModule+"/driver@"+first)
		program.Check(t, []byte(runProgram(t, program.Dir, "program")))
	})

	if os.Getenv("SHARDKEY_RELEASES") != "2" {
		return
	}
	releaseCopy(t, tree, p, second)
	// All modules but the root are a version behind.
	t.Run("behind", func(t *testing.T) {
		dir, gets := t.TempDir(), []string{rootModule + "@" + second}
		for _, path := range modules {
			if path != rootModule {
				gets = append(gets, path+"@"+first)
			}
		}
		p.user(t, dir, gets...)
		have := p.run(t, dir, nil, "list", "-m", "-f", "{{.Path}}@{{.Version}}", "all")
		for _, want := range gets {
			if !slices.Contains(strings.Fields(have), want) {
				t.Errorf("have: %s\nwant: %s", have, want)
			}
		}
	})
	t.Run("behind runs", func(t *testing.T) {
		program := readme.New(t, page, testserver.Database(t))
		rule := must.Get(os.ReadFile(filepath.Join(program.Dir, "rule.yaml")))(t)
		lease := fmt.Sprintf("{type: REDIS, props: {addr: %q, namespace: %q}}", testserver.Redis(t), rand.Text())
		if !bytes.Contains(rule, []byte("{type: SQL}")) {
			t.Fatalf("have: %s\nwant: a worker-ID assigner {type: SQL}", rule)
		}
		program.Write(t, "rule.yaml", strings.Replace(string(rule), "{type: SQL}", lease, 1))
		program.Write(t, "store.go", fmt.Sprintf("package main\n\nimport _ %q\n", rootModule+"/keygen/redis"))
		p.user(t, program.Dir, rootModule+"/driver@"+second, rootModule+"/keygen/redis@"+first)
		program.Check(t, []byte(runProgram(t, program.Dir, "program")))
	})
}

// copyTree makes a repository of the files of this one as they are now, committed or not.
func copyTree(t *testing.T) (dir string) {
	t.Helper()
	dir, root := t.TempDir(), filepath.Join("..", "..", "..")
	files := do(t, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		must.Do(t, err)
		must.Do(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	do(t, dir, nil, "git", "init", "--quiet", "--initial-branch=main")
	do(t, dir, nil, "git", "config", "user.name", "Rehearsal")
	do(t, dir, nil, "git", "config", "user.email", "rehearsal@example.com")
	do(t, dir, nil, "git", "config", "commit.gpgSign", "false")
	do(t, dir, nil, "git", "add", "--all")
	do(t, dir, nil, "git", "commit", "--quiet", "--message", "all: the tree")
	return dir
}

// runRelease runs .ci/release in a tree that counts as tested.
func runRelease(t *testing.T, tree, version string) (out string, err error) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Join(tree, "bin"), 0o755))
	passed := do(t, tree, nil, "git", "rev-parse", "HEAD^{tree}")
	must.Do(t, os.WriteFile(filepath.Join(tree, "bin", "passed"), []byte(passed+"\n"), 0o644))
	return output(tree, nil, "bash", ".ci/release", version)
}

// releaseCopy commits the version, makes its tags and adds the released modules, whose paths it returns,
// to the proxy.
func releaseCopy(t *testing.T, tree string, p *proxy, version string) (paths []string) {
	t.Helper()
	name := filepath.Join(tree, "CHANGELOG.md")
	changes := must.Get(os.ReadFile(name))(t)
	if !bytes.Contains(changes, []byte("\n## Unreleased\n")) {
		changes = bytes.Replace(changes, []byte("\n## "), []byte("\n## Unreleased\n\n- A change.\n\n## "), 1)
		must.Do(t, os.WriteFile(name, changes, 0o644))
		do(t, tree, nil, "git", "commit", "--quiet", "--all", "--message", "CHANGELOG: a change")
	}
	out := must.Get(runRelease(t, tree, version))(t)
	if changed := do(t, tree, nil, "git", "status", "--porcelain"); changed != "" {
		t.Fatalf("the commit has not all changes:\n%s", changed)
	}
	for line := range strings.Lines(out) {
		if tag, ok := strings.CutPrefix(line, "git tag "); ok {
			do(t, tree, nil, "sh", "-c", line)
			dir := strings.Trim(strings.TrimSuffix(strings.Fields(tag)[0], version), "/")
			p.pack(t, tree, dir, version)
			paths = append(paths, strings.TrimSuffix(rootModule+"/"+dir, "/"))
		}
	}
	if len(paths) < 7 {
		t.Fatalf("%s\nhave: tags of %q\nwant: of all modules for programs", out, paths)
	}
	return paths
}

// checkRelease runs the checks of what a release changes.
func checkRelease(t *testing.T, tree string) {
	t.Helper()
	do(t, tree, nil, "bash", ".ci/tidy")
	do(t, tree, []string{"GOWORK=" + filepath.Join(tree, "go.work")}, "go", "test", "./internal/test/repository", "-run", "^Test(Modules|Changelog|Docs)")
	for _, name := range []string{"README.md", "README.zh.md", "docs/guides/gorm.md", "docs/start/tutorial.md", "docs/zh/gorm.md"} {
		page := must.Get(os.ReadFile(filepath.Join(tree, name)))(t)
		if bytes.Contains(page, []byte("until a release")) || bytes.Contains(page, []byte("\n\n\n")) {
			t.Errorf("%s: have: the note about no release, or its blank lines", name)
		}
	}
}

// proxy is a directory that serves the released modules to the go command. Others come from
// the module cache of the user, or from the user's own proxy.
type proxy struct{ dir, cache string }

// pack adds the module at HEAD to the proxy.
func (p *proxy) pack(t *testing.T, tree, of, version string) {
	t.Helper()
	v := module.Version{Path: strings.TrimSuffix(rootModule+"/"+of, "/"), Version: version}
	escaped := must.Get(module.EscapePath(v.Path))(t)
	dir := filepath.Join(p.dir, filepath.FromSlash(escaped), "@v")
	must.Do(t, os.MkdirAll(dir, 0o755))
	var packed bytes.Buffer
	must.Do(t, zip.CreateFromVCS(&packed, v, tree, "HEAD", of))
	date := do(t, tree, nil, "git", "show", "--no-patch", "--format=%cI")
	committed := must.Get(time.Parse(time.RFC3339, date))(t)
	info := must.Get(json.Marshal(map[string]any{"Version": version, "Time": committed.UTC()}))(t)
	versions, err := os.ReadFile(filepath.Join(dir, "list"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		version + ".zip": packed.Bytes(), version + ".info": info,
		version + ".mod": must.Get(os.ReadFile(filepath.Join(tree, of, "go.mod")))(t),
		"list":           append(versions, version+"\n"...),
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
}

// run runs the go command in a directory, without go.work, with a module cache of its own.
func (p *proxy) run(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	user := strings.Fields(do(t, ".", nil, "go", "env", "GOMODCACHE", "GOPROXY", "GOCACHE"))
	// The user's settings could lead the go command around the proxy. -trimpath lets the build
	// cache serve what it has compiled from another directory.
	env = append(env, "GOENV=off", "GOPRIVATE=", "GONOPROXY=", "GONOSUMDB=", "GOSUMDB=off", "GOWORK=off",
		"GOPROXY=file://"+p.dir+",file://"+user[0]+"/cache/download,"+user[1], "GOCACHE="+user[2],
		"GOMODCACHE="+p.cache, "GOFLAGS=-modcacherw -trimpath -buildvcs=false")
	return do(t, dir, env, "go", args...)
}

// user makes a module of a directory, gets the packages as path@version, and builds the
// program "program" there. Without Go files it makes a program that imports the packages.
func (p *proxy) user(t *testing.T, dir string, gets ...string) {
	t.Helper()
	p.run(t, dir, nil, "mod", "init", "example.com/user")
	source := "package main\n\n"
	for _, get := range gets {
		path, _, _ := strings.Cut(get, "@")
		if strings.HasSuffix(path, "/cmd/shardkey") {
			p.run(t, dir, nil, "get", "-tool", get)
			p.run(t, dir, nil, "build", "-o", dir, "tool")
			continue
		}
		source += fmt.Sprintf("import _ %q\n", path)
		p.run(t, dir, nil, "get", get)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(files) == 0 {
		must.Do(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source+"\nfunc main() {}\n"), 0o600))
	}
	p.run(t, dir, nil, "build", "-o", "program", ".")
}

// runProgram runs a program in its directory and returns its standard output.
func runProgram(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, name), args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out := must.Get(cmd.Output())(t, name, stderr.String())
	return string(out)
}

// do runs a command, and notes with -v how long it took.
func do(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	start := time.Now()
	out, err := output(dir, env, name, args...)
	must.Do(t, err)
	t.Logf("%s %s: %s", name, strings.Join(args, " "), time.Since(start).Round(10*time.Millisecond))
	return out
}

// TestRelease_refuses releases trees that can't become a version. They stay as they are.
func TestRelease_refuses(t *testing.T) {
	tree := copyTree(t)
	head := do(t, tree, nil, "git", "rev-parse", "HEAD")
	refuses := func(version, want string) {
		t.Helper()
		must.FailWith(t, must.Err(runRelease(t, tree, version)), want, version)
	}
	for _, version := range []string{"", "0.1.0", "v0.1", "v2.0.0", "v0.1.0-rc.1"} {
		refuses(version, "expected a version such as")
	}
	refuses("v0.0.0", "expected a version above")
	for _, tag := range []string{"v1.999.0", "keygen/redis/v1.999.0"} {
		do(t, tree, nil, "git", "tag", tag)
		refuses("v1.999.0", tag+" exists")
		do(t, tree, nil, "git", "tag", "--delete", tag)
	}
	changes := filepath.Join(tree, "CHANGELOG.md")
	must.Do(t, os.WriteFile(changes, []byte("# Changes\n\n## 0.0.1 (2020-01-01)\n"), 0o644))
	refuses("v1.999.0", "clean tree")
	do(t, tree, nil, "git", "commit", "--quiet", "--all", "--amend", "--no-edit")
	refuses("v1.999.0", "Unreleased")
	do(t, tree, nil, "git", "reset", "--hard", "--quiet", head)
	hook := filepath.Join(tree, ".git", "hooks", "pre-commit")
	must.Do(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	must.Do(t, os.WriteFile(hook, []byte("#!/bin/sh\nexit 1\n"), 0o755))
	refuses("v1.999.0", "")
	changed := do(t, tree, nil, "git", "status", "--porcelain")
	if have := do(t, tree, nil, "git", "rev-parse", "HEAD"); changed != "" || have != head {
		t.Errorf("have: %s%s\nwant: the tree as before", changed, have)
	}
}

// output runs a command and returns its standard output without the last line break. The error has
// its output.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
