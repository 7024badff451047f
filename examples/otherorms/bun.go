package main

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
)

type bunOrder struct {
	bun.BaseModel `bun:"table:t_order_1"`

	OrderID int64 `bun:",pk,autoincrement"`
	Item    string
	Amount  int
}

// withBun gets the keys in the structs. In a batch, bun counts from LastInsertId, which is
// correct for consecutive keys. On MariaDB it uses RETURNING.
func withBun(ctx context.Context, dsn string) (map[string]int64, error) {
	pool, err := sql.Open("shardkey", dsn) // was: "mysql"
	if err != nil {
		return nil, err
	}
	db := bun.NewDB(pool, mysqldialect.New())
	defer db.Close()

	single := &bunOrder{Item: "tea", Amount: 2}
	batch := []*bunOrder{{Item: "milk"}, {Item: "sugar"}, {Item: "lemon"}}
	for _, model := range []any{single, &batch} {
		if _, err := db.NewInsert().Model(model).Exec(ctx); err != nil {
			return nil, err
		}
	}
	inTx := &bunOrder{Item: "cups"}
	err = db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(inTx).Exec(ctx)
		return err
	})
	have := map[string]int64{}
	for _, o := range append(batch, single, inTx) {
		have[o.Item] = o.OrderID
	}
	return have, err
}
