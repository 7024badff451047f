// Command shardedshop keeps the orders of a shop in two databases with four tables
// each, and finds them by their id and by their user, each time in one table:
//
//	go run -C examples ./shardedshop
//
// GORM builds the statements, and gorm.io/sharding chooses the table of each: by the
// user, or, where a statement has the id alone, by the id. That works since the
// lowest bits of each id are the shard of its user: shardkey fills the ids, and the
// rule says gene-column: user_id. So none of the eight tables is ever asked in vain,
// and there is no table that says which order is whose.
package main

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/sharding"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/embedded"
	"github.com/shardkey/shardkey/gormshardkey"
	"github.com/shardkey/shardkey/rule"
)

const (
	databases = 2
	perSource = 4
	shards    = databases * perSource
)

// ruleText is what ShardingSphere would need to find the rows. Sixteen shards later
// would find them too: the ids have four bits of their users.
const ruleText = `
rules:
- !SHARDING
  tables:
    orders:
      actualDataNodes: shop_0.orders_${0..3}, shop_1.orders_${4..7}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: by_user}}
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 123, gene-column: user_id, gene-bits: 4}}
  shardingAlgorithms:
    by_user: {type: INLINE, props: {algorithm-expression: "orders_${user_id % 8}"}}
`

// Order is in one of eight tables, by its user.
type Order struct {
	ID     int64
	UserID int64
	Item   string
	Status string
}

// shop is the orders of all databases.
type shop struct {
	sources [databases]*gorm.DB
	sent    *statements
}

// shardOf is the shard of a user, and of an order: both have the same lowest bits.
func shardOf(userOrOrder int64) int64 { return userOrOrder % shards }

// at is the database with a shard.
func (s *shop) at(userOrOrder int64) *gorm.DB { return s.sources[shardOf(userOrOrder)/perSource] }

// Create inserts orders of one user, and gives them their ids.
func (s *shop) Create(orders []Order) error { return s.at(orders[0].UserID).Create(&orders).Error }

// Order finds an order by its id.
func (s *shop) Order(id int64) (o Order, err error) {
	return o, s.at(id).Where("id = ?", id).First(&o).Error
}

// Orders finds the orders of a user.
func (s *shop) Orders(user int64) (all []Order, err error) {
	return all, s.at(user).Where("user_id = ?", user).Order("id").Find(&all).Error
}

// Save writes all columns of an order.
func (s *shop) Save(o *Order) error { return s.at(o.ID).Save(o).Error }

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "shardedshop:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) (err error) {
	dsn, stop, err := embedded.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	s, err := open(dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.sell(out)
}

// sell inserts orders, and prints which tables each way to find them asks.
func (s *shop) sell(out io.Writer) error {
	const users = 8
	var ids []int64
	for user := int64(1); user <= users; user++ {
		orders := []Order{{UserID: user, Item: "tea"}, {UserID: user, Item: "milk"}}
		if err := s.Create(orders); err != nil {
			return err
		}
		for _, o := range orders {
			ids = append(ids, o.ID)
		}
	}
	fmt.Fprintf(out, "%d orders of %d users are in %d tables of %d databases\n", len(ids), users, shards, databases)
	s.sent.take()
	for _, id := range ids {
		o, err := s.Order(id)
		if err != nil {
			return fmt.Errorf("order %d: %w", id, err)
		}
		fmt.Fprintf(out, "order %d is user %d's %-4s  asked %s\n", id, o.UserID, o.Item, s.sent.take())
		o.Status = "paid"
		if err := s.Save(&o); err != nil {
			return err
		}
		s.sent.take()
	}
	for user := int64(1); user <= users; user++ {
		orders, err := s.Orders(user)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "user %d has %d orders, all of them %s  asked %s\n", user, len(orders), orders[0].Status, s.sent.take())
	}
	fmt.Fprintf(out, "%d queries asked %d tables\n", s.sent.queries, s.sent.tables)
	return nil
}

// open opens both databases of a server, which it creates, over one rule.
func open(dsn string) (*shop, error) {
	s := &shop{sent: &statements{}}
	r, err := rule.Parse("shardedshop", []byte(ruleText))
	if err != nil {
		return nil, err
	}
	for i := range s.sources {
		own, err := createDatabase(dsn, i)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if s.sources[i], err = openSource(own, r, s.sent); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		for t := range perSource {
			table := fmt.Sprintf("CREATE TABLE orders_%d (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, item VARCHAR(20), status VARCHAR(20))", i*perSource+t)
			if err := s.sources[i].Exec(table).Error; err != nil {
				return nil, errors.Join(err, s.Close())
			}
		}
	}
	s.sent.take()
	return s, nil
}

// createDatabase creates a database beside that of the DSN, and returns its DSN.
func createDatabase(dsn string, number int) (string, error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return "", err
	}
	defer db.Close()
	name := fmt.Sprintf("%s_shop_%d", dsn[strings.LastIndex(dsn, "/")+1:], number)
	for _, query := range []string{"DROP DATABASE IF EXISTS " + name, "CREATE DATABASE " + name} {
		if _, err := db.Exec(query); err != nil {
			return "", err
		}
	}
	return dsn[:strings.LastIndex(dsn, "/")+1] + name, nil
}

// openSource opens a database over shardkey, with the routing over it.
func openSource(dsn string, r *rule.Rule, sent *statements) (*gorm.DB, error) {
	base, err := mysqlConnector(dsn)
	if err != nil {
		return nil, err
	}
	connector, err := driver.NewConnector(sent.watch(base), r)
	if err != nil {
		return nil, err
	}
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: sql.OpenDB(connector)}), &gorm.Config{Logger: logger.Discard}, gormshardkey.Plugin{})
	if err != nil {
		return nil, err
	}
	suffix := func(n int64) string { return fmt.Sprintf("_%d", shardOf(n)) }
	return db, db.Use(sharding.Register(sharding.Config{
		ShardingKey: "user_id",
		ShardingAlgorithm: func(user any) (string, error) {
			n, ok := user.(int64)
			if !ok {
				return "", fmt.Errorf("the user is a %T", user)
			}
			return suffix(n), nil
		},
		ShardingAlgorithmByPrimaryKey: suffix, // the id has the lowest bits of the user
		ShardingSuffixs: func() (all []string) {
			for i := range int64(shards) {
				all = append(all, suffix(i))
			}
			return all
		},
		PrimaryKeyGenerator:   sharding.PKCustom,
		PrimaryKeyGeneratorFn: func(int64) int64 { return 0 }, // no key: shardkey fills it
	}, "orders"))
}

// Close closes what is open.
func (s *shop) Close() (err error) {
	for _, source := range s.sources {
		if source == nil {
			continue
		}
		pool, own := source.DB()
		if own == nil {
			own = pool.Close()
		}
		err = cmp.Or(err, own)
	}
	return err
}
