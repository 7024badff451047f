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

// maxFile bounds a rule's text, in bytes. A million tables that are written
// out one by one would be less.
const maxFile = 64 << 20

// Load reads a rule from a YAML file. The error is an [*Error]; for a file that
// cannot be read it has the *fs.PathError in its chain.
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

// source is what a rule was read from.
type source struct {
	path string   // the file, from the root; empty for one that was parsed
	text [32]byte // the SHA-256 of the text
}

// Source returns the file that the rule was read from, as a path from the root,
// and the SHA-256 of the text. A rule that was parsed has no file, and one that was
// built in Go neither.
func (r *Rule) Source() (file string, sum [sha256.Size]byte) {
	return r.source.path, r.source.text
}

// scope is what two rules have in common that share generators: the file, or the
// rule itself when it is from none.
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

// Parse reads a rule from YAML. name stands for the file in errors and descriptions. All
// that is wrong with the rule is an error here, properties of generators included; the error is
// an [*Error].
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
