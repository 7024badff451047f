package rule

import (
	"errors"
	"fmt"
	"strings"
)

// WrongShardError is the cause of the error for a row that doesn't belong in the actual table of its
// INSERT. That error has the table and the row, and Row 0 for an ON DUPLICATE KEY UPDATE. The message
// contains no value of the row.
type WrongShardError struct {
	Columns []string // the sharding columns that determine the table
	Values  []any    // the row's values of Columns; nil if unknown
	// Meant is the table that the row belongs in. Its DataSource is empty if Columns don't
	// determine it. Meant is zero if the row belongs in no table.
	Meant Place
	// Err is a [*PlaceError] if the row belongs in no table. If Values is nil, Err reports
	// that an expression updates the column. Otherwise Err is nil.
	Err error
}

func (we *WrongShardError) Error() string {
	columns, place := "column "+strings.Join(we.Columns, " and "), "places"
	if len(we.Columns) > 1 {
		columns, place = "columns "+strings.Join(we.Columns, " and "), "place"
	}
	nowhere, ok := errors.AsType[*PlaceError](we.Err)
	switch {
	case we.Err == nil:
		return fmt.Sprintf("shardkey: %s %s the row in %s", columns, place, we.Meant)
	case ok:
		return fmt.Sprintf("shardkey: %s %s the row in no table: %s", columns, place, nowhere.Reason)
	}
	return fmt.Sprintf("shardkey: %s: %s", columns, strings.TrimPrefix(we.Err.Error(), "shardkey: "))
}

func (we *WrongShardError) Unwrap() error { return we.Err }

// GeneratorError is the cause of the error for a generator that failed.
type GeneratorError struct {
	Generator string // the generator's name in the rule
	Table     string // the logical table; of several tables, the first
	Column    string // its key column
	Err       error  // the generator's error, without driver.ErrBadConn in its chain
}

func (ge *GeneratorError) Error() string {
	return fmt.Sprintf("shardkey: generator %s for %s.%s: %v", ge.Generator, ge.Table, ge.Column, ge.Err)
}

func (ge *GeneratorError) Unwrap() error { return ge.Err }
