package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// passed is the file in which make test notes the git tree that passed.
const passed = "bin/passed"

// ready returns an error if the tree can't become the version.
func (r *repository) ready(version string) error {
	switch {
	case !semver.IsValid(version) || semver.Canonical(version) != version:
		return fmt.Errorf("expected a version such as v0.1.0, found %q", version)
	case semver.Compare(version, r.version) <= 0:
		return fmt.Errorf("expected a version above %s, found %s", r.version, version)
	case semver.Compare(semver.Major(version), "v1") > 0:
		return fmt.Errorf("%s: a major version above 1 changes the module paths, which this program doesn't", version)
	}
	changed, err := r.git("status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("expected a clean tree, found changes: commit or remove them\n%s", changed)
	}
	for _, m := range r.released() {
		if _, err := r.git("rev-parse", "--verify", "--quiet", "refs/tags/"+m.tag(version)); err == nil {
			return fmt.Errorf("the tag %s exists already", m.tag(version))
		}
		for _, rep := range m.file.Replace {
			return fmt.Errorf("%s/go.mod: expected no replace in a released module, found one of %s", m.dir, rep.Old.Path)
		}
	}
	_, err = r.changelog(version, time.Time{})
	return err
}

// test runs make test, unless it has passed for this tree.
func (r *repository) test() error {
	tree, err := r.git("rev-parse", "HEAD^{tree}")
	if err != nil {
		return err
	}
	if noted, err := r.read(passed); err == nil && strings.TrimSpace(string(noted)) == tree {
		fmt.Fprintln(os.Stderr, "release: make test has passed for this tree")
		return nil
	}
	cmd := exec.Command("make", "test")
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make test: %w", err)
	}
	return nil
}

// commit commits the version. After an error the clone is as before.
func (r *repository) commit(version string, date time.Time) error {
	changes, err := r.changelog(version, date)
	if err != nil {
		return err
	}
	if err = r.tryCommit(version, changes); err != nil {
		_, undone := r.git("reset", "--hard", "--quiet", "HEAD")
		return errors.Join(err, undone)
	}
	return nil
}

func (r *repository) tryCommit(version string, changes []byte) error {
	if err := r.setVersion(version); err != nil {
		return err
	}
	if err := r.write("CHANGELOG.md", changes); err != nil {
		return err
	}
	if err := r.dropNotes(); err != nil {
		return err
	}
	_, err := r.git("commit", "--quiet", "--all", "--message", "all: release "+version+
		"\n\nThe modules require each other at "+version+", and its section of the changelog gets its date.")
	return err
}

// changelog returns the changes with a version and a date for "Unreleased".
func (r *repository) changelog(version string, date time.Time) ([]byte, error) {
	content, err := r.read("CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	at := regexp.MustCompile(`(?m)^## .*$`).FindIndex(content)
	if at == nil || string(content[at[0]:at[1]]) != "## Unreleased" {
		return nil, errors.New("CHANGELOG.md: expected the section Unreleased first, with the changes since the last version")
	}
	heading := fmt.Sprintf("## %s (%s)", strings.TrimPrefix(version, "v"), date.Format(time.DateOnly))
	return []byte(string(content[:at[0]]) + heading + string(content[at[1]:])), nil
}

// note is a part of a README that is true until a version is released.
var note = regexp.MustCompile(`(?s)<!-- until a release -->.*?<!-- end -->\n*`)

// dropNotes removes these parts.
func (r *repository) dropNotes() error {
	for _, name := range []string{"README.md", "README.zh.md"} {
		content, err := r.read(name)
		if err != nil {
			return err
		}
		if err := r.write(name, note.ReplaceAll(content, nil)); err != nil {
			return err
		}
	}
	return nil
}

// printTags prints the commands that make and push the tags.
func (r *repository) printTags(w io.Writer, version string) error {
	commit, err := r.git("rev-parse", "--short", "HEAD")
	if err != nil {
		return err
	}
	var tags []string
	for _, m := range r.released() {
		tags = append(tags, m.tag(version))
	}
	fmt.Fprintf(w, "Committed %s as %s. Nothing is pushed. After review:\n\n", version, commit)
	for _, tag := range tags {
		fmt.Fprintf(w, "git tag %s %s\n", tag, commit)
	}
	_, err = fmt.Fprintf(w, "git push --atomic origin %s:main %s\n", commit, strings.Join(tags, " "))
	return err
}
