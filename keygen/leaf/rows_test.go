package leaf

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// Each of these rows gives an error of its kind, that says the way out, or
// keys from 1.
func TestSQLStore_rows(t *testing.T) {
	if testserver.Each(t, TestSQLStore_rows) {
		return
	}
	tests := []struct {
		name  string
		setup []string
		want  error
		says  string
		first int64
	}{
		{"unknown", []string{"DELETE FROM leaf_alloc"}, errUnknownKey, "INSERT INTO leaf_alloc", 0},
		{"step 0", []string{"UPDATE leaf_alloc SET step = 0"}, errBadRow, "step", 0},
		{"step below 0", []string{"UPDATE leaf_alloc SET step = -5"}, errBadRow, "step", 0},
		{"two rows", []string{"ALTER TABLE leaf_alloc DROP PRIMARY KEY", "INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 10)"}, errBadRow, "primary key", 0},
		{"no table", []string{"DROP TABLE leaf_alloc"}, spi.ErrStore, "CREATE TABLE leaf_alloc", 0},
		{"max_id 0: no key 0", []string{"UPDATE leaf_alloc SET max_id = 0"}, nil, "", 1},
		{"max_id below 0", []string{"UPDATE leaf_alloc SET max_id = -1000"}, nil, "", 1},
		{"end of int64", []string{fmt.Sprint("UPDATE leaf_alloc SET max_id = ", int64(math.MaxInt64-5))}, errExhausted, "used up", 0},
		{"past int64", []string{"ALTER TABLE leaf_alloc MODIFY max_id bigint unsigned NOT NULL", "UPDATE leaf_alloc SET max_id = 18446744073709551000"}, errExhausted, "used up", 0},
		{"a narrow column", []string{"ALTER TABLE leaf_alloc MODIFY max_id int NOT NULL", "UPDATE leaf_alloc SET max_id = 2147483647"}, errExhausted, "used up", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dsn, db := leafDatabase(t, 1, 10)
			for _, query := range tt.setup {
				mustExec(t, db, query)
			}
			g := newGen(t, config{DSN: dsn + "?sql_mode=''"})
			first, err := g.reserve(t.Context(), 1)
			if tt.want == nil {
				if err != nil || first != tt.first {
					t.Fatalf("\nhave: %d %v\nwant: %d", first, err, tt.first)
				}
				return
			}
			if !errors.Is(err, tt.want) || !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("\nhave: %v\nwant: %v that says %q", err, tt.want, tt.says)
			}
		})
	}
}

// The fast statement, too, gives nothing below what was claimed, nothing past
// the column, nothing for a row that has gone.
func TestSQLStore_rowChangesWhileLive(t *testing.T) {
	if testserver.Each(t, TestSQLStore_rowChangesWhileLive) {
		return
	}
	tests := []struct {
		name, change string
		want         error
	}{
		{"moved back", "UPDATE leaf_alloc SET max_id = 1", errMovedBack},
		{"deleted", "DELETE FROM leaf_alloc", errUnknownKey},
		{"at the end", fmt.Sprint("UPDATE leaf_alloc SET max_id = ", int64(math.MaxInt64-5)), errExhausted},
		{"table dropped", "DROP TABLE leaf_alloc", spi.ErrStore},
		{"narrowed", "ALTER TABLE leaf_alloc MODIFY max_id smallint NOT NULL", errExhausted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dsn, db := leafDatabase(t, 30_000, 10)
			g := newGen(t, config{DSN: dsn, MaxStep: 10})
			mustReserve(t, g, 1)
			mustReserve(t, g, 100)
			if g.store.(*sqlStore).echo.Load() != echoYes {
				t.Fatal("MariaDB was not found to echo")
			}
			mustExec(t, db, tt.change)
			for range 2 {
				if first, err := g.reserve(t.Context(), 5000); !errors.Is(err, tt.want) {
					t.Errorf("\nhave: %d %v\nwant: %v", first, err, tt.want)
				}
			}
			// What is refused leaves the row as it is, for the operator to see.
			if tt.want == errMovedBack && maxID(t, db) != 1 {
				t.Errorf("\nhave: max_id %d\nwant: 1, untouched", maxID(t, db))
			}
			if g.store.(*sqlStore).echo.Load() != echoYes {
				t.Error("the server is not held to echo any more")
			}
		})
	}
}
