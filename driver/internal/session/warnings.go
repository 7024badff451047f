package session

import (
	"context"
	"database/sql/driver"
	"strconv"
)

// Warning is a row of SHOW WARNINGS.
type Warning struct {
	Level   string // Note, Warning or Error
	Number  uint16
	Message string
}

// Warnings returns the warnings of the last statement, and their number. The server keeps only
// max_error_count of them (MySQL manual, "The MySQL Diagnostics Area"). A server that doesn't show
// them has none.
func (s *Session) Warnings(ctx context.Context) (kept []Warning, n int, err error) {
	// SELECT @@warning_count would clear the warnings (MySQL manual, "SHOW WARNINGS Statement").
	row, err := s.QueryRow(ctx, "SHOW COUNT(*) WARNINGS")
	if err == nil && len(row) == 1 {
		n, _ = strconv.Atoi(Text(row[0]))
	}
	if n > 0 {
		err = s.queryRows(ctx, "SHOW WARNINGS", func(row []driver.Value) {
			const level, code, message, columns = 0, 1, 2, 3
			if len(row) == columns {
				number, _ := strconv.ParseUint(Text(row[code]), 10, 16)
				kept = append(kept, Warning{Text(row[level]), uint16(number), Text(row[message])})
			}
		})
	}
	if err != nil && !IsFatal(ctx, err) {
		return nil, 0, nil
	}
	return kept, n, err
}
