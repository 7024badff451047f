package rewrite

// load parses LOAD DATA and LOAD XML with the first word verb. Rows of a file get no keys, so a
// file for a sharded table must contain them.
func (p *parser) load(verb token) (done bool, err error) {
	if !p.is(p.peek(), "DATA", "XML") {
		return p.skipStatement(), nil
	}
	xml := p.is(p.next(), "XML")
	in, err := p.loadTarget()
	if in == nil {
		return false, err
	}
	wayOut := "LOAD DATA has no values for key column " + in.Table.KeyColumn + "; " +
		"add the column to the file and the column list, or INSERT the rows"
	switch given, listed := p.loadsKey(in); {
	case given:
		return false, nil
	case listed || xml:
		return false, p.fail(verb.start, in, wayOut)
	}
	columns, err := p.tableColumns(in)
	if err == nil && in.keyIndex(columns) < 0 {
		err = p.fail(verb.start, in, wayOut)
	}
	return false, err
}

// loadTarget parses up to the table's name. It returns nil for a table that isn't sharded.
func (p *parser) loadTarget() (*Insert, error) {
	for {
		t := p.next()
		switch {
		case p.endsStatement(t):
			return nil, nil
		case !p.is(t, "INTO") || !p.is(p.peek(), "TABLE"):
			continue
		}
		p.next()
		if t = p.next(); p.isPunct(t, '.') {
			t = p.next()
		}
		name, ok := p.name(t)
		if !ok || name.parts > 2 {
			return nil, nil
		}
		in := &Insert{Schema: name.qualifier, Name: name.last, end: name.end}
		var err error
		if in.Table, err = p.lookup(in, t.start); in.Table == nil {
			return nil, err
		}
		return in, nil
	}
}

// loadsKey parses the rest of the statement. It reports whether the key is among the listed or
// assigned columns, and whether columns are listed.
func (p *parser) loadsKey(in *Insert) (given, listed bool) {
	partition, sets := false, false
	for depth := 0; ; {
		before := p.prev
		t := p.next()
		switch {
		case p.endsStatement(t):
			return given, listed
		case p.isPunct(t, '('):
			partition = p.is(before, "PARTITION")
			depth++
			listed = listed || !sets && !partition
		case p.isPunct(t, ')'):
			depth--
		case p.is(t, "SET") && depth == 0 && !p.is(before, "CHARACTER"):
			sets = true
		case t.kind == tokenWord || t.kind == tokenQuoted:
			begins := p.isPunct(before, ',') || p.isPunct(before, '(') || sets && p.is(before, "SET")
			if begins && (sets && depth == 0 || !sets && depth > 0 && !partition) {
				name, ok := p.name(t)
				given = given || ok && in.keyIndex([]string{name.last}) == 0
			}
		}
	}
}
