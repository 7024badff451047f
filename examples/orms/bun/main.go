// Command bun inserts with bun:
//
//	go run -C examples ./orms/bun
//
// The one line to change is sql.Open. A model's key is tagged pk and
// autoincrement. bun counts on from LastInsertId in a batch, which is right for
// consecutive keys; on MariaDB it reads them by RETURNING.
package main

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"

	_ "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/recipe"
)

type order struct {
	bun.BaseModel `bun:"table:t_order_1"`

	OrderID int64 `bun:",pk,autoincrement"`
	Item    string
	Amount  int
}

func main() { recipe.Main(run) }

func run(ctx context.Context, dsn string, have recipe.Keys) error {
	pool, err := sql.Open("shardkey", dsn) // was: "mysql"
	if err != nil {
		return err
	}
	db := bun.NewDB(pool, mysqldialect.New())
	defer db.Close()

	single := &order{Item: "tea", Amount: 2}
	batch := []*order{{Item: "milk"}, {Item: "sugar"}, {Item: "lemon"}}
	for _, model := range []any{single, &batch} {
		if _, err := db.NewInsert().Model(model).Exec(ctx); err != nil {
			return err
		}
	}
	inTx := &order{Item: "cups"}
	err = db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(inTx).Exec(ctx)
		return err
	})
	for _, o := range append(batch, single, inTx) {
		have[o.Item] = o.OrderID
	}
	return err
}
