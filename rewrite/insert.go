package rewrite

// insert reads an INSERT or REPLACE, whose first word is verb.
func (p *parser) insert(verb token) (done bool, err error) {
	in := p.target()
	if in == nil {
		return p.skipStatement(), nil
	}
	in.start = verb.start
	in.Replace = fold(p.word(verb), "REPLACE")
	in.Statement = p.plan.Statements
	if p.behindProgram {
		return true, p.fail(verb.start, in, "an INSERT behind a stored program's definition is not filled; send them one by one")
	}
	p.plan.Inserts = append(p.plan.Inserts, Insert{})
	err = p.body(in)
	in.MentionsLastID = p.last
	p.plan.Inserts[len(p.plan.Inserts)-1] = *in
	return false, err
}

// target reads what stands between the verb and the column list. It returns
// nil for a table without rule, and for what is no INSERT at all, as the
// function INSERT(…).
func (p *parser) target() *Insert {
	in := &Insert{headAt: -1, aliasAt: -1, inTextSlot: -1}
	t := p.next()
	for p.modifier(t, in) {
		t = p.next()
	}
	if p.isPunct(t, '.') {
		t = p.next() // .t is t: the servers have it "for Delphi"
	}
	name, ok := p.name(t)
	if !ok || name.parts > 2 {
		p.rewind(t)
		return nil
	}
	in.Schema, in.Name, in.end = name.qualifier, name.last, name.end
	if p.opts.Tables == nil {
		return nil
	}
	if in.Table = p.opts.Tables(in.Schema, in.Name); in.Table == nil {
		return nil
	}
	return in
}

func (p *parser) modifier(t token, in *Insert) bool {
	switch word := p.word(t); {
	case fold(word, "IGNORE"):
		in.Ignore = true
	case fold(word, "INTO"), fold(word, "LOW_PRIORITY"), fold(word, "HIGH_PRIORITY"), fold(word, "DELAYED"):
	default:
		return false
	}
	return true
}

// rewind makes t the next token again.
func (p *parser) rewind(t token) { p.pos = t.start }

// body reads what follows the table's name.
func (p *parser) body(in *Insert) error {
	headEnd := in.end
	t := p.next()
	if fold(p.word(t), "PARTITION") {
		open := p.next()
		if _, _, ok := p.names(open); !ok {
			return p.fail(open.start, in, "the list of partitions is not understood")
		}
		headEnd = p.prev.end
		t = p.next()
	}
	list, listed, closing := []string(nil), false, 0
	if p.isPunct(t, '(') && !p.startsQuery(p.peek()) {
		var ok bool
		if list, closing, ok = p.names(t); !ok {
			return p.fail(p.prev.start, in, "the column list is not understood")
		}
		listed = len(list) > 0
		if !listed { // () is no list at all
			in.headAt = closing
		}
		t = p.next()
	}
	cols := columns{list: list, listed: listed, closing: closing, headEnd: headEnd}
	switch word := p.word(t); {
	case fold(word, "VALUES"), fold(word, "VALUE"):
		return p.values(in, cols)
	case fold(word, "SET") && closing == 0:
		return p.assignments(in)
	case p.startsQuery(t), p.isPunct(t, '('):
		return p.source(in, cols, t)
	}
	return p.fail(t.start, in, "VALUES, SET or SELECT is expected")
}

// columns is what a statement says of the target's columns.
type columns struct {
	list    []string
	listed  bool // the list has names
	closing int  // position of the list's closing bracket, 0 without a list
	headEnd int  // end of the table's name and partitions
}

// startsQuery tells whether t begins the query of an INSERT … SELECT.
func (p *parser) startsQuery(t token) bool {
	word := p.word(t)
	return fold(word, "SELECT") || fold(word, "WITH") || fold(word, "TABLE") || fold(word, "VALUES") || p.isPunct(t, '(')
}
