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

// given are the values of one column, one a row: the number of the placeholder, or
// where the value begins in the text.
type given struct {
	places []int32
}

// A place that is negative is that of a text, counted from the end: −2 is
// position 0. Texts of 2 GiB are longer than the server takes.
const givenUnknown = -1

func (g *given) param(param int)   { g.places = append(g.places, int32(param)) }
func (g *given) text(position int) { g.places = append(g.places, int32(-2-position)) }
func (g *given) unknown(rows int) {
	for len(g.places) < rows {
		g.places = append(g.places, givenUnknown)
	}
}

// Given tells how a row gives the value of the column Table.Sharding[column]: by the
// argument param, from 0, or as a literal with this value, an int64, uint64,
// *big.Int, string, or nil for NULL.
func (p *Plan) Given(in *Insert, column, row int) (kind GivenKind, param int, value any) {
	if column >= len(in.given) || row >= len(in.given[column].places) {
		return GivenUnknown, 0, nil
	}
	switch at := in.given[column].places[row]; {
	case at >= 0:
		return GivenParam, int(at), nil
	case at != givenUnknown:
		if value, ok := p.literalAt(int(-2-at), inSet); ok {
			return GivenLiteral, 0, value
		}
	}
	return GivenUnknown, 0, nil
}

// literalAt reads the literal that begins at a place within a clause.
func (p *Plan) literalAt(at int, in clause) (value any, ok bool) {
	r := &parser{answered: true, server: p.dialect, lexer: lexer{text: p.text, pos: at, mode: p.mode, charset: p.charset}, plan: &Plan{}}
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
		in.given = make([]given, len(in.Table.Sharding))
	}
	g := &in.given[column]
	tokens := p.inner(v)
	switch {
	case len(tokens) == 1 && tokens[0].kind == tokenParam:
		g.param(v.params)
	case len(tokens) == 0:
		g.unknown(len(g.places) + 1)
	default:
		g.text(v.start)
	}
}
