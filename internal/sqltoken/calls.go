package sqltoken

import (
	"strings"
	"unicode"
)

// MayCallFunctions reports whether a statement, or the rest of one, may call a stored function,
// perhaps in a view. It only reads what precedes brackets, and may return true for names, strings and
// comments.
func MayCallFunctions(text string) bool {
	const blanks = " \t\r\n"
	for {
		before, after, found := strings.Cut(text, "(")
		if !found {
			return false
		}
		before, text = strings.TrimRight(before, blanks), after
		name := before[len(strings.TrimRightFunc(before, isNameRune)):]
		begin := strings.ToUpper(strings.TrimLeft(after[:min(len(after), 80)], blanks))
		switch {
		case !strings.Contains(builtIn, " "+strings.ToUpper(name)+" "), strings.HasSuffix(before, "*/"),
			strings.HasPrefix(begin, "/*"), strings.HasPrefix(begin, "SELECT"), strings.HasPrefix(begin, "WITH"):
			return true
		}
	}
}

// isNameRune reports whether a character may be in a name, which may be qualified and quoted.
func isNameRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_$.`\"", r)
}

// builtIn are the words before a bracket in usual statements that aren't stored functions, between
// blanks. The empty word is one.
const builtIn = "  VALUES VALUE ROW UPDATE IN AND OR NOT XOR INTERVAL CASE WHEN THEN ELSE DEFAULT IF IFNULL NULLIF COALESCE " +
	"GREATEST LEAST ABS CEIL CEILING FLOOR MOD RAND ROUND CAST CONVERT CHAR NOW CURDATE CURTIME CURRENT_DATE CURRENT_TIME " +
	"CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP SYSDATE UTC_DATE UTC_TIME UTC_TIMESTAMP UNIX_TIMESTAMP FROM_UNIXTIME DATE " +
	"DATE_ADD DATE_SUB DATE_FORMAT STR_TO_DATE TIME TIMESTAMP UUID UUID_SHORT UUID_TO_BIN CONCAT CONCAT_WS HEX UNHEX LEFT " +
	"RIGHT LENGTH CHAR_LENGTH LOWER UPPER LPAD RPAD REPLACE SUBSTR SUBSTRING TRIM MD5 SHA SHA1 SHA2 CRC32 FROM_BASE64 " +
	"TO_BASE64 INET_ATON INET6_ATON JSON_ARRAY JSON_EXTRACT JSON_MERGE_PATCH JSON_OBJECT JSON_QUOTE JSON_SET POINT " +
	"ST_GEOMFROMTEXT ST_GEOMFROMWKB LAST_INSERT_ID USER CURRENT_USER DATABASE CONNECTION_ID VERSION "

// NamesLastInsertID reports whether the string contains LAST_INSERT_ID. MariaDB 11.8 takes ſ and ı
// for S and I in names of functions.
func NamesLastInsertID(text string) bool {
	const name = "LAST_INSERT_ID"
	return Contains(text, name) || strings.Contains(text, "ſ") && Contains(asciiLetters.Replace(text), name) ||
		strings.Contains(text, "ı") && Contains(asciiLetters.Replace(text), name)
}

// CallsLastInsertID reports whether the name LAST_INSERT_ID is in front of a bracket.
func CallsLastInsertID(text string, bracket int) bool {
	end := bracket
	for end > 0 && IsBlank(text[end-1]) {
		end--
	}
	switch {
	case end == 0:
		return false
	case text[end-1] == '`':
		end--
	case text[end-1]|0x20 != 'd':
		return false
	}
	const longest = len("laſt_ınsert_ıd")
	return NamesLastInsertID(text[max(0, end-longest):end])
}

var asciiLetters = strings.NewReplacer("ſ", "s", "ı", "i")
