package rewrite

import (
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// severalStatements is the reason for refusing a string with an INSERT into a sharded table and a
// statement of another kind.
const severalStatements = "a string of several statements gets keys only if each of them is " +
	"an INSERT or REPLACE … VALUES with a column list, or BEGIN, START TRANSACTION, COMMIT, ROLLBACK or SAVEPOINT; send the statements one by one"

// script parses the statements of the string.
func (p *parser) script() error {
	for {
		t := p.Next()
		switch {
		case t.Kind == sqltoken.EOF, t.Kind == sqltoken.Bad && len(p.plan.Inserts) == 0:
			return nil
		case p.IsPunct(t, ';'):
			p.plan.Statements = max(p.plan.Statements, 1) // the servers refuse an empty one in front of others
			continue
		}
		p.plan.Statements++
		p.fitting = false
		err := p.statement(t)
		p.unsettle(t)
		if p.unfit = p.unfit || !p.fitting; err == nil {
			err = p.together(t)
		}
		if err != nil || p.unread > 0 {
			return err
		}
	}
}

// unsettle is called after the statement that begins with t. If it may change sql_mode or the
// character set, the tokens behind it are certain only if they depend on neither.
func (p *parser) unsettle(t sqltoken.Token) {
	switch {
	case p.unsettled > 0:
		return
	case p.Is(t, "CALL", "EXECUTE", "PREPARE"),
		p.Is(t, "SET") && !p.setsUTF8(t) && sqltoken.SetsReading(p.Text[t.Start:p.Prev.End], p.Mode, p.Charset):
		p.unsettleFrom(p.Prev.End)
	}
}

func (p *parser) unsettleFrom(at int) {
	if p.unsettled == 0 {
		p.unsettled, p.settledModes, p.Consulted = at, p.Consulted, 0
	}
}

// setsUTF8 reports whether a statement is SET NAMES utf8mb4 in a session that has it.
func (p *parser) setsUTF8(set sqltoken.Token) bool {
	words := strings.Fields(p.Text[set.Start:p.Prev.Start])
	return p.Charset == sqltoken.UTF8 && len(words) == 3 && sqltoken.Is(words[1], "NAMES") &&
		sqltoken.ParseCharset(strings.Trim(words[2], "'\"")) == sqltoken.UTF8
}

// readUnsettled doubts a string whose tokens behind an unsettling statement aren't certain.
func (p *parser) readUnsettled() {
	const reading = sqltoken.ANSIQuotes | sqltoken.NoBackslashEscapes | sqltoken.MSSQL
	if behind := p.plan.text[p.unsettled:]; p.unsettled > 0 && sqltoken.MentionsInsert(behind) &&
		(p.Consulted&reading != 0 || !sqltoken.IsASCII(behind)) {
		p.Doubt(p.unsettled, "a statement before this may change sql_mode or the character set, which decide where strings and names end; "+
			"send the statements one by one")
	}
	p.Consulted |= p.settledModes
}

// Values of parser.mixed.
const (
	keyAfterOther = 2
	otherAfterKey = 3
)

// together refuses a string of several statements in which an INSERT into a sharded table may get a
// wrong key. A statement before the INSERT may change the database, sql_mode, character set or
// table.
//
// It also refuses the statement t if it reads LAST_INSERT_ID() or removes rows, and the results of
// earlier INSERTs are known only after the string.
func (p *parser) together(t sqltoken.Token) error {
	statement, earlier, own := p.plan.Statements-1, p.plan.Inserts, (*Insert)(nil)
	if n := len(earlier); n > 0 && earlier[n-1].Statement == statement {
		own, earlier = &earlier[n-1], earlier[:n-1]
	}
	elsewhere := len(p.plan.Elsewhere) > 0 && p.plan.Elsewhere[len(p.plan.Elsewhere)-1] == statement
	mixed := p.mixed
	if next := [...]bool{elsewhere, own != nil, elsewhere}; mixed < len(next) && next[mixed] {
		p.mixed++
	}
	switch {
	case statement == 0, len(p.plan.Inserts) == 0:
	case p.unfit:
		in := &p.plan.Inserts[0]
		return p.fail(in.start, in, severalStatements)
	case mixed == keyAfterOther && p.last, mixed == otherAfterKey && !p.Is(t, "COMMIT"):
		return p.fail(t.Start, nil, "after INSERTs into other tables and one into a sharded table, "+
			"LAST_INSERT_ID() would be unknown if a statement failed; send the statements one by one")
	case p.last && p.untold:
		return p.fail(t.Start, nil, "the statement reads LAST_INSERT_ID() after an INSERT of the same string "+
			"whose generated key the server does not have yet; send the statements one by one")
	case p.last:
		for i := len(earlier) - 1; i >= 0 && !earlier[i].ReadLater; i-- {
			earlier[i].ReadLater = true
		}
	case p.uncertain && p.Is(t, "ROLLBACK", "REPLACE"):
		return p.fail(t.Start, nil, "ROLLBACK or REPLACE follows an INSERT in the same string that may skip rows; send the statements one by one")
	}
	if p.Is(t, "ROLLBACK") {
		for i := len(earlier) - 1; i >= 0 && !earlier[i].RolledBack; i-- {
			earlier[i].RolledBack = true
		}
	}
	if own != nil {
		p.untold, p.uncertain = p.untold || !own.isTold(), p.uncertain || own.isUncertain()
	}
	return nil
}

// several reports whether the string has other statements than the current one.
func (p *parser) several() bool {
	if p.plan.Statements > 1 {
		return true
	}
	defer p.LookAhead()()
	for ended := false; ; {
		t := p.Next()
		switch {
		case t.Kind == sqltoken.EOF, t.Kind == sqltoken.Bad && !ended:
			return false
		case p.IsPunct(t, ';'):
			ended = true
		case ended:
			return true
		}
	}
}

// listsValues reports whether a column list and VALUES follow the table's name. It checks only
// strings that may have several statements.
func (p *parser) listsValues() bool {
	if p.plan.Statements == 1 && strings.IndexByte(p.Text[p.Pos:], ';') < 0 {
		return false
	}
	defer p.LookAhead()()
	t := p.Next()
	if p.Is(t, "PARTITION") {
		if _, _, ok := p.names(p.Next()); !ok {
			return false
		}
		t = p.Next()
	}
	list, _, ok := p.names(t)
	if !ok || len(list) == 0 {
		return false
	}
	return p.Is(p.Next(), "VALUES", "VALUE")
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
	p.last = false
	before := len(p.plan.Inserts)
	err = p.dispatch(t)
	p.fitting = p.fitting && !isSet
	if n := len(p.plan.Inserts); isSet && err == nil && n > before && p.plan.Inserts[n-1].Source != nil {
		in := &p.plan.Inserts[n-1]
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
	case p.Is(t, "BEGIN") && p.beginsBlock(),
		p.Is(t, "IF", "CASE", "LOOP", "REPEAT", "WHILE", "FOR", "DECLARE"):
		// MariaDB's compound statements continue after their semicolons.
		return p.compound("an INSERT in a compound statement is not supported; send it by itself")
	case p.Is(t, "CREATE", "ALTER"):
		if p.storedProgram() {
			return p.skipProgram()
		}
	case p.Is(t, "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT"),
		p.Is(t, "START") && p.Is(p.Peek(), "TRANSACTION"):
		p.fitting = true
	case p.Is(t, "WITH"):
		return p.wrapped("WITH before an INSERT is not supported; write it after the column list")
	case !p.isKnown(t):
		if word := p.Text[t.Start:t.End]; sqltoken.MentionsInsert(word) && sqltoken.ValidPrefix(word) != word {
			p.Doubt(t.Start, "the statement contains invalid UTF-8; SET NAMES utf8mb4, or pass the value as an argument")
		}
		return p.compound("the statement before the INSERT is unknown; send the statements one by one")
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
	if len(p.plan.Inserts) == 0 && (semicolon < 0 || !p.mentioned(p.Pos+semicolon)) {
		// Placeholders in the unread part aren't counted.
		p.unread = p.Pos
		return
	}
	for depth := 0; !p.EndsStatement(p.take(&depth)); {
	}
}

// mentioned reports whether the string contains INSERT or REPLACE after a position. Positions only
// grow, so it searches the string once.
func (p *parser) mentioned(from int) bool {
	if p.mention < from {
		p.mention = from + sqltoken.IndexInsert(p.plan.text[from:])
	}
	return p.mention < len(p.plan.text)
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

// compound refuses the string if the rest of it contains an INSERT into a sharded table.
func (p *parser) compound(reason string) error {
	p.unsettleFrom(p.Prev.End)
	for !p.AtEnd() {
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
			if sqltoken.MentionsSQLMode(p.Text[set.Start:u.Start]) {
				p.modeSet = true
			}
			return p.Next(), nil
		}
	}
}

// beginsBlock reports whether t is BEGIN NOT ATOMIC or the BEGIN of MariaDB's Oracle mode. BEGIN
// [WORK] of a transaction begins no block.
func (p *parser) beginsBlock() bool {
	t := p.Peek()
	return t.Kind == sqltoken.Word && !p.Is(t, "WORK")
}

// storedProgram reports whether CREATE or ALTER defines a PROCEDURE, FUNCTION, TRIGGER, EVENT or
// PACKAGE. This session doesn't execute their bodies.
func (p *parser) storedProgram() bool {
	defer p.LookAhead()()
	for range 16 {
		t := p.Next()
		switch word := p.Keyword(t); {
		case sqltoken.Is(word, "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"):
			return true
		case p.EndsStatement(t), p.IsPunct(t, '('), sqltoken.Is(word, "TABLE"):
			return false
		}
	}
	return false
}

// skipProgram moves past a stored program's definition, to the first semicolon outside of BEGIN …
// END and similar blocks. An INSERT may follow a definition without a recognizable end.
func (p *parser) skipProgram() error {
	saved := p.Lexer
	depth, returns := 0, false // returns: the type of a function, and then perhaps its body
	for {
		before := p.Prev
		t := p.Next()
		returns = p.Is(t, "RETURNS") || returns && depth == 0 && !p.Is(t, "RETURN")
		switch {
		case (t.Kind == sqltoken.EOF || t.Kind == sqltoken.Bad) && depth > 0:
			p.Restore(saved)
			return p.compound("the end of the stored program's definition is uncertain; if an INSERT follows it, send them one by one")
		case p.EndsStatement(t) && depth <= 0:
			return nil
		case p.Is(t, "END"):
			depth--
			if p.opensBlock(p.Peek(), p.Prev, false) {
				p.Next() // END IF
			}
		case p.opensBlock(t, before, returns):
			depth++
		}
	}
}

// opensBlock reports whether t is a word that needs an END. before is the token before t. begins
// reports whether a statement may follow any token. In a stored program, BEGIN isn't the beginning
// of a transaction (MySQL manual, "START TRANSACTION").
func (p *parser) opensBlock(t, before sqltoken.Token, begins bool) bool {
	switch {
	case p.Is(t, "CASE"):
		return true
	case p.Is(t, "BEGIN"):
		return p.beginsStatement(before) || before.Kind != sqltoken.Punct && !p.isName(t, before)
	case p.Is(t, "FOR") && p.locks(t):
		return false
	}
	return p.Is(t, "IF", "LOOP", "REPEAT", "WHILE", "FOR") && (begins || p.beginsStatement(before))
}

// isName reports whether the BEGIN in t is a name, or the verb of XA BEGIN.
func (p *parser) isName(t, before sqltoken.Token) bool {
	defer p.LookAhead()()
	p.Pos = t.End
	next := p.Next()
	return p.Is(before, "XA") || next.Kind == sqltoken.Punct || p.Is(next, "FROM", "AS", "INTO", "IS", "AND", "OR")
}

// locks reports whether the FOR in t begins FOR UPDATE or FOR SHARE.
func (p *parser) locks(t sqltoken.Token) bool {
	defer p.LookAhead()()
	p.Pos = t.End
	return p.Is(p.Next(), "UPDATE", "SHARE")
}

// beginsStatement reports whether a statement of a stored program may follow the token before.
func (p *parser) beginsStatement(before sqltoken.Token) bool {
	return p.Is(before, "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", "ROW", "END", "ATOMIC") ||
		p.Is(before, "SQLEXCEPTION", "SQLWARNING", "FOUND") || // conditions of a handler
		p.Is(before, "DETERMINISTIC", "SQL", "DATA", "INVOKER", "DEFINER") || // characteristics of a routine
		before.Kind == sqltoken.String || p.IsPunct(before, ';') || p.IsPunct(before, ')') || p.IsPunct(before, ':')
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
