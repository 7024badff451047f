package rewrite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
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
	line, column := sqltoken.Position(text, offset)
	return &StatementError{
		Table:  strings.ToValidUTF8(table, "\uFFFD"),
		Reason: reason,
		Offset: offset,
		Line:   line,
		Column: column,
		Near:   sqltoken.Near(text[offset:], opts.Mode, opts.Charset),
	}
}
