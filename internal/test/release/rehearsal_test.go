package main

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
	"golang.org/x/mod/semver"
	"golang.org/x/mod/zip"

	"github.com/shardkey/shardkey/internal/test/readme"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// TestRehearsal releases two versions of this tree in a copy, and uses them from a module
// proxy in a directory, as a program does that has nothing of this repository.
func TestRehearsal(t *testing.T) {
	notShort(t)
	_ = testserver.SQL(t) // skips the test now, rather than in minutes
	r := copyTree(t)
	p := &proxy{dir: t.TempDir(), cache: t.TempDir()}
	page := filepath.Join(r.dir, "README.md")

	first := next(r.version)
	releaseCopy(t, r, p, first)
	checkRelease(t, r)
	t.Run("get", func(t *testing.T) {
		for _, m := range r.released() {
			if m.dir != "cmd/shardkey" {
				p.user(t, t.TempDir(), m.path()+"@"+first)
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

	second := next(first)
	releaseCopy(t, r, p, second)
	// All modules but the root are a version behind.
	t.Run("behind", func(t *testing.T) {
		dir, gets := t.TempDir(), []string{rootModule + "@" + second}
		for _, m := range r.released() {
			if m.dir != "." {
				gets = append(gets, m.path()+"@"+first)
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
		rule, err := os.ReadFile(filepath.Join(program.Dir, "rule.yaml"))
		if err != nil {
			t.Fatal(err)
		}
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

// next returns the version after a version: v0.1.0 is the first one.
func next(version string) string {
	if semver.Compare(version, "v0.1.0") < 0 {
		return "v0.1.0"
	}
	var patch int
	minor := semver.MajorMinor(version)
	fmt.Sscanf(strings.TrimPrefix(version, minor), ".%d", &patch)
	return fmt.Sprintf("%s.%d", minor, patch+1)
}

// copyTree makes a repository of the files of this one as they are now, committed or not.
func copyTree(t *testing.T) *repository {
	t.Helper()
	dir, root := t.TempDir(), filepath.Join("..", "..")
	files := do(t, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		must(t, err)
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	do(t, dir, nil, "git", "init", "--quiet", "--initial-branch=main")
	do(t, dir, nil, "git", "config", "user.name", "Rehearsal")
	do(t, dir, nil, "git", "config", "user.email", "rehearsal@example.com")
	do(t, dir, nil, "git", "config", "commit.gpgSign", "false")
	do(t, dir, nil, "git", "add", "--all")
	do(t, dir, nil, "git", "commit", "--quiet", "--message", "all: the tree")
	r, err := open(dir)
	must(t, err)
	return r
}

// releaseCopy commits the version, makes its tags and adds the released modules to the proxy.
func releaseCopy(t *testing.T, r *repository, p *proxy, version string) {
	t.Helper()
	changes, err := r.read("CHANGELOG.md")
	must(t, err)
	if !bytes.Contains(changes, []byte("\n## Unreleased\n")) {
		changes = bytes.Replace(changes, []byte("\n## "), []byte("\n## Unreleased\n\n- A change.\n\n## "), 1)
		must(t, r.write("CHANGELOG.md", changes))
		do(t, r.dir, nil, "git", "commit", "--quiet", "--all", "--message", "CHANGELOG: a change")
	}
	must(t, r.ready(version))
	must(t, r.commit(version, time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)))
	if changed := do(t, r.dir, nil, "git", "status", "--porcelain"); changed != "" {
		t.Fatalf("the commit has not all changes:\n%s", changed)
	}
	var tags bytes.Buffer
	must(t, r.printTags(&tags, version))
	for _, line := range strings.Split(tags.String(), "\n") {
		if strings.HasPrefix(line, "git tag ") {
			do(t, r.dir, nil, "sh", "-c", line)
		}
	}

	for _, m := range r.released() {
		do(t, r.dir, nil, "git", "rev-parse", "--verify", "refs/tags/"+m.tag(version))
		must(t, p.pack(r, m, version))
	}
}

// checkRelease runs the checks of what a release changes.
func checkRelease(t *testing.T, r *repository) {
	t.Helper()
	must(t, r.tidy(false))
	do(t, r.dir, []string{"GOWORK=" + filepath.Join(r.dir, "go.work")}, "go", "test", "./internal/test/repository", "-run", "^Test(Modules|Changelog|Docs)")
}

// proxy is a directory that serves the released modules to the go command. Others come from
// the module cache of the user, or from the user's own proxy.
type proxy struct{ dir, cache string }

// pack adds the module at HEAD to the proxy.
func (p *proxy) pack(r *repository, m *mod, version string) error {
	v := module.Version{Path: m.path(), Version: version}
	escaped, err := module.EscapePath(v.Path)
	if err != nil {
		return err
	}
	dir := filepath.Join(p.dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := zip.CreateFromVCS(&packed, v, r.dir, "HEAD", strings.TrimPrefix(m.dir, ".")); err != nil {
		return err
	}
	date, err := r.git("show", "--no-patch", "--format=%cI")
	if err != nil {
		return err
	}
	committed, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": committed.UTC()})
	if err != nil {
		return err
	}
	goMod, err := r.read(filepath.Join(m.dir, "go.mod"))
	if err != nil {
		return err
	}
	versions, err := os.ReadFile(filepath.Join(dir, "list"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for name, content := range map[string][]byte{
		version + ".zip": packed.Bytes(), version + ".info": info, version + ".mod": goMod,
		"list": append(versions, version+"\n"...),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
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
	if files, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(files) == 0 {
		source := "package main\n\n"
		for _, get := range gets {
			if path, _, _ := strings.Cut(get, "@"); !strings.HasSuffix(path, "/cmd/shardkey") {
				source += fmt.Sprintf("import _ %q\n", path)
			}
		}
		must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source+"\nfunc main() {}\n"), 0o600))
	}
	p.run(t, dir, nil, "mod", "init", "example.com/user")
	for _, get := range gets {
		if strings.Contains(get, "/cmd/shardkey@") {
			p.run(t, dir, nil, "get", "-tool", get)
			p.run(t, dir, nil, "build", "-o", dir, "tool")
		} else {
			p.run(t, dir, nil, "get", get)
		}
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
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, stderr.Bytes())
	}
	return string(out)
}

// do runs a command, and notes with -v how long it took.
func do(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	start := time.Now()
	out, err := output(dir, env, name, args...)
	must(t, err)
	t.Logf("%s %s: %s", name, strings.Join(args, " "), time.Since(start).Round(10*time.Millisecond))
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestReady lists trees that can't become a version.
func TestReady(t *testing.T) {
	r := copyTree(t)
	above := next(r.version)
	for _, version := range []string{"", "0.1.0", "v0.1", r.version, "v0.0.0", "v2.0.0"} {
		if err := r.ready(version); err == nil {
			t.Errorf("ready(%q): no error", version)
		}
	}
	changes, err := r.read("CHANGELOG.md")
	must(t, err)
	must(t, r.write("CHANGELOG.md", []byte("# Changes\n\n## Unreleased\n")))
	wantError(t, r.ready(above), "clean tree")
	do(t, r.dir, nil, "git", "commit", "--quiet", "--all", "--allow-empty", "--message", "all: a change")
	must(t, r.ready(above))
	for _, tag := range []string{above, "keygen/redis/" + above} {
		do(t, r.dir, nil, "git", "tag", tag)
		wantError(t, r.ready(above), tag+" exists")
		do(t, r.dir, nil, "git", "tag", "--delete", tag)
	}
	must(t, r.write("CHANGELOG.md", bytes.Replace(changes, []byte("## Unreleased\n"), []byte("## 0.0.1 (2020-01-01)\n"), 1)))
	do(t, r.dir, nil, "git", "commit", "--quiet", "--all", "--message", "all: a change")
	wantError(t, r.ready(above), "Unreleased")
}

// TestCommit_undone: after an error the tree is as before.
func TestCommit_undone(t *testing.T) {
	r := copyTree(t)
	must(t, r.write("CHANGELOG.md", []byte("# Changes\n")))
	do(t, r.dir, nil, "git", "commit", "--quiet", "--all", "--message", "all: a change")
	head := do(t, r.dir, nil, "git", "rev-parse", "HEAD")
	wantError(t, r.commit(next(r.version), time.Now()), "Unreleased")
	if changed := do(t, r.dir, nil, "git", "status", "--porcelain"); changed != "" || head != do(t, r.dir, nil, "git", "rev-parse", "HEAD") {
		t.Errorf("have: %s\nwant: the tree as before", changed)
	}
}

// TestTidy_findsChanges breaks a go.mod and a go.sum, and lets -w restore them.
func TestTidy_findsChanges(t *testing.T) {
	notShort(t)
	r := copyTree(t)
	for _, name := range []string{"otelshardkey/go.mod", "otelshardkey/go.sum"} {
		whole, err := r.read(name)
		must(t, err)
		lines := strings.SplitAfter(string(whole), "\n")
		i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "github.com/go-logr/stdr") })
		must(t, r.write(name, []byte(strings.Join(slices.Delete(lines, i, i+1), ""))))
		r.modules = slices.DeleteFunc(r.modules, func(m *mod) bool { return m.dir != "otelshardkey" && m.dir != "." })
		wantError(t, r.tidy(false), name+" is not tidy")
		must(t, r.tidy(true))
		if have, err := r.read(name); err != nil || !bytes.Equal(have, whole) {
			t.Errorf("%s: have: %s\nwant: as before", name, have)
		}
	}
}

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("have: %v\nwant: an error with %q", err, part)
	}
}

// notShort skips a test that runs for minutes, or downloads modules, with -short.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short")
	}
}
