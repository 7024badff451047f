package sequence

import (
	"errors"
	"strings"

	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

var (
	// errUnknownKey is in the chain when leaf_alloc has no row for the key.
	errUnknownKey = errors.New("shardkey: leaf_alloc has no such biz_tag")

	// errBadRow is in the chain when the row holds what Leaf would not write,
	// for example a step of 0.
	errBadRow = errors.New("shardkey: bad row in leaf_alloc")

	// errMovedBack is in the chain when max_id is below what was claimed
	// before.
	errMovedBack = errors.New("shardkey: leaf_alloc.max_id moved back")

	// errRepeated is in the chain when a ticket server returned a number that is not
	// above its last one.
	errRepeated = errors.New("shardkey: ticket server repeats numbers")

	// errSettings is in the chain when a ticket server's auto_increment_increment or
	// auto_increment_offset would let two servers hand out the same number.
	errSettings = errors.New("shardkey: ticket server's auto_increment settings")

	// errExhausted is in the chain when the table has no more numbers.
	errExhausted = errors.New("shardkey: numbers are exhausted")
)

// kinds are the words under which health counts errors.
var kinds = []stats.Kind{
	{Err: errUnknownKey, Name: "unknown-key"},
	{Err: errBadRow, Name: "bad-row"},
	{Err: errMovedBack, Name: "moved-back"},
	{Err: errRepeated, Name: "repeated"},
	{Err: errSettings, Name: "settings"},
	{Err: errExhausted, Name: "exhausted"},
	{Err: spi.ErrStore, Name: "store"},
}

func kindOf(err error) string { return stats.KindOf(err, kinds...) }

// words are those of a type's errors.
type words struct {
	title   string // type and table, for example "TICKET Tickets64"
	address string // the properties that name the database
	ddl     string // makes the table
	grant   string // the privileges and the table that they are for
	end     string // what is wrong when the column is at its end, and what to do
}

// serverErrors is the error of a fetch that no server served.
type serverErrors []error

func (e serverErrors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (e serverErrors) Unwrap() []error { return e }

// orNil is nil without an error, and the error itself where there is one.
func (e serverErrors) orNil() error {
	switch len(e) {
	case 0:
		return nil
	case 1:
		return e[0]
	}
	return e
}
