// Package sqlstate lists the SQL tables in which generators and worker-ID assigners store their
// state.
package sqlstate

import "database/sql/driver"

// Table is a table with the state of one generator or assigner.
type Table struct {
	Kind Kind
	// Connector opens connections to the table's server. The caller closes them.
	Connector driver.Connector
	Server    string // the address and the database, without user and password
	Name      string // as configured: table, or schema.table
	Key       string // the key of the rows: the namespace or the biz_tag; empty for tickets
	DDL       string // the statement that creates the table

	// NoteKey and NoteID identify the row of Leases whose holder has the layouts that processes used.
	NoteKey string
	NoteID  int64
	// OtherLayouts returns a warning if the generators use others than in that row.
	OtherLayouts func(noted string) string
}

// Kind is the kind of state in a table.
type Kind int

// The kinds of state.
const (
	Leases   Kind = iota // worker IDs
	Segments             // segments of LEAF_SEGMENT
	Tickets              // tickets of TICKET
)

// Keeper is a generator or an assigner with state in SQL tables.
type Keeper interface {
	// SQLState returns the tables. It doesn't contact a server.
	SQLState() []Table
}
