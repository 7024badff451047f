package driver

import (
	"database/sql"
	"time"
)

// later lets the columns that a connector has read be older than they may be.
func later(db *sql.DB) {
	columns := &ConnectorOf(db).columns
	columns.mu.Lock()
	defer columns.mu.Unlock()
	for key, read := range columns.columns {
		read.at = read.at.Add(-maxColumnsAge - time.Nanosecond)
		columns.columns[key] = read
	}
}
