// Command sqlc inserts with the code in package orders, which sqlc generates from query.sql.
//
// Only sql.Open differs from a program without shardkey, because the generated code accepts
// any driver. A query with :execlastid returns the key. driver.WithKeys returns the keys of
// several rows.
package main

//go:generate env GOWORK=off CGO_ENABLED=0 go tool -modfile=../../internal/test/tools/go.mod sqlc generate

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/server"
	"github.com/shardkey/shardkey/examples/sqlc/orders"
	"github.com/shardkey/shardkey/rule"
)

//go:embed schema.sql
var schema string

const ruleText = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: app.t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 5}} # for one process
`

func main() { server.Main(run) }

func run(ctx context.Context, out io.Writer, dsn string) (err error) {
	r, err := rule.Parse("sqlc", []byte(ruleText))
	if err != nil {
		return err
	}
	if err := driver.RegisterRule("sqlc", r); err != nil {
		return err
	}
	db, err := sql.Open("shardkey", dsn+"?shardkeyRule=sqlc") // was: "mysql", dsn
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	return insert(ctx, out, db)
}

// insert inserts orders, and returns an error if a reported key is not the key of its row.
func insert(ctx context.Context, out io.Writer, db *sql.DB) error {
	queries, have := orders.New(db), map[string]int64{}
	var err error
	have["tea"], err = queries.CreateOrder(ctx, orders.CreateOrderParams{Item: "tea", Amount: 2})
	if err != nil {
		return err
	}
	var keys driver.Keys
	two := orders.CreateTwoOrdersParams{Item: "milk", Item_2: "sugar"}
	if err := queries.CreateTwoOrders(driver.WithKeys(ctx, &keys), two); err != nil {
		return err
	}
	have["milk"], have["sugar"] = keys.Values()[0].(int64), keys.Values()[1].(int64)

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	inTx := queries.WithTx(tx)
	have["cups"], err = inTx.CreateOrder(ctx, orders.CreateOrderParams{Item: "cups", Amount: 6})
	if err != nil {
		return err
	}
	for item, key := range have {
		order, err := inTx.Order(ctx, key)
		if err != nil {
			return err
		}
		if order.Item != item {
			return fmt.Errorf("key %d: expected %s, found %s", key, item, order.Item)
		}
		fmt.Fprintln(out, order.OrderID, order.Item, order.Amount)
	}
	return tx.Commit()
}
