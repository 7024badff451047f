package segment

import (
	"errors"
	"fmt"

	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

var (
	// errUnknownKey is in the chain if leaf_alloc has no row for the key.
	errUnknownKey = errors.New("shardkey: leaf_alloc has no row for the key")

	// errBadRow is in the chain if the row has values that Leaf wouldn't write, for example a step
	// of 0.
	errBadRow = errors.New("shardkey: bad row in leaf_alloc")

	// errMovedBack is in the chain if max_id is below numbers that were claimed before.
	errMovedBack = errors.New("shardkey: leaf_alloc.max_id moved back")

	// errRepeated is in the chain if a ticket server returned a number that isn't above its last
	// one.
	errRepeated = errors.New("shardkey: ticket server repeats numbers")

	// errSettings is in the chain if two ticket servers could hand out the same number with their
	// auto_increment_increment and auto_increment_offset.
	errSettings = errors.New("shardkey: wrong auto_increment settings of a ticket server")

	// errExhausted is in the chain if the table has no more numbers.
	errExhausted = errors.New("shardkey: no numbers are left")
)

var kinds = []stats.Kind{
	{Err: errUnknownKey, Name: "unknown-key"},
	{Err: errBadRow, Name: "bad-row"},
	{Err: errMovedBack, Name: "moved-back"},
	{Err: errRepeated, Name: "repeated"},
	{Err: errSettings, Name: "settings"},
	{Err: errExhausted, Name: "exhausted"},
	{Err: spi.ErrStore, Name: "store"},
}

// words are the parts of a type's error messages.
type words struct {
	title   string // type and table, for example "TICKET Tickets64"
	address string // properties that name the database
	ddl     string // statement that creates the table
	grant   string // privileges and the table that they are for
	end     string // what is wrong if the column is at its end, and how to fix it
}

// both returns an error with the messages of both errors in one line. err may be nil.
func both(err, more error) error {
	if err == nil {
		return more
	}
	return fmt.Errorf("%w; %w", err, more)
}
