package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
)

const shardServerRule = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds.t_order_${0..3}
      tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: o}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
    t_hash:
      actualDataNodes: ds.t_hash_${0..3}
      tableStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: h}}
      keyGenerateStrategy: {column: id, keyGeneratorName: uuid}
    t_user:
      actualDataNodes: ds.t_user_${0..3}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: h}}
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 77}}
    uuid: {type: UUID}
  shardingAlgorithms:
    o: {type: INLINE, props: {algorithm-expression: "t_order_${order_id % 4}"}}
    h: {type: HASH_MOD, props: {sharding-count: 4}}
`

// TestShards_onServers: each row is in the table where its key, or its user, says that
// it is, as one reads it from the tables; what is not is refused, and not there.
func TestShards_onServers(t *testing.T) {
	if testserver.Each(t, TestShards_onServers) {
		return
	}
	file := filepath.Join(t.TempDir(), "rule.yaml")
	noError(t, os.WriteFile(file, []byte(shardServerRule), 0o600))
	for _, params := range []string{"", "&interpolateParams=true"} {
		db := openFor(t, "shardkey", testserver.Database(t)+"?parseTime=true&multiStatements=true&shardkeyRule="+file+params)
		for i := range 4 {
			for _, query := range []string{
				"CREATE TABLE t_order_%d (order_id BIGINT PRIMARY KEY, user_id BIGINT)",
				"CREATE TABLE t_hash_%d (id VARCHAR(36) PRIMARY KEY, user_id BIGINT)",
				"CREATE TABLE t_user_%d (id BIGINT PRIMARY KEY, user_id BIGINT, UNIQUE (user_id))",
			} {
				mustRun(t, db, fmt.Sprintf(query, i))
			}
		}
		for i := range 4 {
			for n := range 10 {
				var keys Keys
				ctx := WithKeys(t.Context(), &keys)
				res := must(db.ExecContext(ctx, fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?), (?), (?)", i), n, n, n))(t)
				if id, _ := res.LastInsertId(); id%4 != int64(i) || id != keys.Values()[0] || len(keys.Values()) != 3 {
					t.Errorf("have: %d, %v\nwant: the first key of table %d", id, keys.Values(), i)
				}
				mustRun(t, db, fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", i), n)
				mustRun(t, db, fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (7)", i))
				mustRun(t, db, fmt.Sprintf("INSERT INTO t_hash_%d (user_id) VALUES (?), (?)", i), n, n)
			}
			mustRun(t, db, fmt.Sprintf("INSERT INTO t_order_%d (user_id) SELECT user_id FROM t_hash_%d", i, i))
			stmt := must(db.Prepare(fmt.Sprintf("INSERT INTO t_order_%d SET user_id = ?", i)))(t)
			for range 3 {
				must(stmt.Exec(5))(t)
			}
			stmt.Close()
		}
		expectCount(t, db, "SELECT COUNT(*) FROM t_order_%[1]d WHERE order_id %% 4 <> %[1]d", 0)
		expectCount(t, db, "SELECT COUNT(*) FROM t_order_%d", 10*5+20+3)
		live := liveRule(t, file)
		for i := range 4 {
			rows := must(db.Query(fmt.Sprintf("SELECT id FROM t_hash_%d", i)))(t)
			for rows.Next() {
				var id string
				noError(t, rows.Scan(&id))
				if place, err := live.Place([]any{id}); err != nil || place.Table != fmt.Sprintf("t_hash_%d", i) {
					t.Errorf("%s\nhave: in t_hash_%d\nwant: %v, %v", id, i, place, err)
				}
			}
			rows.Close()
		}
		// A text in a column of integers is what the column holds.
		mustRun(t, db, "INSERT INTO t_user_0 (user_id) VALUES (?)", "12")
		mustRun(t, db, "INSERT INTO t_user_3 (user_id) VALUES (?)", 7)
		mustRun(t, db, "INSERT INTO t_user_3 (user_id) VALUES (?) ON DUPLICATE KEY UPDATE user_id = user_id", 7)
		for _, query := range []string{"INSERT INTO t_user_1 (user_id) VALUES (?)", "REPLACE INTO t_user_1 VALUES (NULL, ?)",
			"INSERT INTO t_user_3 (user_id) VALUES (11); INSERT INTO t_user_1 (user_id) VALUES (?)", "INSERT INTO t_order_2 (order_id) VALUES (?)"} {
			var wrong *WrongShardError
			if _, err := db.Exec(query, 7); !errors.Is(err, ErrWrongShard) || !errors.As(err, &wrong) || !strings.HasSuffix(wrong.Meant.Table, "_3") {
				t.Errorf("%s\nhave: %v\nwant: ErrWrongShard", query, err)
			}
		}
		expectCount(t, db, "SELECT COUNT(*) FROM t_user_%[1]d WHERE user_id %% 4 <> %[1]d", 0)
	}
}

func mustRun(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(db.ExecContext(ctx, query, args...))(t)
}

// expectCount asks for each of the four tables.
func expectCount(t *testing.T, db *sql.DB, query string, want int) {
	t.Helper()
	for i := range 4 {
		var have int
		if err := db.QueryRow(fmt.Sprintf(query, i)).Scan(&have); err != nil || have != want {
			t.Errorf(query+"\nhave: %d, %v\nwant: %d", i, have, err, want)
		}
	}
}

// liveRule returns the sharding of t_hash.
func liveRule(t *testing.T, file string) *rule.Sharding {
	t.Helper()
	r := must(rule.Load(file))(t)
	return r.Tables()[1].Sharding
}
