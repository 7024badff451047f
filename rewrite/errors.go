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

// StatementError is the error for an INSERT or REPLACE into a sharded table that is refused. No row
// was inserted. The chain has Sentinel and Err. The message contains no value of a row.
type StatementError struct {
	// Reason is a word for the kind of refusal. [Parse] and [Plan.Rewrite] use unsupported; package
	// driver has others.
	Reason string
	// Sentinel is the error of that kind, such as [ErrUnsupportedStatement].
	Sentinel error
	Table    string // the name in the statement, or the logical table; may be empty
	Row      int    // the row in its INSERT, from 1; 0 if the error isn't about one row
	Column   string // the table's column; empty if the error isn't about one column
	// Line and Char are the position in the statement, from 1: the line, and the byte in the line.
	// They are 0 if unknown. Near quotes the statement there, without literals.
	Line, Char int
	Near       string
	// Message describes the problem and the fix. If it is empty, Err describes them.
	Message string
	// Err is the cause. It may be nil.
	Err error
}

const unsupported = "unsupported"

func (e *StatementError) Error() string {
	begin := "shardkey: the statement was refused"
	if e.Sentinel != nil {
		begin = e.Sentinel.Error()
	}
	switch {
	case e.Message == "" && e.Err == nil:
		return begin
	case e.Message == "":
		return begin + ": " + strings.TrimPrefix(strings.TrimPrefix(e.Err.Error(), begin+": "), "shardkey: ")
	}
	var b strings.Builder
	b.WriteString(begin)
	if e.Table != "" {
		b.WriteString(": table " + e.Table)
	}
	if e.Row > 0 {
		fmt.Fprintf(&b, ": row %d", e.Row)
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, ": line %d, column %d near %s", e.Line, e.Char, e.Near)
	}
	b.WriteString(": " + e.Message)
	return b.String()
}

func (e *StatementError) Unwrap() []error {
	var chain []error
	for _, err := range []error{e.Sentinel, e.Err} {
		if err != nil {
			chain = append(chain, err)
		}
	}
	return chain
}

// fail returns the error for an insert at an offset in the string. The insert may be nil.
func (p *parser) fail(offset int, in *Insert, reason string) error {
	text := p.plan.text
	offset = min(offset, len(text))
	e := &StatementError{Reason: unsupported, Sentinel: ErrUnsupportedStatement, Message: reason}
	if in != nil {
		e.Table = strings.ToValidUTF8(sqltoken.TableName(in.Schema, in.Name), "\uFFFD")
	}
	e.Line, e.Char = sqltoken.Position(text, offset)
	e.Near = sqltoken.Near(text[offset:], p.plan.mode, p.plan.charset)
	return e
}

// Needs is the error for a fact that the caller lacks: find it out, and call the function again.
type Needs struct {
	// Server are the facts about the server; see [Options].ServerUnknown.
	Server bool
	// SQLMode is the session's sql_mode; see [Insert.Asks].
	SQLMode bool
	// Columns and KeyColumn are facts about the table that a statement names: [Table].Columns, and what
	// [Table].KeyColumnUnknown is about.
	Columns, KeyColumn bool
	Schema, Name       string
}

func (n *Needs) Error() string {
	switch {
	case n.Server:
		return "shardkey: the server is unknown"
	case n.SQLMode:
		return "shardkey: the sql_mode is unknown"
	case n.Columns:
		return "shardkey: the columns of table " + n.Name + " are unknown"
	}
	return "shardkey: the key column of table " + n.Name + " is unknown"
}
