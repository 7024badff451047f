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
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// errUnknown is the error for a statement that TiDB's parser doesn't support, or parses differently
// from the servers.
var errUnknown = errors.New("shardkey: unknown to TiDB's parser")

// Parse parses a string with TiDB's parser, as the session of the options would. It returns an error
// for a string that TiDB's parser doesn't support, or parses differently from the servers. It is
// safe for concurrent use.
func Parse(text string, opts rewrite.Options) ([]ast.StmtNode, error) {
	return new(reader).read(text, opts) // this reader keeps its parser, since the caller uses the trees
}

// ParseAny is Parse for a string that the servers may parse differently.
func ParseAny(text string, opts rewrite.Options) ([]ast.StmtNode, error) {
	return new(reader).parse(text, opts)
}

// reader parses strings with parsers of the pool. A parser keeps pointers into its trees and
// changes them when it parses the next string. So it is used for one string until release.
type reader struct{ parsers []*parser.Parser }

// Creating a parser is expensive.
var parsers = sync.Pool{New: func() any {
	setConstructors()
	return parser.New()
}}

// release returns the parsers to the pool. Their trees must no longer be used.
func (r *reader) release() {
	for _, p := range r.parsers {
		parsers.Put(p)
	}
	r.parsers = nil
}

// read returns errUnknown for a string that TiDB parses differently from the servers.
func (r *reader) read(text string, opts rewrite.Options) ([]ast.StmtNode, error) {
	if !comparable(text, opts) {
		return nil, errUnknown
	}
	return r.parse(text, opts)
}

// longest is the maximum length for TiDB's parser, in bytes. Trees are walked recursively, and a
// longer string could contain an expression that is too deep.
const longest = 64 << 10

func (r *reader) parse(text string, opts rewrite.Options) (stmts []ast.StmtNode, err error) {
	if len(text) > longest {
		return nil, errUnknown
	}
	p := parsers.Get().(*parser.Parser)
	defer func() {
		// A value driver may panic for unusual literals; its parser isn't used again.
		if panicked := recover(); panicked != nil {
			stmts, err = nil, fmt.Errorf("the parser panicked: %v", panicked)
			return
		}
		r.parsers = append(r.parsers, p)
	}()
	mode, _ := session(opts)
	p.SetSQLMode(sqlMode(mode))
	stmts, _, err = p.ParseSQL(text)
	return slices.Clone(stmts), err
}

// session returns how the session of the options reads strings.
func session(opts rewrite.Options) (sqltoken.Mode, sqltoken.Charset) {
	return sqltoken.ParseMode(opts.SQLMode), sqltoken.ParseCharset(opts.Charset)
}

func sqlMode(mode sqltoken.Mode) (m mysql.SQLMode) {
	if mode&sqltoken.ANSIQuotes != 0 {
		m |= mysql.ModeANSIQuotes
	}
	if mode&sqltoken.NoBackslashEscapes != 0 {
		m |= mysql.ModeNoBackslashEscapes
	}
	return m
}

// comparable reports whether TiDB parses a string as MySQL and MariaDB do. TiDB differs in these
// cases:
//
//   - It parses the contents of "/*T!" and "/*+", always those of "/*!", and never those of "/*M!".
//   - It continues after a NUL byte, and treats a control character after "--" differently.
//   - It reads the 0 of "t. 0" and the INTO of "INTO. t" as names.
//   - It replaces invalid characters by '?'.
//   - With ANSI_QUOTES it sees escapes in "names\"".
func comparable(text string, opts rewrite.Options) bool {
	mode, charset := session(opts)
	bracketed := strings.IndexByte(text, '[') >= 0
	if mode&sqltoken.MSSQL != 0 && bracketed || strings.IndexByte(text, 0) >= 0 || !readable(text, charset) {
		return false
	}
	comments := strings.Contains(text, "--") || strings.Contains(text, "/*")
	if !comments && !strings.ContainsAny(text, "\\\"`#") {
		text = withoutStrings(text)
	}
	if mode&sqltoken.ANSIQuotes != 0 && strings.IndexByte(text, '"') >= 0 && strings.IndexByte(text, '\\') >= 0 {
		return false
	}
	return !comments && strings.IndexByte(text, '.') < 0 || !oddText.MatchString(text)
}

// readable reports whether TiDB splits a string into the same characters as the servers.
func readable(text string, c sqltoken.Charset) bool {
	return sqltoken.IsASCII(text) || c == sqltoken.UTF8 && utf8.ValidString(text)
}

var oddText = regexp.MustCompile(`(?i)/\*[!MT+]|--[^ -~\n]|\.\s+[0-9]|` +
	`(insert|replace|into|ignore|priority|delayed)\s*\.|\.\s*(/\*|#|--)`)

// withoutStrings returns a statement without its strings in single quotes.
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
