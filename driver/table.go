package driver

import (
	"sync/atomic"

	"github.com/shardkey/shardkey/driver/internal/fill"
)

// keyedTable is a sharded table, as one connector uses it.
type keyedTable struct {
	*fill.Table
	unguarded  unguarded   // actual tables
	unknown    atomic.Bool // a warning about keys that couldn't be found in the table was logged
	duplicates logLimit    // of lines about generated keys that exist already
}

// plannedInsert is an INSERT of a plan, with its table.
type plannedInsert struct {
	*fill.Filler
	table *keyedTable
	steps insertSteps
	// callsFunctions: an upsert of several rows may call a stored function after its first row.
	callsFunctions bool
}

// insertSteps are the parts of an INSERT's execution that only some INSERTs have.
type insertSteps uint8

const (
	settlesRows insertSteps = 1 << iota // there may be several rows, or a clause affects the key
	reportsKey                          // the statement passes the first key to LAST_INSERT_ID()
)
