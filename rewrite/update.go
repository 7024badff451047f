package rewrite

import (
	"strings"
)

// Update is what an UPDATE, or the ON DUPLICATE KEY UPDATE of an INSERT, assigns to
// the columns [Table.Fixed] of one table. There is none where every one of them
// keeps its value, or takes the one that the INSERT gives.
type Update struct {
	Schema, Name string // the table as the text names it, without quotes
	Table        *Table
	// Duplicate: it is an ON DUPLICATE KEY UPDATE.
	Duplicate bool

	set []int32 // by Table.Fixed: a place as in given, or notSet
}

// notSet is the place of a column that is not assigned.
const notSet = -1 << 31

// Set tells what is assigned to the column Table.Fixed[column], as [Plan.Given] does.
func (p *Plan) Set(u *Update, column int) (kind GivenKind, param int, value any) {
	switch at := u.set[column]; {
	case at == notSet:
		return GivenNot, 0, nil
	case at == givenUnknown:
		return GivenExpression, 0, nil
	case at >= 0:
		return GivenParam, int(at), nil
	default:
		if value, ok := p.literalAt(int(-2-at), inUpdate); ok {
			return GivenLiteral, 0, value
		}
	}
	return GivenUnknown, 0, nil
}

// MayUpdate reports whether a text of a class that need not be parsed may hold an
// UPDATE that runs.
func MayUpdate(text string, class Class) bool {
	switch class {
	case ClassPass, classSet:
		start := skipLeading(text)
		end, letters := firstWord(text, start)
		if fold(text[start:end], "UPDATE") {
			return true
		}
		_, hold := verbClass(text[start:end], letters)
		return hold && containsFold(text[end:], "UPDATE")
	case ClassSeveral:
		return containsFold(text, "UPDATE")
	}
	return false
}

// UpdateTarget returns the table of a text that is UPDATE, its name and SET, as most
// are; ok is false for others. Names are returned as they are written within quotes.
func UpdateTarget(text string) (schema, name string, ok bool) {
	pos := skipLeading(text)
	end := wordEnd(text, pos)
	if !fold(text[pos:end], "UPDATE") {
		return "", "", false
	}
	pos = blanksEnd(text, end)
	if name, pos, ok = plainName(text, pos); ok && pos < len(text) && text[pos] == '.' {
		schema = name
		name, pos, ok = plainName(text, pos+1)
	}
	pos = blanksEnd(text, pos)
	end = wordEnd(text, pos)
	return schema, name, ok && fold(text[pos:end], "SET") && isASCII(schema) && isASCII(name)
}

func blanksEnd(text string, pos int) int {
	for pos < len(text) && isBlank(text[pos]) {
		pos++
	}
	return pos
}

// plainName reads a name without quotes, or in backquotes without one in it.
func plainName(text string, pos int) (name string, end int, ok bool) {
	if pos < len(text) && text[pos] == '`' {
		length := strings.IndexByte(text[pos+1:], '`')
		if length < 0 {
			return "", pos, false
		}
		end = pos + length + 2
		return text[pos+1 : end-1], end, length > 0 && (end == len(text) || text[end] != '`')
	}
	end = wordEnd(text, pos)
	return text[pos:end], end, end > pos
}

// updated is a table that an UPDATE names, with what else it is called there.
type updated struct {
	Update
	alias string
}

// update reads an UPDATE after its verb. What is not understood changes nothing.
func (p *parser) update() {
	if p.opts.Updates == nil {
		return
	}
	tables, ruled, ok := p.updatedTables()
	if !ok || !ruled {
		return
	}
	for {
		column, ok := p.name(p.next())
		if !ok || !p.assigns() {
			p.rewind(p.prev)
			return
		}
		v := p.expression(inUpdate)
		if v.isEmpty() {
			return
		}
		for i := range tables {
			t := &tables[i]
			if t.Table != nil && (column.parts == 1 || len(tables) == 1 || t.isCalled(column)) {
				p.assign(&t.Update, column.last, &v, func(of name) bool {
					return of.parts == 1 || len(tables) == 1 || t.isCalled(of)
				})
			}
		}
		if !p.isPunct(p.peek(), ',') {
			break
		}
		p.next()
	}
	for i := range tables {
		p.addUpdate(&tables[i].Update)
	}
}

func (p *parser) addUpdate(u *Update) {
	for _, at := range u.set {
		if at != notSet {
			p.plan.Updates = append(p.plan.Updates, *u)
			return
		}
	}
}

// assigns reads the = or := of an assignment.
func (p *parser) assigns() bool {
	t := p.next()
	if p.isPunct(t, ':') {
		t = p.next()
	}
	return p.isPunct(t, '=')
}

// isCalled reports whether the qualifier of a column's name means the table.
func (t *updated) isCalled(column name) bool {
	if t.alias != "" {
		return strings.EqualFold(column.qualifier, t.alias)
	}
	return strings.EqualFold(column.qualifier, t.Name)
}

// updatedTables reads the tables of an UPDATE and its SET. ruled says that one of
// them has columns that are fixed.
func (p *parser) updatedTables() (tables []updated, ruled, ok bool) {
	expected := true // a table's name
	for {
		before := p.prev
		t := p.next()
		word := p.word(t)
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad, p.isPunct(t, ';'):
			p.rewind(t)
			return nil, false, false
		case t.kind == tokenParam:
			p.params++
		case p.isPunct(t, ','), fold(word, "JOIN"), fold(word, "STRAIGHT_JOIN"):
			expected = true
		case p.isPunct(t, '('):
			switch {
			case !expected:
				p.skipBrackets()
			case p.startsQuery(p.peek()) && !p.isPunct(p.peek(), '('):
				p.skipBrackets()
				tables = append(tables, updated{alias: p.tableAlias()})
				expected = false
			}
		case !expected && fold(word, "SET") && !p.isPunct(before, '.'):
			return tables, ruled, true
		case !expected || t.kind != tokenWord && t.kind != tokenQuoted:
		case len(tables) == 0 && (fold(word, "LOW_PRIORITY") || fold(word, "IGNORE")):
		case fold(word, "LATERAL"):
		default:
			n, ok := p.name(t)
			if !ok {
				return nil, false, false
			}
			expected = false
			var of *Table
			if p.isPunct(p.peek(), '(') { // JSON_TABLE(…)
				p.next()
				p.skipBrackets()
			} else {
				of = p.opts.Updates(n.qualifier, n.last)
			}
			u := updated{Update: Update{Schema: n.qualifier, Name: n.last, Table: of}, alias: p.tableAlias()}
			ruled = ruled || of != nil
			tables = append(tables, u)
		}
	}
}

// tableAlias reads what may follow a table's name: its partitions, and another name.
func (p *parser) tableAlias() string {
	t := p.peek()
	if fold(p.word(t), "PARTITION") {
		p.next()
		if p.isPunct(p.next(), '(') {
			p.skipBrackets()
		}
		t = p.peek()
	}
	if fold(p.word(t), "AS") {
		p.next()
		t = p.peek()
	}
	switch word := p.word(t); {
	case t.kind == tokenQuoted:
		p.next()
		return unquoteIdentifier(p.text[t.start:t.end])
	case t.kind != tokenWord, fold(word, "SET"), fold(word, "JOIN"), fold(word, "INNER"), fold(word, "CROSS"), fold(word, "LEFT"), fold(word, "RIGHT"),
		fold(word, "NATURAL"), fold(word, "STRAIGHT_JOIN"), fold(word, "ON"), fold(word, "USING"), fold(word, "USE"), fold(word, "FORCE"),
		fold(word, "IGNORE"), fold(word, "FOR"):
		return ""
	}
	p.next()
	return p.text[t.start:t.end]
}

// skipBrackets moves past the bracket that closes the one before.
func (p *parser) skipBrackets() {
	for depth := 1; depth > 0; {
		switch t := p.next(); {
		case t.kind == tokenEOF, t.kind == tokenBad, p.isPunct(t, ';'):
			p.rewind(t)
			return
		case t.kind == tokenParam:
			p.params++
		case p.isPunct(t, '('):
			depth++
		case p.isPunct(t, ')'):
			depth--
		}
	}
}

// assign takes down what is assigned to a column, if that is one of those that are
// fixed. own tells whether the name of a column, of which the last part is known,
// means this one.
func (p *parser) assign(u *Update, column string, v *value, own func(name) bool) {
	for i, fixed := range u.Table.Fixed {
		if !strings.EqualFold(fixed, column) {
			continue
		}
		if u.set == nil {
			u.set = make([]int32, len(u.Table.Fixed))
			for k := range u.set {
				u.set[k] = notSet
			}
		}
		u.set[i] = p.assigned(v, column, own)
	}
}

// assigned is the place of a value that is assigned.
func (p *parser) assigned(v *value, column string, own func(name) bool) int32 {
	tokens := p.inner(v)
	if len(tokens) == 1 && tokens[0].kind == tokenParam {
		return int32(v.params)
	}
	if p.isOwn(tokens, column, own) {
		return notSet
	}
	_, literal := p.literal(tokens)
	if literal || len(tokens) == 1 && fold(p.word(tokens[0]), "NULL") || p.isTemporal(tokens) {
		return int32(-2 - v.start)
	}
	return givenUnknown
}

// isOwn reports whether a value is the column's own: user_id, t.user_id, or
// LAST_INSERT_ID(user_id).
func (p *parser) isOwn(tokens []token, column string, own func(name) bool) bool {
	if n := len(tokens); n > 3 && fold(p.word(tokens[0]), "LAST_INSERT_ID") && p.isPunct(tokens[1], '(') && p.isPunct(tokens[n-1], ')') {
		tokens = tokens[2 : n-1]
	}
	of, ok := p.nameOf(tokens)
	return ok && strings.EqualFold(of.last, column) && own(of)
}

// nameOf returns the name that tokens are.
func (p *parser) nameOf(tokens []token) (n name, ok bool) {
	for i, t := range tokens {
		switch {
		case i%2 == 1 && p.isPunct(t, '.'):
			continue
		case i%2 == 1:
			return name{}, false
		case t.kind == tokenWord:
			n = name{qualifier: n.last, last: p.text[t.start:t.end], parts: n.parts + 1}
		case t.kind == tokenQuoted:
			n = name{qualifier: n.last, last: unquoteIdentifier(p.text[t.start:t.end]), parts: n.parts + 1}
		default:
			return name{}, false
		}
	}
	return n, len(tokens)%2 == 1
}

// isTemporal reports whether tokens are DATE '2026-02-03' or the like.
func (p *parser) isTemporal(tokens []token) bool {
	if len(tokens) != 2 || tokens[1].kind != tokenString {
		return false
	}
	word := p.word(tokens[0])
	return fold(word, "DATE") || fold(word, "TIMESTAMP") || fold(word, "TIME")
}

// rowAlias is the other name of the rows of an INSERT, and those of their columns.
type rowAlias struct {
	name    string
	columns []string // empty: their own
	of      []string // the columns that the INSERT lists
}

// means reports whether a name is that of a column of the row that the INSERT gives.
func (a *rowAlias) means(n name, column string) bool {
	if n.parts > 1 && !strings.EqualFold(n.qualifier, a.name) {
		return false
	}
	for i, c := range a.columns {
		if strings.EqualFold(c, n.last) {
			return i < len(a.of) && strings.EqualFold(a.of[i], column)
		}
	}
	return n.parts > 1 && len(a.columns) == 0 && strings.EqualFold(n.last, column)
}

// duplicate reads the assignments of ON DUPLICATE KEY UPDATE as far as they change
// fixed columns, and leaves the reader where it was.
func (p *parser) duplicate(in *Insert, alias *rowAlias) {
	if len(in.Table.Fixed) == 0 {
		return
	}
	saved, params, last := p.lexer, p.params, p.last
	defer func() {
		p.restore(saved)
		p.params, p.last = params, last
	}()
	for range 3 { // DUPLICATE KEY UPDATE
		p.next()
	}
	u := Update{Schema: in.Schema, Name: in.Name, Table: in.Table, Duplicate: true}
	for {
		column, ok := p.name(p.next())
		if !ok || !p.assigns() {
			return
		}
		v := p.expression(inUpdate)
		if !p.takesRow(&v, column.last, alias) {
			p.assign(&u, column.last, &v, func(of name) bool { return of.parts == 1 || strings.EqualFold(of.qualifier, in.Name) })
		}
		if !p.isPunct(p.peek(), ',') {
			break
		}
		p.next()
	}
	p.addUpdate(&u)
}

// takesRow reports whether a value is what the INSERT gives for the column:
// VALUES(user_id), or new.user_id with a row alias.
func (p *parser) takesRow(v *value, column string, alias *rowAlias) bool {
	tokens := p.inner(v)
	if n := len(tokens); n > 3 && (fold(p.word(tokens[0]), "VALUES") || fold(p.word(tokens[0]), "VALUE")) &&
		p.isPunct(tokens[1], '(') && p.isPunct(tokens[n-1], ')') {
		of, ok := p.nameOf(tokens[2 : n-1])
		return ok && strings.EqualFold(of.last, column)
	}
	of, ok := p.nameOf(tokens)
	return ok && alias != nil && alias.means(of, column)
}
