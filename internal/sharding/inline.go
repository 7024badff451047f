package sharding

import (
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/groovy"
)

func newInline(a *Algorithm, p properties) error {
	const name = "algorithm-expression"
	text, err := p.text(name)
	if err != nil {
		return err
	}
	if given, ok := p.values["sharding-columns"]; ok && len(strings.Split(given, ",")) != len(a.columns) {
		return a.fail("sharding-columns", "sharding-columns is %q, but the strategy has %d columns", clip(given), len(a.columns))
	}
	kind, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "<"), ">")
	if strings.HasPrefix(strings.TrimSpace(text), "<") && ok {
		if kind = strings.ToUpper(kind); kind != "GROOVY" && kind != "LITERAL" {
			return a.fail(name, "the expression <%s> is not understood", clip(kind))
		}
		if text = rest; kind == "LITERAL" && strings.Contains(text, "{") {
			return a.fail(name, "<LITERAL> with { is not understood")
		}
	}
	a.template, err = groovy.Compile(text, a.columns)
	if err != nil {
		return &NotUnderstoodError{Type: a.typ, Prop: name, Reason: name + ": " + err.Error(), Err: err}
	}
	if unknown := a.template.Unknown(); len(unknown) > 0 {
		return a.fail(name, "%s has the name %q, which is none of the sharding columns: %s (names are case-sensitive)",
			name, unknown[0], strings.Join(a.columns, ", "))
	}
	used := func(i int) bool { return a.template.Uses(i) }
	if i := slices.IndexFunc(a.columns, func(c string) bool { return !used(slices.Index(a.columns, c)) }); i >= 0 && !a.template.IsPlain() {
		return a.fail(name, "%s does not have the sharding column %s in it", name, a.columns[i])
	}
	return nil
}

// Modulus returns n when column i is all that the algorithm uses of a row, or one
// of several, and its remainder modulo n decides on the name: each makes a name of
// its own, of which there are then n, or n is a power of 2 and the least of which the
// remainders make all names equally often. It is 0 when it is not like that.
func (a *Algorithm) Modulus(i int) (n, names int64) {
	if m, ok := a.numbers.(*mod); ok && m.start == 0 && m.stop == 0 {
		return m.count, m.count
	}
	if a.template == nil {
		return 0, 0
	}
	// The other columns are the same, whatever they are.
	values := make([]groovy.Value, len(a.columns))
	for j := range values {
		values[j] = groovy.OfLong(1)
	}
	p, ok := a.template.Period(i, groovy.Long, values)
	if !ok || p.Mod < 2 || p.Mod > maxResidues {
		return 0, 0
	}
	count := map[string]int64{}
	var even int64 // the least power of 2 at which all names that were there came equally often
	for r := range p.Mod {
		values[i] = groovy.OfLong((p.Min+p.Mod-1)/p.Mod*p.Mod + r)
		name, err := a.template.Append(nil, values)
		if err != nil {
			return 0, 0
		}
		if count[string(name)] == 0 {
			even = 0
		}
		count[string(name)]++
		if n := r + 1; even == 0 && n&-n == n && equal(count) {
			even = n
		}
	}
	switch names = int64(len(count)); {
	case names == p.Mod:
		return p.Mod, names
	case p.Mod&-p.Mod == p.Mod && equal(count):
		return even, names
	}
	return 0, 0
}

// equal reports whether all counts are the same.
func equal(counts map[string]int64) bool {
	first := int64(-1)
	for _, n := range counts {
		if first < 0 {
			first = n
		}
		if n != first {
			return false
		}
	}
	return true
}
