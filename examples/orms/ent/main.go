// Command ent inserts with a client that ent has generated from its schema:
//
//	go run -C examples ./orms/ent
//
// The one line to change is sql.Open. ent counts on from LastInsertId in a
// CreateBulk, which is right for consecutive keys, and so for SNOWFLAKE's of up
// to 4,096 rows: batchKeys: consecutive in the rule refuses any other. The package
// entorder is made by
//
//	ent generate --target orms/ent/entorder ./orms/ent/schema
package main

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	_ "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/recipe"
	"github.com/shardkey/shardkey/examples/orms/ent/entorder"
)

func main() { recipe.Main(run) }

func run(ctx context.Context, dsn string, have recipe.Keys) error {
	db, err := sql.Open("shardkey", dsn) // was: "mysql"
	if err != nil {
		return err
	}
	client := entorder.NewClient(entorder.Driver(entsql.OpenDB(dialect.MySQL, db)))
	defer client.Close()

	single, err := client.Order.Create().SetItem("tea").SetAmount(2).Save(ctx)
	if err != nil {
		return err
	}
	var creates []*entorder.OrderCreate
	for _, item := range []string{"milk", "sugar", "lemon"} {
		creates = append(creates, client.Order.Create().SetItem(item))
	}
	batch, err := client.Order.CreateBulk(creates...).Save(ctx)
	if err != nil {
		return err
	}
	tx, err := client.Tx(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	inTx, err := tx.Order.Create().SetItem("cups").Save(ctx)
	if err != nil {
		return err
	}
	for _, o := range append(batch, single, inTx) {
		have[o.Item] = o.ID
	}
	return tx.Commit()
}
