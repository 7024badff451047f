package engines_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/engines"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// vitessTables are two tables, one sharded by the key and one by another column.
var vitessTables = engines.Keyspace{Name: "app", Shards: []string{"-40", "40-80", "80-c0", "c0-"}, VSchema: `{"sharded": true,
	"vindexes": {"xxhash": {"type": "xxhash"}},
	"tables": {
		"ruled": {"column_vindexes": [{"column": "a", "name": "xxhash"}]},
		"byid": {"column_vindexes": [{"column": "id", "name": "xxhash"}]},
		"src": {"column_vindexes": [{"column": "a", "name": "xxhash"}]}}}`}

// shardkey recognizes vtgate although it reports a custom version.
func TestVitess_withAVersionOfItsOwn(t *testing.T) {
	v := engines.StartVitess(t, testserver.KindMySQL, vitessTables)
	for _, version := range []string{"", "8.0.40", "10.11.6-MariaDB", "5.7.9-vitess-12.0"} {
		if version != "" {
			v.Restart("--mysql-server-version=" + version)
		}
		db := openRuled(t, v.DSN("app"))
		if version == "" {
			mustExec(t, db, "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, a INT, u INT UNIQUE)")
			// A sharding key must be a plain value, because Vitess evaluates no
			// LAST_INSERT_ID(expr) there.
			mustExec(t, db, "CREATE TABLE byid (id BIGINT NOT NULL PRIMARY KEY, a INT)")
			mustExec(t, db, "INSERT INTO byid (id, a) VALUES (1 + 2000 + 3, 1), (? + 5, 2), (CAST('44' AS SIGNED), 3)", 10)
			must.Equal(t, column(t, db, "SELECT id FROM byid ORDER BY a"), "2004 15 44", "keys by expressions")
		}
		mustExec(t, db, "INSERT INTO ruled (a) VALUES (1)")
		must.Contain(t, fmt.Sprint(driver.ConnectorOf(db)), "server: vitess", version)
	}
}

// After Vitess ended a transaction, the pool works as soon as Vitess does.
func TestVitess_connectionAfterAFailedTransaction(t *testing.T) {
	v := engines.StartVitess(t, testserver.KindMySQL, vitessTables)
	ours := openRuled(t, v.DSN("app"))
	ours.SetMaxOpenConns(1)
	mustExec(t, ours, "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, a INT)")
	insert := func() error {
		_, err := ours.Exec("INSERT INTO ruled (id, a) VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8) ON DUPLICATE KEY UPDATE id = id")
		return err
	}
	must.Do(t, insert())
	v.SQL.Kill()
	failed := insert()
	v.SQL.Start()
	if !strings.Contains(fmt.Sprint(failed), "VT15001") {
		t.Skipf("the transaction ended otherwise: %v", failed)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for err := insert(); err != nil; err = insert() {
		if strings.Contains(err.Error(), "VT09032") || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}
