package main

import (
	"database/sql"
	"maps"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
)

const serverRule = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_0.t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
    t_line:
      keyGenerateStrategy: {column: line_id, keyGeneratorName: snowflake}
    t_user:
      keyGenerateStrategy: {column: user_id, keyGeneratorName: uuid}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 5}}
    uuid: {type: UUID}
`

var tables = []string{
	"CREATE TABLE t_order_1 (order_id BIGINT PRIMARY KEY, item VARCHAR(20) NOT NULL UNIQUE, " +
		"amount INT NOT NULL DEFAULT 1)",
	"CREATE TABLE t_line (line_id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL, note VARCHAR(20) NOT NULL)",
	"CREATE TABLE t_user (user_id CHAR(32) PRIMARY KEY, name VARCHAR(20) NOT NULL)",
}

// autoDSN returns the DSN of a database whose integer keys are AUTO_INCREMENT, for driver
// "mysql".
func autoDSN(t *testing.T) string {
	return database(t, "BIGINT PRIMARY KEY", "BIGINT AUTO_INCREMENT PRIMARY KEY")
}

// database creates a database with the example's tables, and returns its DSN. It replaces old
// with new in the CREATE TABLE statements.
func database(t *testing.T, old, new string) (dsn string) {
	t.Helper()
	dsn = testserver.Database(t)
	db := openDB(t, "mysql", dsn)
	for _, table := range tables {
		if _, err := db.Exec(strings.Replace(table, old, new, 1)); err != nil {
			t.Fatal(err)
		}
	}
	return dsn
}

// dsn returns the DSN of a database with the example's tables, for driver "shardkey".
func dsn(t *testing.T) string {
	t.Helper()
	base := database(t, "", "")
	r, err := rule.Parse("server", []byte(serverRule))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ReplaceAll(t.Name(), "/", ".") // a slash would make the name a file's path
	if err := driver.RegisterRule(name, r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { driver.DeregisterRule(name) })
	return base + "?shardkeyRule=" + name
}

func openDB(t *testing.T, driverName, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// checkOrders compares the keys in the structs, by item, with the keys in the table, which it
// reads without shardkey.
func checkOrders(t *testing.T, dsn string, have map[string]int64) {
	t.Helper()
	base, _, _ := strings.Cut(dsn, "?shardkeyRule=")
	cfg, err := mysql.ParseDSN(base)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := openDB(t, "mysql", cfg.FormatDSN()).Query("SELECT item, order_id FROM t_order_1")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	want := map[string]int64{}
	for rows.Next() {
		var item string
		var key int64
		if err := rows.Scan(&item, &key); err != nil {
			t.Fatal(err)
		}
		if want[item] = key; key < 1<<50 {
			t.Errorf("%s has key %d, which no snowflake generated", item, key)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(have, want) {
		t.Errorf("keys in the structs and in the table\nhave: %v\nwant: %v", have, want)
	}
}
