package groovy

import (
	"math"
	"math/bits"
)

// Period says that a template's text, for a value x of one of its names in
// Min..Max, depends on x modulo Mod only.
type Period struct {
	Mod, Min, Max int64
}

// maxPeriod bounds a Period's Mod.
const maxPeriod = 1 << 20

// Period finds a period of name i, whose values are of class Long, or of
// Integer, while those of the others stay what they are. ok is false when it finds
// none: the text may have one all the same.
func (t *Template) Period(i int, class Class, others []Value) (p Period, ok bool) {
	f := finder{name: i, values: others, limit: math.MaxInt64}
	if class == Integer {
		f.limit = math.MaxInt32
	}
	p = Period{Mod: 1, Min: 0, Max: f.limit}
	for _, part := range t.parts {
		if part.expr == nil {
			continue
		}
		d, ok := f.find(part.expr)
		if !ok || d.terms != nil {
			return Period{}, false
		}
		if p, ok = p.And(d.Period); !ok {
			return Period{}, false
		}
	}
	return p, true
}

// And returns the period of what depends on both.
func (p Period) And(q Period) (both Period, ok bool) {
	a, b := p.Mod, q.Mod
	for b != 0 {
		a, b = b, a%b
	}
	both = Period{p.Mod / a * q.Mod, max(p.Min, q.Min), min(p.Max, q.Max)}
	return both, both.Mod <= maxPeriod && both.Min <= both.Max
}

// term is ⌊(factor·x + plus) / divisor⌋.
type term struct {
	factor, plus, divisor int64
}

// dependence is how the value of an expression depends on x: it is periodic, or
// it is the sum of terms, of which none is negative or beyond a Long for x in
// Min..Max.
type dependence struct {
	Period
	terms []term
	// isDecimal: the value is that before its fraction is cut off.
	isDecimal bool
}

type finder struct {
	name   int
	values []Value
	limit  int64
}

// small bounds the constants of a term.
const small = 1 << 31

func (f *finder) find(n *node) (dependence, bool) {
	free := dependence{Period: Period{Mod: 1, Min: 0, Max: f.limit}}
	if !n.uses(f.name) {
		return free, true
	}
	if n.op == variable {
		free.terms = []term{{1, 0, 1}}
		return free, true
	}
	args := make([]dependence, len(n.args))
	sums := 0
	for i, arg := range n.args {
		var ok bool
		if args[i], ok = f.find(arg); !ok {
			return free, false
		}
		both, ok := free.Period.And(args[i].Period)
		if !ok {
			return free, false
		}
		free.Period = both
		if args[i].terms != nil {
			sums++
		}
	}
	if sums == 0 {
		return free, true // of values that are periodic, everything is
	}
	return f.ofSum(n, args, free)
}

// ofSum is an operation with at least one sum of terms. d is what its arguments
// have in common.
func (f *finder) ofSum(n *node, args []dependence, d dependence) (dependence, bool) {
	sum := args[0]
	switch {
	case n.op == cast && (n.class == Long || n.class == Integer), n.op == call && isWhole[n.name], n.op == static && n.name == "Long.valueOf":
		d.terms = sum.terms
		if n.class == Integer || n.name == "intValue" || n.name == "toInteger" {
			return f.within(d, math.MaxInt32)
		}
		return d, true
	case sum.isDecimal || len(args) > 1 && args[1].isDecimal:
		return d, false
	case n.op == unary && n.sign == plus, n.op == static && n.name == "Math.abs", n.op == call && n.name == "abs":
		d.terms = sum.terms
		return d, true
	case n.op == call && n.name == "intdiv":
		return f.divide(n, args, d)
	case n.op == call && n.name == "mod", n.op == static && n.name == "Math.floorMod":
		return f.modulo(n, args, d, percent)
	case n.op != infix:
		return d, false
	}
	switch n.sign {
	case plus, minus, times:
		return f.add(n, args, d)
	case percent, bitAnd:
		return f.modulo(n, args, d, n.sign)
	case slash:
		d, ok := f.divide(n, args, d)
		d.isDecimal = true
		return d, ok
	case shiftRight, shiftRightZero:
		return f.divide(n, args, d)
	case greater, greaterEqual:
		return f.above(n, args, d)
	}
	return d, false
}

var isWhole = map[string]bool{"longValue": true, "toLong": true, "intValue": true, "toInteger": true}

// number returns the value of an argument that is an integer and does not depend
// on x.
func (f *finder) number(n *node) (int64, bool) {
	if n.uses(f.name) {
		return 0, false
	}
	v, err := n.eval(f.values)
	return v.n, err == nil && v.IsInteger() && v.n > -small && v.n < small
}

func (f *finder) add(n *node, args []dependence, d dependence) (dependence, bool) {
	left, right := args[0], args[1]
	c, isNumber := f.number(n.args[1])
	if left.terms == nil {
		left, right = right, left
		c, isNumber = f.number(n.args[0])
		if n.sign == minus {
			return d, false
		}
	}
	switch {
	case left.terms != nil && right.terms != nil && n.sign == plus:
		d.terms = append(append([]term{}, left.terms...), right.terms...)
	case !isNumber || right.terms != nil:
		return d, false
	case n.sign == times && (c < 1 || len(left.terms) != 1 || left.terms[0].divisor != 1):
		return d, false
	default:
		one := left.terms[0]
		switch n.sign {
		case times:
			one.factor, one.plus = one.factor*c, one.plus*c
		case plus:
			one.plus += c * one.divisor
		case minus:
			one.plus -= c * one.divisor
		}
		d.terms = append([]term{one}, left.terms[1:]...)
	}
	return f.within(d, f.limit)
}

// within narrows Min and Max so that no term is negative and their sum is at most
// limit.
func (f *finder) within(d dependence, limit int64) (dependence, bool) {
	if len(d.terms) > 8 {
		return d, false
	}
	limit /= int64(len(d.terms))
	for _, t := range d.terms {
		if t.factor > small || t.plus > small*small/2 || t.plus < -small*small/2 || t.divisor > small {
			return d, false
		}
		if t.plus < 0 {
			d.Min = max(d.Min, (-t.plus+t.factor-1)/t.factor)
		}
		// factor·x + plus itself must not be too large either.
		most := limit
		if hi, lo := bits.Mul64(uint64(limit), uint64(t.divisor)); hi == 0 && lo <= math.MaxInt64 {
			most = int64(lo)
		} else {
			most = math.MaxInt64
		}
		most = min(most, f.limit)
		d.Max = min(d.Max, (most-max(t.plus, 0))/t.factor)
	}
	return d, d.Min <= d.Max
}

// divide is x.intdiv(c), x / c and x >> c.
func (f *finder) divide(n *node, args []dependence, d dependence) (dependence, bool) {
	c, ok := f.number(n.args[1])
	if !ok || args[0].terms == nil || len(args[0].terms) != 1 {
		return d, false
	}
	if n.sign == shiftRight || n.sign == shiftRightZero {
		if c < 0 || c > 30 {
			return d, false
		}
		c = 1 << c
	}
	one := args[0].terms[0]
	if c < 1 || c > 1e9 {
		return d, false
	}
	one.divisor *= c
	d.terms = []term{one}
	return f.within(d, f.limit)
}

// modulo is x % c, and x & c.
func (f *finder) modulo(n *node, args []dependence, d dependence, sign token) (dependence, bool) {
	sum, other := args[0], 1
	if sum.terms == nil && sign == bitAnd {
		sum, other = args[1], 0
	}
	c, ok := f.number(n.args[other])
	if !ok || sum.terms == nil || c < 0 || c == 0 && sign == percent {
		return d, false
	}
	if sign == bitAnd {
		c = 1 << bits.Len64(uint64(c))
	}
	for _, t := range sum.terms {
		// ⌊(factor·x + plus) / divisor⌋ modulo c depends on factor·x modulo
		// divisor·c.
		modulus := t.divisor * c
		a, b := t.factor, modulus
		for b != 0 {
			a, b = b, a%b
		}
		if d.Period, ok = d.Period.And(Period{modulus / a, d.Min, d.Max}); !ok {
			return d, false
		}
	}
	return d, true
}

// above is x > c and x >= c: true for all x that are large enough.
func (f *finder) above(n *node, args []dependence, d dependence) (dependence, bool) {
	c, ok := f.number(n.args[1])
	if !ok || len(args[0].terms) != 1 {
		return d, false
	}
	t := args[0].terms[0]
	least := (c+1)*t.divisor - t.plus
	if least > 0 {
		d.Min = max(d.Min, (least+t.factor-1)/t.factor)
	}
	return d, d.Min <= d.Max
}
