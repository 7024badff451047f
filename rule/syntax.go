package rule

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseYAML returns the root node of each document that isn't empty.
func parseYAML(name string, data []byte) (roots []*yaml.Node, err error) {
	defer func() {
		// Anyone may have written the file. A panic in the YAML library must not end the program.
		if r := recover(); r != nil {
			roots, err = nil, &Error{File: name, Line: 1, Column: 1, Reason: "invalid YAML: the parser panicked"}
		}
	}()
	if bytes.Contains(data, []byte("%YAML")) {
		data = directive.ReplaceAll(data, []byte("#YAML"))
	}
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

// directive matches the YAML version. The library only knows 1.1, but can read 1.2.
var directive = regexp.MustCompile(`(?m)^%YAML\b`)

var (
	yamlLine   = regexp.MustCompile(`^line (\d+): `)
	yamlAnchor = regexp.MustCompile(`(?s)anchor '(.*)'`)
)

// syntaxError returns an error of the YAML library with its place.
func syntaxError(name string, data []byte, err error) *Error {
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
		line = lineOf(data, firstUnreadable(data))
	}
	last := lineOf(data, len(data))
	if at, cause := syntaxCause(data, line); cause != "" {
		return &Error{File: name, Line: at.line, Column: at.column, Reason: "invalid YAML: " + cause, Err: err}
	}
	return &Error{File: name, Line: min(max(line, 1), last), Column: 1, Reason: "invalid YAML: " + reason, Err: err}
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

// syntaxCause looks for common mistakes near the line of a syntax error. The line that the library
// reports is often off by one, and it reports no column.
func syntaxCause(data []byte, line int) (at place, cause string) {
	depth := 0 // nesting of { and [
	lines := strings.Split(string(data), "\n")
	for i := max(line-3, 0); i < min(line+2, len(lines)); i++ {
		text := lines[i]
		indent := len(text) - len(strings.TrimLeft(text, " \t"))
		if tab := strings.IndexByte(text[:indent], '\t'); tab >= 0 {
			return place{line: i + 1, column: tab + 1}, "expected spaces as indentation, found a tab"
		}
		if odd := strings.IndexFunc(text, isOddSpace); odd >= 0 {
			return place{line: i + 1, column: 1 + utf8.RuneCountInString(text[:odd])},
				fmt.Sprintf("found the character %+q, which looks like a space or is invisible; replace it with an ordinary space",
					[]rune(text[odd:])[0])
		}
		var column int
		if column, depth = openExpression(text, depth); column > 0 {
			return place{line: i + 1, column: column}, "a value with ${…} inside { } or [ ] must be in quotes, for example " +
				"\"ds_${0..1}.t_${0..3}\""
		}
	}
	return place{}, ""
}

// isOddSpace reports whether r is a space that YAML doesn't permit, or a character without width.
func isOddSpace(r rune) bool {
	return r > 0x7f && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)) && r != '\ufeff'
}

// openExpression returns the column of the first unquoted ${ or $->{ in a flow map or list, or 0 if
// there is none. depth is the nesting of flow maps and lists at the start of the line, and after is
// the nesting at its end.
func openExpression(line string, depth int) (column, after int) {
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && (i == 0 || strings.IndexByte(" \t{[,:", line[i-1]) >= 0):
			quote = c
		case c == '#' && (i == 0 || line[i-1] == ' '):
			return 0, depth
		case strings.HasPrefix(line[i:], "${") || strings.HasPrefix(line[i:], "$->{"):
			if depth > 0 {
				return 1 + utf8.RuneCountInString(line[:i]), depth
			}
			end := strings.IndexByte(line[i:], '}')
			if end < 0 {
				return 0, depth
			}
			i += end
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth = max(depth-1, 0)
		}
	}
	return 0, depth
}
