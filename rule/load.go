package rule

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxFile is the maximum size of a rule, in bytes. It is enough for a million tables that are
// listed one by one.
const maxFile = 64 << 20

// Load reads a rule from a YAML file and checks it as [Parse] does. The error is an [*Error]. If
// the file can't be read, it wraps a *fs.PathError.
func Load(path string) (*Rule, error) {
	data, err := readFile(path)
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "open "+path+": ")
		if wd, wdErr := os.Getwd(); wdErr == nil && errors.Is(err, os.ErrNotExist) && !strings.HasPrefix(path, "/") {
			reason += " (in " + wd + ")"
		}
		return nil, &Error{File: path, Reason: "cannot read the rule: " + reason, Err: err}
	}
	full, err := filepath.Abs(path)
	if err != nil {
		full = path
	}
	return parse(path, data, full)
}

// source identifies the file or content that a rule was read from.
type source struct {
	path string   // absolute path of the file; empty if the rule wasn't loaded from a file
	text [32]byte // SHA-256 of the content
}

// Source returns the absolute path of the rule's file and the SHA-256 of its content. The path is
// empty for a rule from [Parse] or [New], and the sum is zero for a rule from New.
func (r *Rule) Source() (file string, sum [sha256.Size]byte) {
	return r.source.path, r.source.text
}

// scope returns a value that is equal for two rules that share generators: the file, or the rule
// itself if it wasn't loaded from a file.
func (r *Rule) scope() any {
	if r.source.path != "" {
		return source{path: r.source.path}
	}
	return r
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("longer than %d bytes", maxFile)
	}
	return data, err
}

// Parse reads a rule from YAML and checks all of it, including the properties of generators. Errors
// and descriptions use name as the name of the file. The error is an [*Error].
func Parse(name string, data []byte) (*Rule, error) { return parse(name, data, "") }

func parse(name string, data []byte, path string) (*Rule, error) {
	if len(data) > maxFile {
		return nil, &Error{File: name, Reason: fmt.Sprintf("the rule is longer than %d bytes", maxFile)}
	}
	from := source{path: path, text: sha256.Sum256(data)}
	rd := &reader{spec: spec{file: name, source: from}}
	if strings.EqualFold(filepath.Ext(name), ".properties") {
		return nil, rd.olderForm(word{place: place{line: 1, column: 1}}, "a .properties file")
	}
	documents, err := parseYAML(name, data)
	if err != nil {
		return nil, err
	}
	for _, document := range documents {
		if err := rd.document(document); err != nil {
			return nil, err
		}
	}
	if len(rd.scopes) == 0 {
		return nil, rd.noSharding(len(documents) == 0)
	}
	return build(rd.spec)
}
