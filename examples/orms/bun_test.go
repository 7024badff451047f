package orms

import (
	"context"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"

	"github.com/shardkey/shardkey/internal/testserver"
)

type bunOrder struct {
	bun.BaseModel `bun:"table:t_order_1"`

	OrderID int64 `bun:",pk,autoincrement"`
	Item    string
	Amount  int
}

func TestBun(t *testing.T) {
	if testserver.Each(t, TestBun) {
		return
	}
	source := dsn(t)
	db := bun.NewDB(open(t, "shardkey", source), mysqldialect.New())

	single := bunOrder{Item: "tea", Amount: 2}
	batch := []*bunOrder{{Item: "milk"}, {Item: "sugar"}, {Item: "lemon"}}
	for _, model := range []any{&single, &batch} {
		if _, err := db.NewInsert().Model(model).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	inTx := bunOrder{Item: "cups"}
	err := db.RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		_, err := tx.NewInsert().Model(&inTx).Exec(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]int64{single.Item: single.OrderID, inTx.Item: inTx.OrderID}
	for _, o := range batch {
		have[o.Item] = o.OrderID
	}
	checkOrders(t, source, have)
}
