package sqltoken

import "strings"

// verb is a statement's first word.
type verb struct {
	word    string
	letters uint64 // see firstWord
	class   Class
	// hold: the statement may contain an INSERT, for example SET STATEMENT. words: its words matter.
	hold, words bool
}

const longestVerb = len("DEALLOCATE")

// verbs are the known first words, by length.
var verbs = func() (t [longestVerb + 1][]verb) {
	add := func(class Class, hold bool, words ...string) {
		for _, word := range words {
			_, letters := firstWord(word, 0)
			t[len(word)] = append(t[len(word)], verb{word, letters, class, hold, class != ClassPass || word == "SHOW"})
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
	v := verbOf(word, letters)
	return v.class, v.hold
}

func verbOf(word string, letters uint64) *verb {
	if len(word) <= longestVerb {
		known := verbs[len(word)]
		for i := range known {
			if v := &known[i]; v.letters == letters && (len(word) <= 8 || hasFold(word, v.word)) {
				return v
			}
		}
	}
	if word == "" {
		return &noVerb
	}
	return &unknownVerb
}

var noVerb, unknownVerb = verb{}, verb{hold: true, words: true}

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
	return strings.Trim(text[1:], blanks) == ""
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
