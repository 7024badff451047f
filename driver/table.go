package driver

import (
	"sync/atomic"

	"github.com/shardkey/shardkey/driver/internal/fill"
)

// keyedTable is a sharded table, as one connector uses it.
type keyedTable struct {
	*fill.Table
	unreported unreported  // actual tables
	unknown    atomic.Bool // a warning about keys that couldn't be found in the table was logged
	duplicates logLimit    // of lines about generated keys that exist already
}
