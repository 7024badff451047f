package rewrite

import (
	"math/big"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltext"
)

// GivenKind says how a row gives the value of one of [Table.Sharding].
type GivenKind uint8

const (
	// GivenUnknown: only the server knows the value: an expression, DEFAULT, or a
	// column that the statement does not name.
	GivenUnknown GivenKind = iota
	// GivenLiteral: the text has it.
	GivenLiteral
	// GivenParam: it is an argument.
	GivenParam
	// GivenExpression: an UPDATE assigns an expression; see [Plan.Set].
	GivenExpression
	// GivenNot: an UPDATE leaves the column as it is.
	GivenNot
)

// given is how a value is given: at is the number of the argument, or where the literal
// begins in the text. (Texts of 2 GiB are longer than the server takes.)
type given struct {
	kind GivenKind
	at   int32
}

// Given tells how a row gives the value of the column Table.Sharding[column]: by the
// argument param, from 0, or as a literal with this value, an int64, uint64,
// *big.Int, string, or nil for NULL.
func (p *Plan) Given(in *Insert, column, row int) (kind GivenKind, param int, value any) {
	if column >= len(in.given) || row >= len(in.given[column]) {
		return GivenUnknown, 0, nil
	}
	return p.resolve(in.given[column][row], inSet)
}

// resolve returns the value that is given within a clause, as [Plan.Given] does.
func (p *Plan) resolve(g given, in clause) (kind GivenKind, param int, value any) {
	switch g.kind {
	case GivenParam:
		return GivenParam, int(g.at), nil
	case GivenLiteral:
		if value, ok := p.literalAt(int(g.at), in); ok {
			return GivenLiteral, 0, value
		}
		return GivenUnknown, 0, nil
	}
	return g.kind, 0, nil
}

// literalAt reads the literal that begins at a place within a clause.
func (p *Plan) literalAt(at int, in clause) (value any, ok bool) {
	r := p.reader(at, len(p.text))
	v := r.expression(in)
	tokens := r.inner(&v)
	if len(tokens) == 1 && r.is(tokens[0], "NULL") || len(tokens) == 2 && r.isNull(tokens) {
		return nil, true
	}
	l, ok := r.literal(tokens)
	switch _, base := l.radix(); {
	case !ok, base != 0, r.is(tokens[0], "X"):
		return nil, false // a number or a text, by the server
	case !l.number:
		return l.text, r.charset == CharsetUTF8 || isASCII(l.text)
	}
	if n := sqltext.ParseInteger(l.text, 10); n != nil {
		return n, true
	}
	if strings.Trim(l.text, "-0123456789") != "" {
		return nil, false
	}
	n, ok := new(big.Int).SetString(l.text, 10)
	return n, ok
}

// noted is the index in Table.Sharding of the column at a place of the list that
// the rows follow, −1 for one that is not in it.
func (in *Insert) noted(column string) int {
	for i, name := range in.Table.Sharding {
		if strings.EqualFold(name, column) {
			return i
		}
	}
	return -1
}

// note takes down how a row gives a value.
func (p *parser) note(in *Insert, column int, v *value) {
	if in.given == nil {
		in.given = make([][]given, len(in.Table.Sharding))
	}
	in.given[column] = append(in.given[column], p.givenBy(v))
}

// givenBy returns how a value is given: what is longer than a literal is unknown.
func (p *parser) givenBy(v *value) given {
	switch tokens := p.inner(v); {
	case len(tokens) == 1 && tokens[0].kind == tokenParam:
		return given{GivenParam, int32(v.params)}
	case len(tokens) > 0:
		return given{GivenLiteral, int32(v.start)}
	}
	return given{}
}
