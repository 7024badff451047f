package rewrite

import (
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// first parses the first statement of the string. If others follow it and one of them may need a
// key, the error has [ErrSeveralStatements] in its chain.
func (p *parser) first() error {
	switch t := p.Next(); {
	case t.Kind == sqltoken.EOF, t.Kind == sqltoken.Bad:
		return nil
	case !p.IsPunct(t, ';'):
		if err := p.statement(t); err != nil || p.unread > 0 {
			return err
		}
	}
	for !p.EndsStatement(p.Prev) {
		p.Next()
	}
	if !p.IsPunct(p.Prev, ';') || p.Peek().Kind == sqltoken.EOF || isEmpty(p.Text[p.Pos:]) {
		return nil
	}
	rest := p.plan.text[p.Pos:]
	in := p.plan.Insert
	if in == nil {
		in = &Insert{Name: p.mayInsertInto(rest)}
	}
	switch {
	case in.Name != "":
	case !p.opts.NamesBeyondASCII, sqltoken.IsASCII(rest): // otherwise the string may change the character set
		return nil
	}
	err := p.fail(p.Pos, in, "the string has several statements; set multiStatements=true in the DSN and execute it "+
		"without preparing it, or send the statements one by one").(*StatementError)
	err.Err = ErrSeveralStatements
	return err
}

// statement parses one statement, up to its semicolon.
func (p *parser) statement(t sqltoken.Token) (err error) {
	p.modeSet = false
	isSet := false // SET STATEMENT precedes the statement
	for p.Is(t, "SET") && p.Is(p.Peek(), "STATEMENT") {
		if t, err = p.setStatement(t); err != nil || t.Kind == sqltoken.EOF {
			return err
		}
		isSet = true
	}
	p.last, p.reads, p.setsLast = false, nil, 0
	err = p.dispatch(t)
	if in := p.plan.Insert; isSet && err == nil && in != nil && in.Select != "" {
		err = p.fail(in.start, in, "INSERT … SELECT after SET STATEMENT is not supported; set the variables in a separate statement")
	}
	return err
}

// dispatch parses the statement that begins with t.
func (p *parser) dispatch(t sqltoken.Token) error {
	switch {
	case t.Kind == sqltoken.Param:
		// a syntax error
	case p.Is(t, "INSERT", "REPLACE"):
		return p.insert(t)
	case p.Is(t, "LOAD"):
		return p.load(t)
	case p.Is(t, "ANALYZE"), p.Is(t, "EXPLAIN", "DESCRIBE", "DESC") && p.Is(p.Peek(), "ANALYZE"):
		// ANALYZE [FORMAT=JSON] statement (MariaDB) and EXPLAIN ANALYZE (TiDB) execute the
		// statement.
		return p.wrapped("ANALYZE would execute the INSERT without keys; send the INSERT by itself")
	case p.Is(t, "EXPLAIN", "DESCRIBE", "DESC"):
	case p.beginsCompound(t):
		before := p.Lexer
		p.skip(t)
		end := p.Prev.End
		p.Restore(before)
		return p.compound(end, "an INSERT in a compound statement is not supported; send it by itself")
	case p.storedProgram(t):
		before := p.Lexer
		if !p.skip(t) {
			p.Restore(before)
			return p.compound(len(p.Text), "the end of the stored program's definition is uncertain; if an INSERT follows it, send them one by one")
		}
		return nil
	case p.Is(t, "WITH"):
		return p.wrapped("WITH before an INSERT is not supported; write it after the column list")
	case !p.isKnown(t):
		if word := p.Text[t.Start:t.End]; sqltoken.MentionsInsert(word) && sqltoken.ValidPrefix(word) != word {
			p.Doubt(t.Start, "the statement contains invalid UTF-8; SET NAMES utf8mb4, or pass the value as an argument")
		}
		return p.wrapped("the statement before the INSERT is unknown; send the INSERT by itself")
	}
	p.skipStatement()
	return nil
}

// isKnown reports whether t begins a statement that doesn't execute an INSERT in the string.
func (p *parser) isKnown(t sqltoken.Token) bool {
	switch t.Kind {
	case sqltoken.Word:
		_, hold := sqltoken.VerbClass(p.Text[t.Start:t.End])
		return !hold || p.Is(t, "SET", "BEGIN")
	case sqltoken.Punct:
		return p.Text[t.Start] == '('
	}
	return false
}

// skipStatement moves past the next semicolon. If the rest of the string contains no INSERT, it
// need not be read.
func (p *parser) skipStatement() {
	semicolon := strings.IndexByte(p.plan.text[p.Pos:], ';')
	if semicolon < 0 || !sqltoken.MentionsInsert(p.plan.text[p.Pos+semicolon:]) {
		// Placeholders in the unread part aren't counted.
		p.unread = p.Pos
		return
	}
	for depth := 0; !p.EndsStatement(p.take(&depth)); {
	}
}

// wrapped refuses a statement that executes an INSERT into a sharded table.
func (p *parser) wrapped(reason string) error {
	for depth := 0; ; {
		u := p.take(&depth)
		switch {
		case p.EndsStatement(u):
			return nil
		case p.Is(u, "INSERT", "REPLACE"):
			in := &Insert{}
			ruled, err := p.target(u, in)
			if ruled && err == nil {
				err = p.fail(u.Start, in, reason)
			}
			if err != nil {
				return err
			}
		}
	}
}

// compound refuses the string if it contains an INSERT into a sharded table before a position.
func (p *parser) compound(end int, reason string) error {
	for p.Pos < end && !p.AtEnd() {
		if err := p.wrapped(reason); err != nil {
			return err
		}
	}
	return nil
}

// setStatement parses MariaDB's SET STATEMENT variable = value FOR with the first word set. It
// returns the first token of the statement that follows.
func (p *parser) setStatement(set sqltoken.Token) (sqltoken.Token, error) {
	begin := p.Lexer
	for depth := 0; ; {
		u := p.take(&depth)
		switch {
		case p.EndsStatement(u):
			// The statement can't be parsed. The server probably reports a syntax error.
			p.Restore(begin)
			err := p.wrapped("expected SET STATEMENT variable = value FOR before the INSERT")
			return sqltoken.Token{Kind: sqltoken.EOF, Start: p.Pos}, err
		case depth == 0 && p.Is(u, "FOR"):
			if sqltoken.Contains(p.Text[set.Start:u.Start], "SQL_MODE") {
				p.modeSet = true
			}
			return p.Next(), nil
		}
	}
}

// load parses LOAD DATA and LOAD XML with the first word verb. Rows of a file get no keys, so a
// file for a sharded table must contain them.
func (p *parser) load(verb sqltoken.Token) error {
	if !p.Is(p.Peek(), "DATA", "XML") {
		p.skipStatement()
		return nil
	}
	xml := p.Is(p.Next(), "XML")
	in, err := p.loadTarget()
	if in == nil {
		return err
	}
	wayOut := "LOAD DATA has no values for key column " + in.Table.Key + "; " +
		"add the column to the file and the column list, or INSERT the rows"
	switch given, listed := p.loadsKey(in); {
	case given:
		return nil
	case listed || xml:
		return p.fail(verb.Start, in, wayOut)
	}
	columns, err := p.tableColumns(in)
	if err == nil && p.keyIndex(in, columns) < 0 {
		err = p.fail(verb.Start, in, wayOut)
	}
	return err
}

// loadTarget parses up to the table's name. It returns nil for a table that isn't sharded.
func (p *parser) loadTarget() (*Insert, error) {
	for {
		t := p.Next()
		switch {
		case p.EndsStatement(t):
			return nil, nil
		case p.Is(t, "INTO") && p.Is(p.Peek(), "TABLE"):
			p.Next()
			in := &Insert{}
			if ruled, err := p.table(p.Next(), in); !ruled {
				return nil, err
			}
			return in, nil
		}
	}
}

// loadsKey parses the rest of the statement. It reports whether the key is among the listed or
// assigned columns, and whether columns are listed.
func (p *parser) loadsKey(in *Insert) (given, listed bool) {
	partition, sets := false, false
	for depth := 0; ; {
		before := p.Prev
		t := p.Next()
		switch {
		case p.EndsStatement(t):
			return given, listed
		case p.IsPunct(t, '('):
			partition = p.Is(before, "PARTITION")
			depth++
			listed = listed || !sets && !partition
		case p.IsPunct(t, ')'):
			depth--
		case p.Is(t, "SET") && depth == 0 && !p.Is(before, "CHARACTER"):
			sets = true
		case t.Kind == sqltoken.Word || t.Kind == sqltoken.Quoted:
			begins := p.IsPunct(before, ',') || p.IsPunct(before, '(') || sets && p.Is(before, "SET")
			if begins && (sets && depth == 0 || !sets && depth > 0 && !partition) {
				name, ok := p.name(t)
				given = given || ok && p.keyIndex(in, []string{name.last}) == 0
			}
		}
	}
}
