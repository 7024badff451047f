package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/shardkey/shardkey/driver"
)

// order is a row that was inserted, and what the program was told of its key.
type order struct {
	table, how string
	item       string
	key        int64 // as the table has it
	row        int   // within its statement, from 1
	lastInsert int64 // LastInsertId, of the whole statement
	withKeys   any   // the row's entry in driver.Keys; nil when there is none
}

// report is what an INSERT's result says, row by row.
func report(table, how string, result sql.Result, keys *driver.Keys) ([]order, error) {
	n, err := result.RowsAffected()
	if err != nil {
		return nil, err
	}
	id, err := result.LastInsertId()
	if err != nil {
		return nil, err
	}
	rows := make([]order, n)
	for i := range rows {
		rows[i] = order{table: table, how: how, row: i + 1, lastInsert: id}
		if values := keys.Values(); i < len(values) {
			rows[i].withKeys = values[i]
		}
	}
	return rows, nil
}

// readKeys reads the keys that the rows really have. They are in the order of
// insertion: keys of one generator and of one counter ascend.
func (s *shop) readKeys(ctx context.Context, table string, told []order) ([]order, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT order_id, item FROM "+table+" ORDER BY order_id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for i := range told {
		if !rows.Next() {
			return nil, fmt.Errorf("%s has %d rows, not the %d that were inserted", table, i, len(told))
		}
		if err := rows.Scan(&told[i].key, &told[i].item); err != nil {
			return nil, err
		}
	}
	return told, rows.Err()
}

// repeated counts the keys that more than one row has.
func repeated(orders []order) int {
	rows := map[int64]int{}
	for _, o := range orders {
		rows[o.key]++
	}
	n := 0
	for _, count := range rows {
		if count > 1 {
			n++
		}
	}
	return n
}
