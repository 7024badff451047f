package orms

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/testserver"
)

type sqlxOrder struct {
	OrderID int64 `db:"order_id"`
	Item    string
	Amount  int
}

func TestSqlx(t *testing.T) {
	if testserver.Each(t, TestSqlx) {
		return
	}
	sqlx.BindDriver("shardkey", sqlx.QUESTION)
	source := dsn(t)
	db, err := sqlx.ConnectContext(t.Context(), "shardkey", source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	const insert = "INSERT INTO t_order_1 (item, amount) VALUES (:item, :amount)"
	have := map[string]int64{}

	result, err := db.NamedExecContext(t.Context(), insert, sqlxOrder{Item: "tea", Amount: 2})
	if err != nil {
		t.Fatal(err)
	}
	have["tea"], _ = result.LastInsertId()

	batch := []sqlxOrder{{Item: "milk"}, {Item: "sugar"}, {Item: "lemon"}}
	var keys driver.Keys
	tx := db.MustBeginTx(t.Context(), nil)
	if _, err := tx.NamedExecContext(driver.WithKeys(t.Context(), &keys), insert, batch); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	for i, key := range keys.Values() {
		have[batch[i].Item] = key.(int64)
	}

	prepared, err := db.PrepareNamedContext(t.Context(), insert)
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	for _, item := range []string{"cups", "spoons"} {
		result := prepared.MustExecContext(t.Context(), sqlxOrder{Item: item})
		have[item], _ = result.LastInsertId()
	}
	checkOrders(t, source, have)

	var found []sqlxOrder
	if err := db.SelectContext(t.Context(), &found, "SELECT * FROM t_order_1 WHERE order_id = ?", have["tea"]); err != nil {
		t.Fatal(err)
	}
	if want := (sqlxOrder{have["tea"], "tea", 2}); len(found) != 1 || found[0] != want {
		t.Errorf("have: %v\nwant: %v", found, want)
	}
}
