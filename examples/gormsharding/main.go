// Command gormsharding has gorm.io/sharding choose the table of each row, and
// shardkey fill its key:
//
//	go run -C examples ./gormsharding
//
// Each of the two does what it is good at. gorm.io/sharding routes an order to
// orders_0 … orders_3 by its user. It is told to make no key (PKCustom with a
// function that returns 0), since its own repeat as soon as two processes run.
// shardkey sees the statement as it is sent, finds the table in its rule, and
// fills the key; gormshardkey gives each order the key that its row has.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/sharding"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/embedded"
	"github.com/shardkey/shardkey/gormshardkey"
	"github.com/shardkey/shardkey/rule"
)

// shards is how many tables there are: orders_0 to orders_3. gorm.io/sharding
// writes the number with two digits from 10 tables, with three from 100.
const shards = 4

const ruleText = `
rules:
- !SHARDING
  tables:
    orders:
      actualDataNodes: app.orders_${0..3}
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
    lines:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 123}}
`

// Order is in one of four tables, by its user.
type Order struct {
	ID     int64
	UserID int64
	Item   string
	Lines  []Line
}

// Line is in one table.
type Line struct {
	ID      int64
	OrderID int64
	Note    string
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gormsharding:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) (err error) {
	dsn, stop, err := embedded.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	db, err := open(dsn, &gorm.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closePool(db)) }()
	if err := createTables(db); err != nil {
		return err
	}
	for user := int64(1); user <= 4; user++ {
		// All rows of one Create belong to one user: gorm.io/sharding refuses rows
		// of several tables (ErrInsertDiffSuffix).
		orders := []Order{
			{UserID: user, Item: "tea", Lines: []Line{{Note: "green"}, {Note: "black"}}},
			{UserID: user, Item: "milk"},
		}
		if err := db.Create(&orders).Error; err != nil {
			return err
		}
		for _, o := range orders {
			fmt.Fprintf(out, "orders_%d  %d  user %d  %s, %d lines\n", user%shards, o.ID, o.UserID, o.Item, len(o.Lines))
		}
		if err := check(db, orders); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "8 orders found by user and key")
	return nil
}

// open opens a database over shardkey, with the routing over it.
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
		PrimaryKeyGeneratorFn: func(int64) int64 { return 0 }, // no key: shardkey fills it
	}, "orders"))
}

// createTables makes the shards, and no table "orders": a statement that is not
// routed is then an error, and no row that is found nowhere.
func createTables(db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	for i := range shards {
		_, err := pool.Exec(fmt.Sprintf("CREATE TABLE orders_%d (id BIGINT PRIMARY KEY, user_id BIGINT, item VARCHAR(20))", i))
		if err != nil {
			return err
		}
	}
	_, err = pool.Exec("CREATE TABLE `lines` (id BIGINT PRIMARY KEY, order_id BIGINT, note VARCHAR(20))")
	return err
}

// check finds each order by its user and the key that it holds. By the key alone
// gorm.io/sharding does not know the table.
func check(db *gorm.DB, orders []Order) error {
	for _, o := range orders {
		var found Order
		if err := db.Where("user_id = ? AND id = ?", o.UserID, o.ID).First(&found).Error; err != nil {
			return fmt.Errorf("order %d of user %d: %w", o.ID, o.UserID, err)
		}
		var lines int64
		if err := db.Model(&Line{}).Where("order_id = ?", o.ID).Count(&lines).Error; err != nil {
			return err
		}
		if found.Item != o.Item || int(lines) != len(o.Lines) {
			return fmt.Errorf("order %d is %s with %d lines, not %s with %d", o.ID, found.Item, lines, o.Item, len(o.Lines))
		}
	}
	return nil
}

func closePool(db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	return pool.Close()
}
