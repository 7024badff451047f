package main

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/shardkey/shardkey/driver"
)

// sqlx chooses the style of placeholders by the driver's name.
func init() { sqlx.BindDriver("shardkey", sqlx.QUESTION) }

// withSQLX uses the results of database/sql: LastInsertId for one row, and driver.WithKeys for a
// batch.
func withSQLX(ctx context.Context, dsn string) (map[string]int64, error) {
	db, err := sqlx.ConnectContext(ctx, "shardkey", dsn) // was: "mysql"
	if err != nil {
		return nil, err
	}
	defer db.Close()

	type order struct {
		Item   string
		Amount int
	}
	const insert = "INSERT INTO t_order_1 (item, amount) VALUES (:item, :amount)"
	have := map[string]int64{}
	result, err := db.NamedExecContext(ctx, insert, order{Item: "tea", Amount: 2})
	if err != nil {
		return nil, err
	}
	if have["tea"], err = result.LastInsertId(); err != nil {
		return nil, err
	}

	batch := []order{{Item: "milk"}, {Item: "sugar"}, {Item: "lemon"}}
	var keys driver.Keys
	if _, err := db.NamedExecContext(driver.WithKeys(ctx, &keys), insert, batch); err != nil {
		return nil, err
	}
	for i, key := range keys.Values() {
		have[batch[i].Item] = key.(int64)
	}

	prepared, err := db.PrepareNamedContext(ctx, insert)
	if err != nil {
		return nil, err
	}
	defer prepared.Close()
	if result, err = prepared.ExecContext(ctx, order{Item: "cups"}); err != nil {
		return nil, err
	}
	have["cups"], err = result.LastInsertId()
	return have, err
}
