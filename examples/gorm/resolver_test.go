package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/shardkey/shardkey/gormshardkey"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// TestGORM_resolver has a database for each shard, chosen by GORM's dbresolver, and a replica
// without a rule. All shards use one rule, one store and one worker ID.
func TestGORM_resolver(t *testing.T) {
	if testserver.Each(t, TestGORM_resolver) {
		return
	}
	store := testserver.Database(t)
	path := filepath.Join(t.TempDir(), "rule.yaml")
	text := fmt.Sprintf(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_${0..1}.t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: cluster}}
  workerIdAssigners:
    cluster: {type: SQL, props: {namespace: orders, dsn: %q}}
`, store)
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	shards := []string{shardDSN(t), shardDSN(t)}
	dialector := func(driverName, dsn string) gorm.Dialector {
		return gormmysql.New(gormmysql.Config{Conn: must.Open(t, driverName, dsn)})
	}
	sharded := func(dsn string) gorm.Dialector { return dialector("shardkey", dsn+"?shardkeyRule="+path) }
	db, err := gorm.Open(sharded(shards[0]), &gorm.Config{Logger: logger.Discard}, gormshardkey.Plugin{})
	must.Do(t, err)
	err = db.Use(dbresolver.
		Register(dbresolver.Config{Replicas: []gorm.Dialector{dialector("mysql", shards[0])}}).
		Register(dbresolver.Config{Sources: []gorm.Dialector{sharded(shards[1])}}, "second"))
	must.Do(t, err)
	seen := map[int64]bool{}
	for i := range 10 {
		on := func() *gorm.DB {
			if i%2 == 1 {
				return db.Clauses(dbresolver.Use("second"))
			}
			return db
		}
		orders := []gormOrder{{Item: fmt.Sprint("a ", i), Amount: 1}, {Item: fmt.Sprint("b ", i), Amount: 1}}
		must.Do(t, on().Create(&orders).Error)
		for _, o := range orders {
			seen[o.OrderID] = true
			var found gormOrder // from the replica of the first shard
			must.Do(t, on().First(&found, o.OrderID).Error)
			must.Equal(t, found.Item, o.Item, "key", o.OrderID)
		}
	}
	for _, dsn := range shards {
		must.Equal(t, count(t, dsn, "SELECT COUNT(*) FROM t_order_1"), 10, "orders of a shard")
	}
	n := count(t, store, "SELECT COUNT(*) FROM shardkey_worker WHERE namespace = 'orders'")
	if n != 1 || len(seen) != 20 {
		t.Errorf("have: %d worker IDs, %d keys\nwant: 1, 20", n, len(seen))
	}
}

func count(t *testing.T, dsn, query string) (n int) {
	t.Helper()
	must.Do(t, must.Open(t, "mysql", dsn).QueryRow(query).Scan(&n))
	return n
}

// shardDSN returns the DSN of a database with a table of orders.
func shardDSN(t *testing.T) string {
	t.Helper()
	dsn := testserver.Database(t)
	must.Get(must.Open(t, "mysql", dsn).Exec(createOrders))(t)
	return dsn
}
