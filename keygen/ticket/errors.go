package ticket

import (
	"errors"
	"strings"

	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

var (
	// errSettings is in the chain when a server's auto_increment_increment or
	// auto_increment_offset would let two servers hand out the same number.
	errSettings = errors.New("shardkey: ticket server's auto_increment settings")

	// errRepeated is in the chain when a server returned a number that is not above
	// its last one.
	errRepeated = errors.New("shardkey: ticket server repeats numbers")

	// errExhausted is in the chain when the id column is at its end.
	errExhausted = errors.New("shardkey: ticket table is exhausted")
)

// storeError is the error of a server, named by network, address and database.
func storeError(server, detail string, kind, cause error) *stats.StoreError {
	return &stats.StoreError{Store: typeName + " at " + server, Detail: detail, Kind: kind, Cause: cause}
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

// kindOf is the word under which health counts an error.
func kindOf(err error) string {
	return stats.KindOf(err,
		stats.Kind{Err: errSettings, Name: "settings"},
		stats.Kind{Err: errRepeated, Name: "repeated"},
		stats.Kind{Err: errExhausted, Name: "exhausted"},
		stats.Kind{Err: spi.ErrStore, Name: "store"})
}
