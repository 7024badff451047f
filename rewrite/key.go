package rewrite

import "github.com/shardkey/shardkey/internal/sqltoken"

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
	inSelect               // the items of a SELECT
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
	if source == Expression || source == Literal || source == Unknown {
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
		return p.expressionKey(in, v.start)
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
			strings, unsigned, err = in.Table.keyColumn(in)
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

// keyColumn reports whether the key column of an insert's table stores strings, and whether it is
// unsigned.
func (t *Table) keyColumn(of *Insert) (strings, unsigned bool, err error) {
	if t.KeyColumnUnknown {
		return false, false, &Needs{KeyColumn: true, Schema: of.Schema, Name: of.Name}
	}
	return t.InStrings, t.Unsigned, nil
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

// isNull reports whether tokens are NULL, DEFAULT, MariaDB's IGNORE, which means DEFAULT, or
// MariaDB's \N.
func (p *parser) isNull(tokens []sqltoken.Token) bool {
	switch len(tokens) {
	case 1:
		return p.Is(tokens[0], "NULL", "DEFAULT") || p.Is(tokens[0], "IGNORE") && !p.isMySQL()
	case 2:
		return p.IsPunct(tokens[0], '\\') && p.Keyword(tokens[1]) == "N"
	}
	return false
}

// around is SQL around an expression that is a key.
type around struct{ before, after string }

// The server evaluates an expression once and in place, and refuses NULL and 0 with error 1690, which
// IGNORE doesn't make a warning. (COALESCE(NULLIF(expression, 0), …) would evaluate it twice, which
// counts @n := @n + 1 twice.) In the two's complement ~x + 1 is −x, and ~0 + 1 is out of range.
var (
	checkedSigned   = around{"CAST(~(~IFNULL(CAST((", ") AS SIGNED), 0) + 1) + 1 AS SIGNED)"}
	checkedUnsigned = around{"~(~IFNULL(CAST(GREATEST(CAST((", ") AS DECIMAL(20)), 0) AS UNSIGNED), 0) + 1) + 1"}
	// These are for a sql_mode in which 0 is a valid key.
	notNullSigned   = around{"COALESCE(CAST((", ") AS SIGNED), " + outOfRange + ")"}
	notNullUnsigned = around{"COALESCE(CAST((", ") AS DECIMAL(20)), " + outOfRange + ")"}
)

// expressionKey determines how a key that is an expression at a position is handled.
func (p *parser) expressionKey(in *Insert, at int) (KeySource, error) {
	// Vitess evaluates only plain expressions for a sharding column.
	if in.Table.KeepExplicit || in.Table.Strings || p.server() == serverVitess {
		return Unknown, nil
	}
	strings, unsigned, err := in.Table.keyColumn(in)
	if err != nil || strings {
		return Unknown, err
	}
	p.plan.consulted |= sqltoken.NoAutoValueOnZero
	switch zero := p.Mode&sqltoken.NoAutoValueOnZero != 0; {
	case zero && unsigned:
		in.checked = &notNullUnsigned
	case zero:
		in.checked = &notNullSigned
	case unsigned:
		in.checked = &checkedUnsigned
	default:
		in.checked = &checkedSigned
	}
	return Expression, p.modeKnown(in, &value{start: at})
}
