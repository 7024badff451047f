package main

import (
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

func TestRun(t *testing.T) {
	if testserver.Each(t, TestRun) {
		return
	}
	var out strings.Builder
	must.Do(t, run(t.Context(), &out, testserver.Database(t)))
	must.Contain(t, out.String(), "8 orders found by user, and by key")
}

func TestSharding_rightKeysInTheRightShard(t *testing.T) {
	if testserver.Each(t, TestSharding_rightKeysInTheRightShard) {
		return
	}
	for name, config := range map[string]*gorm.Config{
		"default":             {},
		"without transaction": {SkipDefaultTransaction: true},
	} {
		t.Run(name, func(t *testing.T) { checkKeys(t, openServer(t, config)) })
	}
}

// checkKeys compares the keys in orders with the keys in all shards.
func checkKeys(t *testing.T, db *gorm.DB) {
	have := map[string]int64{}
	for user := range int64(6) {
		name := func(s string) string { return fmt.Sprint(user, s) }
		one := Order{UserID: user, Item: name("one"), Lines: []Line{{Note: name("a")}, {Note: name("b")}}}
		many := []Order{{UserID: user, Item: name("x")}, {UserID: user, Item: name("y")}, {UserID: user, Item: name("z")}}
		own := Order{ID: 100 + user, UserID: user, Item: name("own")}
		for _, rows := range []any{&one, &many, &own} {
			must.Do(t, db.Create(rows).Error)
		}
		for _, o := range append(many, one, own) {
			have[fmt.Sprintf("orders_%d %s", user%shards, o.Item)] = o.ID
		}
		must.Do(t, check(db, append(many, one, own)))
		must.Do(t, db.Transaction(func(tx *gorm.DB) error {
			o := Order{UserID: user, Item: name("tx")}
			err := tx.Create(&o).Error
			have[fmt.Sprintf("orders_%d %s", user%shards, o.Item)] = o.ID
			return err
		}))
	}
	must.Equal(t, fmt.Sprint(have), fmt.Sprint(rowsOfShards(t, db)), "keys")
}

// Each generated key has the four lowest bits of its user, and no row is in another user's table.
func TestSharding_keysHaveTheShard(t *testing.T) {
	if testserver.Each(t, TestSharding_keysHaveTheShard) {
		return
	}
	db := openServer(t, &gorm.Config{})
	for user := range int64(16) {
		orders := []Order{{UserID: user, Item: "tea"}, {UserID: user, Item: "milk"}}
		must.Do(t, db.Create(&orders).Error)
		for _, o := range orders {
			must.Equal(t, o.ID%16, user, "key", o.ID, "of user", user, "has the lowest bits")
		}
		must.Do(t, check(db, orders))
	}
	err := db.Exec("INSERT INTO orders_3 (user_id, item) VALUES (?, ?)", 4, "milk").Error
	must.Is(t, err, driver.ErrWrongShard, "a row of another table")
}

func openServer(t *testing.T, config *gorm.Config) *gorm.DB {
	t.Helper()
	db := must.Get(open(testserver.Database(t), config))(t)
	pool := must.Get(db.DB())(t)
	t.Cleanup(func() { _ = pool.Close() })
	must.Do(t, createTables(pool))
	return db
}

// rowsOfShards reads all shards without gorm.io/sharding.
func rowsOfShards(t *testing.T, db *gorm.DB) map[string]int64 {
	t.Helper()
	pool := must.Get(db.DB())(t)
	found := map[string]int64{}
	for i := range shards {
		rows := must.Get(pool.Query(fmt.Sprintf("SELECT item, id FROM orders_%d", i)))(t)
		defer rows.Close()
		for rows.Next() {
			var item string
			var id int64
			must.Do(t, rows.Scan(&item, &id))
			found[fmt.Sprintf("orders_%d %s", i, item)] = id
		}
		must.Do(t, rows.Err())
	}
	return found
}
