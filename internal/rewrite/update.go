package rewrite

import (
	"slices"
	"strings"
)

// Update has the assignments of an INSERT's ON DUPLICATE KEY UPDATE to the columns [Table.Fixed].
// There is no Update if each of them keeps its value or gets the INSERT's value.
type Update struct {
	Schema, Name string // the table in the statement, without quotes
	Table        *Table

	set []given // in the order of Table.Fixed
}

// Set returns the form of the value for the column Table.Fixed[column]; see [Plan.Given].
func (p *Plan) Set(u *Update, column int) (kind GivenKind, param int, value any) {
	return p.resolve(u.set[column], inUpdate)
}

// assigns parses the = or := of an assignment.
func (p *parser) assigns() bool {
	t := p.next()
	if p.isPunct(t, ':') {
		t = p.next()
	}
	return p.isPunct(t, '=')
}

// assigned returns the form of the value for a column. own reports whether a qualified name with
// the column's last part means this column.
func (p *parser) assigned(v *value, column string, own func(name) bool) given {
	g, tokens := p.givenBy(v), p.inner(v)
	_, literal := p.literal(tokens)
	switch {
	case g.kind == GivenParam, literal, len(tokens) == 1 && p.is(tokens[0], "NULL"), p.isTemporal(tokens):
		return g
	case p.isOwn(tokens, column, own):
		return given{kind: GivenNot}
	}
	return given{kind: GivenExpression}
}

// isOwn reports whether a value is the column itself: user_id, t.user_id, or
// LAST_INSERT_ID(user_id).
func (p *parser) isOwn(tokens []token, column string, own func(name) bool) bool {
	if n := len(tokens); n > 3 && p.is(tokens[0], "LAST_INSERT_ID") && p.isPunct(tokens[1], '(') && p.isPunct(tokens[n-1], ')') {
		tokens = tokens[2 : n-1]
	}
	of, ok := p.nameOf(tokens)
	return ok && strings.EqualFold(of.last, column) && own(of)
}

// nameOf returns the name that consists of tokens.
func (p *parser) nameOf(tokens []token) (n name, ok bool) {
	for i, t := range tokens {
		switch {
		case i%2 == 1:
			if !p.isPunct(t, '.') {
				return name{}, false
			}
		case t.kind == tokenWord:
			n = name{qualifier: n.last, last: p.text[t.start:t.end], parts: n.parts + 1}
		case t.kind == tokenQuoted:
			n = name{qualifier: n.last, last: unquoteIdentifier(p.text[t.start:t.end]), parts: n.parts + 1}
		default:
			return name{}, false
		}
	}
	return n, len(tokens)%2 == 1
}

// isTemporal reports whether tokens are a temporal literal such as DATE '2026-02-03'.
func (p *parser) isTemporal(tokens []token) bool {
	if len(tokens) != 2 || tokens[1].kind != tokenString {
		return false
	}
	return p.is(tokens[0], "DATE", "TIMESTAMP", "TIME")
}

// rowAlias has the aliases of an INSERT's row and of its columns.
type rowAlias struct {
	name    string
	columns []string // empty: the columns' names
	of      []string // the listed columns of the INSERT
}

// means reports whether a name means a column of the INSERT's row.
func (a *rowAlias) means(n name, column string) bool {
	if n.parts > 1 && !strings.EqualFold(n.qualifier, a.name) {
		return false
	}
	for i, c := range a.columns {
		if strings.EqualFold(c, n.last) {
			return i < len(a.of) && strings.EqualFold(a.of[i], column)
		}
	}
	return n.parts > 1 && len(a.columns) == 0 && strings.EqualFold(n.last, column)
}

// duplicate parses the assignments of ON DUPLICATE KEY UPDATE to fixed columns, and returns to the
// position before them.
func (p *parser) duplicate(in *Insert, alias *rowAlias) {
	if len(in.Table.Fixed) == 0 {
		return
	}
	saved, params, last := p.lexer, p.params, p.last
	defer func() {
		p.restore(saved)
		p.params, p.last = params, last
	}()
	for range 3 { // skip DUPLICATE KEY UPDATE
		p.next()
	}
	own := func(of name) bool { return of.parts == 1 || strings.EqualFold(of.qualifier, in.Name) }
	u := Update{Schema: in.Schema, Name: in.Name, Table: in.Table, set: make([]given, len(in.Table.Fixed))}
	for i := range u.set {
		u.set[i].kind = GivenNot
	}
	for {
		column, ok := p.name(p.next())
		if !ok || !p.assigns() {
			return
		}
		v := p.expression(inUpdate)
		for i, fixed := range in.Table.Fixed {
			if strings.EqualFold(fixed, column.last) && !p.takesRow(&v, column.last, alias) {
				u.set[i] = p.assigned(&v, column.last, own)
			}
		}
		if !p.isPunct(p.peek(), ',') {
			break
		}
		p.next()
	}
	if slices.ContainsFunc(u.set, func(g given) bool { return g.kind != GivenNot }) {
		p.plan.Updates = append(p.plan.Updates, u)
	}
}

// takesRow reports whether a value is the INSERT's value of the column: VALUES(user_id), or
// new.user_id with a row alias.
func (p *parser) takesRow(v *value, column string, alias *rowAlias) bool {
	tokens := p.inner(v)
	if n := len(tokens); n > 3 && (p.is(tokens[0], "VALUES", "VALUE")) &&
		p.isPunct(tokens[1], '(') && p.isPunct(tokens[n-1], ')') {
		of, ok := p.nameOf(tokens[2 : n-1])
		return ok && strings.EqualFold(of.last, column)
	}
	of, ok := p.nameOf(tokens)
	return ok && alias != nil && alias.means(of, column)
}
