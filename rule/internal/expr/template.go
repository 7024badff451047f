package expr

import (
	"slices"
	"strings"
)

// maxParts bounds the parts of a template.
const maxParts = 100

// Template is a string with expressions in ${…}. It never changes and may be used by multiple
// goroutines at once.
type Template struct {
	parts  []part
	column bool
}

// part is either a string or an expression.
type part struct {
	text string
	expr *node
}

// Compile parses a string with expressions in ${…} or $->{…}. The expressions may use the value of
// the column with the given name. An empty name means that they may not. The error is an [*Error].
func Compile(text, column string) (*Template, error) {
	t := &Template{}
	var foreign *Error
	text = strings.ReplaceAll(text, "$->{", "${")
	if !strings.Contains(text, "${") {
		t.parts = []part{{text: text}}
		return t, nil
	}
	for at := 0; at < len(text); {
		if len(t.parts) > maxParts {
			return nil, fail("more than %d parts in %q", maxParts, Clip(text))
		}
		end := len(text)
		if i := strings.IndexAny(text[at:], "$\\\"\n\r"); i >= 0 {
			end = at + i
		}
		if end > at {
			t.parts = append(t.parts, part{text: text[at:end]})
		}
		if at = end; at == len(text) {
			break
		}
		p := parser{text: text, at: at, names: []string{column}, foreign: foreign}
		n := p.outside()
		if n == nil && p.err == nil {
			p.at += len("${")
			n = p.expression()
			p.expect("}")
		}
		if p.err != nil {
			return nil, p.err
		}
		foreign = p.foreign
		t.parts = append(t.parts, part{expr: n})
		t.column = t.column || p.used
		at = p.at
	}
	if foreign != nil {
		return nil, foreign
	}
	return t, nil
}

// outside reads a character that has a meaning outside of ${…}. It returns nil for ${ and for
// errors.
func (p *parser) outside() *node {
	rest := p.text[p.at:]
	name := rest[1:][:nameLength(rest[1:])]
	switch {
	case strings.HasPrefix(rest, "${"):
		return nil
	case rest[0] == '$' && name != "" && !isDigit(name[0]):
		if name != p.names[0] {
			return p.undefined(name)
		}
		p.used = true
		p.skip("$" + name)
	case rest[0] == '\\' && len(rest) > 1:
		p.skip(rest[:2])
	default:
		return p.wrong("found %q outside of ${…}", rest[:1])
	}
	return &node{op: constant}
}

// Uses reports whether an expression uses the column.
func (t *Template) Uses() bool { return t.column }

// IsPlain reports whether the template has no expression.
func (t *Template) IsPlain() bool {
	return !slices.ContainsFunc(t.parts, func(p part) bool { return p.expr != nil })
}

// Append evaluates the template for a value of the column and appends the resulting string to b.
// The error is an [*Error] or [ErrTooMany].
func (t *Template) Append(b []byte, column Value) ([]byte, error) {
	s := scope{column: column}
	for i := range t.parts {
		p := &t.parts[i]
		if p.expr == nil {
			b = append(b, p.text...)
			continue
		}
		v := p.expr.eval(&s)
		if v.class == Null || v.class > String {
			s.fail("a %s in a name is not supported", v.class)
		}
		if s.err != nil {
			return b, s.err
		}
		b = v.append(b)
	}
	return b, nil
}

// Names returns the strings of each part of the template. A part without an expression has one
// string. A list has one for each distinct item. The error is an [*Error] or [ErrTooMany].
func (t *Template) Names() (parts [][]string, err error) {
	for _, p := range t.parts {
		names := []string{p.text}
		if p.expr != nil {
			if names, err = p.expr.names(); err != nil {
				return nil, err
			}
		}
		parts = append(parts, names)
	}
	return parts, nil
}

func (n *node) names() ([]string, error) {
	s := &scope{}
	v := n.eval(s)
	if s.err != nil {
		return nil, s.err
	}
	all := []Value{v}
	if v.class == list {
		all = s.lists[v.n]
	}
	if len(all) == 0 {
		return nil, fail("expected a list with items, found an empty one")
	}
	names := make([]string, 0, len(all))
	seen := make(map[string]bool, len(all))
	for _, item := range all {
		if item.class > String || item.class == Boolean {
			return nil, fail("a %s in a name is not supported", item.class)
		}
		name := item.String()
		if item.class == Null {
			name = ""
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}
