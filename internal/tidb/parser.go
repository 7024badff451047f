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
	"github.com/shardkey/shardkey/internal/rewrite"
)

// ErrUnknown is the error of [Parse] for a text that TiDB's parser does not
// read, or not as the servers do.
var ErrUnknown = errors.New("shardkey: unknown to TiDB's parser")

// Parse reads a text with TiDB's parser, as the session of the options does. It
// may be called by many goroutines.
func Parse(text string, opts rewrite.Options) ([]ast.StmtNode, error) {
	return new(reader).read(text, opts) // whose parser isn't used again
}

// reader reads texts with parsers of the pool. A parser keeps pointers into the trees
// that it made, and writes through them when it reads the next text: so it
// serves one text, until release.
type reader struct{ parsers []*parser.Parser }

// Parsers are costly to make.
var parsers = sync.Pool{New: func() any {
	setConstructors()
	return parser.New()
}}

// release ends the use of all trees that were read.
func (r *reader) release() {
	for _, p := range r.parsers {
		parsers.Put(p)
	}
	r.parsers = nil
}

func (r *reader) read(text string, opts rewrite.Options) ([]ast.StmtNode, error) {
	if len(text) > longest || !comparable(text, opts) {
		return nil, ErrUnknown
	}
	stmts, err := r.parse(text, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return stmts, nil
}

// longest is the length of text up to which the parser is asked. Trees are
// walked by recursion: a longer text could be one expression that is too deep.
const longest = 64 << 10

func (r *reader) parse(text string, opts rewrite.Options) (stmts []ast.StmtNode, err error) {
	p := parsers.Get().(*parser.Parser)
	defer func() {
		// A value driver may panic at odd literals; such a parser is not used again.
		if panicked := recover(); panicked != nil {
			stmts, err = nil, fmt.Errorf("the parser panicked: %v", panicked)
			return
		}
		r.parsers = append(r.parsers, p)
	}()
	p.SetSQLMode(sqlMode(opts.Mode))
	stmts, _, err = p.ParseSQL(text)
	return slices.Clone(stmts), err
}

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
// continue after a NUL byte, reads a control character after "--" otherwise, takes
// the 0 of "t. 0" and the INTO of "INTO. t" for names, puts '?' in place of
// bytes that are no characters, and with ANSI_QUOTES sees escapes in "names\"", where
// there are none.
func comparable(text string, opts rewrite.Options) bool {
	mode, bracketed := opts.Mode, strings.IndexByte(text, '[') >= 0
	if mode&rewrite.MSSQL != 0 && bracketed || strings.IndexByte(text, 0) >= 0 || !readable(text, opts.Charset) {
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

// readable reports whether TiDB splits a text into characters as the servers do.
func readable(text string, c rewrite.Charset) bool {
	return isASCII(text) || c == rewrite.CharsetUTF8 && utf8.ValidString(text)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

var oddText = regexp.MustCompile(`(?i)/\*[!MT+]|--[^ -~\n]|\.\s+[0-9]|` +
	`(insert|replace|into|ignore|priority|delayed)\s*\.|\.\s*(/\*|#|--)`)

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
