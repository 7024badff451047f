// Command xorm inserts with xorm:
//
//	go run -C examples ./orms/xorm
//
// The lines to change are xorm.NewEngine and, since xorm asks for the dialect by
// the driver's name, dialects.RegisterDriver. xorm gives a single order its key.
// Of a batch it gives none back, with any driver: driver.WithKeys has them.
package main

import (
	"context"

	"xorm.io/xorm"
	"xorm.io/xorm/dialects"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/recipe"
)

type order struct {
	OrderID int64  `xorm:"'order_id' pk autoincr"`
	Item    string `xorm:"'item'"`
	Amount  int    `xorm:"'amount'"`
}

func (*order) TableName() string { return "t_order_1" }

func main() { recipe.Main(run) }

func init() { dialects.RegisterDriver("shardkey", dialects.QueryDriver("mysql")) }

func run(ctx context.Context, dsn string, have recipe.Keys) error {
	engine, err := xorm.NewEngine("shardkey", dsn) // was: "mysql"
	if err != nil {
		return err
	}
	defer engine.Close()

	single := &order{Item: "tea", Amount: 2}
	if _, err := engine.Context(ctx).Insert(single); err != nil {
		return err
	}
	batch := []*order{{Item: "milk"}, {Item: "sugar"}, {Item: "lemon"}}
	var keys driver.Keys
	if _, err := engine.Context(driver.WithKeys(ctx, &keys)).Insert(&batch); err != nil {
		return err
	}
	for i, key := range keys.Values() {
		batch[i].OrderID = key.(int64)
	}
	inTx := &order{Item: "cups"}
	_, err = engine.Transaction(func(session *xorm.Session) (any, error) { return session.InsertOne(inTx) })
	for _, o := range append(batch, single, inTx) {
		have[o.Item] = o.OrderID
	}
	return err
}
