package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// tidy reports the go.mod and go.sum files that aren't as go mod tidy leaves them, or writes
// them. go mod tidy doesn't know go.work, so it runs on copies that replace the modules of
// this repository by their directories.
func (r *repository) tidy(write bool) error {
	var failed []error
	for _, m := range r.modules {
		goMod, goSum, err := r.tidied(m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.dir, err)
		}
		for name, want := range map[string][]byte{"go.mod": goMod, "go.sum": goSum} {
			name = filepath.Join(m.dir, name)
			have, err := r.read(name)
			if err != nil && !os.IsNotExist(err) {
				return err
			}
			if bytes.Equal(have, want) {
				continue
			}
			if !write {
				failed = append(failed, fmt.Errorf("%s is not tidy: run make tidy WRITE=-w\n%s", name, difference(have, want)))
			} else if err := r.write(name, want); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}

// tidied returns what go mod tidy makes of a module's files.
func (r *repository) tidied(m *mod) (goMod, goSum []byte, err error) {
	dir, err := os.MkdirTemp("", "shardkey-tidy-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	if goMod, err = r.read(filepath.Join(m.dir, "go.mod")); err != nil {
		return nil, nil, err
	}
	if goSum, err = r.read(filepath.Join(m.dir, "go.sum")); err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, other := range r.modules {
		if other != m {
			if err := file.AddReplace(other.path(), "", filepath.Join(r.dir, other.dir), ""); err != nil {
				return nil, nil, err
			}
		}
	}
	if goMod, err = file.Format(); err != nil {
		return nil, nil, err
	}
	name := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(name, goMod, 0o600); err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), goSum, 0o600); err != nil {
		return nil, nil, err
	}
	if _, err = output(filepath.Join(r.dir, m.dir), []string{"GOWORK=off"}, "go", "mod", "tidy", "-modfile="+name); err != nil {
		return nil, nil, err
	}

	if goMod, err = os.ReadFile(name); err != nil {
		return nil, nil, err
	}
	if file, err = modfile.Parse("go.mod", goMod, nil); err != nil {
		return nil, nil, err
	}
	for _, other := range r.modules {
		if err := file.DropReplace(other.path(), ""); err != nil {
			return nil, nil, err
		}
	}
	file.Cleanup()
	if goMod, err = file.Format(); err != nil {
		return nil, nil, err
	}
	if goSum, err = os.ReadFile(filepath.Join(dir, "go.sum")); err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	return goMod, goSum, nil
}

// difference returns the lines that only one of two files has.
func difference(have, want []byte) string {
	a, b := strings.Split(string(have), "\n"), strings.Split(string(want), "\n")
	var lines []string
	for _, line := range a {
		if !slices.Contains(b, line) {
			lines = append(lines, "-"+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			lines = append(lines, "+"+line)
		}
	}
	return strings.Join(lines, "\n")
}
