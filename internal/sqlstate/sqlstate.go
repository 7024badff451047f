// Package sqlstate says where generators and worker-ID assigners keep their state in
// SQL databases, for those who look at it.
package sqlstate

import "database/sql/driver"

// Table is a table with the state of one generator or assigner.
type Table struct {
	Kind Kind
	// Connector opens connections of the same kind as the keeper's own. Whoever
	// opens one closes it.
	Connector driver.Connector
	Server    string // the address and the database, without user and password
	Name      string // as it is configured: table, or schema.table
	Key       string // what the rows are found by: the namespace, the biz_tag; empty for tickets
	DDL       string // the statement that makes the table
}

// Kind is what a table holds.
type Kind int

// The kinds of tables.
const (
	Leases   Kind = iota // worker IDs
	Segments             // LEAF_SEGMENT's
	Tickets              // TICKET's
)

// Keeper is a generator or an assigner with such state.
type Keeper interface {
	// SQLState returns the tables. It asks no server.
	SQLState() []Table
}
