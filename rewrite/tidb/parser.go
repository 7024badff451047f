package tidb

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/shardkey/shardkey/rewrite"
)

// ErrUnknown is the error of [Parse] for a text that TiDB's parser does not
// read, or not as the servers do.
var ErrUnknown = errors.New("shardkey: unknown to TiDB's parser")

// Parse reads a text with TiDB's parser, as the session of the options does. It
// may be called by many goroutines.
func Parse(text string, opts rewrite.Options) ([]ast.StmtNode, error) {
	if len(text) > longest || !comparable(text, opts) {
		return nil, ErrUnknown
	}
	stmts, err := parse(text, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return stmts, nil
}

// Parsers are costly to make, and each is for one goroutine at a time.
var parsers = sync.Pool{New: func() any {
	setConstructors()
	return parser.New()
}}

// longest is the length of text up to which the parser is asked. Trees are
// walked by recursion: a longer text could be one expression that is too deep.
const longest = 64 << 10

func parse(text string, opts rewrite.Options) (stmts []ast.StmtNode, err error) {
	p := parsers.Get().(*parser.Parser)
	defer func() {
		// A value driver may panic at odd literals; such a parser is not used again.
		if r := recover(); r != nil {
			stmts, err = nil, fmt.Errorf("the parser panicked: %v", r)
			return
		}
		parsers.Put(p)
	}()
	p.SetSQLMode(sqlMode(opts.Mode))
	if opts.Charset == gbk {
		stmts, _, err = p.ParseSQL(text, parser.CharsetClient("gbk"))
	} else {
		stmts, _, err = p.ParseSQL(text)
	}
	return slices.Clone(stmts), err
}

// gbk is the one character set beside UTF-8 that TiDB's parser reads as the
// servers do.
var gbk = rewrite.ParseCharset("gbk")

func sqlMode(mode rewrite.Mode) (m mysql.SQLMode) {
	if mode&rewrite.ANSIQuotes != 0 {
		m |= mysql.ModeANSIQuotes
	}
	if mode&rewrite.NoBackslashEscapes != 0 {
		m |= mysql.ModeNoBackslashEscapes
	}
	return m
}

// comparable reports whether TiDB reads a text as MySQL and MariaDB do. It takes
// "/*T!" and "/*+" for text, executes every "/*!" and never "/*M!", lets a text
// go on after a NUL byte, reads a control character after "--" otherwise, takes
// the 0 of "t. 0" and the INTO of "INTO. t" for names, puts '?' in place of
// bytes that are no characters, and with ANSI_QUOTES sees escapes in "names\"", where
// there are none.
func comparable(text string, opts rewrite.Options) bool {
	mode := opts.Mode
	if mode&rewrite.MSSQL != 0 && strings.IndexByte(text, '[') >= 0 || strings.IndexByte(text, 0) >= 0 || !readable(text, opts.Charset) {
		return false
	}
	comments := strings.Contains(text, "--") || strings.Contains(text, "/*")
	if !comments && !strings.ContainsAny(text, "\\\"`#") {
		text = withoutStrings(text)
	}
	if mode&rewrite.ANSIQuotes != 0 && strings.IndexByte(text, '"') >= 0 && strings.IndexByte(text, '\\') >= 0 {
		return false
	}
	return !comments && strings.IndexByte(text, '.') < 0 || !oddText.MatchString(text)
}

// readable reports whether TiDB splits a text into characters as the
// servers do. In GBK these take one byte after a backslash, not a character.
func readable(text string, c rewrite.Charset) bool {
	switch {
	case isASCII(text):
		return true
	case c == rewrite.CharsetUTF8:
		return utf8.ValidString(text)
	}
	return c == gbk && isWholeGBK(text)
}

// isWholeGBK reports whether a text has whole GBK characters only, none of two
// bytes after a backslash, and none whose first byte TiDB takes for white space.
func isWholeGBK(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] < utf8.RuneSelf {
			continue
		}
		if i > 0 && text[i-1] == '\\' || strings.IndexByte("\x80\x85\xa0\xff", text[i]) >= 0 || i+1 == len(text) {
			return false
		}
		if i++; text[i] < 0x40 || text[i] == 0x7f || text[i] == 0xff {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

var oddText = regexp.MustCompile(`(?i)/\*[!MT+]|--[^ -~\n]|\.\s+[0-9]|(insert|replace|into|ignore|priority|delayed)\s*\.|\.\s*(/\*|#|--)`)

// withoutStrings is a text without its strings, which begin and end with '.
func withoutStrings(text string) string {
	if strings.IndexByte(text, '\'') < 0 {
		return text
	}
	var b strings.Builder
	for i, part := range strings.Split(text, "'") {
		if i%2 == 0 {
			b.WriteString(part)
			b.WriteByte(' ')
		}
	}
	return b.String()
}
