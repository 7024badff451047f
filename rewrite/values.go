package rewrite

import "strings"

// values reads the rows of VALUES.
func (p *parser) values(in *Insert, cols columns) error {
	rows := rowReader{parser: p, in: in, key: -1, arity: len(cols.list)}
	empty := p.emptyRow()
	switch {
	case cols.listed:
		if rows.key = in.keyIndex(cols.list); rows.key < 0 {
			in.headAt, in.headText, in.keyPrefix = cols.closing, ", "+QuoteIdentifier(in.Table.KeyColumn), ", "
		}
	case empty:
		p.listColumns(in, cols, []string{in.Table.KeyColumn})
	case in.Table.Columns == nil:
		return p.missing(in)
	default:
		rows.arity = len(in.Table.Columns)
		if rows.key = in.keyIndex(in.Table.Columns); rows.key < 0 {
			// An invisible key column: the visible ones must be named beside it.
			in.keyPrefix = ", "
			p.listColumns(in, cols, append(in.Table.Columns[:rows.arity:rows.arity], in.Table.KeyColumn))
		} else {
			in.headAt = -1
		}
	}
	if err := rows.all(); err != nil {
		return err
	}
	return p.tail(in)
}

// listColumns makes the statement name its columns.
func (p *parser) listColumns(in *Insert, cols columns, names []string) {
	in.headText = strings.Join(quoteAll(names), ", ")
	if in.headAt < 0 {
		in.headAt = cols.headEnd
		in.headText = " (" + in.headText + ")"
	}
}

// missing ends the reading: Table does not tell what the statement needs.
func (p *parser) missing(in *Insert) error {
	if p.plan.Missing == nil {
		p.plan.Missing, p.plan.MissingColumns = in, true
	}
	in.Refused = true
	p.skipTo(false)
	return nil
}

// emptyRow tells whether the first row is ().
func (p *parser) emptyRow() bool {
	saved := p.lexer
	defer func() { p.lexer = saved }()
	t := p.next()
	if fold(p.word(t), "ROW") {
		t = p.next()
	}
	return p.isPunct(t, '(') && p.isPunct(p.next(), ')')
}

// rowReader reads rows of values. Rows can be very many: they are read byte by
// byte, and only the key's value is looked at.
type rowReader struct {
	*parser
	in    *Insert
	key   int // the key's place in each row, −1 when it is absent
	arity int // the values that each row must have
}

func (r *rowReader) all() error {
	for {
		t := r.next()
		if fold(r.word(t), "ROW") {
			t = r.next()
		}
		if !r.isPunct(t, '(') {
			return r.fail(t.start, r.in, "a row of values is expected")
		}
		if err := r.row(); err != nil {
			return err
		}
		if len(r.in.slots.at) == 1 {
			r.reserve(t.start)
		}
		if !r.isPunct(r.peek(), ',') {
			return nil
		}
		r.next()
	}
}

// reserve makes room for as many rows as the text would hold if all were as
// long as the first, so that long texts do not grow it again and again.
func (r *rowReader) reserve(start int) {
	const enough = 1 << 10
	length := r.pos - start + 1
	if n := (len(r.text) - r.pos) / length; n > enough {
		r.in.slots.at = append(make([]uint32, 0, n+n/8), r.in.slots.at...)
	}
}

// row reads one row behind its opening bracket.
func (r *rowReader) row() error {
	n, start := 0, r.pos
	for {
		if n == r.key {
			if err := r.keyValue(); err != nil {
				return err
			}
		}
		commas, end, err := r.skipValues(r.key >= 0 && n < r.key)
		if err != nil {
			return err
		}
		n += commas
		if end {
			break
		}
	}
	closing := r.pos
	r.pos++
	if n > 0 || r.key >= 0 || !r.blank(start, closing) {
		n++
	}
	if n != r.arity {
		r.in.Refused = true
	}
	if r.key < 0 {
		r.in.slots.add(closing, closing, Fill, r.params)
	}
	return nil
}

// blank tells whether nothing but blanks and comments stands in between.
func (r *rowReader) blank(start, end int) bool {
	for start < end && isBlank(r.text[start]) {
		start++
	}
	if start == end {
		return true
	}
	if class[r.text[start]]&classComment == 0 {
		return false
	}
	lx := r.lexer
	lx.pos = start
	return lx.next().start == end
}

// skipValues moves to the closing bracket of the row, or behind the next comma
// when one is enough, and counts the commas that it passed.
func (r *rowReader) skipValues(one bool) (commas int, end bool, err error) {
	text, pos, depth := r.text, r.pos, 0
	for pos < len(text) {
		c := text[pos]
		if class[c]&classValue == 0 {
			pos++
			continue
		}
		switch c {
		case '\'', '"', '`':
			start, ok := pos, false
			if pos, ok = r.skipQuoted(pos, c); !ok {
				return 0, false, r.fail(start, r.in, "a string or name has no end")
			}
			continue
		case '(':
			r.noteCall(pos)
			depth++
		case ')':
			if depth == 0 {
				r.pos = pos
				return commas, true, nil
			}
			depth--
		case ',':
			if depth == 0 {
				commas++
				if one {
					r.pos = pos + 1
					return commas, false, nil
				}
			}
		case ';':
			return 0, false, r.fail(pos, r.in, "a row of values has no end")
		case '?':
			r.params++
		case '@':
			r.noteVariable(pos)
		default: // a comment, perhaps
			r.pos = pos
			skipped, ok := r.skipComment()
			if !ok {
				return 0, false, r.fail(pos, r.in, "a comment has no end")
			}
			if skipped {
				pos = r.pos
				continue
			}
		}
		pos++
	}
	return 0, false, r.fail(len(text), r.in, "a row of values has no end")
}

// noteCall sees LAST_INSERT_ID before a bracket.
func (r *rowReader) noteCall(bracket int) {
	end := bracket
	for end > 0 && isBlank(r.text[end-1]) {
		end--
	}
	const name = "LAST_INSERT_ID"
	if end > 0 && r.text[end-1] == '/' || end >= len(name) && fold(r.text[end-len(name):end], name) {
		r.last = true
	}
}

// noteVariable sees @@last_insert_id and @@identity, with or without scope.
func (r *rowReader) noteVariable(at int) {
	const longest = len("@@session . last_insert_id")
	if MentionsLastInsertID(r.text[at:min(at+longest, len(r.text))]) {
		r.last = true
	}
}

// assignments reads the assignments of INSERT … SET.
func (p *parser) assignments(in *Insert) error {
	found, end := false, 0
	for {
		parts, _, ok := p.name(p.next())
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
		isKey := !found && strings.EqualFold(parts[len(parts)-1], in.Table.KeyColumn)
		var v value
		if v, end = p.expression(in.setEnds(p)); v.n == 0 {
			return p.fail(p.prev.start, in, "a value is expected")
		}
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

// setEnds tells which words end an assignment's value: those of the tail.
func (in *Insert) setEnds(p *parser) func(token) bool {
	return func(t token) bool {
		word := p.word(t)
		return fold(word, "AS") || fold(word, "ON") || fold(word, "RETURNING")
	}
}
