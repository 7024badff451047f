package rewrite

import (
	"strings"
)

// Class is what a text may be, judged by its first word and whether INSERT,
// REPLACE or LOAD stands anywhere.
type Class uint8

const (
	// ClassPass: the text holds nothing that could be filled, and changes
	// nothing that is known of the session.
	ClassPass Class = iota
	// ClassMayInsert: the text must be parsed to know.
	ClassMayInsert
	// classLoad: LOAD DATA or LOAD XML; it must be parsed too.
	classLoad
	// classSet: a SET statement without INSERT.
	classSet
	// classUse: a USE statement; it changes the current database.
	classUse
	// classCall: CALL or EXECUTE; what runs is not in the text.
	classCall
	// classDDL: CREATE, ALTER, DROP, RENAME, TRUNCATE. Tables may have other
	// columns afterwards.
	classDDL
	// ClassSeveral: more than one statement, or one in an executable comment; no
	// INSERT.
	ClassSeveral
)

// MustParse reports whether only [Parse] can tell what happens to the text.
func (c Class) MustParse() bool { return c == ClassMayInsert || c == classLoad }

// Classify tells in a few nanoseconds, without allocating, whether a text
// needs a look. It errs on the side of ClassMayInsert: what it says another
// class of, is no INSERT or REPLACE for any sql_mode and character set. A text
// whose first word it does not know may insert if it mentions that.
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
	// hold: the statement may hold an INSERT, as SET STATEMENT does.
	hold bool
}

const longestVerb = len("DEALLOCATE")

// verbs are the first words that are known, by their length.
var verbs = func() (t [longestVerb + 1][]verb) {
	add := func(class Class, hold bool, words ...string) {
		for _, word := range words {
			_, letters := firstWord(word, 0)
			t[len(word)] = append(t[len(word)], verb{word, letters, class, hold})
		}
	}
	// The frequent ones first.
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

// firstWord returns the end of the word that begins at pos, and its last eight
// bytes without regard to case, as one number.
func firstWord(text string, pos int) (end int, letters uint64) {
	for ; pos < len(text) && isWordByte(text[pos]); pos++ {
		letters = letters<<8 | uint64(text[pos]&^0x20)
	}
	return pos, letters
}

// verbClass is the class of a statement by its first word. Where hold is true
// it may hold an INSERT: as ANALYZE, BEGIN and SET STATEMENT do, and whatever is
// not known here.
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

// skipLeading is where the text begins after blanks and plain comments: tools
// put a trace's id there.
func skipLeading(text string) int {
	lx, pos := lexer{text: text}, 0
	for pos < len(text) {
		c := text[pos]
		if isBlank(c) {
			pos++
			continue
		}
		if class[c]&classComment == 0 {
			break
		}
		lx.pos = pos
		skipped, ok := lx.skipComment()
		if !ok || !skipped || lx.unsure != "" {
			break
		}
		pos = lx.pos
	}
	return pos
}

// isLast reports whether nothing but blanks follows the semicolon that text
// begins with.
func isLast(text string) bool {
	return strings.Trim(text[1:], " \t\n\v\f\r") == ""
}

func mayInsertIf(may bool, otherwise Class) Class {
	if may {
		return ClassMayInsert
	}
	return otherwise
}

// mentionsInsert reports whether INSERT, REPLACE or LOAD stands anywhere in the
// text.
func mentionsInsert(text string) bool {
	return indexInsert(text) < len(text)
}

// indexInsert is where INSERT, REPLACE or LOAD stands first, the text's length
// when none does.
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

// containsFold looks for an upper-case ASCII word without regard to case.
func containsFold(text, upper string) bool { return indexFold(text, upper) < len(text) }

// indexFold is where the word stands first, the text's length when it does not.
func indexFold(text, upper string) int {
	for i := 0; i+len(upper) <= len(text); i++ {
		if hasFold(text[i:], upper) {
			return i
		}
	}
	return len(text)
}

// fold reports whether a word is one of upper-case ASCII ones but for its case.
func fold(word string, upper ...string) bool {
	for _, u := range upper {
		if len(word) == len(u) && hasFold(word, u) {
			return true
		}
	}
	return false
}

// hasFold reports whether a text begins with an upper-case ASCII word, but for its
// case. Mostly the first byte tells.
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
	classWord    = 1 << iota // may stand in an unquoted identifier
	classBlank               // white space
	classComment             // may begin or end a comment
	classValue               // means something within a row of values
	classVerb                // begins INSERT, REPLACE or LOAD
)

var class = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '$', c >= 0x80:
			t[c] |= classWord
		case c == ' ', c >= '\t' && c <= '\r':
			t[c] |= classBlank
		}
	}
	for _, c := range []byte("#-/*") {
		t[c] |= classComment | classValue
	}
	for _, c := range []byte("'\"`[(),;?@") {
		t[c] |= classValue
	}
	for _, c := range []byte("iIrRlL") {
		t[c] |= classVerb
	}
	return t
}()

// latin1Class is class for character sets in which a byte above 0x7F may be a
// blank.
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
