package main

import (
	"context"

	"xorm.io/xorm"
	"xorm.io/xorm/dialects"

	"github.com/shardkey/shardkey/driver"
)

type xormOrder struct {
	OrderID int64  `xorm:"'order_id' pk autoincr"`
	Item    string `xorm:"'item'"`
	Amount  int    `xorm:"'amount'"`
}

func (*xormOrder) TableName() string { return "t_order_1" }

// xorm chooses the dialect by the driver's name.
func init() { dialects.RegisterDriver("shardkey", dialects.QueryDriver("mysql")) }

// withXORM gets the key of a single order in its struct. For a batch, xorm returns no keys with
// any driver, so it uses driver.WithKeys.
func withXORM(ctx context.Context, dsn string) (map[string]int64, error) {
	engine, err := xorm.NewEngine("shardkey", dsn) // was: "mysql"
	if err != nil {
		return nil, err
	}
	defer engine.Close()

	single := &xormOrder{Item: "tea", Amount: 2}
	if _, err := engine.Context(ctx).Insert(single); err != nil {
		return nil, err
	}
	batch := []*xormOrder{{Item: "milk"}, {Item: "sugar"}, {Item: "lemon"}}
	var keys driver.Keys
	if _, err := engine.Context(driver.WithKeys(ctx, &keys)).Insert(&batch); err != nil {
		return nil, err
	}
	for i, key := range keys.Values() {
		batch[i].OrderID = key.(int64)
	}
	inTx := &xormOrder{Item: "cups"}
	_, err = engine.Transaction(func(session *xorm.Session) (any, error) { return session.InsertOne(inTx) })
	have := map[string]int64{}
	for _, o := range append(batch, single, inTx) {
		have[o.Item] = o.OrderID
	}
	return have, err
}
