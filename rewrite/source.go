package rewrite

import (
	"strings"

	"github.com/shardkey/shardkey/internal/sqltext"
)

// source parses the query of an INSERT … SELECT, TABLE or WITH that begins with t.
func (p *parser) source(in *Insert, cols columns, t token) error {
	list := cols.list
	if !cols.listed {
		var err error
		if list, err = p.tableColumns(in); err != nil {
			return err
		}
	}
	head := p.text[in.start:cols.headEnd]
	before := p.params
	p.rewind(t)
	form := queryForm{selects: p.is(t, "SELECT", "WITH")}
	end, queryEnd := p.query(&form)
	after := p.params
	tail := p.prev
	p.rewind(tail)
	if err := p.tail(in, list); err != nil {
		return err
	}
	in.Source = &Source{
		columns:     p.quoteAll(list),
		Columns:     list,
		KeyIndex:    in.keyIndex(list),
		Head:        head,
		Query:       p.text[t.start:queryEnd],
		Tail:        p.text[end:p.prev.start],
		guardAt:     max(in.duplicateAt-end, 0),
		QueryParams: after - before,
		TailParams:  p.params - after,
		Lockable:    form.selects && form.from && !form.special,
		Unlimited:   form.ordered && !form.limited && !form.special,
	}
	return nil
}

// queryForm describes the clauses of a query outside of brackets.
type queryForm struct {
	selects, from, ordered, limited bool
	// special: UNION and similar, a locking clause, or another clause that a lock or LIMIT can't
	// follow.
	special bool
}

func (f *queryForm) note(word string) {
	switch {
	case fold(word, "FROM"):
		f.from = true
	case fold(word, "ORDER"):
		f.ordered = true
	case fold(word, "LIMIT", "FETCH", "OFFSET"):
		f.limited = true
	case fold(word, "UNION", "INTERSECT", "EXCEPT", "MINUS", "FOR", "LOCK", "INTO", "PROCEDURE"):
		f.special = true
	}
}

// query moves to the token after a query: the statement's end, or ON DUPLICATE or RETURNING outside
// of brackets. It returns the position of that token and the end of the query.
func (p *parser) query(form *queryForm) (next, end int) {
	depth := 0
	for {
		before := p.prev
		t := p.take(&depth)
		outside := depth == 0
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad, outside && p.isPunct(t, ';'),
			outside && p.onDuplicate(t),
			outside && p.isReturning(t, before):
			return t.start, end
		case t.kind == tokenWord && outside && !p.isPunct(before, '.'):
			form.note(p.word(t))
		}
		end = t.end
	}
}

// Text returns the statement with another query. The query returns the listed columns and then,
// unless it is listed, the key.
func (in *Insert) Text(query string) string {
	s := in.Source
	columns, tail := s.columns, s.Tail
	if s.KeyIndex < 0 {
		columns += ", " + sqltext.QuoteIdentifier(in.Table.KeyColumn)
	}
	if in.Guarded {
		tail = tail[:s.guardAt] + ", " + in.guard() + tail[s.guardAt:]
	}
	return s.Head + " (" + columns + ") " + query + " " + tail
}

// KeepsSource reports whether an INSERT … SELECT lists the key of a table with KeepExplicit. It
// then needs no generated keys.
func (in *Insert) KeepsSource() bool {
	return in.Source != nil && in.Source.KeyIndex >= 0 && in.Table.KeepExplicit
}

// quoteAll returns a list of quoted names.
func (p *parser) quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = sqltext.QuoteIdentifier(name)
	}
	return strings.Join(quoted, ", ")
}
