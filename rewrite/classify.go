package rewrite

import "strings"

// Class is what a text may be, judged by its first word alone.
type Class uint8

const (
	// Passes: the text holds no INSERT or REPLACE that could be filled.
	Passes Class = iota
	// MayInsert: the text must be parsed to know.
	MayInsert
	// Sets: a SET statement without INSERT; it may change sql_mode.
	Sets
	// Uses: a USE statement; it changes the current database.
	Uses
	// Calls: CALL or EXECUTE; what runs is not in the text.
	Calls
	// Several: more than one statement, or one behind a comment; no INSERT.
	Several
)

// Classify tells in a few nanoseconds, without allocating, whether a text
// needs a look. It errs on the side of MayInsert. What it says [Passes] of, is
// no INSERT or REPLACE for any sql_mode.
func Classify(text string) Class {
	start := 0
	for start < len(text) && isBlank(text[start]) {
		start++
	}
	if start == len(text) {
		return Passes
	}
	end := wordEnd(text, start)
	word := text[start:end]
	class := Passes
	switch {
	case word == "":
		// A comment, or a bracket: (SELECT …).
		if c := text[start]; c == '/' || c == '-' || c == '#' || c == ';' {
			return mayInsertIf(mentionsInsert(text[start:]), Several)
		}
	case fold(word, "INSERT"), fold(word, "REPLACE"):
		return MayInsert
	case fold(word, "SET"):
		class = Sets
		if mentionsInsert(text[end:]) {
			return MayInsert
		}
	case fold(word, "USE"):
		class = Uses
	case fold(word, "CALL"), fold(word, "EXECUTE"):
		class = Calls
	case fold(word, "ANALYZE"), fold(word, "BEGIN"), fold(word, "IF"), fold(word, "CASE"), fold(word, "LOOP"),
		fold(word, "REPEAT"), fold(word, "WHILE"), fold(word, "FOR"), fold(word, "DECLARE"):
		return mayInsertIf(mentionsInsert(text[end:]), class)
	}
	// A further statement behind a semicolon.
	if semicolon := strings.IndexByte(text[end:], ';'); semicolon >= 0 && !isLast(text[end+semicolon:]) {
		return mayInsertIf(mentionsInsert(text[end+semicolon:]), Several)
	}
	return class
}

// isLast tells whether nothing but blanks follows the semicolon that text
// begins with.
func isLast(text string) bool {
	return strings.Trim(text[1:], " \t\n\v\f\r") == ""
}

func mayInsertIf(may bool, otherwise Class) Class {
	if may {
		return MayInsert
	}
	return otherwise
}

// mentionsInsert tells whether INSERT or REPLACE stands anywhere in the text.
func mentionsInsert(text string) bool {
	return containsFold(text, "INSERT") || containsFold(text, "REPLACE")
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
