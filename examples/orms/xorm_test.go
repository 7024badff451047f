package orms

import (
	"testing"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/testserver"
	"xorm.io/xorm"
	"xorm.io/xorm/dialects"
)

type xormOrder struct {
	OrderID int64  `xorm:"'order_id' pk autoincr"`
	Item    string `xorm:"'item'"`
	Amount  int    `xorm:"'amount'"`
}

func (*xormOrder) TableName() string { return "t_order_1" }

func init() {
	// xorm asks for the dialect by the driver's name.
	dialects.RegisterDriver("shardkey", dialects.QueryDriver("mysql"))
}

func TestXorm(t *testing.T) {
	if testserver.Each(t, TestXorm) {
		return
	}
	source := dsn(t)
	engine, err := xorm.NewEngine("shardkey", source)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()

	single := xormOrder{Item: "tea", Amount: 2}
	if _, err := engine.Context(t.Context()).Insert(&single); err != nil {
		t.Fatal(err)
	}
	// xorm does not give keys back into the structs of a batch, with any driver.
	batch := []*xormOrder{{Item: "milk"}, {Item: "sugar"}, {Item: "lemon"}}
	var keys driver.Keys
	if _, err := engine.Context(driver.WithKeys(t.Context(), &keys)).Insert(&batch); err != nil {
		t.Fatal(err)
	}
	inTx := xormOrder{Item: "cups"}
	_, err = engine.Transaction(func(session *xorm.Session) (any, error) { return session.InsertOne(&inTx) })
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]int64{single.Item: single.OrderID, inTx.Item: inTx.OrderID}
	for i, key := range keys.Values() {
		have[batch[i].Item] = key.(int64)
	}
	checkOrders(t, source, have)
}
