package rewrite

import (
	"strings"
)

// Class is what a text may be, judged by its first word alone.
type Class uint8

const (
	// ClassPass: the text holds no INSERT or REPLACE that could be filled.
	ClassPass Class = iota
	// ClassMayInsert: the text must be parsed to know.
	ClassMayInsert
	// ClassSet: a SET statement without INSERT; it may change sql_mode.
	ClassSet
	// ClassUse: a USE statement; it changes the current database.
	ClassUse
	// ClassCall: CALL or EXECUTE; what runs is not in the text.
	ClassCall
	// ClassSeveral: more than one statement, or one in an executable comment; no
	// INSERT.
	ClassSeveral
)

// Classify tells in a few nanoseconds, without allocating, whether a text
// needs a look. It errs on the side of MayInsert. What it says [ClassPass] of, is
// no INSERT or REPLACE for any sql_mode.
func Classify(text string) Class {
	start := skipLeading(text)
	if start == len(text) {
		return ClassPass
	}
	end := wordEnd(text, start)
	class, mayHold := ClassPass, false
	// By length first: nearly every text is done after one comparison.
	switch word := text[start:end]; len(word) {
	case 0:
		// An executable comment, or a bracket: (SELECT …).
		if c := text[start]; c == '/' || c == ';' {
			return mayInsertIf(mentionsInsert(text[start:]), ClassSeveral)
		}
	case 2:
		mayHold = fold(word, "IF")
	case 3:
		switch {
		case fold(word, "SET"):
			class, mayHold = ClassSet, true
		case fold(word, "USE"):
			class = ClassUse
		case fold(word, "FOR"):
			mayHold = true
		}
	case 4:
		if fold(word, "CALL") {
			class = ClassCall
		}
		mayHold = fold(word, "CASE") || fold(word, "LOOP") || fold(word, "DESC")
	case 5:
		mayHold = fold(word, "BEGIN") || fold(word, "WHILE")
	case 6:
		if fold(word, "INSERT") {
			return ClassMayInsert
		}
		mayHold = fold(word, "REPEAT")
	case 7:
		switch {
		case fold(word, "REPLACE"):
			return ClassMayInsert
		case fold(word, "EXECUTE"):
			class = ClassCall
		}
		mayHold = fold(word, "ANALYZE") || fold(word, "DECLARE") || fold(word, "EXPLAIN")
	case 8:
		mayHold = fold(word, "DESCRIBE")
	}
	if mayHold && mentionsInsert(text[end:]) {
		return ClassMayInsert
	}
	// A further statement behind a semicolon.
	if semicolon := strings.IndexByte(text[end:], ';'); semicolon >= 0 && !isLast(text[end+semicolon:]) {
		return mayInsertIf(mentionsInsert(text[end+semicolon:]), ClassSeveral)
	}
	return class
}

// skipLeading is where the text begins behind blanks and plain comments: tools
// put a trace's id there.
func skipLeading(text string) int {
	pos := 0
	for pos < len(text) {
		c := text[pos]
		if isBlank(c) {
			pos++
			continue
		}
		if class[c]&classComment == 0 {
			break
		}
		lx := lexer{text: text, pos: pos}
		skipped, ok := lx.skipComment()
		if !ok || !skipped || lx.executable {
			break
		}
		pos = lx.pos
	}
	return pos
}

// isLast tells whether nothing but blanks follows the semicolon that text
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

// mentionsInsert tells whether INSERT or REPLACE stands anywhere in the text.
func mentionsInsert(text string) bool {
	return indexInsert(text) < len(text)
}

// indexInsert is where INSERT or REPLACE stands first, the text's length when
// neither does.
func indexInsert(text string) int {
	for i := 0; i+len("INSERT") <= len(text); i++ {
		switch text[i] | 0x20 {
		case 'i':
			if fold(text[i:i+len("INSERT")], "INSERT") {
				return i
			}
		case 'r':
			if i+len("REPLACE") <= len(text) && fold(text[i:i+len("REPLACE")], "REPLACE") {
				return i
			}
		}
	}
	return len(text)
}

// MentionsLastInsertID tells whether the text reads the session's last insert
// id: LAST_INSERT_ID(), @@last_insert_id, @@identity.
func MentionsLastInsertID(text string) bool {
	return containsFold(text, "LAST_INSERT_ID") || containsFold(text, "@IDENTITY") || containsFold(text, ".IDENTITY")
}

// MentionsSQLMode tells whether the text names sql_mode.
func MentionsSQLMode(text string) bool { return containsFold(text, "SQL_MODE") }

// containsFold looks for an upper-case ASCII word without regard to case.
func containsFold(text, upper string) bool {
	for i := 0; i+len(upper) <= len(text); i++ {
		if text[i]&^0x20 == upper[0]&^0x20 && fold(text[i:i+len(upper)], upper) {
			return true
		}
	}
	return false
}

// fold tells whether a word is an upper-case ASCII one but for its case.
func fold(word, upper string) bool {
	if len(word) != len(upper) {
		return false
	}
	for i := range len(word) {
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
	for _, c := range []byte("'\"`(),;?@") {
		t[c] |= classValue
	}
	return t
}()

func isWordByte(c byte) bool { return class[c]&classWord != 0 }
func isBlank(c byte) bool    { return class[c]&classBlank != 0 }
func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
