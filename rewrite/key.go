package rewrite

import (
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// value is an expression. It has the tokens without brackets around them, if they are few enough
// for a literal.
type value struct {
	start, end int
	tokens     [6]sqltoken.Token
	n          int
	open       int  // number of brackets at its beginning
	closed     int  // number of these brackets that are closed
	complex    bool // it isn't only tokens within brackets
	params     int  // number of placeholders before it
}

func (v *value) isEmpty() bool { return v.start == v.end }

// keyValue parses the key's value in a row of VALUES.
func (r *rowReader) keyValue() error {
	v := r.expression(inRow)
	if v.isEmpty() {
		r.in.Invalid = true // no value between the commas
		return nil
	}
	return r.addKey(r.in, &v)
}

// clause is the kind of clause that contains an expression.
type clause uint8

const (
	inRow    clause = iota // a row of VALUES
	inSet                  // INSERT … SET
	inUpdate               // the assignments of ON DUPLICATE KEY UPDATE
)

// expression parses tokens up to a comma, closing bracket or semicolon outside of brackets. In
// assignments it also stops at the word that begins the next clause. It doesn't consume the token
// that it stops at.
func (p *parser) expression(in clause) value {
	v := value{params: p.Params, start: p.Pos, end: p.Pos}
	for depth := 0; ; {
		before := p.Prev
		outside := depth == 0
		t := p.take(&depth)
		if t.Kind == sqltoken.EOF || t.Kind == sqltoken.Bad || outside && (p.IsPunct(t, ',') || p.IsPunct(t, ')') ||
			p.IsPunct(t, ';') || in != inRow && !v.isEmpty() && p.endsAssignment(in, before, t)) {
			p.Unread()
			return v
		}
		p.add(&v, t, depth)
	}
}

// add adds the next token to a value. depth is the number of open brackets after it.
func (p *parser) add(v *value, t sqltoken.Token, depth int) {
	if v.isEmpty() {
		v.start = t.Start
	}
	v.end = t.End
	switch {
	case p.IsPunct(t, '(') && v.n == 0 && v.closed == 0:
		v.open++
	case p.IsPunct(t, ')') && depth < v.open:
		v.closed++
	case v.closed > 0, v.n == len(v.tokens):
		v.complex = true
	default:
		v.tokens[v.n] = t
		v.n++
	}
}

// addKey determines how a row's key is handled.
func (p *parser) addKey(in *Insert, v *value) error {
	source, err := p.keySource(in, v)
	arg := v.params
	switch source {
	case Expression:
		arg = p.Params // the key's placeholder follows the expression's
	case Literal, Unknown:
		arg = -1
	}
	p.addRow(in, Row{source, arg}, place{uint32(v.start), uint32(v.end)})
	return err
}

func (p *parser) keySource(in *Insert, v *value) (KeySource, error) {
	tokens := p.inner(v)
	if len(tokens) == 1 && tokens[0].Kind == sqltoken.Param {
		return Argument, p.modeKnown(in, v) // for a bound 0, the execution checks the session's sql_mode
	}
	l, ok := p.literal(tokens)
	switch null := p.isNull(tokens); {
	case null && len(tokens) > 1 && p.isMySQL():
		return Unknown, p.fail(v.start, in, "MySQL 8 and later refuse \\N; write NULL")
	case null && !in.Table.KeepExplicit:
		return Generated, nil
	case null:
		return Unknown, nil
	case !ok:
		return p.expressionKey(in, v)
	case in.Table.KeepExplicit:
		return Literal, nil
	}
	return p.literalKey(in, v, l)
}

// literalKey determines how a literal key is handled.
func (p *parser) literalKey(in *Insert, v *value, l literal) (KeySource, error) {
	given, number, consulted := any(l), readNumber(l.text), sqltoken.Mode(0)
	if !l.number {
		given = l.text
	}
	asks, reason, err := in.asksForKey(given, len(in.Rows),
		func() (sqltoken.Mode, error) {
			if consulted |= sqltoken.NoAutoValueOnZero; given == "" {
				consulted |= sqltoken.EmptyStringIsNull
			}
			return p.Mode, nil
		},
		func() (strings, unsigned bool, err error) {
			strings, unsigned, err = p.keyColumn(in)
			if unsigned || !l.number && number.zero {
				consulted |= sqltoken.Strict
			}
			return strings, unsigned, err
		})
	p.plan.consulted |= consulted
	switch {
	case err != nil:
		return Unknown, err
	case reason != "":
		return Unknown, p.fail(v.start, in, reason)
	case consulted == 0 && asks:
		return Generated, nil
	case consulted == 0:
		return Literal, nil
	case asks:
		return Generated, p.modeKnown(in, v)
	case l.number || number.whole:
		return Literal, p.modeKnown(in, v)
	}
	return Unknown, p.modeKnown(in, v) // the server converts or refuses it
}

// keyColumn reports whether the key column stores strings, and whether it is unsigned.
func (p *parser) keyColumn(in *Insert) (strings, unsigned bool, err error) {
	if p.opts.AskKeyColumn == nil {
		return false, in.Table.Unsigned, nil
	}
	return p.opts.AskKeyColumn(in)
}

// modeKnown refuses a key that may be 0 in a statement that sets sql_mode for itself, since
// sql_mode decides whether 0 requests a key.
func (p *parser) modeKnown(in *Insert, v *value) error {
	if !p.modeSet || in.Table.KeepExplicit || in.Table.Strings {
		return nil
	}
	return p.fail(v.start, in, "the statement changes sql_mode, which decides whether 0 requests a key; set it for the session, or leave the key out")
}

// inner returns the tokens of a value without brackets around them: (NULL) is NULL. For (DEFAULT)
// it returns nil, since the servers refuse that.
func (p *parser) inner(v *value) []sqltoken.Token {
	if v.complex || v.n == 0 || v.open > 0 && (p.Is(v.tokens[0], "DEFAULT", "IGNORE")) {
		return nil
	}
	return v.tokens[:v.n]
}

// isNull reports whether tokens are NULL, DEFAULT, MariaDB's IGNORE, which means DEFAULT, or \N,
// which MariaDB and MySQL 5.7 support.
func (p *parser) isNull(tokens []sqltoken.Token) bool {
	switch len(tokens) {
	case 1:
		return p.Is(tokens[0], "NULL", "DEFAULT") || p.Is(tokens[0], "IGNORE") && !p.isMySQL()
	case 2:
		return p.IsPunct(tokens[0], '\\') && p.Keyword(tokens[1]) == "N"
	}
	return false
}

// fallback is SQL that evaluates to an expression's value, or to a generated key if the expression
// requests one: before expression between key after. The server evaluates the expression once and
// in place. (NULLIF would evaluate it twice.)
type fallback struct{ before, between, after string }

var (
	// fallbackZero is for integer keys, which 0 and NULL request. It builds a list of the number,
	// rounded as the column would and without leading zeros, and the key. For 0 the list's first
	// element is empty and its comma is trimmed. The first element of the list is the key:
	//
	//	7.5 → 8 → 8,KEY → 8      0.4 → 0 → ,KEY → KEY      NULL → KEY
	//
	// All values are strings of digits, which lose no digits as floats would.
	fallbackZero = fallback{"SUBSTRING_INDEX(TRIM(LEADING ',' FROM CONCAT_WS(',', TRIM(LEADING '0' FROM CAST((", ") AS DECIMAL(20))), ", ")), ',', 1)"}
	// fallbackBelow is fallbackZero for an unsigned column that stores negative numbers as 0.
	fallbackBelow = fallback{"SUBSTRING_INDEX(TRIM(LEADING ',' FROM CONCAT_WS(',', TRIM(LEADING '0' FROM GREATEST(CAST((", ") AS DECIMAL(20)), 0)), ", ")), ',', 1)"}
	// fallbackNull is for integer keys if 0 is a valid key.
	fallbackNull = fallback{"COALESCE(CAST((", ") AS DECIMAL(20)), ", ")"}
	// fallbackEmpty is for string keys, which NULL and '' request. LENGTH distinguishes '' from blanks
	// in every collation. CONCAT is for MySQL 5.6, where a placeholder can't have an alias.
	fallbackEmpty = fallback{
		"(SELECT IF(LENGTH(`shardkey_given`) > 0, `shardkey_given`, `shardkey_key`) FROM (SELECT (",
		") AS `shardkey_given`, CONCAT(", ") AS `shardkey_key` LIMIT 1) AS `shardkey_row`)",
	}
)

// expressionKey determines how a key that is an expression is handled.
func (p *parser) expressionKey(in *Insert, v *value) (KeySource, error) {
	if in.Table.KeepExplicit || p.askServer().Name == serverVitess {
		return Unknown, nil // Vitess evaluates only plain expressions for a sharding column
	}
	switch {
	case in.Table.Untyped:
		return Unknown, nil
	case in.Table.Strings:
		in.fallback = &fallbackEmpty
		return Expression, nil
	}
	if !p.isExact(v) {
		return Unknown, p.fail(v.start, in, "the key is an expression of unknown type, "+
			"which the server may round in another way; write CAST(expression AS SIGNED) or a value")
	}
	_, unsigned, err := p.keyColumn(in)
	if err != nil {
		return Unknown, err
	}
	p.plan.consulted |= sqltoken.NoAutoValueOnZero
	if unsigned {
		p.plan.consulted |= sqltoken.Strict
	}
	switch {
	case p.Mode&sqltoken.NoAutoValueOnZero != 0:
		in.fallback = &fallbackNull
	case unsigned && (in.Ignore || p.Mode&sqltoken.Strict == 0):
		in.fallback = &fallbackBelow
	default:
		in.fallback = &fallbackZero
	}
	return Expression, p.modeKnown(in, v)
}

// isExact reports whether an expression is certainly an integer or a decimal, which the fallback
// converts as the column does. It accepts arithmetic with such numbers, CAST and CONVERT to an
// integer, LAST_INSERT_ID and UUID_SHORT. The syntax is the server's concern.
func (p *parser) isExact(v *value) bool {
	r := p.plan.reader(v.start, v.end)
	for {
		t := r.Next()
		switch {
		case t.Kind == sqltoken.EOF:
			return true
		case t.Kind == sqltoken.Number:
			l := literal{r.Text[t.Start:t.End], true}
			if _, base := l.radix(); base != 0 || l.isFloat() {
				return false
			}
		case t.Kind == sqltoken.Punct && strings.IndexByte("+-*/%()", r.Text[t.Start]) >= 0, r.Is(t, "DIV", "MOD"):
		case !r.Is(t, "LAST_INSERT_ID", "UUID_SHORT", "CAST", "CONVERT") || !r.IsPunct(r.Peek(), '('):
			return false
		default:
			last, ok := r.arguments()
			if !ok || r.Is(t, "CAST", "CONVERT") && !sqltoken.Is(last, "SIGNED", "UNSIGNED") {
				return false
			}
		}
	}
}

// arguments parses the arguments of a function. It returns the final word SIGNED or UNSIGNED, which
// INTEGER may follow.
func (p *parser) arguments() (last string, ok bool) {
	p.Next()
	for depth := 1; ; {
		before := p.Prev
		switch t := p.Next(); {
		case t.Kind == sqltoken.EOF, t.Kind == sqltoken.Bad:
			return "", false
		case p.IsPunct(t, '('):
			depth++
		case p.IsPunct(t, ')'):
			if depth--; depth == 0 {
				return last, true
			}
		case depth == 1 && (p.IsPunct(before, ',') || p.Is(before, "AS")):
			last = p.Keyword(t)
		case depth == 1 && !p.Is(t, "INTEGER") && !p.Is(t, "INT"):
			last = ""
		}
	}
}
