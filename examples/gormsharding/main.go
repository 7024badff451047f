// Command gormsharding combines gorm.io/sharding, which chooses the table of each row, with
// shardkey, which generates its key:
//
//	go run -C examples ./gormsharding
//
// gorm.io/sharding routes an order to orders_0 … orders_3 by its user. Its own keys repeat if
// two processes run, so the program turns them off: PKCustom with a function that returns 0.
// shardkey finds the routed table in its rule and generates the key. gormshardkey sets the
// key of each order.
//
// The rule has gene-column: user_id, so the lowest bits of each key are those of its user
// (shard bits, 基因法). An order can be found by its key alone, with a query of one table.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/sharding"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/server"
	"github.com/shardkey/shardkey/gormshardkey"
	"github.com/shardkey/shardkey/rule"
)

// shards is the number of tables, orders_0 to orders_3. gorm.io/sharding writes the number with
// two digits from 10 tables on, with three from 100 on.
const shards = 4

// ruleText allows up to 16 tables, because the keys contain four bits of their users.
const ruleText = `
rules:
- !SHARDING
  tables:
    orders:
      actualDataNodes: app.orders_${0..3}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: by_user}}
      keyGenerateStrategy: {column: id, keyGeneratorName: shard_bits}
    lines:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 124}} # for one process
    shard_bits: {type: SNOWFLAKE, props: {worker-id: 123, gene-column: user_id, gene-bits: 4}} # for one process
  shardingAlgorithms:
    by_user: {type: INLINE, props: {algorithm-expression: "orders_${user_id % 4}"}}
`

// Order is a row of one of the four tables, chosen by its user.
type Order struct {
	ID     int64
	UserID int64
	Item   string
	Lines  []Line
}

// Line is a row of a table that is not sharded.
type Line struct {
	ID      int64
	OrderID int64
	Note    string
}

func main() { server.Main(run) }

func run(ctx context.Context, out io.Writer, dsn string) (err error) {
	db, err := open(dsn, &gorm.Config{})
	if err != nil {
		return err
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	db = db.WithContext(ctx)
	if err := createTables(pool); err != nil {
		return err
	}
	for user := int64(1); user <= 4; user++ {
		// All rows of one Create belong to one user, because gorm.io/sharding refuses rows of
		// several tables (ErrInsertDiffSuffix).
		orders := []Order{
			{UserID: user, Item: "tea", Lines: []Line{{Note: "green"}, {Note: "black"}}},
			{UserID: user, Item: "milk"},
		}
		if err := db.Create(&orders).Error; err != nil {
			return err
		}
		for _, o := range orders {
			fmt.Fprintf(out, "orders_%d  %d  user %d  %s, %d lines\n",
				user%shards, o.ID, o.UserID, o.Item, len(o.Lines))
		}
		if err := check(db, orders); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "8 orders found by user, and by key")
	return nil
}

// open opens a database with shardkey as its driver, and gorm.io/sharding as a plugin.
func open(dsn string, config *gorm.Config) (*gorm.DB, error) {
	r, err := rule.Parse("gormsharding", []byte(ruleText))
	if err != nil {
		return nil, err
	}
	if err := driver.RegisterRule("gormsharding", r); err != nil {
		return nil, err
	}
	config.Logger = logger.Discard
	db, err := gorm.Open(mysql.New(mysql.Config{
		DriverName: "shardkey",
		DSN:        dsn + "?shardkeyRule=gormsharding",
	}), config, gormshardkey.Plugin{})
	if err != nil {
		return nil, err
	}
	return db, db.Use(sharding.Register(sharding.Config{
		ShardingKey:           "user_id",
		NumberOfShards:        shards,
		PrimaryKeyGenerator:   sharding.PKCustom,
		PrimaryKeyGeneratorFn: func(int64) int64 { return 0 }, // no key: shardkey generates it
		// The lowest bits of a key are the lowest bits of its user.
		ShardingAlgorithmByPrimaryKey: func(id int64) string { return fmt.Sprintf("_%d", id%shards) },
	}, "orders"))
}

// createTables creates the shards but no table "orders". A statement that isn't routed is then an
// error, instead of a row that no query finds.
func createTables(pool *sql.DB) error {
	for i := range shards {
		_, err := pool.Exec(fmt.Sprintf("CREATE TABLE orders_%d"+
			" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, item VARCHAR(20))", i))
		if err != nil {
			return err
		}
	}
	_, err := pool.Exec("CREATE TABLE `lines` (id BIGINT PRIMARY KEY, order_id BIGINT, note VARCHAR(20))")
	return err
}

// check reads each order by its user and by its key.
func check(db *gorm.DB, orders []Order) error {
	for _, o := range orders {
		for _, where := range []*gorm.DB{db.Where("user_id = ? AND id = ?", o.UserID, o.ID), db.Where("id = ?", o.ID)} {
			var found Order
			if err := where.Preload("Lines").First(&found).Error; err != nil {
				return fmt.Errorf("order %d of user %d: %w", o.ID, o.UserID, err)
			}
			if found.Item != o.Item || found.UserID != o.UserID || len(found.Lines) != len(o.Lines) {
				return fmt.Errorf("order %d: expected %v, found %v", o.ID, o, found)
			}
		}
	}
	return nil
}
