// Command sqlc inserts with code that sqlc has generated from query.sql:
//
//	go run -C examples ./orms/sqlc
//
// The one line to change is sql.Open: sqlc's code asks for no driver. A query
// that is :execlastid returns the key, and driver.WithKeys has those of several
// rows. The package orders is made by "sqlc generate" in this directory.
package main

import (
	"context"
	"database/sql"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/recipe"
	"github.com/shardkey/shardkey/examples/orms/sqlc/orders"
)

func main() { recipe.Main(run) }

func run(ctx context.Context, dsn string, have recipe.Keys) error {
	db, err := sql.Open("shardkey", dsn) // was: "mysql"
	if err != nil {
		return err
	}
	defer db.Close()
	queries := orders.New(db)

	have["tea"], err = queries.CreateOrder(ctx, orders.CreateOrderParams{Item: "tea", Amount: 2})
	if err != nil {
		return err
	}
	var keys driver.Keys
	err = queries.CreateTwoOrders(driver.WithKeys(ctx, &keys), orders.CreateTwoOrdersParams{Item: "milk", Item_2: "sugar"})
	if err != nil {
		return err
	}
	have["milk"], have["sugar"] = keys.Values()[0].(int64), keys.Values()[1].(int64)

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	have["cups"], err = queries.WithTx(tx).AddToOrder(ctx, orders.AddToOrderParams{Item: "cups", Amount: 6})
	if err != nil {
		return err
	}
	if _, err := queries.WithTx(tx).Order(ctx, have["cups"]); err != nil {
		return err
	}
	return tx.Commit()
}
