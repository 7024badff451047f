package leaf

import (
	"errors"
	"strconv"

	"github.com/shardkey/shardkey/spi"
)

var (
	// ErrUnknownKey is in the chain when leaf_alloc has no row for the key.
	ErrUnknownKey = errors.New("shardkey: leaf_alloc has no such biz_tag")

	// ErrExhausted is in the chain when max_id cannot be raised any more.
	ErrExhausted = errors.New("shardkey: leaf_alloc is exhausted")

	// ErrMovedBack is in the chain when max_id is below what was claimed
	// before.
	ErrMovedBack = errors.New("shardkey: leaf_alloc.max_id moved back")

	// ErrBadRow is in the chain when the row holds what Leaf would not write,
	// as a step of 0.
	ErrBadRow = errors.New("shardkey: bad row in leaf_alloc")
)

// Error says that the database gave no segment. Its chain holds [spi.ErrStore],
// one of the package's Err values where one fits, and the database's own error.
type Error struct {
	Key    string // the biz_tag
	Detail string // what is wrong, and the way out where there is one
	Kind   error  // one of the package's Err values, or nil
	Cause  error  // the database's error, or nil
}

func (e *Error) Error() string {
	text := "shardkey: LEAF_SEGMENT " + strconv.Quote(e.Key) + ": " + e.Detail
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

// kind is the word under which health counts an error.
func kind(err error) string {
	switch {
	case errors.Is(err, ErrUnknownKey):
		return "unknown-key"
	case errors.Is(err, ErrExhausted):
		return "exhausted"
	case errors.Is(err, ErrMovedBack):
		return "moved-back"
	case errors.Is(err, ErrBadRow):
		return "bad-row"
	}
	return "store"
}
