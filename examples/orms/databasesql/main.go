// Command databasesql inserts with database/sql alone:
//
//	go run -C examples ./orms/databasesql
//
// The one line to change is sql.Open. LastInsertId is the first generated key;
// driver.WithKeys has those of all rows, of any type.
package main

import (
	"context"
	"database/sql"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/recipe"
)

func main() { recipe.Main(run) }

func run(ctx context.Context, dsn string, have recipe.Keys) error {
	db, err := sql.Open("shardkey", dsn) // was: "mysql"
	if err != nil {
		return err
	}
	defer db.Close()

	result, err := db.ExecContext(ctx, "INSERT INTO t_order_1 (item) VALUES (?)", "tea")
	if err != nil {
		return err
	}
	if have["tea"], err = result.LastInsertId(); err != nil {
		return err
	}

	var keys driver.Keys
	_, err = db.ExecContext(driver.WithKeys(ctx, &keys), "INSERT INTO t_order_1 (item) VALUES (?), ('milk')", "sugar")
	if err != nil {
		return err
	}
	have["sugar"], have["milk"] = keys.Values()[0].(int64), keys.Values()[1].(int64)

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert, err := tx.PrepareContext(ctx, "INSERT INTO t_order_1 SET item = ?")
	if err != nil {
		return err
	}
	for _, item := range []string{"cups", "spoons"} {
		result, err := insert.ExecContext(ctx, item)
		if err != nil {
			return err
		}
		if have[item], err = result.LastInsertId(); err != nil {
			return err
		}
	}
	return tx.Commit()
}
