// Command sqlx inserts with sqlx:
//
//	go run -C examples ./orms/sqlx
//
// The lines to change are sqlx.Connect and, since sqlx knows placeholders by the
// driver's name, sqlx.BindDriver. What it returns is database/sql's:
// LastInsertId of one row, driver.WithKeys for those of a batch.
package main

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/recipe"
)

type order struct {
	OrderID int64 `db:"order_id"`
	Item    string
	Amount  int
}

func main() { recipe.Main(run) }

func run(ctx context.Context, dsn string, have recipe.Keys) error {
	sqlx.BindDriver("shardkey", sqlx.QUESTION)
	db, err := sqlx.ConnectContext(ctx, "shardkey", dsn) // was: "mysql"
	if err != nil {
		return err
	}
	defer db.Close()

	const insert = "INSERT INTO t_order_1 (item, amount) VALUES (:item, :amount)"
	result, err := db.NamedExecContext(ctx, insert, order{Item: "tea", Amount: 2})
	if err != nil {
		return err
	}
	if have["tea"], err = result.LastInsertId(); err != nil {
		return err
	}

	batch := []order{{Item: "milk"}, {Item: "sugar"}, {Item: "lemon"}}
	var keys driver.Keys
	if _, err := db.NamedExecContext(driver.WithKeys(ctx, &keys), insert, batch); err != nil {
		return err
	}
	for i := range batch {
		batch[i].OrderID = keys.Values()[i].(int64)
		have[batch[i].Item] = batch[i].OrderID
	}

	prepared, err := db.PrepareNamedContext(ctx, insert)
	if err != nil {
		return err
	}
	defer prepared.Close()
	if result, err = prepared.ExecContext(ctx, order{Item: "cups"}); err != nil {
		return err
	}
	if have["cups"], err = result.LastInsertId(); err != nil {
		return err
	}
	var found order
	return db.GetContext(ctx, &found, "SELECT * FROM t_order_1 WHERE order_id = ?", have["lemon"])
}
