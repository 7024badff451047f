package rewrite

import "strings"

// assignments reads the assignments of INSERT … SET.
func (p *parser) assignments(in *Insert) error {
	found, end := false, 0
	for {
		column, ok := p.name(p.next())
		if !ok {
			return p.fail(p.prev.start, in, "a column is expected")
		}
		t := p.next()
		if p.isPunct(t, ':') {
			t = p.next()
		}
		if !p.isPunct(t, '=') {
			return p.fail(t.start, in, "= is expected")
		}
		isKey := !found && strings.EqualFold(column.last, in.Table.KeyColumn)
		v := p.expression(true)
		if v.isEmpty() {
			return p.fail(p.pos, in, "a value is expected")
		}
		end = v.end
		if isKey {
			found = true
			p.addKey(in, &v)
		}
		if !p.isPunct(p.peek(), ',') {
			break
		}
		p.next()
	}
	if !found {
		in.keyPrefix = ", " + QuoteIdentifier(in.Table.KeyColumn) + " = "
		in.slots.add(end, end, Fill, p.params)
	}
	return p.tail(in)
}

// endsAssignment tells whether t, behind the token before, is the word with
// which the tail of INSERT … SET begins.
func (p *parser) endsAssignment(before, t token) bool {
	if p.isPunct(before, '.') {
		return false
	}
	word := p.word(t)
	return fold(word, "AS") || fold(word, "ON") || fold(word, "RETURNING") && !p.isNamePosition(before)
}
