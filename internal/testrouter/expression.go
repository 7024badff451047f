package testrouter

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Expression is an expression of integers, as a tree that can be written in Groovy
// and computed by definition.
type Expression struct {
	Op     string // "column", "number", an operator, or a method
	Column string
	Number int64 // of a number; the width of padLeft
	Args   []*Expression
}

// value is an Integer (bits 32) or a Long (bits 64), or the text of one.
type value struct {
	n    *big.Int
	bits uint
	text string
}

// binding says how much an operator binds.
var binding = map[string]int{"?": 1, "|": 2, "^": 3, "&": 4, "==": 5, "<": 6, "<<": 7, ">>": 7, ">>>": 7, "+": 8, "-": 8, "*": 9, "%": 9, "column": 12, "number": 12}

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
	case "padLeft":
		return arg(0, 12) + ".toString().padLeft(" + strconv.FormatInt(e.Number, 10) + ", '0')"
	case "intdiv":
		return arg(0, 12) + ".intdiv(" + e.Args[1].Groovy() + ")"
	case "hashCode", "abs", "longValue", "intValue":
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
		if e.Op == "hashCode" {
			return value{n: hashOf(a.text, false), bits: 32}, nil
		}
		return value{}, fmt.Errorf("a text has no %s", e.Op)
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
