package ticket

import (
	"errors"
	"strings"

	"github.com/shardkey/shardkey/spi"
)

var (
	// ErrSettings is in the chain when a server's auto_increment_increment or
	// auto_increment_offset would let two servers give the same number.
	ErrSettings = errors.New("shardkey: ticket server's auto_increment settings")

	// ErrRepeated is in the chain when a server gave a number that is not above
	// its last one.
	ErrRepeated = errors.New("shardkey: ticket server repeats numbers")

	// ErrExhausted is in the chain when the id column is at its end.
	ErrExhausted = errors.New("shardkey: ticket table is exhausted")
)

// Error says that a ticket server gave no number. Its chain holds
// [spi.ErrStore], one of the package's Err values where one fits, and the
// server's own error.
type Error struct {
	Server string // network, address and database; no user, no password
	Detail string // what is wrong, and the way out where there is one
	Kind   error  // one of the package's Err values, or nil
	Cause  error  // the server's error, or nil
}

func (e *Error) Error() string {
	text := "shardkey: TICKET: " + e.Server + ": " + e.Detail
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap makes [spi.ErrStore], the kind and the cause known to errors.Is.
func (e *Error) Unwrap() []error {
	chain := []error{spi.ErrStore}
	for _, err := range []error{e.Kind, e.Cause} {
		if err != nil {
			chain = append(chain, err)
		}
	}
	return chain
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

// kind is the word under which health counts an error.
func kind(err error) string {
	switch {
	case errors.Is(err, ErrSettings):
		return "settings"
	case errors.Is(err, ErrRepeated):
		return "repeated"
	case errors.Is(err, ErrExhausted):
		return "exhausted"
	}
	return "store"
}
