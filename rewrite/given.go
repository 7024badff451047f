package rewrite

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Value is a value of a row, or of an assignment. [Unknown] is that of an expression or DEFAULT, or
// of a column that the statement doesn't list.
type Value struct {
	From KeySource // Argument, Literal or Unknown; for an assignment also Expression
	Arg  int       // the index of the argument
	// Literal is an int64, uint64, *big.Int or string, or nil for NULL.
	Literal any
}

// given is the form of a value. Its field at is the index of the argument or the position of the
// literal. It has 32 bits, since servers accept no statement of 2 GiB.
type given struct {
	form givenForm
	at   int32
}

type givenForm uint8

const (
	givenUnknown givenForm = iota
	givenLiteral
	givenArgument
	givenExpression // assigned in ON DUPLICATE KEY UPDATE
	givenNot        // not assigned there
)

// Value returns a row's value of the column [Table].Recorded[column].
func (plan *Plan) Value(row, column int) Value {
	in := plan.Insert
	width := len(in.Table.Recorded)
	i := row*width + column
	if column >= width || i >= len(in.given) {
		return Value{From: Unknown}
	}
	if in.Select != "" {
		return plan.resolve(in.given[i], inSelect)
	}
	return plan.resolve(in.given[i], inSet)
}

// resolve returns a value within a clause.
func (plan *Plan) resolve(g given, in clause) Value {
	switch g.form {
	case givenArgument:
		return Value{From: Argument, Arg: int(g.at)}
	case givenLiteral:
		if value, ok := plan.literalAt(int(g.at), in); ok {
			return Value{From: Literal, Literal: value}
		}
	case givenExpression:
		return Value{From: Expression}
	}
	return Value{From: Unknown}
}

// literalAt parses the literal at a position within a clause.
func (plan *Plan) literalAt(at int, in clause) (value any, ok bool) {
	r := plan.reader(at, len(plan.text))
	v := r.expression(in)
	if in == inSelect {
		v, _ = r.withoutAlias(v)
	}
	tokens := r.inner(&v)
	if len(tokens) == 1 && r.Is(tokens[0], "NULL") || len(tokens) == 2 && r.isNull(tokens) {
		return nil, true
	}
	l, ok := r.literal(tokens)
	switch _, base := l.radix(); {
	case !ok, base != 0, r.Is(tokens[0], "X"):
		return nil, false // the server decides whether it is a number or a string
	case !l.number:
		return l.text, r.Charset == sqltoken.UTF8 || sqltoken.IsASCII(l.text)
	}
	if n := sqltoken.ParseInteger(l.text, 10); n != nil {
		return n, true
	}
	const longest = 80 // a DECIMAL column holds 65 digits; conversion isn't linear
	if len(l.text) > longest || strings.Trim(l.text, "-0123456789") != "" {
		return nil, false
	}
	n, ok := new(big.Int).SetString(l.text, 10)
	return n, ok
}

// noted returns the index in Table.Recorded of a column in the rows' list, −1 if it isn't there.
func (p *parser) noted(in *Insert, column string) int {
	return slices.IndexFunc(in.Table.Recorded, func(name string) bool { return p.same(name, column) })
}

// givenBy returns the form of a value. A value longer than a literal is unknown.
func (p *parser) givenBy(v *value) given {
	switch tokens := p.inner(v); {
	case len(tokens) == 1 && tokens[0].Kind == sqltoken.Param:
		return given{givenArgument, int32(v.params)}
	case len(tokens) > 0:
		return given{givenLiteral, int32(v.start)}
	}
	return given{}
}

// maxExplicit is the maximum length of a statement for ExplicitNumbers.
const maxExplicit = 16 << 10

// ExplicitNumbers returns the numbers among the values of an INSERT or REPLACE, NaN for one that only the
// server knows. The result plain is set if all values are literals, placeholders, NULL, DEFAULT or functions
// without arguments, and nothing follows them but RETURNING with the key column. For a plain statement, an
// insert ID that isn't among the values was generated. A long statement, or one without VALUES, isn't plain.
func (plan *Plan) ExplicitNumbers() (numbers []float64, plain bool) {
	if len(plan.text) > maxExplicit || plan.charset.Readable(plan.text) != plan.text {
		return nil, false
	}
	end := len(plan.text)
	if in := plan.Insert; in != nil && in.ReturnsKey {
		end = in.returningAt
	}
	return plan.reader(0, end).givenNumbers()
}

func (p *parser) givenNumbers() (numbers []float64, plain bool) {
	for word := ""; !sqltoken.Is(word, "VALUES") && !sqltoken.Is(word, "VALUE") || !p.IsPunct(p.Peek(), '(') && !p.Is(p.Peek(), "ROW"); {
		t := p.Next()
		word = p.Keyword(t)
		if t.Kind == sqltoken.EOF || t.Kind == sqltoken.Bad || t.Kind == sqltoken.Number || sqltoken.Is(word, "SELECT") || p.IsPunct(t, ';') {
			return nil, false
		}
	}
	for {
		before, number := p.Prev, 0.0
		t := p.Next()
		switch {
		case t.Kind == sqltoken.EOF:
			return numbers, p.Unsure == ""
		case t.Kind == sqltoken.Param, p.IsPunct(t, '('), p.IsPunct(t, ')'), p.IsPunct(t, ','):
		case t.Kind == sqltoken.Number, t.Kind == sqltoken.String && (p.IsPunct(before, '(') || p.IsPunct(before, ',')):
			number = p.givenNumber(t)
		case p.IsPunct(t, '-') && p.Peek().Kind == sqltoken.Number:
			number = -p.givenNumber(p.Next())
		case p.Is(t, "TRUE"):
			number = 1
		case t.Kind != sqltoken.Word, !p.plainWord(t):
			return nil, false
		case p.IsPunct(p.Prev, ')') && !p.isNoKey(t):
			number = math.NaN()
		}
		if number != 0 {
			numbers = append(numbers, number)
		}
	}
}

// AssignsArgs reports whether each placeholder is the whole value of a column, in a row or in an
// assignment. Nothing else of the statement then depends on the type of an argument. For a statement
// with a query it returns false.
func (plan *Plan) AssignsArgs() bool {
	if plan.NumArgs == 0 || plan.charset.Readable(plan.text) != plan.text {
		return plan.NumArgs == 0
	}
	return plan.reader(0, len(plan.text)).assignsArgs()
}

func (p *parser) assignsArgs() bool {
	inRow, target := false, false // target: the tokens since the last comma are a column's name
	for depth := 0; ; {
		before := p.Prev
		t := p.take(&depth)
		begins := false // t is before a value
		switch {
		case t.Kind == sqltoken.EOF, t.Kind == sqltoken.Bad:
			return t.Kind == sqltoken.EOF
		case t.Kind == sqltoken.Param, p.Is(t, "SELECT", "TABLE"):
			return false
		case depth == 1 && p.IsPunct(t, '('):
			inRow = p.Is(before, "VALUES", "VALUE", "ROW") || p.IsPunct(before, ',')
			begins = inRow
		case depth == 1 && p.IsPunct(t, ','):
			begins = inRow
		case depth == 0 && (p.IsPunct(t, ',') || p.Is(t, "SET", "UPDATE")):
			target = true
		case depth == 0 && p.IsPunct(t, '='):
			begins, target = target, false
		case t.Kind != sqltoken.Word && t.Kind != sqltoken.Quoted && !p.IsPunct(t, '.') && !p.IsPunct(t, ':'):
			target = false
		}
		if begins && p.Peek().Kind == sqltoken.Param {
			p.Next()
			if next := p.Peek(); !p.EndsStatement(next) && !p.IsPunct(next, ',') && !p.IsPunct(next, ')') && !p.Is(next, "ON", "AS", "RETURNING") {
				return false
			}
		}
	}
}

func (p *parser) givenNumber(t sqltoken.Token) float64 {
	if t.Kind == sqltoken.String {
		return sqltoken.LeadingNumber(sqltoken.UnquoteString(p.Text[t.Start:t.End], p.Mode))
	}
	text := p.Text[t.Start:t.End]
	if n, err := strconv.ParseUint(text, 0, 64); err == nil && (strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0b")) {
		return float64(n)
	}
	return sqltoken.LeadingNumber(text)
}

// plainWord reports whether a word among the values is NULL, DEFAULT, FALSE, the ROW of a row, or a
// function without arguments. It consumes the function's brackets.
func (p *parser) plainWord(t sqltoken.Token) bool {
	word := p.Keyword(t)
	if sqltoken.Is(word, "NULL", "DEFAULT", "FALSE", "ROW") {
		return !sqltoken.Is(word, "DEFAULT") || !p.IsPunct(p.Peek(), '(')
	}
	if p.IsPunct(p.Peek(), '(') {
		p.Next()
		return p.IsPunct(p.Next(), ')')
	}
	return strings.HasPrefix(strings.ToUpper(word), "CURRENT_") || strings.HasPrefix(strings.ToUpper(word), "UTC_")
}

// isNoKey reports whether a function without arguments returns a time, a string or LAST_INSERT_ID(), but no
// number that may be another key.
func (p *parser) isNoKey(t sqltoken.Token) bool {
	return p.Is(t, "NOW", "SYSDATE", "CURDATE", "CURTIME", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME",
		"UTC_TIMESTAMP", "UTC_DATE", "UTC_TIME", "UUID", "USER", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "DATABASE", "SCHEMA",
		"LAST_INSERT_ID")
}

// Assigned returns the value that ON DUPLICATE KEY UPDATE assigns to the column
// [Table].Fixed[column], with [Insert].UpdatesFixed. ok is false if it doesn't change the column.
func (plan *Plan) Assigned(column int) (v Value, ok bool) {
	g := plan.Insert.assigned[column]
	return plan.resolve(g, inUpdate), g.form != givenNot
}

// assigns parses the = or := of an assignment.
func (p *parser) assigns() bool {
	t := p.Next()
	if p.IsPunct(t, ':') {
		t = p.Next()
	}
	return p.IsPunct(t, '=')
}

// assigned returns the form of the value for a column. own reports whether a qualified name with
// the column's last part means this column.
func (p *parser) assigned(v *value, column string, own func(name) bool) given {
	g, tokens := p.givenBy(v), p.inner(v)
	_, literal := p.literal(tokens)
	switch {
	case g.form == givenArgument, literal, len(tokens) == 1 && p.Is(tokens[0], "NULL"), p.isTemporal(tokens):
		return g
	case p.isOwn(tokens, column, own):
		return given{form: givenNot}
	}
	return given{form: givenExpression}
}

// isOwn reports whether a value is the column itself: user_id, t.user_id, or
// LAST_INSERT_ID(user_id).
func (p *parser) isOwn(tokens []sqltoken.Token, column string, own func(name) bool) bool {
	if n := len(tokens); n > 3 && p.Is(tokens[0], "LAST_INSERT_ID") && p.IsPunct(tokens[1], '(') && p.IsPunct(tokens[n-1], ')') {
		tokens = tokens[2 : n-1]
	}
	of, ok := p.nameOf(tokens)
	return ok && p.same(of.last, column) && own(of)
}

// nameOf returns the name that consists of tokens.
func (p *parser) nameOf(tokens []sqltoken.Token) (n name, ok bool) {
	if len(tokens) == 0 {
		return name{}, false
	}
	r := p.plan.reader(tokens[0].Start, tokens[len(tokens)-1].End)
	n, ok = r.name(r.Next())
	return n, ok && r.AtEnd()
}

// isTemporal reports whether tokens are a temporal literal such as DATE '2026-02-03'.
func (p *parser) isTemporal(tokens []sqltoken.Token) bool {
	if len(tokens) != 2 || tokens[1].Kind != sqltoken.String {
		return false
	}
	return p.Is(tokens[0], "DATE", "TIMESTAMP", "TIME")
}

// rowAlias has the aliases of an INSERT's row and of its columns.
type rowAlias struct {
	name    string
	columns []string // empty: the columns' names
	of      []string // the listed columns of the INSERT
}

// means reports whether a name means a column of the INSERT's row.
func (p *parser) means(a *rowAlias, n name, column string) bool {
	if n.parts > 1 && !p.same(n.qualifier, a.name) {
		return false
	}
	for i, c := range a.columns {
		if p.same(c, n.last) {
			return i < len(a.of) && p.same(a.of[i], column)
		}
	}
	return n.parts > 1 && len(a.columns) == 0 && p.same(n.last, column)
}

// duplicate parses the assignments of ON DUPLICATE KEY UPDATE to fixed columns, and returns to the
// position before them.
func (p *parser) duplicate(in *Insert, alias *rowAlias) {
	if len(in.Table.Fixed) == 0 {
		return
	}
	back, last, reads, sets := p.LookAhead(), p.last, p.reads, p.setsLast
	defer func() {
		back()
		p.last, p.reads, p.setsLast = last, reads, sets
	}()
	for range 3 { // skip DUPLICATE KEY UPDATE
		p.Next()
	}
	own := func(of name) bool { return of.parts == 1 || p.same(of.qualifier, in.Name) }
	in.assigned = slices.Repeat([]given{{form: givenNot}}, len(in.Table.Fixed))
	for {
		column, ok := p.name(p.Next())
		if !ok || !p.assigns() {
			return
		}
		v := p.expression(inUpdate)
		for i, fixed := range in.Table.Fixed {
			if p.same(fixed, column.last) && !p.takesRow(&v, column.last, alias) {
				in.assigned[i] = p.assigned(&v, column.last, own)
			}
		}
		if !p.IsPunct(p.Peek(), ',') {
			break
		}
		p.Next()
	}
	in.UpdatesFixed = slices.ContainsFunc(in.assigned, func(g given) bool { return g.form != givenNot })
}

// takesRow reports whether a value is the INSERT's value of the column: VALUES(user_id), or
// new.user_id with a row alias.
func (p *parser) takesRow(v *value, column string, alias *rowAlias) bool {
	tokens := p.inner(v)
	if n := len(tokens); n > 3 && (p.Is(tokens[0], "VALUES", "VALUE")) &&
		p.IsPunct(tokens[1], '(') && p.IsPunct(tokens[n-1], ')') {
		of, ok := p.nameOf(tokens[2 : n-1])
		return ok && p.same(of.last, column)
	}
	of, ok := p.nameOf(tokens)
	return ok && alias != nil && p.means(alias, of, column)
}
