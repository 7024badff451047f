package driver_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/testserver"
)

// A key column that cannot hold the generator's keys is an error, and where the
// server cuts the key off instead (IGNORE, a sql_mode without STRICT), no key is
// reported that is not in the table, and no row takes another's place.
func TestKeyColumn_cutKeysAreNotReported(t *testing.T) {
	if testserver.Each(t, TestKeyColumn_cutKeysAreNotReported) {
		return
	}
	known := newKnown(t)
	narrow := shapes[0]
	narrow.column = "INT NOT NULL PRIMARY KEY"
	for _, mode := range []string{"STRICT_ALL_TABLES", ""} {
		for _, c := range []string{"INSERT INTO t (a) VALUES (%d)", "INSERT IGNORE INTO t (a) VALUES (%d)", "REPLACE INTO t (a) VALUES (%d)",
			"INSERT INTO t (a) SELECT %d", "INSERT INTO t (a) VALUES (%d) ON DUPLICATE KEY UPDATE s = 'dup'"} {
			name := fmt.Sprintf("%q %s", mode, c)
			t.Run(name, func(t *testing.T) {
				ours := sides(t, "sql_mode=%27"+mode+"%27", narrow)[1]
				var wrong []string
				var affected int64
				for i := range 3 {
					var keys driver.Keys
					res, err := ours.db.ExecContext(driver.WithKeys(t.Context(), &keys), fmt.Sprintf(c, i))
					if err != nil {
						continue // as it should be
					}
					n, _ := res.RowsAffected()
					affected += n // 2 for a row that took another's place
					wrong = append(wrong, ours.untrue(t, mustConn(t, ours.db), q(c, i), &keys)...)
				}
				if have := readAll(t, mustConn(t, ours.db), "SELECT COUNT(*) FROM t"); have != fmt.Sprintf("[%d]", affected) {
					wrong = append(wrong, fmt.Sprintf("%s rows, %d affected", have, affected))
				}
				known.judge(t, "narrow: "+name, wrong)
			})
		}
	}
	known.checkAllFail(t)
}

func mustConn(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
