package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// pack adds the module at HEAD to a directory that GOPROXY=file://… serves, and returns the
// lines that go.sum has for it.
func (r *repository) pack(proxy string, m *mod, version string) (sums []string, err error) {
	v := module.Version{Path: m.path(), Version: version}
	escaped, err := module.EscapePath(v.Path)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	if err := zip.CreateFromVCS(&packed, v, r.dir, "HEAD", strings.TrimPrefix(m.dir, ".")); err != nil {
		return nil, err
	}
	date, err := r.git("show", "--no-patch", "--format=%cI")
	if err != nil {
		return nil, err
	}
	committed, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return nil, err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": committed.UTC()})
	if err != nil {
		return nil, err
	}
	goMod, err := r.read(filepath.Join(m.dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	versions, err := os.ReadFile(filepath.Join(dir, "list"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for name, content := range map[string][]byte{
		version + ".zip": packed.Bytes(), version + ".info": info, version + ".mod": goMod,
		"list": append(versions, version+"\n"...),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return nil, err
		}
	}
	zipSum, err := dirhash.HashZip(filepath.Join(dir, version+".zip"), dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	modSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(goMod)), nil
	})
	return []string{v.Path + " " + version + " " + zipSum, v.Path + " " + version + "/go.mod " + modSum}, err
}

// foreignSums returns the lines of a go.sum for modules of other repositories.
func foreignSums(content []byte) (lines []string) {
	for line := range strings.Lines(string(content)) {
		path, _, _ := strings.Cut(line, " ")
		if !isOurs(path) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// joinSums returns a go.sum with the lines in the order of the go command.
func joinSums(lines []string) []byte {
	version := func(line string) module.Version {
		words := strings.Fields(line)
		return module.Version{Path: words[0], Version: words[1]}
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		pair := []module.Version{version(a), version(b)}
		if pair[0] == pair[1] {
			return strings.Compare(a, b)
		}
		if module.Sort(pair); pair[0] == version(a) {
			return -1
		}
		return 1
	})
	var content bytes.Buffer
	for _, line := range lines {
		content.WriteString(line + "\n")
	}
	return content.Bytes()
}
