package leaf

import (
	"errors"
	"strconv"

	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

var (
	// errUnknownKey is in the chain when leaf_alloc has no row for the key.
	errUnknownKey = errors.New("shardkey: leaf_alloc has no such biz_tag")

	// errExhausted is in the chain when max_id cannot be raised any more.
	errExhausted = errors.New("shardkey: leaf_alloc is exhausted")

	// errMovedBack is in the chain when max_id is below what was claimed
	// before.
	errMovedBack = errors.New("shardkey: leaf_alloc.max_id moved back")

	// errBadRow is in the chain when the row holds what Leaf would not write,
	// as a step of 0.
	errBadRow = errors.New("shardkey: bad row in leaf_alloc")
)

// storeError is the error of a claim for the row of key.
func storeError(key, detail string, kind, cause error) *stats.StoreError {
	return &stats.StoreError{Store: typeName + " " + strconv.Quote(key), Detail: detail, Kind: kind, Cause: cause}
}

// kindOf is the word under which health counts an error.
func kindOf(err error) string {
	return stats.KindOf(err,
		stats.Kind{Err: errUnknownKey, Name: "unknown-key"},
		stats.Kind{Err: errExhausted, Name: "exhausted"},
		stats.Kind{Err: errMovedBack, Name: "moved-back"},
		stats.Kind{Err: errBadRow, Name: "bad-row"},
		stats.Kind{Err: spi.ErrStore, Name: "store"})
}
