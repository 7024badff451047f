package sqltoken

import "strings"

// Query is a query with the facts about it that one pass over its text shows. They hold in each
// sql_mode and character set. Words also count in strings and comments.
type Query struct {
	Text  string
	Class Class
	words Words
	one   bool // an INSERT, REPLACE or LOAD without another statement
}

// Class is a rough classification of a query, by its first word and by whether it contains INSERT,
// REPLACE or LOAD.
type Class uint8

const (
	// ClassPass: the query contains no INSERT into a sharded table, and doesn't change known facts
	// about the session.
	ClassPass Class = iota
	// ClassMayInsert: the query must be parsed.
	ClassMayInsert
	// ClassSet: a SET statement without INSERT.
	ClassSet
	// ClassUse: a USE statement, which changes the current database.
	ClassUse
	// ClassCall: CALL or EXECUTE, whose statements are not in the query.
	ClassCall
	// ClassDDL: CREATE, ALTER, DROP, RENAME or TRUNCATE, which may change the columns of tables.
	ClassDDL
	// ClassSeveral: several statements, or one in an executable comment, without an INSERT.
	ClassSeveral
)

// Words is a set of words that matter to a session.
type Words uint32

const (
	WordAlter Words = 1 << iota
	WordCall
	WordChar
	WordCollation
	WordCreate
	WordDatabase // or SCHEMA
	WordDrop
	WordExecute
	WordNames
	WordRename
	WordSQLMode
	WordTemporary
	WordTransaction // or a variable with characteristics of transactions
	WordRowCounts   // ROW_COUNT or FOUND_ROWS
	WordBeyondASCII // a byte above 0x7F

	insert       // INSERT, REPLACE or LOAD
	insertBehind // the same behind the first semicolon
	identity
	show
	variables
	doubleAt    // @@
	readsLastID // LAST_INSERT_ID, @@identity, or a table of all variables
	setsLastID  // LAST_INSERT_ID with an argument
	lookalike   // ſ or ı, which MariaDB 11.8 takes for S and I in names of functions
)

// Scan reads a query. It doesn't allocate. In doubt the class is ClassMayInsert. A query of another class
// contains no INSERT or REPLACE in any sql_mode and character set. A statement with an unknown first word
// is ClassMayInsert if it contains INSERT or REPLACE.
//
// Without several, for a connection without multiStatements, a CREATE or ALTER is all that the server
// executes; semicolons are those of a stored program.
func Scan(text string, several bool) Query {
	q := Query{Text: text}
	start := 0
	if text != "" && !IsWordByte(text[0]) {
		start = skipLeading(text)
	}
	if start == len(text) {
		return q
	}
	end, letters := firstWord(text, start)
	v := verbOf(text[start:end], letters)
	if end == start && text[start] != '(' { // not (SELECT …)
		if v = &unknownVerb; text[start] == '/' || text[start] == ';' { // an executable comment
			v = &verb{class: ClassSeveral, hold: true, words: true}
		}
	}
	if v.class == ClassMayInsert {
		if q.one = isOne(text[end:]); q.one {
			q.Class = v.class
			return q // the parser reads its words
		}
	}
	p := pass{text: text, semicolon: -1, mask: classSign}
	if v.words {
		p.mask |= classLetter
	}
	p.read(start)
	q.words, q.Class = p.words, p.class(v, several)
	return q
}

// isOne reports whether a statement has no other behind its semicolon.
func isOne(text string) bool {
	semicolon := strings.IndexByte(text, ';')
	return semicolon < 0 || isLast(text[semicolon:])
}

// class returns the class of a query that begins with a verb.
func (p *pass) class(v *verb, several bool) Class {
	switch {
	case v.class == ClassMayInsert, v.hold && p.words&(insert|insertBehind) != 0:
		return ClassMayInsert
	case v.class == ClassDDL && !several, p.semicolon < 0, isLast(p.text[p.semicolon:]):
		return v.class
	case p.words&insertBehind != 0:
		return ClassMayInsert
	}
	return ClassSeveral
}

// MustParse reports whether the query must be parsed with a grammar.
func (q Query) MustParse() bool { return q.Class == ClassMayInsert }

// IsOneInsert reports whether the query is a single INSERT, REPLACE or LOAD.
func (q Query) IsOneInsert() bool { return q.one }

// Has reports whether the query contains one of the words. The words of a single INSERT aren't known.
func (q Query) Has(any Words) bool { return q.words&any != 0 }

// ReadsLastInsertID reports whether the query contains LAST_INSERT_ID(), @@last_insert_id or @@identity, or
// reads all session variables, as SHOW VARIABLES does. In a query beyond ASCII, any system variable may be
// one of them: MySQL 9.7 ignores accents in their names.
func (q Query) ReadsLastInsertID() bool {
	if q.one {
		return MentionsLastInsertID(q.Text)
	}
	return q.words.readsLastInsertID()
}

func (w Words) readsLastInsertID() bool {
	const all, accented = variables | show, doubleAt | WordBeyondASCII
	return w&readsLastID != 0 || w&all == all || w&accented == accented
}

// MentionsLastInsertID is Query.ReadsLastInsertID for a part of a statement.
func MentionsLastInsertID(text string) bool {
	p := pass{text: text, mask: classSign}
	p.read(0)
	return p.words.readsLastInsertID()
}

// MayNameBeyondASCII reports whether there may be a name beyond ASCII in the query.
func (q Query) MayNameBeyondASCII(mode Mode, charset Charset) bool {
	if !q.Has(WordBeyondASCII) {
		return false
	}
	for lx := NewLexer(q.Text, mode, charset); ; {
		switch t := lx.Next(); {
		case t.Kind == EOF, t.Kind == Bad:
			return t.Kind == Bad || lx.cut
		case t.Kind != String && !IsASCII(q.Text[t.Start:t.End]):
			return true
		}
	}
}

// SetsLastInsertID reports whether a query that need not be parsed may change LAST_INSERT_ID(). It may
// call the function with an argument, set @@identity, which is a synonym, execute statements that aren't
// in the query, or be DDL such as CREATE … SELECT.
func (q Query) SetsLastInsertID() bool {
	switch q.Class {
	case ClassCall, ClassSeveral, ClassDDL:
		return true
	case ClassSet:
		return q.Has(identity | setsLastID)
	}
	return q.Has(setsLastID)
}

// pass is one pass over a query.
type pass struct {
	text      string
	mask      uint8 // the classes of bytes to stop at
	words     Words
	semicolon int // the first one; -1 for none
	called    int // what is before it was read by calls
}

// read reads the query from a position on. Words are found behind any byte but a letter.
func (p *pass) read(from int) {
	text := p.text
	for i := from; i < len(text); i++ {
		switch kind := class[text[i]] & p.mask; {
		case kind == 0:
		case kind == classLetter:
			p.word(i)
			for i+1 < len(text) && class[text[i+1]]&classLetter != 0 {
				i++
			}
		default:
			p.sign(i)
		}
	}
	p.noteIf(p.words&lookalike != 0 && NamesLastInsertID(text), readsLastID|setsLastID)
}

// sign notes what the sign or the byte beyond ASCII at a position belongs to.
func (p *pass) sign(at int) {
	behind := p.text[at+1:]
	switch p.text[at] {
	case ';':
		if p.semicolon < 0 {
			p.semicolon = at
			p.mask |= classLetter // of the next statement
		}
	case '_':
		p.underscore(at, behind)
	case '.':
		p.noteIf(hasFold(behind, "IDENTITY"), readsLastID)
	case '@':
		p.noteIf(hasFold(behind, "IDENTITY"), readsLastID)
		p.noteIf(strings.HasPrefix(behind, "@"), doubleAt)
		p.noteIf(hasFold(strings.TrimPrefix(behind, "`"), "TX_"), WordTransaction)
	default:
		p.words |= WordBeyondASCII
		p.noteIf(strings.HasPrefix(p.text[at:], "ſ") || strings.HasPrefix(p.text[at:], "ı"), lookalike)
	}
}

func (p *pass) noteIf(found bool, w Words) {
	if found {
		p.words |= w
	}
}

// underscore notes names with an underscore, which may be the first one of LAST_INSERT_ID.
func (p *pass) underscore(at int, behind string) {
	const last, list = "LAST", "VARIABLES"
	switch {
	case hasFold(behind, "INSERT_ID") && at >= len(last) && hasFold(p.text[at-len(last):], last):
		p.words |= readsLastID
		if p.words&setsLastID == 0 && at >= p.called {
			p.noteIf(p.calls(at+1+len("INSERT_ID")), setsLastID)
		}
	case hasFold(behind, list), at >= len(list) && hasFold(p.text[at-len(list):], list):
		p.words |= readsLastID
	}
}

// calls reports whether the name that ends at a position is called with an argument. A comment behind the
// name may precede one.
func (p *pass) calls(end int) bool {
	rest := strings.TrimLeft(strings.TrimPrefix(p.text[end:], "`"), blanks)
	switch {
	case rest == "":
		return false
	case IsComment(rest[0]):
		return strings.HasPrefix(rest, "/*") || beginsLine(rest)
	case rest[0] != '(':
		return false
	}
	lx := Lexer{Text: p.text, Pos: len(p.text) - len(rest) + 1}
	t := lx.Next()
	p.called = t.Start
	return !lx.IsPunct(t, ')')
}

const blanks = " \t\n\v\f\r"

// word notes the word that begins at a position.
func (p *pass) word(at int) {
	text := p.text[at:]
	for _, w := range words[text[0]&0x1f] {
		if hasFold(text, w.text) {
			p.words |= w.word
			if w.word == insert && p.semicolon >= 0 {
				p.words |= insertBehind
			}
			return
		}
	}
}

type namedWord struct {
	text string
	word Words
}

// words are the words to find, by the low bits of their first letter.
var words = func() (t [0x20][]namedWord) {
	for _, w := range []namedWord{
		{"INSERT", insert}, {"REPLACE", insert}, {"LOAD", insert}, {"IDENTITY", identity}, {"SHOW", show}, {"VARIABLES", variables},
		{"ALTER", WordAlter}, {"CALL", WordCall}, {"CHAR", WordChar}, {"COLLATION", WordCollation}, {"CREATE", WordCreate},
		{"DATABASE", WordDatabase}, {"SCHEMA", WordDatabase}, {"DROP", WordDrop}, {"EXECUTE", WordExecute}, {"NAMES", WordNames},
		{"RENAME", WordRename}, {"SQL_MODE", WordSQLMode}, {"TEMPORARY", WordTemporary}, {"TRANSACTION", WordTransaction},
		{"ROW_COUNT", WordRowCounts}, {"FOUND_ROWS", WordRowCounts},
	} {
		at := &t[w.text[0]&0x1f]
		*at = append(*at, w)
	}
	return t
}()
