package testrouter

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Expression is an expression of integers and strings, as a tree that can be written in
// Groovy and computed by definition.
type Expression struct {
	Op      string // "column", "number", "text", an operator, or a method
	Column  string
	Literal string // of a text
	Number  int64  // of a number; the width of padLeft
	Args    []*Expression
}

// value is an Integer (bits 32) or a Long (bits 64), or the text of one.
type value struct {
	n    *big.Int
	bits uint
	text string
}

// binding says how much an operator binds.
var binding = map[string]int{"?": 1, "|": 2, "^": 3, "&": 4, "==": 5, "<": 6, "<<": 7, ">>": 7, ">>>": 7, "+": 8, "-": 8, "*": 9, "%": 9, "column": 12, "number": 12, "text": 12}

// Groovy writes the expression with as few brackets as it can.
func (e *Expression) Groovy() string {
	arg := func(i, least int) string {
		text := e.Args[i].Groovy()
		if b, ok := binding[e.Args[i].Op]; ok && b < least {
			return "(" + text + ")"
		}
		return text
	}
	b := binding[e.Op]
	switch e.Op {
	case "column":
		return e.Column
	case "number":
		return strconv.FormatInt(e.Number, 10)
	case "Math.abs", "Math.floorMod", "Long.valueOf":
		var args []string
		for _, a := range e.Args {
			args = append(args, a.Groovy())
		}
		return e.Op + "(" + strings.Join(args, ", ") + ")"
	case "text":
		return "'" + e.Literal + "'"
	case "startsWith", "endsWith", "contains", "indexOf", "substring":
		return arg(0, 12) + "." + e.Op + "(" + e.Args[1].Groovy() + ")"
	case "padLeft":
		return arg(0, 12) + ".toString().padLeft(" + strconv.FormatInt(e.Number, 10) + ", '0')"
	case "intdiv":
		return arg(0, 12) + ".intdiv(" + e.Args[1].Groovy() + ")"
	case "hashCode", "abs", "longValue", "intValue", "length", "toUpperCase":
		return arg(0, 12) + "." + e.Op + "()"
	case "?":
		return arg(0, 2) + " ? " + arg(1, 2) + " : " + arg(2, 1)
	}
	return arg(0, b) + " " + e.Op + " " + arg(1, b+1)
}

// Text computes the expression's text for a row.
func (e *Expression) Text(row map[string]any, integer map[string]bool) (string, error) {
	v, err := e.value(row, integer)
	if err != nil {
		return "", err
	}
	if v.n == nil {
		return v.text, nil
	}
	return v.n.String(), nil
}

func (e *Expression) value(row map[string]any, integer map[string]bool) (value, error) {
	switch e.Op {
	case "column":
		switch v := row[e.Column].(type) {
		case int64:
			if integer[e.Column] {
				return value{n: big.NewInt(v), bits: 32}, nil
			}
			return value{n: big.NewInt(v), bits: 64}, nil
		case string:
			return value{text: v}, nil
		}
		return value{}, errors.New("no value")
	case "number":
		if e.Number > 1<<31-1 {
			return value{n: big.NewInt(e.Number), bits: 64}, nil
		}
		return value{n: big.NewInt(e.Number), bits: 32}, nil
	case "text":
		return value{text: e.Literal}, nil
	case "?":
		condition, err := e.Args[0].value(row, integer)
		if err != nil {
			return value{}, err
		}
		if condition.n.Sign() != 0 {
			return e.Args[1].value(row, integer)
		}
		return e.Args[2].value(row, integer)
	}
	args := make([]value, len(e.Args))
	for i, a := range e.Args {
		var err error
		if args[i], err = a.value(row, integer); err != nil {
			return value{}, err
		}
	}
	return e.apply(args)
}

func (e *Expression) apply(args []value) (value, error) {
	a := args[0]
	if a.n == nil {
		return e.applyText(args)
	}
	switch e.Op {
	case "hashCode":
		return value{n: hashOf(a.n.Int64(), a.bits == 32), bits: 32}, nil
	case "Math.abs", "abs":
		return value{n: wrap(new(big.Int).Abs(a.n), a.bits), bits: a.bits}, nil
	case "longValue", "Long.valueOf":
		return value{n: a.n, bits: 64}, nil
	case "intValue":
		return value{n: wrap(a.n, 32), bits: 32}, nil
	case "padLeft":
		text := a.n.String()
		for int64(len(text)) < e.Number {
			text = "0" + text
		}
		return value{text: text}, nil
	}
	b := args[1]
	if b.n == nil {
		return value{}, errors.New("a text is no number")
	}
	n, bits := new(big.Int), max(a.bits, b.bits)
	switch e.Op {
	case "+":
		n.Add(a.n, b.n)
	case "-":
		n.Sub(a.n, b.n)
	case "*":
		n.Mul(a.n, b.n)
	case "%", "intdiv", "Math.floorMod":
		if b.n.Sign() == 0 {
			return value{}, errors.New("division by zero")
		}
		switch e.Op {
		case "%":
			n.Rem(a.n, b.n)
		case "intdiv":
			n.Quo(a.n, b.n)
		default:
			n.Rem(a.n, b.n)
			if n.Sign() != 0 && n.Sign() != b.n.Sign() {
				n.Add(n, b.n)
			}
		}
	case "&":
		n.And(a.n, b.n)
	case "|":
		n.Or(a.n, b.n)
	case "^":
		n.Xor(a.n, b.n)
	case "<<", ">>", ">>>":
		bits = a.bits
		distance := uint(new(big.Int).And(b.n, big.NewInt(int64(bits)-1)).Uint64())
		switch e.Op {
		case "<<":
			n.Lsh(a.n, distance)
		case ">>":
			n.Rsh(a.n, distance)
		default:
			n.Rsh(new(big.Int).Mod(a.n, new(big.Int).Lsh(big.NewInt(1), bits)), distance)
		}
	case "==":
		return value{n: truth(a.n.Cmp(b.n) == 0), bits: 32}, nil
	case "<":
		return value{n: truth(a.n.Cmp(b.n) < 0), bits: 32}, nil
	default:
		return value{}, fmt.Errorf("no operator %s", e.Op)
	}
	return value{n: wrap(n, bits), bits: bits}, nil
}

// applyText calls the methods of strings, which count UTF-16 units.
func (e *Expression) applyText(args []value) (value, error) {
	units := func(i int) []uint16 { return utf16.Encode([]rune(args[i].text)) }
	number := func(n int) (value, error) { return value{n: big.NewInt(int64(n)), bits: 32}, nil }
	own := units(0)
	if len(args) == 1 {
		switch e.Op {
		case "hashCode":
			return value{n: hashOf(args[0].text, false), bits: 32}, nil
		case "length":
			return number(len(own))
		case "toUpperCase":
			return value{text: strings.ToUpper(args[0].text)}, nil
		}
		return value{}, fmt.Errorf("a text has no %s", e.Op)
	}
	if e.Op == "substring" && args[1].n != nil {
		from := args[1].n.Int64()
		if from < 0 || from > int64(len(own)) {
			return value{}, errors.New("substring: out of range")
		}
		rest := own[from:]
		if len(rest) > 0 && rest[0]>>10 == 0xdc00>>10 {
			return value{}, errors.New("half a character: not computed here")
		}
		return value{text: string(utf16.Decode(rest))}, nil
	}
	if args[1].n != nil {
		return value{}, fmt.Errorf("a text has no %s of a number", e.Op)
	}
	other, at := units(1), -1
	for i := len(own) - len(other); i >= 0; i-- {
		if slices.Equal(own[i:i+len(other)], other) {
			at = i
		}
	}
	switch e.Op {
	case "indexOf":
		return number(at)
	case "contains":
		return value{n: truth(at >= 0), bits: 32}, nil
	case "startsWith":
		return value{n: truth(at == 0), bits: 32}, nil
	case "endsWith":
		is := len(own) >= len(other) && slices.Equal(own[len(own)-len(other):], other)
		return value{n: truth(is), bits: 32}, nil
	}
	return value{}, fmt.Errorf("a text has no %s", e.Op)
}

// textPieces are what random strings are made of.
var textPieces = []string{"a", "b", "A", "1", "7", "-", " ", "é", "ß", "中", "文", "\U0001f600"}

// RandomString returns a random string, often one beyond ASCII.
func RandomString(r *rand.Rand) string {
	text := ""
	for range r.IntN(6) {
		text += textPieces[r.IntN(len(textPieces))]
	}
	return text
}

// RandomOfText returns a random expression of a column of strings, whose result is an
// integer.
func RandomOfText(r *rand.Rand, column string, depth int) *Expression {
	literal := func() *Expression {
		return &Expression{Op: "text", Literal: textPieces[r.IntN(len(textPieces))]}
	}
	text := &Expression{Op: "column", Column: column}
	switch r.IntN(6) {
	case 0:
		text = &Expression{Op: "toUpperCase", Args: []*Expression{text}}
	case 1:
		text = &Expression{Op: "substring", Args: []*Expression{text, {Op: "number", Number: r.Int64N(3)}}}
	}
	if depth == 0 {
		switch r.IntN(3) {
		case 0:
			return &Expression{Op: "length", Args: []*Expression{text}}
		case 1:
			return &Expression{Op: "indexOf", Args: []*Expression{text, literal()}}
		}
		return &Expression{Op: "hashCode", Args: []*Expression{text}}
	}
	inner := func() *Expression { return RandomOfText(r, column, depth-1) }
	if op := []string{"+", "*", "-", "startsWith", "endsWith", "contains"}[r.IntN(6)]; len(op) > 1 {
		condition := &Expression{Op: op, Args: []*Expression{text, literal()}}
		return &Expression{Op: "?", Args: []*Expression{condition, inner(), inner()}}
	} else {
		return &Expression{Op: op, Args: []*Expression{inner(), inner()}}
	}
}

func truth(is bool) *big.Int {
	if is {
		return big.NewInt(1)
	}
	return new(big.Int)
}

// Random returns a random expression of columns, nested at most depth deep.
func Random(r *rand.Rand, columns []string, depth int) *Expression {
	if depth == 0 || r.IntN(6) == 0 {
		if r.IntN(3) == 0 {
			return &Expression{Op: "number", Number: []int64{0, 1, 2, 3, 7, 16, 255, 4096, 1<<31 - 1, 1 << 31, 1 << 40}[r.IntN(11)]}
		}
		return &Expression{Op: "column", Column: columns[r.IntN(len(columns))]}
	}
	inner := func() *Expression { return Random(r, columns, depth-1) }
	switch ops := []string{"+", "-", "*", "%", "&", "|", "^", "<<", ">>", ">>>", "intdiv", "Math.floorMod", "Math.abs", "abs", "hashCode", "longValue", "intValue", "Long.valueOf", "?"}; ops[r.IntN(len(ops))] {
	case "?":
		condition := &Expression{Op: []string{"==", "<"}[r.IntN(2)], Args: []*Expression{inner(), inner()}}
		return &Expression{Op: "?", Args: []*Expression{condition, inner(), inner()}}
	case "Math.abs":
		return &Expression{Op: "Math.abs", Args: []*Expression{inner()}}
	case "abs":
		return &Expression{Op: "abs", Args: []*Expression{inner()}}
	case "hashCode":
		return &Expression{Op: "hashCode", Args: []*Expression{inner()}}
	case "longValue":
		return &Expression{Op: "longValue", Args: []*Expression{inner()}}
	case "intValue":
		return &Expression{Op: "intValue", Args: []*Expression{inner()}}
	case "Long.valueOf":
		return &Expression{Op: "Long.valueOf", Args: []*Expression{inner()}}
	default:
		return &Expression{Op: ops[r.IntN(12)], Args: []*Expression{inner(), inner()}}
	}
}

// Modulo returns e modulo n, whose text has so many digits.
func (e *Expression) Modulo(n int64, digits int64) *Expression {
	e = &Expression{Op: "%", Args: []*Expression{e, {Op: "number", Number: n}}}
	if digits > 1 {
		e = &Expression{Op: "padLeft", Number: digits, Args: []*Expression{e}}
	}
	return e
}

// Uses reports whether the expression has the column in it.
func (e *Expression) Uses(column string) bool {
	for _, a := range e.Args {
		if a.Uses(column) {
			return true
		}
	}
	return e.Op == "column" && e.Column == column
}
