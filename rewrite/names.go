package rewrite

import "strings"

// name is a name of one part or more; qualifier is the part before the last.
type name struct {
	qualifier, last string
	parts           int
	end             int
}

// name reads a name whose first token is t, without its quotes.
func (p *parser) name(t token) (n name, ok bool) {
	for {
		n.qualifier = n.last
		switch t.kind {
		case tokenWord:
			n.last = p.text[t.start:t.end]
		case tokenQuoted:
			n.last = unquoteIdentifier(p.text[t.start:t.end])
		default:
			return n, false
		}
		n.end = t.end
		n.parts++
		if !p.isPunct(p.peek(), '.') {
			return n, true
		}
		p.next()
		t = p.next()
	}
}

// names reads a list of names in brackets, the last part of each.
func (p *parser) names(open token) (list []string, closing int, ok bool) {
	if !p.isPunct(open, '(') {
		return nil, 0, false
	}
	t := p.next()
	if p.isPunct(t, ')') {
		return nil, t.start, true
	}
	for {
		column, ok := p.name(t)
		if !ok {
			return nil, 0, false
		}
		list = append(list, column.last)
		switch t = p.next(); {
		case p.isPunct(t, ')'):
			return list, t.start, true
		case !p.isPunct(t, ','):
			return nil, 0, false
		}
		t = p.next()
	}
}

// keyIndex is the key column's place in a list of columns, −1 when absent.
func (in *Insert) keyIndex(list []string) int {
	for i, column := range list {
		if strings.EqualFold(column, in.Table.KeyColumn) {
			return i
		}
	}
	return -1
}
