package rewrite

import (
	"strings"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/sqltext"
)

// Charset is the character set in which the server reads a session's texts
// (@@character_set_client), as far as it decides where words and strings end.
// The zero value is UTF-8; [ParseCharset] makes the others.
type Charset uint8

const (
	// CharsetUTF8: utf8mb4 and utf8mb3; also binary, where names are UTF-8.
	CharsetUTF8 Charset = iota
	// charsetSingle: one byte a character, all of them above 0x7F letters or
	// signs.
	charsetSingle
	// charsetNBSP: one byte a character, and 0xA0 is white space; latin1 is one.
	charsetNBSP
	// charsetDOS: one byte a character, and 0xFF is white space, as in cp852.
	charsetDOS
	// charsetEUC: several bytes a character, none of which means something by
	// itself, as in ujis.
	charsetEUC
	// charsetBig5, charsetGBK and charsetSJIS: the second byte of a character
	// may be a backslash or a backquote. GBK stands for gb18030 too, and SJIS
	// for cp932.
	charsetBig5
	charsetGBK
	charsetSJIS
	// charsetUnknown: nothing is known of bytes above 0x7F. An INSERT into a
	// ruled table is refused if its text has one.
	charsetUnknown
)

// ParseCharset reads the value of @@character_set_client.
func ParseCharset(name string) Charset {
	switch strings.ToLower(name) {
	case "utf8mb4", "utf8mb3", "utf8", "binary":
		return CharsetUTF8
	case "gbk", "gb18030":
		return charsetGBK
	case "big5":
		return charsetBig5
	case "sjis", "cp932":
		return charsetSJIS
	case "ujis", "eucjpms", "euckr", "gb2312":
		return charsetEUC
	case "latin1", "latin2", "latin5", "latin7", "cp1250", "dec8", "greek", "hebrew", "geostd8", "armscii8":
		return charsetNBSP
	case "cp852", "cp866", "keybcs2":
		return charsetDOS
	case "ascii", "cp850", "cp1251", "cp1256", "cp1257", "hp8", "koi8r", "koi8u", "macce", "macroman", "swe7", "tis620":
		return charsetSingle
	}
	return charsetUnknown
}

// isWide reports whether the second byte of a character may mean something by
// itself.
func (c Charset) isWide() bool { return c == charsetBig5 || c == charsetGBK || c == charsetSJIS }

// blank is the byte above 0x7F that is white space; 0 for none.
func (c Charset) blank() byte {
	switch c {
	case charsetNBSP:
		return 0xa0
	case charsetDOS:
		return 0xff
	}
	return 0
}

// charLen is the length of the character at pos, in a wide character set, as
// the servers see it (their function my_ismbchar): a first byte without a
// second one stands by itself.
func (c Charset) charLen(text string, pos int) int {
	if pos+1 >= len(text) || !c.isLead(text[pos]) || !c.isTrail(text[pos+1]) {
		return 1
	}
	return 2
}

func (c Charset) isLead(b byte) bool {
	switch c {
	case charsetBig5:
		return b >= 0xa1 && b <= 0xf9
	case charsetGBK:
		return b >= 0x81 && b <= 0xfe
	}
	return b >= 0x81 && b <= 0x9f || b >= 0xe0 && b <= 0xfc
}

func (c Charset) isTrail(b byte) bool {
	switch {
	case b >= 0x40 && b <= 0x7e:
		return true
	case c == charsetBig5:
		return b >= 0xa1 && b <= 0xfe
	case c == charsetGBK:
		return b >= 0x80 && b <= 0xfe
	}
	return b >= 0x80 && b <= 0xfc
}

// wordEnd is where the word that begins at pos ends.
func (c Charset) wordEnd(text string, pos int) int {
	if c == CharsetUTF8 {
		return wordEnd(text, pos)
	}
	for blank := c.blank(); pos < len(text); {
		switch b := text[pos]; {
		case b < utf8.RuneSelf:
			if !isWordByte(b) {
				return pos
			}
			pos++
		case b == blank:
			return pos
		case c.isWide():
			pos += c.charLen(text, pos)
		default:
			pos++
		}
	}
	return pos
}

// validPrefix is a name up to the first byte that is no character. MySQL drops
// such a byte from the end of a name.
func (c Charset) validPrefix(name string) string {
	if c == charsetSingle || c == charsetNBSP || c == charsetDOS {
		return name
	}
	for i := 0; i < len(name); {
		n := 1
		switch {
		case name[i] < utf8.RuneSelf:
		case c == CharsetUTF8:
			if r, size := utf8.DecodeRuneInString(name[i:]); r != utf8.RuneError || size > 1 {
				n = size
			} else {
				return name[:i]
			}
		case c.isWide() && c.charLen(name, i) == 2:
			n = 2
		default:
			return name[:i]
		}
		i += n
	}
	return name
}

func isASCII(s string) bool {
	for len(s) >= 32 { // texts can be long
		if (word64(s)|word64(s[8:])|word64(s[16:])|word64(s[24:]))&0x8080808080808080 != 0 {
			return false
		}
		s = s[32:]
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// word64 is the first eight bytes of a string, which the compiler loads at once.
func word64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// quoteName is [QuoteIdentifier] for a name in the text's character set.
func (c Charset) quoteName(name string) string {
	if !c.isWide() || strings.IndexByte(name, '`') < 0 {
		return sqltext.QuoteIdentifier(name)
	}
	quoted := []byte{'`'}
	for i := 0; i < len(name); {
		n := c.charLen(name, i)
		if name[i] == '`' {
			quoted = append(quoted, '`')
		}
		quoted = append(quoted, name[i:i+n]...)
		i += n
	}
	return string(append(quoted, '`'))
}
