package rewrite

import (
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// insert parses an INSERT or REPLACE with the first word verb.
func (p *parser) insert(verb sqltoken.Token) error {
	in := &Insert{AllGenerated: true, start: verb.Start}
	ruled, err := p.target(verb, in)
	if !ruled {
		if err == nil {
			p.skipStatement()
		}
		return err
	}
	p.plan.Insert = in
	in.Replace = p.Is(verb, "REPLACE")
	err = p.body(in)
	in.ReadsLastID = p.last
	return err
}

// target parses the statement from the verb to the column list, and reports whether the table is
// sharded. It returns false for the function INSERT(…).
func (p *parser) target(verb sqltoken.Token, in *Insert) (ruled bool, err error) {
	t := p.Next()
	p.noteHints(p.Text[verb.End:t.Start])
	for p.modifier(t, in) {
		t = p.Next()
	}
	return p.table(t, in)
}

// table parses the table's name, which begins with t, and reports whether the table is sharded.
func (p *parser) table(t sqltoken.Token, in *Insert) (ruled bool, err error) {
	if p.IsPunct(t, '.') {
		t = p.Next() // .t means t (the servers have it "for Delphi")
	}
	name, ok := p.name(t)
	if !ok || name.parts > 2 {
		p.Unread()
		return false, nil
	}
	in.Schema, in.Name, in.end = name.qualifier, name.last, name.end
	in.Table, err = p.lookup(in, t.Start)
	return in.Table != nil, err
}

// lookup returns the sharded table for the name at a position. It refuses a name that the server
// may read differently, if it may be a sharded table.
func (p *parser) lookup(in *Insert, at int) (*Table, error) {
	if p.opts.Table == nil {
		return nil, nil
	}
	if t := p.opts.Table(in.Schema, in.Name); t != nil {
		if !isBeyondASCII(t.Key) && !slices.ContainsFunc(t.Recorded, isBeyondASCII) {
			return t, nil
		}
		p.plan.anyText = true
		if p.Charset != sqltoken.UTF8 {
			return nil, p.fail(at, in, "the key column or a sharding column has non-ASCII letters; SET NAMES utf8mb4")
		}
		return t, nil
	}
	if sqltoken.IsASCII(in.Schema) && sqltoken.IsASCII(in.Name) {
		return nil, nil
	}
	if p.Charset != sqltoken.UTF8 {
		// Its letters differ from the rule's. (Unquoted, the name is doubtful already.)
		if p.opts.NamesBeyondASCII || p.opts.Table("", in.Name) != nil {
			return nil, p.fail(at, in, "names with non-ASCII letters are supported in UTF-8 only; SET NAMES utf8mb4")
		}
		return nil, nil
	}
	if p.opts.Table(sqltoken.FoldName(in.Schema), sqltoken.FoldName(in.Name)) != nil {
		return nil, p.fail(at, in, "servers differ in whether the name is a sharded table's; write it with ASCII letters")
	}
	schema, name := sqltoken.ValidPrefix(in.Schema), sqltoken.ValidPrefix(in.Name)
	if (schema != in.Schema || name != in.Name) && p.opts.Table(schema, name) != nil {
		return nil, p.fail(at, &Insert{Schema: schema, Name: name}, "expected UTF-8 after the table's name, found invalid bytes")
	}
	return nil, nil
}

func isBeyondASCII(name string) bool { return !sqltoken.IsASCII(name) }

// noteHints detects sql_mode in the hints after a statement's verb.
func (p *parser) noteHints(text string) {
	if strings.Contains(text, "/*+") && sqltoken.Contains(text, "SQL_MODE") {
		p.modeSet = true
	}
}

func (p *parser) modifier(t sqltoken.Token, in *Insert) bool {
	ignore := p.Is(t, "IGNORE")
	in.Ignore = in.Ignore || ignore
	return ignore || p.Is(t, "INTO", "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED")
}

// body parses the rest of the statement after the table's name.
func (p *parser) body(in *Insert) error {
	cols := columns{headEnd: in.end}
	t := p.Next()
	if p.Is(t, "PARTITION") {
		open := p.Next()
		if _, _, ok := p.names(open); !ok {
			return p.fail(open.Start, in, "expected a list of partitions in brackets")
		}
		cols.headEnd = p.Prev.End
		t = p.Next()
	}
	if p.IsPunct(t, '(') && !p.startsQuery(p.Peek()) {
		var ok bool
		if cols.list, cols.closing, ok = p.names(t); !ok {
			return p.fail(p.Prev.Start, in, "expected a column or a closing bracket in the column list")
		}
		cols.listed = len(cols.list) > 0 // () lists no columns
		t = p.Next()
	}
	switch {
	case p.Is(t, "VALUES", "VALUE"):
		return p.values(in, cols)
	case p.Is(t, "SET") && cols.closing == 0:
		return p.assignments(in)
	case p.startsQuery(t), p.IsPunct(t, '('):
		return p.source(in, cols, t)
	}
	return p.fail(t.Start, in, "expected VALUES, SET or SELECT")
}

// columns describes the columns of a statement.
type columns struct {
	list    []string // the listed columns, or the table's if they are needed
	listed  bool     // the list has names
	closing int      // position of the list's closing bracket, 0 without a list
	headEnd int      // end of the table's name and partitions
}

// startsQuery reports whether t begins the query of an INSERT … SELECT.
func (p *parser) startsQuery(t sqltoken.Token) bool {
	return p.Is(t, "SELECT", "WITH", "TABLE", "VALUES") || p.IsPunct(t, '(')
}

// name is a name of one or more parts. qualifier is the second last part.
type name struct {
	qualifier, last string
	parts           int
	end             int
}

// name parses the name that begins with t, without its quotes.
func (p *parser) name(t sqltoken.Token) (n name, ok bool) {
	for {
		n.qualifier = n.last
		switch t.Kind {
		case sqltoken.Word:
			n.last = p.Text[t.Start:t.End]
		case sqltoken.Quoted:
			n.last = sqltoken.UnquoteIdentifier(p.Text[t.Start:t.End])
		default:
			return n, false
		}
		n.end = t.End
		n.parts++
		const most = 3 // database, table and column
		if n.parts > most || !p.dotFollows() {
			return n, n.parts <= most
		}
		p.Next()
		t = p.Next()
	}
}

// dotFollows reports whether the next token is a dot. Usually one byte decides.
func (p *parser) dotFollows() bool {
	if p.Pos < len(p.Text) {
		if c := p.Text[p.Pos]; c != '.' && !sqltoken.IsBlank(c) && !sqltoken.IsComment(c) {
			return false
		}
	}
	return p.IsPunct(p.Peek(), '.')
}

// names parses a list of names in brackets, and returns the last part of each.
func (p *parser) names(open sqltoken.Token) (list []string, closing int, ok bool) {
	if !p.IsPunct(open, '(') {
		return nil, 0, false
	}
	t := p.Next()
	if p.IsPunct(t, ')') {
		return nil, t.Start, true
	}
	list = make([]string, 0, 8)
	for {
		column, ok := p.name(t)
		if !ok {
			return nil, 0, false
		}
		list = append(list, column.last)
		switch t = p.Next(); {
		case p.IsPunct(t, ')'):
			return list, t.Start, true
		case !p.IsPunct(t, ','):
			return nil, 0, false
		}
		t = p.Next()
	}
}

// same reports whether two names of columns are the same. It doubts the string if servers differ.
func (p *parser) same(a, b string) bool {
	same, certain := sqltoken.SameName(a, b)
	if same && !certain {
		p.Doubt(p.Prev.Start, "servers differ in whether a name is "+sqltoken.QuoteIdentifier(b)+"; write it with ASCII letters")
	}
	return same
}

// keyIndex returns the index of the key column in a list of columns, −1 if it is missing.
func (p *parser) keyIndex(in *Insert, list []string) int {
	return slices.IndexFunc(list, func(column string) bool { return p.same(column, in.Table.Key) })
}

// values parses the rows of VALUES.
func (p *parser) values(in *Insert, cols columns) error {
	verb := p.Lexer
	rows := rowReader{parser: p, in: in, key: -1, arity: len(cols.list), listed: cols.listed, wrong: -1}
	empty := p.emptyRow()
	switch {
	case cols.listed:
		if rows.key = p.keyIndex(in, cols.list); rows.key < 0 {
			in.head = addition(cols.closing, ", "+sqltoken.QuoteIdentifier(in.Table.Key))
			in.keyPrefix, in.keyAdded = ", ", true
		}
	case empty:
		in.keyAdded = true
		p.listColumns(in, cols, []string{in.Table.Key})
	default:
		var err error
		if cols.list, err = p.tableColumns(in); err != nil {
			return err
		}
		rows.arity = len(cols.list)
		// List the columns that the rows were checked with. If the table has changed, the key is
		// still in its column.
		names := cols.list
		if rows.key = p.keyIndex(in, names); rows.key < 0 {
			in.keyPrefix, in.keyAdded = ", ", true // an invisible key column
			names = append(slices.Clip(names), in.Table.Key)
		}
		p.listColumns(in, cols, names)
	}
	rows.find(cols.list)
	if err := rows.all(); err != nil {
		return err
	}
	if p.continuesQuery(p.Peek()) {
		// VALUES (1), (2) LIMIT 1 is a query.
		in.Rows, in.places, in.given, in.Invalid, in.AllGenerated = nil, nil, nil, false, true
		in.head, in.keyPrefix, in.keyAdded = nil, "", false
		p.Restore(verb)
		return p.source(in, cols, p.Prev)
	}
	if in.Invalid {
		rows.refuse()
	}
	return p.tail(in, cols.list)
}

// continuesQuery reports whether t makes the preceding VALUES a query.
func (p *parser) continuesQuery(t sqltoken.Token) bool {
	return p.Is(t, "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT")
}

// listColumns adds a column list to the statement.
func (p *parser) listColumns(in *Insert, cols columns, names []string) {
	list := strings.Join(sqltoken.QuoteIdentifiers(names), ", ")
	if in.head = addition(cols.closing, list); cols.closing == 0 {
		in.head = addition(cols.headEnd, " ("+list+")")
	}
}

// tableColumns returns the table's columns, for a statement without a column list.
func (p *parser) tableColumns(in *Insert) (columns []string, err error) {
	if columns = in.Table.Columns; columns == nil {
		err := p.fail(in.end, in, "the table's columns are unknown; list the columns in the statement").(*StatementError)
		err.Err = &Needs{Columns: true, Schema: in.Schema, Name: in.Name}
		return nil, err
	}
	if slices.ContainsFunc(columns, isBeyondASCII) {
		p.plan.anyText = true
	}
	return columns, nil
}

// emptyRow reports whether the first row is ().
func (p *parser) emptyRow() bool {
	defer p.LookAhead()()
	t := p.Next()
	if p.Is(t, "ROW") {
		t = p.Next()
	}
	return p.IsPunct(t, '(') && p.IsPunct(p.Next(), ')')
}

// assignments parses the assignments of INSERT … SET.
func (p *parser) assignments(in *Insert) error {
	found, end, columns := false, 0, []string(nil)
	in.given = make([]given, len(in.Table.Recorded))
	for {
		column, ok := p.name(p.Next())
		if !ok {
			return p.fail(p.Prev.Start, in, "expected a column")
		}
		if !p.assigns() {
			return p.fail(p.Prev.Start, in, "expected =")
		}
		columns = append(columns, column.last)
		isKey := !found && p.same(column.last, in.Table.Key)
		v := p.expression(inSet)
		if v.isEmpty() {
			return p.fail(v.end, in, "expected a value")
		}
		end = v.end
		if i := p.noted(in, column.last); i >= 0 && in.given[i].form == givenUnknown {
			in.given[i] = p.givenBy(&v)
		}
		if isKey {
			found = true
			if err := p.addKey(in, &v); err != nil {
				return err
			}
		}
		if !p.IsPunct(p.Peek(), ',') {
			break
		}
		p.Next()
	}
	if !found {
		in.keyPrefix, in.keyAdded = ", "+sqltoken.QuoteIdentifier(in.Table.Key)+" = ", true
		p.addRow(in, Row{Generated, p.Params}, place{uint32(end), uint32(end)})
	}
	return p.tail(in, columns)
}

// endsAssignment reports whether t begins the clause after assignments. before is the token before
// t.
func (p *parser) endsAssignment(in clause, before, t sqltoken.Token) bool {
	switch {
	case in == inSelect:
		return p.endsItem(before, t)
	case p.IsPunct(before, '.'):
		return false
	}
	return in == inSet && p.Is(t, "AS", "ON") || p.isReturning(t, before)
}

// tail parses the clauses after the rows, up to the statement's end: a row alias, ON DUPLICATE KEY
// UPDATE and RETURNING.
func (p *parser) tail(in *Insert, columns []string) error {
	t := p.Next()
	var alias *rowAlias
	if p.Is(t, "AS") {
		as, ok := p.name(p.Next())
		if !ok {
			return p.fail(p.Prev.Start, in, "expected a row alias")
		}
		alias = &rowAlias{name: as.last, of: columns}
		at, more := as.end, aliasColumns(columns)
		if t = p.Next(); p.IsPunct(t, '(') {
			if alias.columns, at, ok = p.names(t); !ok {
				return p.fail(t.Start, in, "expected the columns of the row alias")
			}
			more = ", " + aliasOfKey
			t = p.Next()
		}
		if in.keyAdded && len(columns) > 0 { // otherwise the row () has all columns
			in.tail = addition(at, more)
		}
	}
	if p.onDuplicate(t) {
		in.OnDuplicate = true
		p.duplicate(in, alias)
		t, p.updatesEnd = p.skipTo(true)
	}
	if p.Is(t, "RETURNING") {
		if in.Returning = true; p.returnsOnly(in.Table.Key) {
			in.ReturnsKey, in.returningAt = true, t.Start
		}
		t, _ = p.skipTo(false)
	}
	switch {
	case t.Kind == sqltoken.EOF, p.IsPunct(t, ';'):
		return nil
	case t.Kind == sqltoken.Bad:
		return p.fail(t.Start, in, "unterminated string, name or comment")
	}
	return p.fail(t.Start, in, "expected ON DUPLICATE KEY UPDATE, RETURNING or the end of the statement")
}

// aliasOfKey is the name of an added key in a row alias. With the key's own name, the key column of the
// table would be ambiguous.
const aliasOfKey = "`shardkey_key`"

// aliasColumns returns the columns of a row alias that has none, with an added key.
func aliasColumns(columns []string) string {
	return "(" + strings.Join(append(sqltoken.QuoteIdentifiers(columns), aliasOfKey), ", ") + ")"
}

// returnsOnly reports whether the last clause, RETURNING, consists of a column.
func (p *parser) returnsOnly(column string) bool {
	defer p.LookAhead()()
	n, ok := p.name(p.Next())
	return ok && p.same(n.last, column) && p.Next().Kind == sqltoken.EOF
}

// onDuplicate reports whether t begins ON DUPLICATE KEY.
func (p *parser) onDuplicate(t sqltoken.Token) bool {
	if !p.Is(t, "ON") {
		return false
	}
	defer p.LookAhead()()
	return p.Is(p.Next(), "DUPLICATE") && p.Is(p.Next(), "KEY")
}

// skipTo moves to RETURNING, if returning is set, or the end of the statement. It returns that token
// and the end of the token before it.
func (p *parser) skipTo(returning bool) (t sqltoken.Token, end int) {
	depth := 0
	for {
		before := p.Prev
		t = p.take(&depth)
		if p.EndsStatement(t) ||
			returning && depth == 0 && p.isReturning(t, before) && !p.IsPunct(p.Peek(), '=') {
			return t, before.End
		}
	}
}

// take returns the next token. It counts open brackets, and detects LAST_INSERT_ID().
func (p *parser) take(depth *int) sqltoken.Token {
	t := p.Next()
	switch {
	case t.Kind == sqltoken.Word, t.Kind == sqltoken.Quoted:
		p.noteWord(t)
	case p.IsPunct(t, '('):
		*depth++
	case p.IsPunct(t, ')'):
		*depth--
	case p.IsPunct(t, ':') && p.setsVar == 0 && p.IsPunct(p.Peek(), '='):
		p.setsVar = t.Start
	}
	return t
}

// isReturning reports whether t begins the clause RETURNING. The token before it is before. In
// MySQL the word is an ordinary name.
func (p *parser) isReturning(t, before sqltoken.Token) bool {
	return p.Is(t, "RETURNING") && !p.isNamePosition(before) && !p.isMySQL()
}

// isNamePosition reports whether a word after this token is a name: after a dot, comma or operator.
func (p *parser) isNamePosition(before sqltoken.Token) bool {
	return before.Kind == sqltoken.Punct && !p.IsPunct(before, ')') ||
		p.Is(before, "UPDATE", "AS", "NOT", "AND", "OR", "XOR", "DIV", "MOD", "LIKE", "IS", "IN", "SELECT", "FROM")
}
