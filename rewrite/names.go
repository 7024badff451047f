package rewrite

import "strings"

// name reads a qualified name whose first token is t, and returns its parts
// without quotes and its end.
func (p *parser) name(t token) (parts []string, end int, ok bool) {
	for {
		switch t.kind {
		case tokenWord:
			parts = append(parts, p.text[t.start:t.end])
		case tokenQuoted:
			parts = append(parts, unquoteIdentifier(p.text[t.start:t.end]))
		default:
			return nil, t.end, false
		}
		end = t.end
		if !p.isPunct(p.peek(), '.') {
			return parts, end, true
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
		parts, _, ok := p.name(t)
		if !ok {
			return nil, 0, false
		}
		list = append(list, parts[len(parts)-1])
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
