package driver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shardkey/shardkey/rule"
)

// WrongShardError is the cause of the [*StatementError] for a row that doesn't belong in the actual
// table of its INSERT. The StatementError has the table and the row, and Row 0 for an ON DUPLICATE
// KEY UPDATE. The message contains no value of the row.
type WrongShardError struct {
	Columns []string // the sharding columns that determine the table
	Values  []any    // the row's values of Columns; nil if unknown
	// Meant is the table that the row belongs in. Its DataSource is empty if Columns don't
	// determine it. Meant is zero if the row belongs in no table.
	Meant rule.Place
	// Err is a [*rule.PlaceError] if the row belongs in no table. If Values is nil, Err reports
	// that an expression updates the column. Otherwise Err is nil.
	Err error
}

func (e *WrongShardError) Error() string {
	columns, place := "column "+strings.Join(e.Columns, " and "), "places"
	if len(e.Columns) > 1 {
		columns, place = "columns "+strings.Join(e.Columns, " and "), "place"
	}
	nowhere, ok := errors.AsType[*rule.PlaceError](e.Err)
	switch {
	case e.Err == nil:
		return fmt.Sprintf("shardkey: %s %s the row in %s", columns, place, e.Meant)
	case ok:
		return fmt.Sprintf("shardkey: %s %s the row in no table: %s", columns, place, nowhere.Reason)
	}
	return fmt.Sprintf("shardkey: %s: %s", columns, plainText(e.Err))
}

func (e *WrongShardError) Unwrap() error { return e.Err }

// wrongShard returns the error for a row of the table that a statement names.
func wrongShard(table string, e *WrongShardError) *StatementError {
	remedy := "insert it there"
	switch {
	case e.Err == errExpression:
		remedy = "set it to a value"
	case e.Err != nil:
		remedy = "use a value that the rule has a table for"
	}
	return refuse(reasonWrongShard, StatementError{
		Table: table, Err: e,
		Message: plainText(e) + "; " + remedy,
	})
}

// inUpdate changes the message for a row to one for an ON DUPLICATE KEY UPDATE. wrong may be nil.
func inUpdate(wrong *StatementError) *StatementError {
	if wrong != nil {
		wrong.Message = "ON DUPLICATE KEY UPDATE changes the row: " + wrong.Message
	}
	return wrong
}

// errExpression is the reason for refusing an update of a sharding column to an expression.
var errExpression = errors.New("an expression sets it, so that the row's table is unknown")
