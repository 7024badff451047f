package rule

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/shardkey/shardkey/internal/yamltree"
)

// Parse reads a rule from YAML and checks all of it, including the properties of generators. Errors
// and descriptions use name as the name of the file. The error is an [*Error].
func Parse(name string, data []byte) (*Rule, error) {
	return parse(name, data, source{text: sha256.Sum256(data)}, 0)
}

// parse parses the content of a file. mode is 0 if there is no file.
func parse(name string, data []byte, from source, mode fs.FileMode) (*Rule, error) {
	if len(data) > maxFile {
		return nil, &Error{File: name, Reason: fmt.Sprintf("the rule is longer than %d bytes", maxFile)}
	}
	rd := &reader{file: newFile(name, from), json: bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))}
	if who := writers(mode); who != "" {
		rd.file.warn(word{}, fmt.Sprintf("%s can write the file, and with it change where keys come from and where passwords are "+
			"sent; run chmod go-w", who))
	}
	documents, err := yamltree.Decode(data)
	if (err != nil || slices.ContainsFunc(documents, isScalar)) && yamltree.IsProperties(name, data) {
		return nil, rd.olderForm(word{position: position{line: 1, column: 1}}, "a file of Java properties")
	}
	if err != nil {
		return nil, syntaxError(name, data, err)
	}
	for _, document := range documents {
		if err := rd.document(document); err != nil {
			return nil, err
		}
	}
	if len(rd.spec.scopes) == 0 {
		return nil, rd.noSharding(len(documents) == 0)
	}
	return build(rd.file, rd.spec)
}

func isScalar(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode }

var (
	yamlLine   = regexp.MustCompile(`^line (\d+): `)
	yamlAnchor = regexp.MustCompile(`(?s)anchor '(.*)'`)
	// yamlInside matches the errors for which the library reports the line before the one on which
	// the map or list begins.
	yamlInside = regexp.MustCompile(`^did not find expected (?:key|'-' indicator|',' or '([]}])')$`)
)

// syntaxError returns an error of the YAML library with its place.
func syntaxError(name string, data []byte, err error) *Error {
	if e, ok := errors.AsType[*yamltree.Error](err); ok {
		return &Error{File: name, Line: e.Line, Column: e.Column, Word: e.Word, Reason: e.Reason}
	}
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	switch m := yamlLine.FindStringSubmatch(reason); {
	case m != nil:
		line, _ = strconv.Atoi(m[1])
		reason = reason[len(m[0]):]
	case yamlAnchor.MatchString(reason):
		// YAML reads a string that begins with * as the name of an anchor. It may be a password.
		anchor := yamlAnchor.FindStringSubmatch(reason)[1]
		line = lineOf(data, bytes.Index(data, []byte("*"+anchor)))
		reason, err = "unknown or recursive anchor; put a value that begins with * in quotes", nil
	default:
		if line = lineOf(data, firstUnreadable(data)); !utf8.Valid(data) {
			reason = "the line isn't in UTF-8; save the file in UTF-8"
		}
	}
	last := lineOf(data, len(data))
	if at, cause := syntaxCause(data, line); cause != "" {
		return &Error{File: name, Line: at.line, Column: at.column, Reason: "invalid YAML: " + cause, Err: err}
	}
	column := 1
	if m := yamlInside.FindStringSubmatch(reason); m != nil {
		if yamlLine.MatchString(strings.TrimPrefix(err.Error(), "yaml: ")) {
			line++
		}
		reason += " in the map or list that begins here"
		column = beginning(data, line, m[1])
	}
	return &Error{File: name, Line: min(max(line, 1), last), Column: column, Reason: "invalid YAML: " + reason, Err: err}
}

// beginning returns the column in a line at which a map or list begins. closing is the bracket that
// ends it, or "" for one without brackets.
func beginning(data []byte, line int, closing string) int {
	lines := strings.Split(string(data), "\n")
	text := lines[min(max(line, 1), len(lines))-1]
	at := len(text) - len(strings.TrimLeft(text, " -"))
	if opening := map[string]string{"}": "{", "]": "["}[closing]; opening != "" {
		at = max(strings.LastIndex(strings.ReplaceAll(text, "${", "$("), opening), 0)
	}
	return utf8.RuneCountInString(text[:at]) + 1
}

func lineOf(data []byte, offset int) int {
	return 1 + bytes.Count(data[:max(offset, 0)], []byte("\n"))
}

// firstUnreadable returns the offset of the first byte that YAML doesn't permit.
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

// causes are the common mistakes behind a syntax error. The group is the text at fault.
var causes = []struct {
	text  *regexp.Regexp
	cause string
}{
	{regexp.MustCompile(`(?m)^ *(\t)`), "expected spaces as indentation, found a tab"},
	{regexp.MustCompile(`(?m)^[^#\n]*[:,\[{-]\s+(@[\w.-]+@)`),
		"found a placeholder of Maven; replace it, or use the file below target/classes"},
	{regexp.MustCompile(`([\x{a0}\x{2000}-\x{200f}\x{2028}-\x{202f}\x{3000}])`),
		"found a character that looks like a space or is invisible; replace it with an ordinary space"},
	{regexp.MustCompile(`(?:^|[^$>])[{\[](?:[^"'{}\[\]]|"[^"]*"|'[^']*')*?(\$(?:->)?\{)`),
		"a value with ${…} inside { } or [ ] must be in quotes, for example \"ds_${0..1}.t_${0..3}\""},
}

// syntaxCause looks for a common mistake near the line of a syntax error. The line that the library
// reports is often off by one, and it reports no column.
func syntaxCause(data []byte, line int) (at position, cause string) {
	lines := strings.SplitAfter(string(data), "\n")
	first := min(max(line-3, 0), len(lines))
	near := strings.Join(lines[first:min(line+2, len(lines))], "")
	for _, c := range causes {
		if found := c.text.FindStringSubmatchIndex(near); found != nil {
			before := near[:found[2]]
			column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
			return position{line: first + 1 + strings.Count(before, "\n"), column: column + 1}, c.cause
		}
	}
	return position{}, ""
}
