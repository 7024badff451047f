package rewrite

import (
	"strings"
)

// Class is a rough classification of a string, by its first word and by whether it contains INSERT,
// REPLACE or LOAD.
type Class uint8

const (
	// ClassPass: the string contains no INSERT into a sharded table, and doesn't change known facts
	// about the session.
	ClassPass Class = iota
	// ClassMayInsert: the string must be parsed.
	ClassMayInsert
	// classLoad: LOAD DATA or LOAD XML; the string must be parsed too.
	classLoad
	// classSet: a SET statement without INSERT.
	classSet
	// classUse: a USE statement, which changes the current database.
	classUse
	// classCall: CALL or EXECUTE, whose statements are not in the string.
	classCall
	// classDDL: CREATE, ALTER, DROP, RENAME or TRUNCATE, which may change the columns of tables.
	classDDL
	// ClassSeveral: several statements, or one in an executable comment, without an INSERT.
	ClassSeveral
)

// MustParse reports whether a string of the class must be parsed with [Parse].
func (c Class) MustParse() bool { return c == ClassMayInsert || c == classLoad }

// Classify returns the class of a string in a few nanoseconds, without allocating. In doubt it
// returns ClassMayInsert. A string of another class contains no INSERT or REPLACE in any sql_mode
// and character set. A statement with an unknown first word is ClassMayInsert if it contains INSERT
// or REPLACE.
func Classify(text string) Class {
	start := 0
	if text != "" && !isWordByte(text[0]) {
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
		return mayInsertIf(mentionsInsert(text[start:]), class)
	}
	class, hold := verbClass(text[start:end], letters)
	if class.MustParse() {
		return class
	}
	if hold && mentionsInsert(text[start:]) {
		return ClassMayInsert
	}
	// A further statement after a semicolon.
	if semicolon := strings.IndexByte(text[end:], ';'); semicolon >= 0 && !isLast(text[end+semicolon:]) {
		return mayInsertIf(mentionsInsert(text[end+semicolon:]), ClassSeveral)
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
	add(ClassMayInsert, true, "INSERT", "REPLACE")
	add(classSet, true, "SET")
	add(classLoad, false, "LOAD")
	add(classUse, false, "USE")
	add(classCall, false, "CALL", "EXECUTE")
	add(classDDL, false, "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE")
	add(ClassPass, false, "VALUES", "TABLE", "DO", "SHOW", "HELP", "HANDLER",
		"START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA", "LOCK", "UNLOCK",
		"PREPARE", "DEALLOCATE", "GRANT", "REVOKE", "FLUSH", "RESET", "PURGE", "KILL", "STOP", "CHANGE", "SIGNAL",
		"CHECK", "CHECKSUM", "OPTIMIZE", "REPAIR", "CACHE")
	return t
}()

// firstWord returns the end of the word at pos, and its last eight bytes as a number, ignoring
// case.
func firstWord(text string, pos int) (end int, letters uint64) {
	for ; pos < len(text) && isWordByte(text[pos]); pos++ {
		letters = letters<<8 | uint64(text[pos]&^0x20)
	}
	return pos, letters
}

// verbClass returns the class of a statement by its first word. If hold is true, it may contain an
// INSERT, for example ANALYZE, BEGIN, SET STATEMENT, or an unknown word.
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
	lx := lexer{text: text}
	switch bad := lx.skipBlanks(); {
	case lx.unsure != "":
		return lx.unsureAt
	case bad >= 0:
		return bad
	}
	return lx.pos
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

// mentionsInsert reports whether the string contains INSERT, REPLACE or LOAD.
func mentionsInsert(text string) bool {
	return indexInsert(text) < len(text)
}

// indexInsert returns the position of the first INSERT, REPLACE or LOAD, or the string's length.
func indexInsert(text string) int {
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

// containsFold reports whether text contains an upper-case ASCII word, ignoring case.
func containsFold(text, upper string) bool { return indexFold(text, upper) < len(text) }

// indexFold returns the position of the word, ignoring case, or the string's length.
func indexFold(text, upper string) int {
	for i := 0; i+len(upper) <= len(text); i++ {
		if hasFold(text[i:], upper) {
			return i
		}
	}
	return len(text)
}

// fold reports whether a word equals one of these upper-case ASCII words, ignoring case.
func fold(word string, upper ...string) bool {
	for _, u := range upper {
		if len(word) == len(u) && hasFold(word, u) {
			return true
		}
	}
	return false
}

// hasFold reports whether a string begins with an upper-case ASCII word, ignoring case. Usually the
// first byte decides.
func hasFold(text, upper string) bool {
	return len(text) >= len(upper) && (text[0]^upper[0])&^0x20 == 0 && equalFold(text[:len(upper)], upper)
}

func equalFold(word, upper string) bool {
	for i := range len(upper) {
		c := word[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != upper[i] {
			return false
		}
	}
	return true
}

func wordEnd(text string, pos int) int {
	for pos < len(text) && isWordByte(text[pos]) {
		pos++
	}
	return pos
}

// Classes of bytes.
const (
	classWord    = 1 << iota // part of an unquoted identifier
	classBlank               // white space
	classComment             // may begin or end a comment
	classValue               // significant in a row of values
	classVerb                // begins INSERT, REPLACE or LOAD
)

var class = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '$', c >= 0x80:
			t[c] = classWord
		case c == ' ', c >= '\t' && c <= '\r':
			t[c] = classBlank
		}
	}
	for _, c := range []byte("#-/*") {
		t[c] = classComment | classValue
	}
	for _, c := range []byte("'\"`[(),;?@") {
		t[c] = classValue
	}
	for _, c := range []byte("iIrRlL") {
		t[c] |= classVerb
	}
	return t
}()

// latin1Class is class for character sets in which a byte above 0x7F may be a blank.
var latin1Class = func() [256]uint8 {
	t := class
	for c := 0x80; c < len(t); c++ {
		t[c] |= classValue
	}
	return t
}()

func isWordByte(c byte) bool { return class[c]&classWord != 0 }
func isBlank(c byte) bool    { return class[c]&classBlank != 0 }
func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
