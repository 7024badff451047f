// Command gorm uses GORM with shardkey:
//
//	go run -C examples ./gorm
//
// It differs in three places from a program with one table and AUTO_INCREMENT: the driver's name,
// the rule in the DSN, and gormshardkey.Plugin. Each struct gets the key of its row.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/server"
	"github.com/shardkey/shardkey/gormshardkey"
	"github.com/shardkey/shardkey/rule"
)

const ruleText = `
rules:
- !SHARDING
  tables:
    orders:
      actualDataNodes: app.orders_${0..1}
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 123}} # for one process
`

// Order is an order, declared as for AUTO_INCREMENT.
type Order struct {
	ID     int64 `gorm:"primaryKey"`
	UserID int64
	Item   string
}

func main() { server.Main(run) }

func run(ctx context.Context, out io.Writer, dsn string) (err error) {
	r, err := rule.Parse("gorm", []byte(ruleText))
	if err != nil {
		return err
	}
	if err := driver.RegisterRule("gorm", r); err != nil {
		return err
	}

	db, err := gorm.Open(mysql.New(mysql.Config{
		DriverName: "shardkey",
		DSN:        dsn + "?shardkeyRule=gorm",
	}), &gorm.Config{}, gormshardkey.Plugin{})
	if err != nil {
		return err
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()

	seen := map[int64]bool{}
	for _, shard := range []string{"orders_0", "orders_1"} {
		orders, err := create(db.WithContext(ctx), shard)
		if err != nil {
			return err
		}
		for _, o := range orders {
			fmt.Fprintf(out, "%s  %d  %s\n", shard, o.ID, o.Item)
			var found Order // by the key in the struct
			if err := db.Table(shard).First(&found, o.ID).Error; err != nil {
				return err
			}
			if found != o || seen[o.ID] {
				return fmt.Errorf("key %d: expected one %v, found %v", o.ID, o, found)
			}
			seen[o.ID] = true
		}
	}
	fmt.Fprintf(out, "%d orders, %d keys\n", len(seen), len(seen))
	return nil
}

// create creates the table, and inserts a batch and a single order.
func create(db *gorm.DB, shard string) ([]Order, error) {
	// GORM's migrator would make the column AUTO_INCREMENT.
	err := db.Exec("CREATE TABLE " + shard + " (id BIGINT PRIMARY KEY, user_id BIGINT, item VARCHAR(20))").Error
	if err != nil {
		return nil, err
	}
	table := db.Table(shard).Session(&gorm.Session{}) // a new session, so that conditions don't accumulate
	orders := []Order{{UserID: 1, Item: "milk"}, {UserID: 1, Item: "sugar"}, {UserID: 2, Item: "lemon"}}
	if err := table.Create(&orders).Error; err != nil {
		return nil, err
	}
	single := Order{UserID: 3, Item: "tea"}
	if err := table.Create(&single).Error; err != nil {
		return nil, err
	}
	return append(orders, single), nil
}
