package orms

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/shardkey/shardkey/internal/testserver"
)

// TestGORM_resolver has a database for each shard, chosen by GORM's dbresolver, and
// a replica: one rule, one store, one worker id for all of them.
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
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	shards := []string{database(t, "", ""), database(t, "", "")}
	dialector := func(dsn string) gorm.Dialector {
		pool := open(t, "shardkey", dsn+"?shardkeyRule="+path)
		return gormmysql.New(gormmysql.Config{Conn: pool})
	}
	db, err := gorm.Open(dialector(shards[0]), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Use(dbresolver.
		Register(dbresolver.Config{Replicas: []gorm.Dialector{dialector(shards[0])}}).
		Register(dbresolver.Config{Sources: []gorm.Dialector{dialector(shards[1])}}, "second"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	for i := range 20 {
		on := db
		if i%2 == 1 {
			on = db.Clauses(dbresolver.Use("second"))
		}
		order := gormOrder{Item: fmt.Sprint("item ", i), Amount: 1}
		if err := on.Create(&order).Error; err != nil {
			t.Fatal(err)
		}
		seen[order.OrderID] = true
	}
	rows := 0
	for _, dsn := range shards {
		rows += count(t, dsn, "SELECT COUNT(*) FROM t_order_1")
	}
	if n := count(t, store, "SELECT COUNT(*) FROM shardkey_worker WHERE namespace = 'orders'"); n != 1 || len(seen) != 20 || rows != 20 || count(t, shards[1], "SELECT COUNT(*) FROM t_order_1") != 10 {
		t.Errorf("have: %d worker ids, %d keys, %d rows\nwant: 1, 20, 20, and half of them in the second shard", n, len(seen), rows)
	}
}

func count(t *testing.T, dsn, query string) (n int) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
