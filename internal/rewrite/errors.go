package rewrite

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnsupportedStatement is in the chain of the error for an INSERT or
// REPLACE into a sharded table that cannot be filled. Such a statement is never
// sent to the server.
var ErrUnsupportedStatement = errors.New("shardkey: statement cannot be filled")

// StatementError says what cannot be filled, why and where.
type StatementError struct {
	Table  string // the table as the statement names it
	Reason string // why, and what to write instead
	Offset int    // position in the text, in bytes from 0
	Line   int    // the same, in lines from 1
	Column int    // and bytes in the line from 1
	Near   string // the text there, with '…' in place of literals
}

func (e *StatementError) Error() string {
	msg := fmt.Sprintf("%v: %s, at line %d column %d", ErrUnsupportedStatement, e.Reason, e.Line, e.Column)
	if e.Table != "" {
		msg = fmt.Sprintf("%v: table %s: %s, at line %d column %d", ErrUnsupportedStatement, e.Table, e.Reason, e.Line, e.Column)
	}
	if e.Near != "" {
		msg += " near " + e.Near
	}
	return msg
}

func (e *StatementError) Unwrap() error { return ErrUnsupportedStatement }

// NewStatementError says that what stands at an offset of a text, read as
// the options say, keeps the statement from being filled.
func NewStatementError(text string, opts Options, offset int, table, reason string) *StatementError {
	offset = min(offset, len(text))
	before := text[:offset]
	return &StatementError{
		Table:  strings.ToValidUTF8(table, "\uFFFD"),
		Reason: reason,
		Offset: offset,
		Line:   1 + strings.Count(before, "\n"),
		Column: offset - strings.LastIndexByte(before, '\n'),
		Near:   excerpt(text[offset:], &opts),
	}
}

// excerpt is the first few tokens of a text without its literals: errors end
// in logs, and literals are other people's data.
func excerpt(text string, opts *Options) string {
	const tokens = 8
	lx := newLexer(text, opts.Mode, opts.Charset)
	var b strings.Builder
	for range tokens {
		t := lx.next()
		switch t.kind {
		case tokenEOF:
			if len(lx.text) == len(text) {
				return quoteExcerpt(b.String())
			}
			return quoteExcerpt(b.String() + "…") // the rest isn't readable
		case tokenBad:
			return quoteExcerpt(b.String() + "…")
		}
		if b.Len() > 0 && t.start > 0 && isBlank(text[t.start-1]) {
			b.WriteByte(' ')
		}
		switch t.kind {
		case tokenString:
			b.WriteString("'…'")
		case tokenNumber:
			b.WriteString("…")
		default:
			b.WriteString(clip(text[t.start:t.end]))
		}
	}
	return quoteExcerpt(b.String() + " …")
}

// clip shortens a name that is no name any more.
func clip(name string) string {
	const longest = 64 // characters, the server's own limit
	n := 0
	for i := range name {
		if n++; n > longest {
			return name[:i] + "…"
		}
	}
	return name
}

func quoteExcerpt(s string) string {
	if s == "" {
		return "the end of the text"
	}
	return "«" + strings.ToValidUTF8(s, "\uFFFD") + "»"
}

// WithoutLiterals returns a text for logs: what stands for a value in it is a
// placeholder, as literals are other people's data, and comments are left out. opts
// say how the text is read; its Mode and Charset alone matter. What is longer than
// most bytes is cut, as is what follows a literal without its end: both end in "…".
func WithoutLiterals(text string, opts Options, most int) string {
	lx := newLexer(text, opts.Mode, opts.Charset)
	var b strings.Builder
	for end := 0; ; {
		t := lx.next()
		if t.kind == tokenEOF && len(lx.text) == len(text) {
			return strings.ToValidUTF8(b.String(), "\uFFFD")
		}
		if b.Len() > 0 && t.start > end {
			b.WriteByte(' ')
		}
		end = t.end
		if t.kind == tokenEOF || t.kind == tokenBad || b.Len()+t.end-t.start > most {
			return strings.ToValidUTF8(b.String(), "\uFFFD") + "…"
		}
		switch t.kind {
		case tokenString, tokenNumber:
			b.WriteByte('?')
		default:
			b.WriteString(text[t.start:t.end])
		}
	}
}
