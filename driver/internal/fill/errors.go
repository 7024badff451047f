package fill

import (
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// The reasons of this package's errors, which package driver exports. It adds their sentinels.
const (
	unlisted       = "unlisted"
	wrongTable     = "wrong-shard"
	noFittingKey   = "no-fitting-key"
	notConsecutive = "not-consecutive"
	narrowColumn   = "narrow-column"
	noShardBits    = "no-shard-bits"
	noKey          = "no-key"
)

// refuse completes an error by the reason.
func refuse(reason string, e rewrite.StatementError) *rewrite.StatementError {
	e.Reason = reason
	return &e
}

// plainText returns an error's message without "shardkey: ", for use after another message.
func plainText(err error) string { return strings.TrimPrefix(err.Error(), "shardkey: ") }

// NoKeys returns the error for invalid arguments of NextKeys. err may be nil.
func NoKeys(table, message string, err error) error {
	if err != nil {
		message += ": " + plainText(err)
	}
	return refuse(noKey, rewrite.StatementError{Table: table, Message: message, Err: err})
}

// wrongShard returns the error for a row of the table that a statement names.
func wrongShard(table string, e *rule.WrongShardError) *rewrite.StatementError {
	remedy := "insert it there"
	switch {
	case e.Err == errExpression:
		remedy = "set it to a value"
	case e.Err != nil:
		remedy = "use a value that the rule has a table for"
	}
	return refuse(wrongTable, rewrite.StatementError{Table: table, Err: e, Message: plainText(e) + "; " + remedy})
}

// inUpdate changes the message for a row to one for an ON DUPLICATE KEY UPDATE. wrong may be nil.
func inUpdate(wrong *rewrite.StatementError) *rewrite.StatementError {
	if wrong != nil {
		wrong.Message = "ON DUPLICATE KEY UPDATE changes the row: " + wrong.Message
	}
	return wrong
}

// errExpression is the reason for refusing an update of a sharding column to an expression.
var errExpression = errors.New("an expression sets it, so that the row's table is unknown")

// errUndecided is returned for a row that only an execution can decide on.
var errUndecided = errors.New("shardkey: only an execution decides")

// HideBadConn removes driver.ErrBadConn from the chain of an error that is not about the
// connection. For driver.ErrBadConn, database/sql would close the connection and execute the
// statement again.
func HideBadConn(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return hiddenBadConn{err}
	}
	return err
}

// hiddenBadConn hides driver.ErrBadConn in the chain of an error.
type hiddenBadConn struct{ err error }

func (hidden hiddenBadConn) Error() string { return hidden.err.Error() }

func (hidden hiddenBadConn) Is(target error) bool {
	return target != driver.ErrBadConn && errors.Is(hidden.err, target)
}

func (hidden hiddenBadConn) As(target any) bool { return errors.As(hidden.err, target) }
