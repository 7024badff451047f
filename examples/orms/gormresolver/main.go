// Command gormresolver inserts with GORM and its resolver of databases, as one
// that writes to a source and reads from replicas:
//
//	go run -C examples ./orms/gormresolver
//
// The lines to change are the dialectors; gormshardkey.Plugin gives each order the
// key that its row has, whatever the generator. Several processes take worker ids
// from a lease (worker-id-assigner) and not, as here, from the rule.
package main

import (
	"context"
	"errors"
	"strings"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/shardkey/shardkey/examples/internal/recipe"
	"github.com/shardkey/shardkey/gormshardkey"
)

type order struct {
	OrderID int64 `gorm:"primaryKey"`
	Item    string
	Amount  int
}

func (order) TableName() string { return "t_order_1" }

func main() { recipe.Main(run) }

func run(ctx context.Context, dsn string, have recipe.Keys) (err error) {
	source := mysql.New(mysql.Config{DriverName: "shardkey", DSN: dsn}) // was: mysql.Open(dsn)
	db, err := gorm.Open(source, &gorm.Config{Logger: logger.Discard}, gormshardkey.Plugin{})
	if err != nil {
		return err
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	// A replica is only read from: it needs no rule.
	base, _, _ := strings.Cut(dsn, "?shardkeyRule=")
	replica := mysql.New(mysql.Config{DriverName: "mysql", DSN: base})
	if err := db.Use(dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{replica}})); err != nil {
		return err
	}

	db = db.WithContext(ctx)
	single := order{Item: "tea", Amount: 2}
	batch := []order{{Item: "milk"}, {Item: "sugar"}, {Item: "lemon"}}
	if err := errors.Join(db.Create(&single).Error, db.Create(&batch).Error); err != nil {
		return err
	}
	for _, o := range append(batch, single) {
		var found order // from the replica, which is the same server here
		if err := db.First(&found, o.OrderID).Error; err != nil {
			return err
		}
		have[o.Item] = found.OrderID
	}
	return nil
}
