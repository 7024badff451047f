package rewrite

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// query is the query of an INSERT … SELECT, TABLE or WITH that may insert several rows.
type query struct {
	at, end int     // position
	columns int     // number of columns of the query
	dropped []place // words that only the outermost SELECT of a statement may have
	nested  bool    // it must be a derived table in the common table expression
	// order changes an ORDER BY without LIMIT for Count: in a common table expression MySQL refuses one by
	// the number of a literal, or never answers if that is an argument.
	order   change
	changes []change
}

// around returns SQL around the query for a common table expression of its rows.
//
// It is no derived table alone, since that can't have two columns of the same name. But MariaDB names
// the columns of a UNION before it looks for those of ORDER BY, so a UNION with one is nested.
func (q *query) around() (before, after string) {
	before, after = "WITH shardkey_rows ("+strings.Join(rowColumns(q.columns), ", ")+") AS (", ")"
	if q.nested {
		return before + "SELECT * FROM (", ") AS shardkey_query" + after
	}
	return before, after
}

// change replaces a part of a statement by before, generated SQL and after.
type change struct {
	place
	before, after string
	made          made
	params        int // number of the program's placeholders before it
}

// made is generated SQL in a change.
type made uint8

const (
	nothing made = iota
	theKey       // see counter
	theLast      // the value of LAST_INSERT_ID() before the statement
)

// placeholders returns the number of placeholders in the SQL.
func (m made) placeholders() int {
	switch m {
	case theKey:
		return boundCount
	case theLast:
		return 1
	}
	return 0
}

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
	p.Unread()
	p.reads, p.setsLast, p.setsVar = nil, 0, 0
	before := p.Params
	r := queryReader{parser: p, in: in, wrapped: !p.Is(t, "SELECT", "WITH"), key: p.keyIndex(in, list)}
	r.query = &query{at: t.Start, columns: len(list)}
	r.read()
	if r.into > 0 {
		return p.fail(r.into, in, "SELECT … INTO inside an INSERT is not supported; send it by itself")
	}
	r.params = p.Params
	p.Unread()
	if err := p.tail(in, list); err != nil {
		return err
	}
	in.Select, in.SelectArgs = p.Text[r.at:r.end], r.params-before
	if in.Table.KeepExplicit && r.key >= 0 {
		in.SelectKey, in.AllGenerated = Literal, false
		return nil
	}
	p.addColumn(in, cols, list, r.key < 0)
	if r.isOneRow() {
		return r.oneRow(list)
	}
	return r.severalRows()
}

// addColumn adds the key to the column list, if it is missing, and a missing column list.
func (p *parser) addColumn(in *Insert, cols columns, list []string, missing bool) {
	switch {
	case cols.listed && missing:
		in.head = addition(cols.closing, ", "+sqltoken.QuoteIdentifier(in.Table.Key))
	case missing:
		p.listColumns(in, cols, append(list[:len(list):len(list)], in.Table.Key))
	case !cols.listed:
		p.listColumns(in, cols, list)
	}
}

// queryReader reads the clauses of a query outside of brackets.
type queryReader struct {
	*parser
	*query
	in      *Insert
	key     int          // index of the key among the columns, −1 if it is added behind them
	params  int          // number of placeholders up to the query's end
	selects []selectList // joined by UNION ALL
	// wrapped: the key can't be an item of the SELECTs. grouped: there is a GROUP BY. united:
	// it has a UNION, INTERSECT or EXCEPT.
	wrapped, grouped, united bool
	from, ordered, limited   bool // FROM with other tables than DUAL, ORDER BY, LIMIT
	single                   bool // LIMIT 1
	into                     int  // position of INTO, 0 without it
	orderAt                  value
	locks                    int // position of FOR UPDATE and similar clauses behind ORDER BY, 0 without them
	// opened is the number of the brackets that the query begins with and that haven't ended yet. enclosed is
	// where the first one ends, 0 without one. inOrder is where an ORDER BY without LIMIT ends that is the
	// order of what they enclose; 0 without one.
	opened, enclosed, inOrder int
}

// selectList has the items of a SELECT.
type selectList struct {
	items  []value
	star   bool // an item may be several columns
	params int  // number of placeholders up to its end
}

// read moves to the token after the query: the statement's end, or ON DUPLICATE or RETURNING outside
// of brackets.
func (r *queryReader) read() {
	depth := 0
	begins := true            // only brackets precede the token
	var former sqltoken.Token // the token in front of before
	for before := r.Prev; ; former, before = before, r.Prev {
		t := r.take(&depth)
		if begins = begins && r.IsPunct(t, '('); begins {
			r.opened = depth
		}
		r.orderInside(before, t, depth)
		outside := depth == 0
		locks := r.Is(former, "FOR") && r.Is(before, "UPDATE") && r.Is(t, "RETURNING") && !r.isMySQL()
		switch {
		case t.Kind == sqltoken.EOF, t.Kind == sqltoken.Bad, outside && r.IsPunct(t, ';'),
			outside && r.onDuplicate(t),
			outside && (locks || r.isReturning(t, before)):
			return
		case t.Kind != sqltoken.Word || r.IsPunct(before, '.'):
		case r.Is(t, "INTO"):
			r.into = t.Start
		case r.Is(t, "SELECT"):
			if r.modifiers(outside); outside {
				r.list()
				continue
			}
		case outside:
			r.clause(t)
		}
		r.end = t.End
	}
}

// orderInside notes the ORDER BY in the brackets that the query begins with. before is the token before t,
// and depth the number of brackets that are open after t.
func (r *queryReader) orderInside(before, t sqltoken.Token, depth int) {
	const open = -1 // the ORDER BY hasn't ended
	switch {
	case depth < r.opened: // t is a bracket
		if r.opened = depth; r.inOrder == open {
			r.inOrder = t.Start
		}
		if depth == 0 {
			r.enclosed = t.End
		}
	case depth == 0, depth > r.opened, r.IsPunct(before, '.'):
	case r.Is(t, "ORDER"):
		r.inOrder = open
	case r.Is(t, "LIMIT", "FETCH", "OFFSET"), r.IsPunct(before, ')') && r.inOrder > 0: // of an operand
		r.inOrder = 0
	case r.inOrder == open && r.Is(t, "FOR", "LOCK"):
		r.inOrder = t.Start
	}
}

// modifiers parses the words between SELECT and its first item.
func (r *queryReader) modifiers(outside bool) {
	if outside {
		r.noteHints(r.Text[r.Prev.End:r.Peek().Start])
	}
	for {
		t := r.Peek()
		switch {
		case r.Is(t, "HIGH_PRIORITY", "SQL_CALC_FOUND_ROWS", "SQL_NO_CACHE", "SQL_CACHE", "SQL_BUFFER_RESULT"):
			r.dropped = append(r.dropped, place{uint32(t.Start), uint32(t.End)})
		case r.Is(t, "DISTINCT", "DISTINCTROW", "UNIQUE"):
			r.wrapped = r.wrapped || outside
		case !r.Is(t, "ALL", "STRAIGHT_JOIN", "SQL_SMALL_RESULT", "SQL_BIG_RESULT"):
			return
		}
		r.Next()
	}
}

// list parses the items of a SELECT.
func (r *queryReader) list() {
	var s selectList
	for {
		v := r.expression(inSelect)
		s.items = append(s.items, v)
		s.star = s.star || v.end > 0 && r.Text[v.end-1] == '*'
		if s.params = r.Params; !r.IsPunct(r.Peek(), ',') {
			break
		}
		r.Next()
	}
	r.selects, r.end = append(r.selects, s), s.items[len(s.items)-1].end
}

// endsItem reports whether t begins the clause after the items of a SELECT. before is the token
// before t. OFFSET and WINDOW may be names.
func (p *parser) endsItem(before, t sqltoken.Token) bool {
	switch {
	case p.IsPunct(before, '.'), p.Is(before, "VALUE") && p.Is(t, "FOR"): // MariaDB's NEXT VALUE FOR
		return false
	case p.Is(t, "MINUS"):
		return p.startsQuery(p.Peek())
	}
	return p.Is(t, "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FETCH", "FOR", "LOCK", "PROCEDURE", "INTO",
		"UNION", "EXCEPT", "INTERSECT") || p.onDuplicate(t) || p.isReturning(t, before)
}

// clause notes the clause that t may begin.
func (r *queryReader) clause(t sqltoken.Token) {
	switch {
	case r.Is(t, "FROM"):
		r.from = r.from || !r.fromDual()
	case r.Is(t, "ORDER"):
		r.ordered, r.orderAt, r.locks = true, value{start: t.Start, params: r.Params}, 0
	case r.ordered && r.locks == 0 && (r.Is(t, "FOR") || r.Is(t, "LOCK") && r.Is(r.Peek(), "IN")):
		r.locks = t.Start
	case r.Is(t, "GROUP"):
		r.grouped = true
	case r.Is(t, "LIMIT"):
		r.limited, r.single = true, r.isOne()
	case r.Is(t, "FETCH", "OFFSET"):
		r.limited = true
	case r.Is(t, "ROLLUP", "CUBE"):
		r.wrapped = r.wrapped || r.grouped
	case r.Is(t, "UNION"):
		r.united = true
		r.wrapped = r.wrapped || len(r.selects) == 0 || !r.joinsAll()
	case r.Is(t, "INTERSECT", "EXCEPT", "MINUS"):
		r.united = r.united || r.startsQuery(r.Peek()) || r.Is(r.Peek(), "ALL", "DISTINCT")
		r.wrapped = r.wrapped || r.united
	}
}

// fromDual reports whether DUAL is the only table.
func (r *queryReader) fromDual() bool {
	defer r.LookAhead()()
	return r.Is(r.Next(), "DUAL") && !r.IsPunct(r.Peek(), ',') &&
		!r.Is(r.Peek(), "JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "STRAIGHT_JOIN")
}

// isOne reports whether the limit is 1 row.
func (r *queryReader) isOne() bool {
	defer r.LookAhead()()
	t := r.Next()
	return r.Text[t.Start:t.End] == "1" && !r.IsPunct(r.Peek(), ',')
}

// joinsAll reports whether ALL SELECT follows.
func (r *queryReader) joinsAll() bool {
	defer r.LookAhead()()
	return r.Is(r.Next(), "ALL") && r.Is(r.Peek(), "SELECT")
}

// isDirect reports whether the key can be an item of each SELECT.
func (r *queryReader) isDirect() bool {
	if r.wrapped || len(r.selects) == 0 || len(r.selects) > 1 && (r.ordered || r.limited) {
		return false
	}
	for _, s := range r.selects {
		if _, ok := r.keyItem(&s); !ok {
			return false
		}
	}
	return true
}

// keyItem returns the item of the key, without an alias. If the key is added, it is empty and follows
// the last item.
func (r *queryReader) keyItem(s *selectList) (v value, ok bool) {
	if r.key < 0 {
		end := s.items[len(s.items)-1].end
		return value{start: end, end: end, params: s.params}, true
	}
	if s.star || r.key >= len(s.items) {
		return v, false
	}
	return r.withoutAlias(s.items[r.key])
}

// isOneRow reports whether the query returns at most one row.
func (r *queryReader) isOneRow() bool {
	return r.isDirect() && len(r.selects) == 1 && (!r.from || r.single)
}

// oneRow completes the insert of a query with at most one row, which is like one row of VALUES.
func (r *queryReader) oneRow(list []string) error {
	s := &r.selects[0]
	if width := len(r.in.Table.Recorded); width > 0 && !s.star {
		r.in.given = make([]given, width)
		for i, column := range list[:min(len(list), len(s.items))] {
			if at := r.noted(r.in, column); at >= 0 {
				if v, ok := r.withoutAlias(s.items[i]); ok {
					r.in.given[at] = r.givenBy(&v)
				}
			}
		}
	}
	v, _ := r.keyItem(s)
	if r.key >= 0 {
		return r.addKey(r.in, &v)
	}
	r.in.keyPrefix, r.in.keyAdded = ", ", true
	r.addRow(r.in, Row{Generated, v.params}, place{uint32(v.start), uint32(v.end)})
	return nil
}

// withoutAlias returns the expression of an item. ok is false if it isn't certain where that ends.
func (p *parser) withoutAlias(v value) (expression value, ok bool) {
	r := *p
	r.Lexer = sqltoken.Lexer{Text: p.Text[:v.end], Pos: v.start, Mode: p.Mode, Charset: p.Charset}
	var a, b, c sqltoken.Token // the last tokens
	n := 0
	for t := r.Next(); t.Kind != sqltoken.EOF; t = r.Next() {
		a, b, c, n = b, c, t, n+1
	}
	isName := c.Kind == sqltoken.Word || c.Kind == sqltoken.Quoted
	var end int
	switch {
	case n == 1, isName && r.IsPunct(b, '.'):
		return v, true
	case n > 2 && r.Is(b, "AS") && (isName || c.Kind == sqltoken.String):
		end = a.End
	case n == 2 && isName && (b.Kind == sqltoken.Number || b.Kind == sqltoken.Param || r.Is(b, "NULL")):
		end = b.End
	default:
		return v, c.Kind == sqltoken.Number || c.Kind == sqltoken.Param || r.IsPunct(c, ')')
	}
	r.Lexer = sqltoken.Lexer{Text: p.Text[:end], Pos: v.start, Mode: p.Mode, Charset: p.Charset, Params: v.params}
	return r.expression(inRow), true
}

// severalRows completes the insert of a query with any number of rows.
func (r *queryReader) severalRows() (err error) {
	direct := r.isDirect()
	if r.in.SelectKey, err = r.keyOfRows(direct); err != nil {
		return err
	}
	r.in.AllGenerated = r.in.SelectKey == Generated
	switch r.in.SelectKey {
	case Generated:
		if err := r.checkCounter(); err != nil {
			return err
		}
	case Expression:
		r.reads = nil
	default: // the statement stays unchanged
		r.in.head = nil
		return nil
	}
	r.in.query = r.query
	if r.isBracket() && r.inOrder != 0 {
		at := uint32(r.inOrder)
		r.order = change{place: place{at, at}, before: allRows + " "}
	} else if end := uint32(cmp.Or(r.locks, r.end)); r.ordered && !r.limited {
		r.order = change{place: place{uint32(r.orderAt.start), end}}
		if r.orderAt.params < r.params || r.Text[r.at] == '(' { // its arguments must stay; behind a bracket as well
			r.order = change{place: place{end, end}, before: allRows + " "}
		}
	}
	r.nested = r.united && r.ordered && !r.isMySQL()
	if !direct {
		r.wrap()
		return nil
	}
	reads := r.reads
	for i := range r.selects {
		v, _ := r.keyItem(&r.selects[i])
		for len(reads) > 0 && int(reads[0].at) < v.start {
			r.changes, reads = append(r.changes, reads[0]), reads[1:]
		}
		for len(reads) > 0 && int(reads[0].at) < v.end {
			reads = reads[1:] // within the replaced key
		}
		r.addKeys(v)
	}
	r.changes = append(r.changes, reads...)
	return nil
}

// isBracket reports whether the whole query is in brackets.
func (r *queryReader) isBracket() bool { return r.Text[r.at] == '(' && r.enclosed == r.end }

// allRows is a limit for all rows.
const allRows = " LIMIT 9223372036854775807"

// addKeys adds the changes for the key of a SELECT.
func (r *queryReader) addKeys(v value) {
	start, end := uint32(v.start), uint32(v.end)
	switch {
	case r.in.SelectKey == Expression:
		r.changes = append(r.changes, change{place: place{start, start}, before: r.in.checked.before},
			change{place: place{end, end}, before: r.in.checked.after})
	case r.key < 0:
		r.changes = append(r.changes, change{place: place{start, end}, before: ", ", made: theKey, params: v.params})
	default:
		r.changes = append(r.changes, change{place: place{start, end}, made: theKey, params: v.params})
	}
}

// wrap adds the changes for a query inside of another one, which adds or checks the key.
func (r *queryReader) wrap() {
	columns := rowColumns(r.columns)
	at, end := uint32(r.at), uint32(r.end)
	before, after := r.around()
	r.changes = append(r.changes, change{place: place{at, at}, before: before})
	dropped, reads := r.dropped, r.reads
	last := change{place: place{end, end}, before: after + " SELECT ", params: r.params}
	limit := r.locks // of LIMIT, without which MariaDB ignores the order, and both servers in brackets; 0: at the end
	isBracket := r.isBracket() && r.inOrder != 0
	if isBracket {
		limit = r.inOrder
	}
	switch {
	case !isBracket && (!r.ordered || r.limited):
	case limit > 0:
		i, _ := slices.BinarySearchFunc(reads, limit, func(c change, at int) int { return cmp.Compare(int(c.at), at) })
		reads = slices.Insert(slices.Clone(reads), i, change{place: place{uint32(limit), uint32(limit)}, before: allRows + " "})
	default:
		last.before = allRows + last.before
	}
	for len(dropped) > 0 || len(reads) > 0 && int(reads[0].at) < r.end {
		if len(dropped) > 0 && (len(reads) == 0 || dropped[0].at < reads[0].at) {
			r.changes, dropped = append(r.changes, change{place: dropped[0]}), dropped[1:]
		} else {
			r.changes, reads = append(r.changes, reads[0]), reads[1:]
		}
	}
	switch {
	case r.in.SelectKey == Expression:
		columns[r.key] = r.in.checked.before + columns[r.key] + r.in.checked.after
		last.before += strings.Join(columns, ", ")
	case r.key < 0:
		last.before, last.made = last.before+strings.Join(columns, ", ")+", ", theKey
	default:
		last.made = theKey
		for _, column := range columns[:r.key] {
			last.before += column + ", "
		}
		for _, column := range columns[r.key+1:] {
			last.after += ", " + column
		}
	}
	last.after += " FROM shardkey_rows"
	r.changes = append(append(r.changes, last), reads...)
}

// rowColumns returns names for the columns of a query.
func rowColumns(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "c" + strconv.Itoa(i+1)
	}
	return names
}

// keyOfRows returns the source of the rows' keys.
func (r *queryReader) keyOfRows(direct bool) (KeySource, error) {
	if r.key < 0 {
		return Generated, nil
	}
	if !direct {
		return r.expressionKey(r.in, r.at)
	}
	generated, checked := true, false
	for i := range r.selects {
		v, _ := r.keyItem(&r.selects[i])
		kind, err := r.keySource(r.in, &v)
		if err != nil {
			return Unknown, err
		}
		generated = generated && kind == Generated
		checked = checked || kind == Expression || kind == Argument || kind == Generated
	}
	switch {
	case generated:
		return Generated, nil
	case checked:
		return r.expressionKey(r.in, r.at)
	}
	return Unknown, nil
}

// checkCounter refuses an INSERT … SELECT whose keys LAST_INSERT_ID() can't count.
func (r *queryReader) checkCounter() error {
	if r.server() == serverVitess || r.opts.Old || !r.opts.ReportKeys {
		return r.fail(r.at, r.in, "keys for a query that may return several rows need MySQL 8.0, MariaDB 10.6 or a later version, "+
			"and no router that shares connections; read the rows, and insert them with VALUES")
	}
	if r.setsLast > 0 {
		return r.fail(r.setsLast, r.in, "LAST_INSERT_ID(expr), @@last_insert_id and @@identity are not supported in an INSERT … SELECT "+
			"that may insert several rows; write LAST_INSERT_ID(), or send it by itself")
	}
	if r.setsVar > 0 && r.setsVar < r.end {
		return r.fail(r.setsVar, r.in, "an assignment to a user variable is not supported in an INSERT … SELECT that may insert several rows, "+
			"since the query runs twice; number the rows by ROW_NUMBER() OVER (), or read them and insert them with VALUES")
	}
	return nil
}

// counts reports whether the keys are those of a query that may return several rows.
func (in *Insert) counts() bool { return in.query != nil && in.SelectKey == Generated }

// Count returns the query for the number of rows of an INSERT … SELECT that need a key. Its arguments
// are the first [Insert].SelectArgs ones. It is empty for other statements. See [Plan.RewriteSelect].
func (p *Plan) Count() string {
	if p.Insert == nil || !p.Insert.counts() {
		return ""
	}
	q := p.Insert.query
	var b strings.Builder
	before, after := q.around()
	b.WriteString(before)
	pos := q.at
	cut := func(c change) {
		b.WriteString(p.text[pos:c.at] + c.before)
		pos = int(c.end)
	}
	for _, d := range q.dropped {
		if q.order.end == 0 || d.at < q.order.at {
			cut(change{place: d})
		}
	}
	if q.order.end > 0 {
		cut(q.order)
	}
	b.WriteString(p.text[pos:q.end])
	// MySQL's max_execution_time is for SELECTs, not for INSERT … SELECT. LIMIT overrides sql_select_limit.
	b.WriteString(after + " SELECT /*+ MAX_EXECUTION_TIME(4294967295) */ COUNT(*) FROM shardkey_rows LIMIT 1")
	return b.String()
}
