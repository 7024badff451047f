package convert

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseProperties parses a Java properties file.
func parseProperties(data []byte) (settings []setting) {
	content := strings.TrimPrefix(string(data), "\ufeff")
	if !utf8.ValidString(content) {
		content = latin1(content)
	}
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(content), "\n")
	for i := 0; i < len(lines); i++ {
		first, line := i+1, strings.TrimLeft(lines[i], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continues(line) && i+1 < len(lines) {
			i++
			line = line[:len(line)-1] + strings.TrimLeft(lines[i], " \t\f")
		}
		key, value := cutProperty(line)
		at := &yaml.Node{Line: first, Column: 1}
		s := setting{splitWords(unescape(key), at), text(unescape(value), at)}
		s.value.Column += len(line) - len(value)
		if numberOrBool.MatchString(s.value.Value) {
			s.value.Tag = "" // as people write it in YAML
		}
		settings = append(settings, s)
	}
	return settings
}

var numberOrBool = regexp.MustCompile(`^(0|[1-9]\d{0,17}|true|false)$`)

// latin1 decodes ISO 8859-1, the character set of properties files that are not in UTF-8.
func latin1(content string) string {
	runes := make([]rune, 0, len(content))
	for i := range len(content) {
		runes = append(runes, rune(content[i]))
	}
	return string(runes)
}

// continues reports whether a line continues on the next one, because it ends with an odd
// number of backslashes.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// cutProperty splits a line at the first "=", ":" or blank that is not escaped.
func cutProperty(line string) (key, value string) {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '=', ':', ' ', '\t', '\f':
			value = strings.TrimLeft(line[i:], " \t\f")
			if value != "" && (value[0] == '=' || value[0] == ':') {
				value = strings.TrimLeft(value[1:], " \t\f")
			}
			return line[:i], value
		}
	}
	return line, ""
}

var escapes = regexp.MustCompile(`\\(?:u[0-9A-Fa-f]{4}|(?s:.))`)

// unescape replaces the escapes of a key or value.
func unescape(s string) string {
	return escapes.ReplaceAllStringFunc(s, func(escape string) string {
		switch c := escape[1:]; {
		case len(escape) == len(`\u0000`):
			code, _ := strconv.ParseUint(c[1:], 16, 16)
			return string(rune(code))
		case strings.Contains("tnrf", c):
			return strings.NewReplacer("t", "\t", "n", "\n", "r", "\r", "f", "\f").Replace(c)
		default:
			return c
		}
	})
}
