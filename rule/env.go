package rule

import (
	"fmt"
	"os"
	"strings"
)

// expandEnv puts environment variables into the text of a property:
//
//	${NAME}            the variable's value; an error when it is not set
//	${NAME::default}   the default when it is not set
//	$${NAME::default}  the same, as ShardingSphere 5.5 writes it
//	\${                the two characters "${"
//
// What a variable holds is taken as it is: it is not expanded again. The error
// shows names, never values.
func expandEnv(text string) (expanded string, used bool, err error) {
	var b strings.Builder
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			b.WriteString(text)
			return b.String(), used, nil
		}
		if i > 0 && text[i-1] == '\\' {
			b.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		inner, rest, ok := strings.Cut(text[i+2:], "}")
		name, def, hasDef := strings.Cut(inner, "::")
		if !ok || !isEnvName(name) {
			return "", false, fmt.Errorf("\"${\" begins the name of an environment variable, as ${NAME}; write \\${ for the characters themselves")
		}
		value, set := os.LookupEnv(name)
		switch {
		case !set && !hasDef:
			return "", false, fmt.Errorf("the environment variable %s is not set; set it or give a default, as ${%s::value}", name, name)
		case !set:
			value = def
		}
		b.WriteString(strings.TrimSuffix(text[:i], "$") + value)
		used = true
		text = rest
	}
}

// isEnvName tells a name such as DB_PASSWORD or, as Java systems have them,
// db.password.
func isEnvName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !('0' <= c && c <= '9' || c == '.' || c == '-')) {
			return false
		}
	}
	return s != ""
}
