package expr

import (
	"iter"
	"slices"
	"strings"
)

const maxParts = 100

// Template is a string with expressions in ${…}. It never changes and may be used by multiple
// goroutines at once.
type Template struct{ parts []part }

type part struct {
	text string
	expr *node
}

// Compile parses a string with expressions in ${…} or $->{…}. The expressions may use the value of
// the column with the given name. An empty name means that they may not. The error is an [*Error].
func Compile(text, column string) (*Template, error) {
	text = strings.ReplaceAll(text, "$->{", "${")
	if !strings.Contains(text, "${") {
		return &Template{[]part{{text: text}}}, nil
	}
	t, p := &Template{}, &parser{text: text, names: []string{column}}
	for p.at < len(text) && p.err == nil {
		if len(t.parts) > maxParts {
			return nil, fail("more than %d parts in %q", maxParts, Clip(text))
		}
		plain := text[p.at:]
		if i := strings.IndexAny(plain, "$\\\"\n\r"); i >= 0 {
			plain = plain[:i]
		}
		if plain != "" {
			t.parts = append(t.parts, part{text: plain})
			p.at += len(plain)
			continue
		}
		n := p.outside()
		if n == nil && p.err == nil {
			p.at, p.operators = p.at+len("${"), 0
			n = p.expression()
			p.expect("}")
		}
		t.parts = append(t.parts, part{expr: n})
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case p.foreign != nil:
		return nil, p.foreign
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
		return p.skip("$" + name)
	case rest[0] == '\\' && len(rest) > 1:
		return p.skip(rest[:2])
	}
	return p.wrong("found %q outside of ${…}", rest[:1])
}

// IsConstant reports whether the template has expressions, but none of them uses the column.
func (t *Template) IsConstant() bool {
	isExpr := func(p part) bool { return p.expr != nil }
	return slices.ContainsFunc(t.parts, isExpr) && !slices.ContainsFunc(t.parts, part.uses)
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

// Remainders returns an iterator over the strings of the template if it uses the column only in one
// remainder of a constant, x % n. There is one string for each value of the remainder, which may be
// negative if x is for one of the samples. The second result is nil for other templates.
func (t *Template) Remainders(samples []Value) (n int64, names iter.Seq[string]) {
	for i := range t.parts {
		if at := t.parts[i].expr.remainder(); at != nil && !slices.ContainsFunc(t.parts[i+1:], part.uses) {
			return at.args[1].value.n, func(yield func(string) bool) { t.yieldRemainders(i, at, samples, yield) }
		}
		if t.parts[i].uses() {
			break
		}
	}
	return 0, nil
}

func (t *Template) yieldRemainders(i int, at *node, samples []Value, yield func(string) bool) {
	least := int64(0)
	for _, v := range samples {
		s := scope{column: v}
		if x := at.args[0].eval(&s); s.err == nil && x.n < 0 {
			least = 1 - at.args[1].value.n
		}
	}
	with := &Template{parts: slices.Clone(t.parts)}
	for rest := int64(0); rest < at.args[1].value.n; rest++ {
		for _, rest := range []int64{rest, -rest} {
			if rest < least {
				continue
			}
			with.parts[i].expr = t.parts[i].expr.with(at, Value{class: Integer, n: rest})
			if name, err := with.Append(nil, Value{}); err == nil && !yield(string(name)) {
				return
			}
		}
	}
}

func (pa part) uses() bool { return pa.expr != nil && pa.expr.uses() > 0 }

// uses returns how often the expression uses the column.
func (n *node) uses() (count int) {
	if n.op == variable && n.slot == 0 {
		return 1
	}
	for _, arg := range n.args {
		count += arg.uses()
	}
	return count
}

// remainder returns the outermost x % n that has all uses of the column, or nil.
func (n *node) remainder() *node {
	if n == nil || n.uses() == 0 {
		return nil
	}
	for {
		if all := n.uses(); n.name == "%" || n.name == "Math.floorMod" {
			if by := n.args[1]; by.op == constant && by.value.IsInteger() && by.value.n > 0 && n.args[0].uses() == all {
				return n
			}
		}
		i := slices.IndexFunc(n.args, func(arg *node) bool { return arg.uses() > 0 })
		if i < 0 || n.args[i].uses() != n.uses() {
			return nil
		}
		n = n.args[i]
	}
}

// with returns the expression with a value in place of a node of it.
func (n *node) with(at *node, v Value) *node {
	if n == at {
		return &node{op: constant, value: v}
	}
	clone := *n
	clone.args = make([]*node, len(n.args))
	for i, arg := range n.args {
		clone.args[i] = arg.with(at, v)
	}
	return &clone
}
