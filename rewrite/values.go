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
	if in.Refused && !cols.listed && !empty {
		in.Listed, in.headAt = true, -1
		if cols.closing > 0 {
			in.headAt = cols.closing
		}
		p.listColumns(in, cols, in.Table.Columns)
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
	defer func() { p.restore(saved) }()
	t := p.next()
	if fold(p.word(t), "ROW") {
		t = p.next()
	}
	return p.isPunct(t, '(') && p.isPunct(p.next(), ')')
}
