package main

import (
	"database/sql"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/sharding"
)

// onlyShard follows t_order in the name of gorm/sharding's table: one shard, so that
// all arms insert into one table.
const onlyShard = "_0"

// gormExec returns what executes a query through gorm, with or without its sharding
// plugin, which makes the key "id" and sends it to the shard.
func gormExec(db *sql.DB, query string, withSharding bool) (func([]any) error, error) {
	g, err := gorm.Open(mysql.New(mysql.Config{Conn: db, SkipInitializeWithVersion: true}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, err
	}
	if withSharding {
		err = g.Use(sharding.Register(sharding.Config{
			ShardingKey:         "user_id",
			NumberOfShards:      1,
			PrimaryKeyGenerator: sharding.PKSnowflake,
			ShardingAlgorithm:   func(any) (string, error) { return onlyShard, nil },
		}, "t_order"))
	}
	return func(args []any) error { return g.Exec(query, args...).Error }, err
}
