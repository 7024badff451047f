package rewrite

import (
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// source parses the query of an INSERT … SELECT, TABLE or WITH that begins with t.
func (p *parser) source(in *Insert, cols columns, t sqltoken.Token) error {
	list := cols.list
	if !cols.listed {
		var err error
		if list, err = p.tableColumns(in); err != nil {
			return err
		}
	}
	for _, column := range list {
		p.noted(in, column) // doubts the string if servers differ
	}
	head := p.Text[in.start:cols.headEnd]
	p.Unread()
	before := p.Params
	form := queryForm{selects: p.Is(t, "SELECT", "WITH")}
	end, queryEnd := p.query(&form)
	if form.into > 0 {
		return p.fail(form.into, in, "SELECT … INTO inside an INSERT is not supported; send it by itself")
	}
	after := p.Params
	p.Unread()
	if err := p.tail(in, list); err != nil {
		return err
	}
	in.Select = p.Text[t.Start:queryEnd]
	in.Source = &Source{
		columns:   strings.Join(sqltoken.QuoteIdentifiers(list), ", "),
		Columns:   list,
		KeyIndex:  p.keyIndex(in, list),
		Head:      head,
		Tail:      p.Text[end:p.Prev.Start],
		reportAt:  max(in.duplicateAt-end, 0),
		QueryArgs: after - before,
		TailArgs:  p.Params - after,
		Lockable:  form.selects && form.from && !form.special,
		Unlimited: form.ordered && !form.limited && !form.special,
	}
	return nil
}

// queryForm describes the clauses of a query outside of brackets.
type queryForm struct {
	selects, from, ordered, limited bool
	// special: UNION and similar, a locking clause, or another clause that a lock or LIMIT can't
	// follow.
	special bool
	into    int // the position of INTO; 0 without it
}

func (f *queryForm) note(word string) {
	switch {
	case sqltoken.Is(word, "FROM"):
		f.from = true
	case sqltoken.Is(word, "ORDER"):
		f.ordered = true
	case sqltoken.Is(word, "LIMIT", "FETCH", "OFFSET"):
		f.limited = true
	case sqltoken.Is(word, "UNION", "INTERSECT", "EXCEPT", "MINUS", "FOR", "LOCK", "PROCEDURE"):
		f.special = true
	}
}

// query moves to the token after a query: the statement's end, or ON DUPLICATE or RETURNING outside
// of brackets. It returns the position of that token and the end of the query.
func (p *parser) query(form *queryForm) (next, end int) {
	depth := 0
	var former sqltoken.Token // the token in front of before
	for before := p.Prev; ; former, before = before, p.Prev {
		t := p.take(&depth)
		outside := depth == 0
		locks := p.Is(former, "FOR") && p.Is(before, "UPDATE") && p.Is(t, "RETURNING") && !p.isMySQL()
		switch {
		case t.Kind == sqltoken.EOF, t.Kind == sqltoken.Bad, outside && p.IsPunct(t, ';'),
			outside && p.onDuplicate(t),
			outside && (locks || p.isReturning(t, before)):
			return t.Start, end
		case p.Is(t, "INTO") && !p.IsPunct(before, '.'):
			form.into = t.Start
		case t.Kind == sqltoken.Word && outside && !p.IsPunct(before, '.'):
			form.note(p.Keyword(t))
		}
		end = t.End
	}
}

// WithQuery returns an INSERT … SELECT with another query. The query returns the listed columns and
// then, unless it is listed, the key.
func (in *Insert) WithQuery(query string) string {
	s := in.Source
	columns, tail := s.columns, s.Tail
	if s.KeyIndex < 0 {
		columns += ", " + sqltoken.QuoteIdentifier(in.Table.Key)
	}
	if in.ReportsExistingKey {
		tail = tail[:s.reportAt] + ", " + in.reportExisting() + tail[s.reportAt:]
	}
	// The servers ignore DELAYED in front of a query, but MariaDB not in front of VALUES (MariaDB
	// manual, "INSERT DELAYED").
	delayed := max(in.delayedAt-in.start, 0)
	return s.Head[:delayed] + s.Head[max(in.delayedEnd-in.start, 0):] + " (" + columns + ") " + query + " " + tail
}
