package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

const rootModule = "github.com/shardkey/shardkey"

// repository is a clone of this repository.
type repository struct {
	dir     string
	work    *modfile.WorkFile
	modules []*mod // of go.work
	// version is the version at which the modules require each other: that of the last
	// release, or v0.0.0.
	version string
}

// mod is a module of the repository.
type mod struct {
	dir  string // relative to the root, with slashes
	file *modfile.File
}

func (m *mod) path() string { return m.file.Module.Mod.Path }

// released reports whether programs can require the module.
func (m *mod) released() bool {
	top, _, _ := strings.Cut(m.dir, "/")
	return !slices.Contains([]string{"bench", "examples", "internal"}, top)
}

// tag returns the name of the tag that makes the module's version.
func (m *mod) tag(version string) string {
	if m.dir == "." {
		return version
	}
	return m.dir + "/" + version
}

// requires returns the paths of the modules of this repository that m requires.
func (m *mod) requires() (paths []string) {
	for _, req := range m.file.Require {
		if isOurs(req.Mod.Path) {
			paths = append(paths, req.Mod.Path)
		}
	}
	return paths
}

// isOurs reports whether a module is one of this repository's.
func isOurs(path string) bool { return path == rootModule || strings.HasPrefix(path, rootModule+"/") }

// open reads go.work and the go.mod files that it names.
func open(dir string) (*repository, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := &repository{dir: dir}
	content, err := os.ReadFile(filepath.Join(dir, "go.work"))
	if err != nil {
		return nil, err
	}
	if r.work, err = modfile.ParseWork("go.work", content, nil); err != nil {
		return nil, err
	}
	for _, use := range r.work.Use {
		m := &mod{dir: filepath.ToSlash(filepath.Clean(use.Path))}
		name := filepath.Join(m.dir, "go.mod")
		if content, err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
		if m.file, err = modfile.Parse(name, content, nil); err != nil {
			return nil, err
		}
		r.modules = append(r.modules, m)
	}
	for _, rep := range r.work.Replace {
		if !isOurs(rep.Old.Path) {
			continue
		}
		if r.version != "" && r.version != rep.Old.Version {
			return nil, fmt.Errorf("go.work: expected one version of the modules of this repository, found %s and %s", r.version, rep.Old.Version)
		}
		r.version = rep.Old.Version
	}
	if r.version == "" {
		return nil, errors.New("go.work: expected a replace for each module that another one requires, found none")
	}
	return r, nil
}

// released returns the modules that programs can require, each after those that it requires.
func (r *repository) released() (sorted []*mod) {
	var paths []string
	for range r.modules {
		for _, m := range r.modules {
			after := func(path string) bool { return !slices.Contains(paths, path) }
			if m.released() && after(m.path()) && !slices.ContainsFunc(m.requires(), after) {
				sorted, paths = append(sorted, m), append(paths, m.path())
			}
		}
	}
	return sorted
}

// setVersion writes the version at which the modules require each other.
func (r *repository) setVersion(version string) error {
	for _, m := range r.modules {
		for _, path := range m.requires() {
			if err := m.file.AddRequire(path, version); err != nil {
				return err
			}
		}
		content, err := m.file.Format()
		if err != nil {
			return err
		}
		if err := r.write(filepath.Join(m.dir, "go.mod"), content); err != nil {
			return err
		}
	}
	for _, rep := range r.work.Replace {
		if isOurs(rep.Old.Path) {
			rep.Syntax.Token[slices.Index(rep.Syntax.Token, rep.Old.Version)] = version
			rep.Old.Version = version
		}
	}
	r.version = version
	return r.write("go.work", modfile.Format(r.work.Syntax))
}

func (r *repository) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.dir, name))
}

func (r *repository) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.dir, name), content, 0o644)
}

// git runs git and returns its output without the last line break.
func (r *repository) git(args ...string) (string, error) { return output(r.dir, nil, "git", args...) }

// output runs a command and returns its standard output without the last line break. The
// error has what it wrote to standard error.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
