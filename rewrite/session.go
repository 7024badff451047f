package rewrite

import (
	"slices"
	"strings"
)

// MentionsLastInsertID reports whether the string contains LAST_INSERT_ID(), @@last_insert_id or
// @@identity, or reads all session variables, as SHOW VARIABLES does.
func MentionsLastInsertID(text string) bool {
	return containsFold(text, "LAST_INSERT_ID") || containsFold(text, "@IDENTITY") || containsFold(text, ".IDENTITY") ||
		containsFold(text, "VARIABLES") && (containsFold(text, "SHOW") || containsFold(text, "_VARIABLES") || containsFold(text, "VARIABLES_"))
}

// mentionsDatabase reports whether the string contains the word DATABASE or SCHEMA.
func mentionsDatabase(text string) bool {
	return containsFold(text, "DATABASE") || containsFold(text, "SCHEMA")
}

// mentionsSQLMode reports whether the string contains sql_mode.
func mentionsSQLMode(text string) bool { return containsFold(text, "SQL_MODE") }

// Changes are the facts about a session that a string may change.
type Changes struct {
	Mode     bool // sql_mode
	Charset  bool // character_set_client
	Database bool // the current database
	Columns  bool // columns of tables
	// Variables are session variables, as in SET, including sql_mode and character_set_client.
	Variables bool
}

// ChangesOf returns the facts that executing a string of a class may change.
func ChangesOf(text string, class Class) Changes {
	switch class {
	case ClassPass, classLoad:
		return Changes{}
	case classUse:
		return Changes{Database: true}
	case classDDL:
		return Changes{Database: mentionsDatabase(text), Columns: true}
	case classCall:
		return Changes{Mode: true, Charset: true, Database: true, Columns: true, Variables: true}
	case classSet:
		return setChanges(text)
	}
	switch {
	case isOneInsert(text):
		return Changes{}
	case containsFold(text, "EXECUTE"), containsFold(text, "CALL"):
		return Changes{Mode: true, Charset: true, Database: true, Columns: true, Variables: true}
	}
	c := setChanges(text)
	c.Database, c.Columns = true, true
	return c
}

// setChanges returns the facts that a SET statement may change.
func setChanges(text string) Changes {
	return Changes{
		Mode:      mentionsSQLMode(text),
		Charset:   containsFold(text, "NAMES") || containsFold(text, "CHAR"),
		Variables: true,
	}
}

// isOneInsert reports whether the string is a single INSERT or REPLACE.
func isOneInsert(text string) bool {
	start := skipLeading(text)
	end, letters := firstWord(text, start)
	if class, _ := verbClass(text[start:end], letters); class != ClassMayInsert {
		return false
	}
	semicolon := strings.IndexByte(text[start:], ';')
	return semicolon < 0 || isLast(text[start+semicolon:])
}

// SetsLastInsertID reports whether a string that need not be parsed may change LAST_INSERT_ID(). It
// may call the function with an argument, set @@identity, execute statements outside of the string,
// or be DDL such as CREATE … SELECT.
func SetsLastInsertID(text string, class Class) bool {
	// Finding a bracket is fast, and there are few.
	bracket := strings.IndexByte(text, '(')
	return class != ClassPass && changesLastInsertID(text, class) || bracket >= 0 && callsLastInsertID(text, bracket)
}

// changesLastInsertID reports whether a string may change LAST_INSERT_ID() without calling it.
func changesLastInsertID(text string, class Class) bool {
	switch class {
	case classCall, ClassSeveral, classDDL:
		return true
	case classSet:
		return containsFold(text, "IDENTITY") // a synonym of @@last_insert_id, which contains INSERT
	}
	return false
}

// callsLastInsertID reports whether a string calls LAST_INSERT_ID() with an argument. pos is its
// first bracket.
func callsLastInsertID(text string, pos int) bool {
	const name = "LAST_INSERT_ID"
	for ; ; pos++ {
		next := strings.IndexByte(text[pos:], '(')
		if next < 0 {
			return false
		}
		pos += next
		end := pos
		for end > 0 && isBlank(text[end-1]) {
			end--
		}
		switch {
		case end > 0 && text[end-1] == '/': // a comment precedes it
			if containsFold(text, name) {
				return true
			}
		case end >= len(name) && fold(text[end-len(name):end], name):
			lx := lexer{text: text, pos: pos + 1}
			if t := lx.next(); t.kind != tokenPunct || text[t.start] != ')' {
				return true
			}
		}
	}
}

// ReadsCounts reports whether a string calls FOUND_ROWS() or ROW_COUNT(). They return counts of the
// session's previous statement, so a statement in between changes them.
func ReadsCounts(text string, mode Mode) bool {
	if !containsFold(text, "FOUND_ROWS") && !containsFold(text, "ROW_COUNT") {
		return false
	}
	p := &parser{lexer: lexer{text: text, mode: mode}, plan: &Plan{}}
	for {
		t := p.next()
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad:
			return false
		case p.is(t, "FOUND_ROWS", "ROW_COUNT") && p.isPunct(p.peek(), '('):
			p.next()
			if p.isPunct(p.peek(), ')') {
				return true
			}
		}
	}
}

// NextTransaction returns the statements that apply only to the next transaction and are still in
// effect after the server has executed a string. They are SET TRANSACTION without SESSION or
// GLOBAL, SET @@transaction_isolation and similar ones. before are the statements in effect before
// it.
func NextTransaction(before []string, text string, mode Mode, charset Charset) []string {
	pending := slices.Clone(before)
	p := &parser{lexer: newLexer(text, mode, charset), plan: &Plan{text: text}}
	for {
		t := p.next()
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad:
			return pending
		case p.isPunct(t, ';'):
			continue
		}
		next, keeps, end := p.nextTransaction(t)
		switch {
		case next:
			statement := text[t.start:end]
			pending = slices.DeleteFunc(pending, func(s string) bool { return s == statement })
			pending = append(pending, statement)
		case !keeps:
			pending = nil
		}
	}
}

// MayChangeTransaction reports whether a string of a class may set the characteristics of the next
// transaction.
func MayChangeTransaction(text string, class Class) bool {
	return (class == classSet || class == ClassSeveral) && (containsFold(text, "TRANSACTION") || containsFold(text, "@TX_") || containsFold(text, "@`TX_"))
}

// nextTransaction parses the statement that begins with t, up to its semicolon. It reports in next
// whether the statement applies to the next transaction. It reports in keeps whether the statement
// leaves the characteristics in effect, which is the case if it reads no table.
func (p *parser) nextTransaction(t token) (next, keeps bool, end int) {
	verb := p.word(t)
	set := fold(verb, "SET")
	keeps = set || fold(verb, "USE", "SELECT", "DO", "VALUES") || p.isPunct(t, '(') ||
		fold(verb, "SAVEPOINT", "PREPARE", "DEALLOCATE", "UNLOCK")
	show := fold(verb, "SHOW")
	session := false
	for first := true; ; first = false {
		end = p.pos
		u := p.next()
		word := p.word(u)
		switch {
		case p.endsStatement(u):
			return next && !session, keeps, end
		case set && first && fold(word, "TRANSACTION"):
			next = true
		case set && strings.HasSuffix(p.text[:u.start], "@@") && isTransactionVariable(p.text[u.start:u.end]):
			next = true
		case set && (fold(word, "SESSION", "LOCAL")) && p.is(p.peek(), "TRANSACTION"):
			session, keeps = true, false // it ends the characteristics of a single transaction
		case set && first && fold(word, "STATEMENT"), fold(word, "FROM") && !p.is(p.peek(), "DUAL"):
			keeps = false
		case show && first:
			keeps = fold(word, "WARNINGS", "ERRORS", "VARIABLES", "STATUS", "CREATE")
		}
	}
}

// isTransactionVariable reports whether a name, quoted or not, is a variable with characteristics
// of transactions.
func isTransactionVariable(name string) bool {
	if name[0] == '`' {
		name = unquoteIdentifier(name)
	}
	return fold(name, "TRANSACTION_ISOLATION", "TRANSACTION_READ_ONLY", "TX_ISOLATION", "TX_READ_ONLY")
}
