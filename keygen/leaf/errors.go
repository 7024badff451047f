package leaf

import (
	"errors"
	"strconv"

	"github.com/shardkey/shardkey/keygen/internal/stats"
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

// storeError is the error of a claim for the row of key.
func storeError(key, detail string, kind, cause error) *stats.StoreError {
	return &stats.StoreError{Store: typeName + " " + strconv.Quote(key), Detail: detail, Kind: kind, Cause: cause}
}

// kindOf is the word under which health counts an error.
func kindOf(err error) string {
	return stats.KindOf(err,
		stats.Kind{Err: ErrUnknownKey, Name: "unknown-key"},
		stats.Kind{Err: ErrExhausted, Name: "exhausted"},
		stats.Kind{Err: ErrMovedBack, Name: "moved-back"},
		stats.Kind{Err: ErrBadRow, Name: "bad-row"},
		stats.Kind{Err: spi.ErrStore, Name: "store"})
}
