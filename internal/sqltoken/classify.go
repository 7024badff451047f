package sqltoken

import "strings"

// Class is a rough classification of a string, by its first word and by whether it contains INSERT,
// REPLACE or LOAD.
type Class uint8

const (
	// ClassPass: the string contains no INSERT into a sharded table, and doesn't change known facts
	// about the session.
	ClassPass Class = iota
	// ClassMayInsert: the string must be parsed.
	ClassMayInsert
	// ClassSet: a SET statement without INSERT.
	ClassSet
	// ClassUse: a USE statement, which changes the current database.
	ClassUse
	// ClassCall: CALL or EXECUTE, whose statements are not in the string.
	ClassCall
	// ClassDDL: CREATE, ALTER, DROP, RENAME or TRUNCATE, which may change the columns of tables.
	ClassDDL
	// ClassSeveral: several statements, or one in an executable comment, without an INSERT.
	ClassSeveral
)

// MustParse reports whether a string of the class must be parsed with a grammar.
func (c Class) MustParse() bool { return c == ClassMayInsert }

// Classify returns the class of a string in a few nanoseconds, without allocating. In doubt it
// returns ClassMayInsert. A string of another class contains no INSERT or REPLACE in any sql_mode
// and character set. A statement with an unknown first word is ClassMayInsert if it contains INSERT
// or REPLACE.
func Classify(text string) Class { return classify(text, true) }

// ClassifyOne is Classify for a connection without multiStatements. A CREATE or ALTER is then all
// that the server executes; semicolons are those of a stored program.
func ClassifyOne(text string) Class { return classify(text, false) }

func classify(text string, several bool) Class {
	start := 0
	if text != "" && !IsWordByte(text[0]) {
		start = skipLeading(text)
	}
	if start == len(text) {
		return ClassPass
	}
	end, letters := firstWord(text, start)
	if end == start && text[start] != '(' { // (SELECT …)
		class := ClassPass
		if text[start] == '/' || text[start] == ';' { // an executable comment
			class = ClassSeveral
		}
		return mayInsertIf(MentionsInsert(text[start:]), class)
	}
	class, hold := verbClass(text[start:end], letters)
	if class.MustParse() {
		return class
	}
	if hold && MentionsInsert(text[start:]) {
		return ClassMayInsert
	}
	if class == ClassDDL && !several {
		return class
	}
	// A further statement after a semicolon.
	if semicolon := strings.IndexByte(text[end:], ';'); semicolon >= 0 && !isLast(text[end+semicolon:]) {
		return mayInsertIf(MentionsInsert(text[end+semicolon:]), ClassSeveral)
	}
	return class
}

// verb is a statement's first word.
type verb struct {
	word    string
	letters uint64 // see firstWord
	class   Class
	// hold: the statement may contain an INSERT, for example SET STATEMENT.
	hold bool
}

const longestVerb = len("DEALLOCATE")

// verbs are the known first words, by length.
var verbs = func() (t [longestVerb + 1][]verb) {
	add := func(class Class, hold bool, words ...string) {
		for _, word := range words {
			_, letters := firstWord(word, 0)
			t[len(word)] = append(t[len(word)], verb{word, letters, class, hold})
		}
	}
	// Frequent words come first.
	add(ClassPass, false, "SELECT", "UPDATE", "DELETE")
	add(ClassMayInsert, true, "INSERT", "REPLACE", "LOAD")
	add(ClassSet, true, "SET")
	add(ClassUse, false, "USE")
	add(ClassCall, false, "CALL", "EXECUTE")
	add(ClassDDL, false, "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE")
	add(ClassPass, false, "VALUES", "TABLE", "DO", "SHOW", "HELP", "HANDLER",
		"START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA", "LOCK", "UNLOCK",
		"PREPARE", "DEALLOCATE", "GRANT", "REVOKE", "FLUSH", "RESET", "PURGE", "KILL", "STOP", "CHANGE", "SIGNAL",
		"CHECK", "CHECKSUM", "OPTIMIZE", "REPAIR", "CACHE")
	return t
}()

// firstWord returns the end of the word at pos, and its last eight bytes as a number, ignoring
// case.
func firstWord(text string, pos int) (end int, letters uint64) {
	for ; pos < len(text) && IsWordByte(text[pos]); pos++ {
		letters = letters<<8 | uint64(text[pos]&^0x20)
	}
	return pos, letters
}

// VerbClass returns the class of a statement by its first word. If hold is true, it may contain an
// INSERT, for example ANALYZE, BEGIN, SET STATEMENT, or an unknown word.
func VerbClass(word string) (class Class, hold bool) {
	_, letters := firstWord(word, 0)
	return verbClass(word, letters)
}

func verbClass(word string, letters uint64) (class Class, hold bool) {
	if len(word) > longestVerb {
		return ClassPass, true
	}
	known := verbs[len(word)]
	for i := range known {
		if v := &known[i]; v.letters == letters && (len(word) <= 8 || hasFold(word, v.word)) {
			return v.class, v.hold
		}
	}
	return ClassPass, word != ""
}

// skipLeading returns the position after leading blanks and plain comments, in which tools put
// trace IDs.
func skipLeading(text string) int {
	lx := Lexer{Text: text}
	switch bad := lx.skipBlanks(); {
	case lx.Unsure != "":
		return lx.UnsureAt
	case bad >= 0:
		return bad
	}
	return lx.Pos
}

// isLast reports whether only blanks follow the semicolon at the beginning of text.
func isLast(text string) bool {
	return strings.Trim(text[1:], " \t\n\v\f\r") == ""
}

func mayInsertIf(may bool, otherwise Class) Class {
	if may {
		return ClassMayInsert
	}
	return otherwise
}

// MentionsInsert reports whether the string contains INSERT, REPLACE or LOAD.
func MentionsInsert(text string) bool {
	return IndexInsert(text) < len(text)
}

// IndexInsert returns the position of the first INSERT, REPLACE or LOAD, or the string's length.
func IndexInsert(text string) int {
	for i := range len(text) {
		if class[text[i]]&classVerb == 0 {
			continue
		}
		if rest := text[i:]; hasFold(rest, "INSERT") || hasFold(rest, "REPLACE") || hasFold(rest, "LOAD") {
			return i
		}
	}
	return len(text)
}

// MentionsLastInsertID reports whether the string contains LAST_INSERT_ID(), @@last_insert_id or
// @@identity, or reads all session variables, as SHOW VARIABLES does. In a string beyond ASCII, any
// system variable may be one of them; see [SetsReading].
func MentionsLastInsertID(text string) bool {
	return NamesLastInsertID(text) || Contains(text, "@IDENTITY") || Contains(text, ".IDENTITY") ||
		Contains(text, "VARIABLES") && (Contains(text, "SHOW") || Contains(text, "_VARIABLES") || Contains(text, "VARIABLES_")) ||
		strings.Contains(text, "@@") && !IsASCII(text)
}

// NamesLastInsertID reports whether the string contains LAST_INSERT_ID. MariaDB 11.8 takes ſ and ı
// for S and I in names of functions.
func NamesLastInsertID(text string) bool {
	const name = "LAST_INSERT_ID"
	return Contains(text, name) || strings.Contains(text, "ſ") && Contains(asciiLetters.Replace(text), name) ||
		strings.Contains(text, "ı") && Contains(asciiLetters.Replace(text), name)
}

// Called returns the last byte before a bracket, without blanks, and whether it ends the name
// LAST_INSERT_ID.
func Called(text string, bracket int) (last byte, lastInsertID bool) {
	end := bracket
	for end > 0 && IsBlank(text[end-1]) {
		end--
	}
	if end == 0 {
		return 0, false
	}
	last = text[end-1]
	if last == '`' {
		end--
	} else if last|0x20 != 'd' {
		return last, false
	}
	const longest = len("laſt_ınsert_ıd")
	return last, NamesLastInsertID(text[max(0, end-longest):end])
}

var asciiLetters = strings.NewReplacer("ſ", "s", "ı", "i")

// MentionsSQLMode reports whether the string contains sql_mode.
func MentionsSQLMode(text string) bool { return Contains(text, "SQL_MODE") }

// SetsReading reports whether a SET statement may change sql_mode or character_set_client, which
// determine the tokens of later statements. MySQL 9.7 ignores accents in the names of variables, so
// sql_modé is sql_mode; any name beyond ASCII counts.
func SetsReading(text string, mode Mode, charset Charset) bool {
	return MentionsSQLMode(text) || Contains(text, "NAMES") || Contains(text, "CHAR") ||
		!IsASCII(text) && namesBeyondASCII(text, mode, charset)
}

// namesBeyondASCII reports whether there may be a name beyond ASCII in a string.
func namesBeyondASCII(text string, mode Mode, charset Charset) bool {
	for lx := NewLexer(text, mode, charset); ; {
		switch t := lx.Next(); {
		case t.Kind == EOF, t.Kind == Bad:
			return t.Kind == Bad || lx.cut
		case t.Kind != String && !IsASCII(text[t.Start:t.End]):
			return true
		}
	}
}
