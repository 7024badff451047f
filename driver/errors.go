package driver

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// ErrNoRule is in the chain of the error for a connector without a sharding
// rule: the shardkeyRule parameter is missing, or a nil rule was given.
var ErrNoRule = errors.New("shardkey: no sharding rule")

// DSNError is the error for a data source name that cannot be used. It never
// holds the password, nor text that could be a part of it.
type DSNError struct {
	// Param is the wrong parameter; empty when it is another part.
	Param string
	// Reason says what is wrong and what to write instead.
	Reason string
	// Nearest is the parameter that was probably meant, empty when none is near.
	Nearest string
	// Err is the cause, as the error of a rule that does not load; it may be nil.
	Err error
}

func (e *DSNError) Error() string {
	var b strings.Builder
	b.WriteString("shardkey: DSN: ")
	if e.Param != "" {
		fmt.Fprintf(&b, "parameter %s: ", e.Param)
	}
	b.WriteString(e.Reason)
	if e.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %s?", e.Nearest)
	}
	if e.Err != nil && e.Err != ErrNoRule { // the reason already says that
		b.WriteString(": " + strings.TrimPrefix(e.Err.Error(), "shardkey: "))
	}
	return b.String()
}

func (e *DSNError) Unwrap() error { return e.Err }

// errReplan is what run returns when nothing was executed and the statement is to
// be planned again: the rule that it was planned with has been replaced, or the
// server refused what was added to it. It is seen only by uses of a connection after its Close.
var errReplan = fmt.Errorf("%w: the rule is no longer in use", spi.ErrClosed)

// ErrUnsupportedStatement is in the chain of the error for an INSERT or REPLACE
// into a ruled table that cannot be filled; it was not sent. The error is a
// [*rewrite.StatementError] where it has a place in the text.
var ErrUnsupportedStatement = rewrite.ErrUnsupportedStatement

// ErrNotConsecutive is in the chain of the error for an INSERT into a table with
// batchKeys: consecutive whose keys would not be consecutive: more than the
// generator's sequence holds, or of a generator that counts by more than 1. It
// was not sent. An execution with [WithKeys] takes any keys.
var ErrNotConsecutive = errors.New("shardkey: keys of one statement are not consecutive")

// ErrTooManyPlaceholders is in the chain of the error for a statement that
// would have more placeholders with its keys than the server takes.
var ErrTooManyPlaceholders = base.ErrTooManyPlaceholders

// NextKeysError is the error for arguments of [NextKeys] that no keys can be made
// for.
type NextKeysError struct {
	Table   string // as it was given; empty when it is not about the table
	Reason  string // what is wrong and what to give instead
	Nearest string // the table that was probably meant, empty when none is near
	// Err is a [*rule.UnlistedTableError] for a table that looks like one of a ruled
	// table's, else nil.
	Err error
}

func (e *NextKeysError) Error() string {
	s := "shardkey: next keys: "
	if e.Table != "" {
		s += fmt.Sprintf("table %q: ", e.Table)
	}
	s += e.Reason
	if e.Nearest != "" {
		s += fmt.Sprintf("; did you mean %q?", e.Nearest)
	}
	if e.Err != nil {
		s += ": " + strings.TrimPrefix(e.Err.Error(), "shardkey: ")
	}
	return s
}

func (e *NextKeysError) Unwrap() error { return e.Err }

// GeneratorError is the error for keys that a generator could not make. The
// statement was not sent.
type GeneratorError struct {
	Generator string // the generator's name in the rule
	Table     string // the logical table
	Column    string // its key column
	Err       error  // the generator's error, in whose chain driver.ErrBadConn is hidden
}

func (e *GeneratorError) Error() string {
	return fmt.Sprintf("shardkey: generator %s for %s.%s: %v", e.Generator, e.Table, e.Column, e.Err)
}

func (e *GeneratorError) Unwrap() error { return e.Err }

// hideBadConn returns an error that did not come from the connection without
// driver.ErrBadConn in its chain: database/sql closes the connection for it, and
// executes the statement again.
func hideBadConn(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return goodConnError{err}
	}
	return err
}

// goodConnError is an error with all that is in its chain but driver.ErrBadConn.
type goodConnError struct{ err error }

func (e goodConnError) Error() string { return e.err.Error() }

func (e goodConnError) Is(target error) bool {
	return target != driver.ErrBadConn && errors.Is(e.err, target)
}

func (e goodConnError) As(target any) bool { return errors.As(e.err, target) }
