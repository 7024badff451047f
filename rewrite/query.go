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
	in.Select, in.SelectArgs = p.Text[r.at:r.end], r.params
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
func (qr *queryReader) read() {
	depth := 0
	begins := true            // only brackets precede the token
	var former sqltoken.Token // the token in front of before
	for before := qr.Prev; ; former, before = before, qr.Prev {
		t := qr.take(&depth)
		if begins = begins && qr.IsPunct(t, '('); begins {
			qr.opened = depth
		}
		qr.orderInside(before, t, depth)
		outside := depth == 0
		locks := qr.Is(former, "FOR") && qr.Is(before, "UPDATE") && qr.Is(t, "RETURNING") && !qr.isMySQL()
		switch {
		case t.Kind == sqltoken.EOF, t.Kind == sqltoken.Bad, outside && qr.IsPunct(t, ';'),
			outside && qr.onDuplicate(t),
			outside && (locks || qr.isReturning(t, before)):
			return
		case t.Kind != sqltoken.Word || qr.IsPunct(before, '.'):
		case qr.Is(t, "INTO"):
			qr.into = t.Start
		case qr.Is(t, "SELECT"):
			if qr.modifiers(outside); outside {
				qr.list()
				continue
			}
		case outside:
			qr.clause(t)
		}
		qr.end = t.End
	}
}

// orderInside notes the ORDER BY in the brackets that the query begins with. before is the token before t,
// and depth the number of brackets that are open after t.
func (qr *queryReader) orderInside(before, t sqltoken.Token, depth int) {
	const open = -1 // the ORDER BY hasn't ended
	switch {
	case depth < qr.opened: // t is a bracket
		if qr.opened = depth; qr.inOrder == open {
			qr.inOrder = t.Start
		}
		if depth == 0 {
			qr.enclosed = t.End
		}
	case depth == 0, depth > qr.opened, qr.IsPunct(before, '.'):
	case qr.Is(t, "ORDER"):
		qr.inOrder = open
	case qr.Is(t, "LIMIT", "FETCH", "OFFSET"), qr.IsPunct(before, ')') && qr.inOrder > 0: // of an operand
		qr.inOrder = 0
	case qr.inOrder == open && qr.Is(t, "FOR", "LOCK"):
		qr.inOrder = t.Start
	}
}

// modifiers parses the words between SELECT and its first item.
func (qr *queryReader) modifiers(outside bool) {
	if outside {
		qr.noteHints(qr.Text[qr.Prev.End:qr.Peek().Start])
	}
	for {
		t := qr.Peek()
		switch {
		case qr.Is(t, "HIGH_PRIORITY", "SQL_CALC_FOUND_ROWS", "SQL_NO_CACHE", "SQL_CACHE", "SQL_BUFFER_RESULT"):
			qr.dropped = append(qr.dropped, place{uint32(t.Start), uint32(t.End)})
		case qr.Is(t, "DISTINCT", "DISTINCTROW", "UNIQUE"):
			qr.wrapped = qr.wrapped || outside
		case !qr.Is(t, "ALL", "STRAIGHT_JOIN", "SQL_SMALL_RESULT", "SQL_BIG_RESULT"):
			return
		}
		qr.Next()
	}
}

// list parses the items of a SELECT.
func (qr *queryReader) list() {
	var s selectList
	for {
		v := qr.expression(inSelect)
		s.items = append(s.items, v)
		s.star = s.star || v.end > 0 && qr.Text[v.end-1] == '*'
		if s.params = qr.Params; !qr.IsPunct(qr.Peek(), ',') {
			break
		}
		qr.Next()
	}
	qr.selects, qr.end = append(qr.selects, s), s.items[len(s.items)-1].end
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
func (qr *queryReader) clause(t sqltoken.Token) {
	switch {
	case qr.Is(t, "FROM"):
		qr.from = qr.from || !qr.fromDual()
	case qr.Is(t, "ORDER"):
		qr.ordered, qr.orderAt, qr.locks = true, value{start: t.Start, params: qr.Params}, 0
	case qr.ordered && qr.locks == 0 && (qr.Is(t, "FOR") || qr.Is(t, "LOCK") && qr.Is(qr.Peek(), "IN")):
		qr.locks = t.Start
	case qr.Is(t, "GROUP"):
		qr.grouped = true
	case qr.Is(t, "LIMIT"):
		qr.limited, qr.single = true, qr.isOne()
	case qr.Is(t, "FETCH", "OFFSET"):
		qr.limited = true
	case qr.Is(t, "ROLLUP", "CUBE"):
		qr.wrapped = qr.wrapped || qr.grouped
	case qr.Is(t, "UNION"):
		qr.united = true
		qr.wrapped = qr.wrapped || len(qr.selects) == 0 || !qr.joinsAll()
	case qr.Is(t, "INTERSECT", "EXCEPT", "MINUS"):
		qr.united = qr.united || qr.startsQuery(qr.Peek()) || qr.Is(qr.Peek(), "ALL", "DISTINCT")
		qr.wrapped = qr.wrapped || qr.united
	}
}

// fromDual reports whether DUAL is the only table.
func (qr *queryReader) fromDual() bool {
	defer qr.LookAhead()()
	return qr.Is(qr.Next(), "DUAL") && !qr.IsPunct(qr.Peek(), ',') &&
		!qr.Is(qr.Peek(), "JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "STRAIGHT_JOIN")
}

// isOne reports whether the limit is 1 row.
func (qr *queryReader) isOne() bool {
	defer qr.LookAhead()()
	t := qr.Next()
	return qr.Text[t.Start:t.End] == "1" && !qr.IsPunct(qr.Peek(), ',')
}

// joinsAll reports whether ALL SELECT follows.
func (qr *queryReader) joinsAll() bool {
	defer qr.LookAhead()()
	return qr.Is(qr.Next(), "ALL") && qr.Is(qr.Peek(), "SELECT")
}

// isDirect reports whether the key can be an item of each SELECT.
func (qr *queryReader) isDirect() bool {
	if qr.wrapped || len(qr.selects) == 0 || len(qr.selects) > 1 && (qr.ordered || qr.limited) {
		return false
	}
	for _, s := range qr.selects {
		if _, ok := qr.keyItem(&s); !ok {
			return false
		}
	}
	return true
}

// keyItem returns the item of the key, without an alias. If the key is added, it is empty and follows
// the last item.
func (qr *queryReader) keyItem(s *selectList) (v value, ok bool) {
	if qr.key < 0 {
		end := s.items[len(s.items)-1].end
		return value{start: end, end: end, params: s.params}, true
	}
	if s.star || qr.key >= len(s.items) {
		return v, false
	}
	return qr.withoutAlias(s.items[qr.key])
}

// isOneRow reports whether the query returns at most one row.
func (qr *queryReader) isOneRow() bool {
	return qr.isDirect() && len(qr.selects) == 1 && (!qr.from || qr.single)
}

// oneRow completes the insert of a query with at most one row, which is like one row of VALUES.
func (qr *queryReader) oneRow(list []string) error {
	s := &qr.selects[0]
	if width := len(qr.in.Table.Recorded); width > 0 && !s.star {
		qr.in.given = make([]given, width)
		for i, column := range list[:min(len(list), len(s.items))] {
			if at := qr.noted(qr.in, column); at >= 0 {
				if v, ok := qr.withoutAlias(s.items[i]); ok {
					qr.in.given[at] = qr.givenBy(&v)
				}
			}
		}
	}
	v, _ := qr.keyItem(s)
	if qr.key >= 0 {
		return qr.addKey(qr.in, &v)
	}
	qr.in.keyPrefix, qr.in.keyAdded = ", ", true
	qr.addRow(qr.in, Row{Generated, v.params}, place{uint32(v.start), uint32(v.end)})
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
func (qr *queryReader) severalRows() (err error) {
	direct := qr.isDirect()
	if qr.in.SelectKey, err = qr.keyOfRows(direct); err != nil {
		return err
	}
	qr.in.AllGenerated = qr.in.SelectKey == Generated
	switch qr.in.SelectKey {
	case Generated:
		if err := qr.checkCounter(); err != nil {
			return err
		}
	case Expression:
		qr.reads = nil
	default: // the statement stays unchanged
		qr.in.head = nil
		return nil
	}
	qr.in.query = qr.query
	if qr.isBracket() && qr.inOrder != 0 {
		at := uint32(qr.inOrder)
		qr.order = change{place: place{at, at}, before: allRows + " "}
	} else if end := uint32(cmp.Or(qr.locks, qr.end)); qr.ordered && !qr.limited {
		qr.order = change{place: place{uint32(qr.orderAt.start), end}}
		if qr.orderAt.params < qr.params || qr.Text[qr.at] == '(' { // its arguments must stay; behind a bracket as well
			qr.order = change{place: place{end, end}, before: allRows + " "}
		}
	}
	qr.nested = qr.united && qr.ordered && !qr.isMySQL()
	if !direct {
		qr.wrap()
		return nil
	}
	reads := qr.reads
	for i := range qr.selects {
		v, _ := qr.keyItem(&qr.selects[i])
		for len(reads) > 0 && int(reads[0].at) < v.start {
			qr.changes, reads = append(qr.changes, reads[0]), reads[1:]
		}
		for len(reads) > 0 && int(reads[0].at) < v.end {
			reads = reads[1:] // within the replaced key
		}
		qr.addKeys(v)
	}
	qr.changes = append(qr.changes, reads...)
	return nil
}

// isBracket reports whether the whole query is in brackets.
func (qr *queryReader) isBracket() bool { return qr.Text[qr.at] == '(' && qr.enclosed == qr.end }

// allRows is a limit for all rows.
const allRows = " LIMIT 9223372036854775807"

// addKeys adds the changes for the key of a SELECT.
func (qr *queryReader) addKeys(v value) {
	start, end := uint32(v.start), uint32(v.end)
	switch {
	case qr.in.SelectKey == Expression:
		qr.changes = append(qr.changes, change{place: place{start, start}, before: qr.in.checked.before},
			change{place: place{end, end}, before: qr.in.checked.after})
	case qr.key < 0:
		qr.changes = append(qr.changes, change{place: place{start, end}, before: ", ", made: theKey, params: v.params})
	default:
		qr.changes = append(qr.changes, change{place: place{start, end}, made: theKey, params: v.params})
	}
}

// wrap adds the changes for a query inside of another one, which adds or checks the key.
func (qr *queryReader) wrap() {
	columns := rowColumns(qr.columns)
	at, end := uint32(qr.at), uint32(qr.end)
	before, after := qr.around()
	qr.changes = append(qr.changes, change{place: place{at, at}, before: before})
	dropped, reads := qr.dropped, qr.reads
	last := change{place: place{end, end}, before: after + " SELECT ", params: qr.params}
	limit := qr.locks // of LIMIT, without which MariaDB ignores the order, and both servers in brackets; 0: at the end
	isBracket := qr.isBracket() && qr.inOrder != 0
	if isBracket {
		limit = qr.inOrder
	}
	switch {
	case !isBracket && (!qr.ordered || qr.limited):
	case limit > 0:
		i, _ := slices.BinarySearchFunc(reads, limit, func(c change, at int) int { return cmp.Compare(int(c.at), at) })
		reads = slices.Insert(slices.Clone(reads), i, change{place: place{uint32(limit), uint32(limit)}, before: allRows + " "})
	default:
		last.before = allRows + last.before
	}
	for len(dropped) > 0 || len(reads) > 0 && int(reads[0].at) < qr.end {
		if len(dropped) > 0 && (len(reads) == 0 || dropped[0].at < reads[0].at) {
			qr.changes, dropped = append(qr.changes, change{place: dropped[0]}), dropped[1:]
		} else {
			qr.changes, reads = append(qr.changes, reads[0]), reads[1:]
		}
	}
	if qr.in.SelectKey == Expression {
		columns[qr.key] = qr.in.checked.before + columns[qr.key] + qr.in.checked.after
		last.before += strings.Join(columns, ", ")
	} else {
		last.before, last.made = last.before+strings.Join(columns, ", ")+", ", theKey
	}
	last.after = " FROM shardkey_rows"
	qr.changes = append(append(qr.changes, last), reads...)
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
func (qr *queryReader) keyOfRows(direct bool) (KeySource, error) {
	if qr.key < 0 {
		return Generated, nil
	}
	if !direct {
		return qr.expressionKey(qr.in, qr.at)
	}
	generated, checked := true, false
	for i := range qr.selects {
		v, _ := qr.keyItem(&qr.selects[i])
		kind, err := qr.keySource(qr.in, &v)
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
		return qr.expressionKey(qr.in, qr.at)
	}
	return Unknown, nil
}

// checkCounter refuses an INSERT … SELECT whose keys LAST_INSERT_ID() can't count.
func (qr *queryReader) checkCounter() error {
	if qr.server() == serverVitess || qr.opts.Old || !qr.opts.ReportKeys {
		return qr.fail(qr.at, qr.in, "keys for a query that may return several rows need MySQL 8.0, MariaDB 10.6 or a later version, "+
			"and no router that shares connections; read the rows, and insert them with VALUES")
	}
	if qr.setsLast > 0 {
		return qr.fail(qr.setsLast, qr.in, "LAST_INSERT_ID(expr), @@last_insert_id and @@identity are not supported in an INSERT … SELECT "+
			"that may insert several rows; write LAST_INSERT_ID(), or send it by itself")
	}
	if qr.setsVar > 0 && qr.setsVar < qr.end {
		return qr.fail(qr.setsVar, qr.in, "an assignment to a user variable is not supported in an INSERT … SELECT that may insert several rows, "+
			"since the query runs twice; number the rows by ROW_NUMBER() OVER (), or read them and insert them with VALUES")
	}
	return nil
}

// counts reports whether the keys are those of a query that may return several rows.
func (in *Insert) counts() bool { return in.query != nil && in.SelectKey == Generated }

// Count returns the query for the number of rows of an INSERT … SELECT that need a key. Its arguments
// are the first [Insert].SelectArgs ones. It is empty for other statements. See [Plan.RewriteSelect].
func (plan *Plan) Count() string {
	if plan.Insert == nil || !plan.Insert.counts() {
		return ""
	}
	q := plan.Insert.query
	var b strings.Builder
	before, after := q.around()
	b.WriteString(before)
	pos := q.at
	cut := func(c change) {
		b.WriteString(plan.text[pos:c.at] + c.before)
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
	b.WriteString(plan.text[pos:q.end])
	// MySQL's max_execution_time is for SELECTs, not for INSERT … SELECT. LIMIT overrides sql_select_limit.
	b.WriteString(after + " SELECT /*+ MAX_EXECUTION_TIME(4294967295) */ COUNT(*) FROM shardkey_rows LIMIT 1")
	return b.String()
}
