package groovy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxText bounds the text of a template, in bytes.
const maxText = 4096

// Template is a text with expressions in ${…}, compiled. It never changes and may
// be used by many goroutines at once.
type Template struct {
	names   []string
	unknown []string
	parts   []part
}

// part is plain text, or an expression.
type part struct {
	text string
	expr *node
}

// SyntaxError is the error for a text that is no Groovy, or one that this package
// does not understand.
type SyntaxError struct {
	Text   string
	Offset int // of the byte in Text where it ceases to be understood
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at character %d of %q", e.Reason, e.Offset+1, clip(e.Text))
}

// Compile reads a text as ShardingSphere does: blanks around it are left out,
// $->{ stands for ${, and a text without either is plain. names are the names
// that the expressions may use; values come in their order. Any other name is
// null, as in Groovy, and one of [Template.Unknown].
func Compile(text string, names []string) (*Template, error) {
	t := &Template{names: names}
	if len(text) > maxText {
		return nil, &SyntaxError{Text: text, Reason: fmt.Sprintf("the expression is longer than %d bytes", maxText)}
	}
	text = strings.ReplaceAll(strings.TrimSpace(text), "$->{", "${")
	if !strings.Contains(text, "${") {
		t.parts = []part{{text: text}}
		return t, nil
	}
	parts, end, err := t.read(text, 0, 0)
	if err == nil && end < len(text) {
		err = &SyntaxError{Text: text, Offset: end, Reason: "a double quote"}
	}
	t.parts = parts
	return t, err
}

// read reads the parts of a double-quoted text from offset at up to its closing
// quote or the end of the whole.
func (t *Template) read(text string, at, depth int) (parts []part, end int, err error) {
	for start := at; ; {
		i := strings.IndexAny(text[at:], "$\\\"\n\r")
		if i < 0 {
			i = len(text) - at
		}
		at += i
		if at > start {
			parts = append(parts, part{text: text[start:at]})
		}
		switch {
		case at == len(text) || text[at] == '"':
			return parts, at, nil
		case !strings.HasPrefix(text[at:], "${"):
			return nil, at, &SyntaxError{Text: text, Offset: at, Reason: fmt.Sprintf("%q is not understood outside of ${…}", text[at])}
		}
		p := parser{template: t, text: text, at: at + 2, depth: depth}
		expr, err := p.whole()
		if err != nil {
			return nil, at, err
		}
		parts = append(parts, part{expr: expr})
		at = p.at
		start = at
	}
}

// Unknown returns the names in the expressions that are none of the template's.
func (t *Template) Unknown() []string { return slices.Clone(t.unknown) }

// Uses reports whether an expression has the template's name i in it.
func (t *Template) Uses(i int) bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.expr != nil && p.expr.uses(i) })
}

// IsPlain reports whether the text has no expression.
func (t *Template) IsPlain() bool {
	return !slices.ContainsFunc(t.parts, func(p part) bool { return p.expr != nil })
}

// Append appends the text for the values of the template's names. The error is an
// [*EvalError].
func (t *Template) Append(b []byte, values []Value) ([]byte, error) {
	for i := range t.parts {
		p := &t.parts[i]
		if p.expr == nil {
			b = append(b, p.text...)
			continue
		}
		if n, _, ok := p.expr.integer(values); ok {
			b = strconv.AppendInt(b, n, 10)
			continue
		}
		v, err := p.expr.eval(values)
		if err != nil {
			return b, err
		}
		if v.class >= list {
			return b, evalError("the text of a %s is not understood", v.class)
		}
		if v.class == Double {
			if v, err = v.asText(); err != nil {
				return b, err
			}
		}
		b = v.append(b)
	}
	return b, nil
}

// Around returns the texts around the only expression of the template; ok is false
// when it has none or several.
func (t *Template) Around() (before, after string, ok bool) {
	for _, p := range t.parts {
		switch {
		case p.expr != nil && ok:
			return "", "", false
		case p.expr != nil:
			ok = true
		case ok:
			after = p.text
		default:
			before = p.text
		}
	}
	return before, after, ok
}

// Integer computes the only expression of the template ([Template.Around]) where it
// is one of integers; ok is false for all others.
func (t *Template) Integer(values []Value) (n int64, ok bool) {
	for i := range t.parts {
		if t.parts[i].expr != nil {
			n, _, ok = t.parts[i].expr.integer(values)
			return n, ok
		}
	}
	return 0, false
}
