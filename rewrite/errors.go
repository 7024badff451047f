package rewrite

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnsupportedStatement is in the chain of the error for an INSERT or REPLACE into a sharded
// table that can't get keys. Such a statement is not sent to the server.
var ErrUnsupportedStatement = errors.New("shardkey: cannot add keys to the statement")

// StatementError is the error for a statement that can't get keys.
type StatementError struct {
	Table  string // the table in the statement
	Reason string // the problem and the fix
	Offset int    // position in the string, in bytes from 0
	Line   int    // line of the position, from 1
	Column int    // byte in the line, from 1
	Near   string // the statement at the position, without literals
}

func (e *StatementError) Error() string {
	msg := ErrUnsupportedStatement.Error()
	if e.Table != "" {
		msg += ": table " + e.Table
	}
	msg += fmt.Sprintf(": line %d, column %d", e.Line, e.Column)
	if e.Near != "" {
		msg += " near " + e.Near
	}
	return msg + ": " + e.Reason
}

func (e *StatementError) Unwrap() error { return ErrUnsupportedStatement }

// NewStatementError returns the error for a statement at an offset in text. opts are the options
// that text is parsed with.
func NewStatementError(text string, opts Options, offset int, table, reason string) *StatementError {
	offset = min(offset, len(text))
	before := text[:offset]
	return &StatementError{
		Table:  strings.ToValidUTF8(table, "\uFFFD"),
		Reason: reason,
		Offset: offset,
		Line:   1 + strings.Count(before, "\n"),
		Column: offset - strings.LastIndexByte(before, '\n'),
		Near:   excerpt(text[offset:], opts),
	}
}

// excerpt returns the first few words of text for an error.
func excerpt(text string, opts Options) string {
	const most = 60
	if s := WithoutLiterals(text, opts, most); s != "" {
		return `"` + s + `"`
	}
	return "the end of the statement"
}

// WithoutLiterals returns a statement for logs, with placeholders instead of literals and without
// comments. Literals may be confidential. The Mode and Charset of opts determine how text is
// parsed. A result of more than most bytes is truncated, as is the rest after an unterminated
// literal; "…" marks both.
func WithoutLiterals(text string, opts Options, most int) string {
	lx := newLexer(text, opts.Mode, opts.Charset)
	var b strings.Builder
	for end := 0; ; {
		t := lx.next()
		if t.kind == tokenEOF && len(lx.text) == len(text) {
			break
		}
		if b.Len() > 0 && t.start > end {
			b.WriteByte(' ')
		}
		end = t.end
		if t.kind == tokenEOF || t.kind == tokenBad || b.Len()+t.end-t.start > most {
			b.WriteString("…")
			break
		}
		switch t.kind {
		case tokenString, tokenNumber:
			b.WriteByte('?')
		default:
			b.WriteString(text[t.start:t.end])
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
