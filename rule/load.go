package rule

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
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
	return Parse(path, data)
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

// Parse reads a rule from YAML text. name stands for the file in errors and
// descriptions. All that is wrong with the rule is an error here, properties of
// generators included; the error is an [*Error].
func Parse(name string, data []byte) (*Rule, error) {
	if len(data) > maxFile {
		return nil, &Error{File: name, Reason: fmt.Sprintf("the rule is longer than %d bytes", maxFile)}
	}
	documents, err := parseYAML(name, data)
	if err != nil {
		return nil, err
	}
	rd := &reader{spec: spec{file: name}}
	for _, document := range documents {
		if err := rd.document(document); err != nil {
			return nil, err
		}
	}
	if len(rd.spec.scopes) == 0 {
		return nil, rd.noSharding(len(documents) == 0)
	}
	return build(rd.spec)
}

// parseYAML returns the root node of each document that is not empty.
func parseYAML(name string, data []byte) (roots []*yaml.Node, err error) {
	defer func() {
		// The text is anybody's; a slip in the YAML reader must not end the
		// program that opens a database with it.
		if r := recover(); r != nil {
			roots, err = nil, &Error{File: name, Line: 1, Column: 1, Reason: fmt.Sprintf("not YAML: %v", r)}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var document yaml.Node
		err := dec.Decode(&document)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return nil, syntaxError(name, data, err)
		}
		if len(document.Content) > 0 && !isNull(document.Content[0]) {
			roots = append(roots, document.Content[0])
		}
	}
}

var (
	yamlLine   = regexp.MustCompile(`^line (\d+): `)
	yamlAnchor = regexp.MustCompile(`unknown anchor '([^']*)'`)
)

// syntaxError returns the YAML reader's error with its place.
func syntaxError(name string, data []byte, err error) *Error {
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	switch m := yamlLine.FindStringSubmatch(reason); {
	case m != nil:
		line, _ = strconv.Atoi(m[1])
		reason = reason[len(m[0]):]
	case yamlAnchor.MatchString(reason):
		anchor := yamlAnchor.FindStringSubmatch(reason)[1]
		line = lineOf(data, bytes.Index(data, []byte("*"+anchor)))
	default:
		line = lineOf(data, firstUnreadable(data))
	}
	last := lineOf(data, len(data))
	return &Error{File: name, Line: min(max(line, 1), last), Column: 1, Reason: "not YAML: " + reason, Err: err}
}

func lineOf(data []byte, offset int) int {
	return 1 + bytes.Count(data[:max(offset, 0)], []byte("\n"))
}

// firstUnreadable finds the first byte that no YAML text has.
func firstUnreadable(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 || r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f {
			return i
		}
		i += size
	}
	return 0
}
