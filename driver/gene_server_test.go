package driver

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

const geneServerRule = `
rules:
- !SHARDING
  tables:
    g_order:
      actualDataNodes: ds.g_order_${0..3}
      tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: four}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: genes}
    g_text:
      actualDataNodes: ds.g_text_${0..3}
      tableStrategy: {standard: {shardingColumn: name, shardingAlgorithmName: hash}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: names}
    g_all: {keyGenerateStrategy: {column: order_id, keyGeneratorName: genes}}
  keyGenerators:
    genes: {type: SNOWFLAKE, props: {worker-id: 78, gene-column: user_id, gene-bits: 4}}
    names: {type: SNOWFLAKE, props: {worker-id: 79, gene-column: name, gene-bits: 4}}
  shardingAlgorithms:
    four: {type: MOD, props: {sharding-count: 4}}
    hash: {type: HASH_MOD, props: {sharding-count: 4}}
`

// TestGenes_onServers: each row has its user's gene in its key, as one reads both from the
// tables, whatever the form of the statement.
func TestGenes_onServers(t *testing.T) {
	if testserver.Each(t, TestGenes_onServers) {
		return
	}
	file := filepath.Join(t.TempDir(), "rule.yaml")
	noError(t, os.WriteFile(file, []byte(geneServerRule), 0o600))
	for _, params := range []string{"", "&interpolateParams=true", "&shardkeyStatements=always", "&shardkeyStatements=off"} {
		db := openFor(t, "shardkey", testserver.Database(t)+"?parseTime=true&multiStatements=true&shardkeyRule="+file+params)
		mustRun(t, db, "CREATE TABLE g_all (order_id BIGINT PRIMARY KEY, user_id BIGINT, a INT, UNIQUE (user_id))")
		mustRun(t, db, "CREATE TABLE src (user_id BIGINT, name VARCHAR(20), seen DATETIME)")
		mustRun(t, db, "INSERT INTO src VALUES (1, 'ann', NULL), (2, 'bob', NOW()), (3, 'zoë', NULL), (NULL, NULL, NULL)")
		for i := range 4 {
			mustRun(t, db, fmt.Sprintf("CREATE TABLE g_order_%d (order_id BIGINT PRIMARY KEY, user_id BIGINT UNSIGNED, a INT)", i))
			mustRun(t, db, fmt.Sprintf("CREATE TABLE g_text_%d (order_id BIGINT PRIMARY KEY, name VARCHAR(40), a INT)", i))
		}
		testGenesOfForms(t, db)
		testGenesOfSelect(t, db)
		testGenesOfTables(t, db)
	}
}

// testGenesOfForms fills one table by statements of all forms.
func testGenesOfForms(t *testing.T, db *sql.DB) {
	next := 0
	users := func(n int) (args []any) {
		for range n {
			next++
			args = append(args, next)
		}
		return args
	}
	for range 3 {
		mustRun(t, db, "INSERT INTO g_all (user_id) VALUES (?)", users(1)...)
		mustRun(t, db, "INSERT INTO g_all VALUES (NULL, ?, 1), (0, ?, 2), (DEFAULT, ?, 3)", users(3)...)
		mustRun(t, db, "INSERT INTO g_all (a, user_id) VALUES (?, ?)", 5, fmt.Sprint(users(1)[0])) // a text in a column of integers
		mustRun(t, db, "INSERT INTO g_all SET a = 1, user_id = ?", users(1)...)
		mustRun(t, db, "REPLACE INTO g_all (user_id) VALUES (?), (?)", users(2)...)
		mustRun(t, db, "REPLACE INTO g_all SET user_id = ?", users(1)...)
		mustRun(t, db, "INSERT IGNORE INTO g_all (user_id) VALUES (?), (?)", 1, users(1)[0])
		mustRun(t, db, "INSERT INTO g_all (user_id, a) VALUES (?, 1), (?, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)", 2, users(1)[0])
		mustRun(t, db, fmt.Sprintf("INSERT INTO g_all (user_id) VALUES (%d); INSERT INTO g_all (user_id) VALUES (%d)", users(2)...))
		mustRun(t, db, fmt.Sprintf("INSERT INTO g_all (user_id) VALUES (%d), ('%d')", users(1)[0], users(1)[0]))
		stmt := must(db.Prepare("INSERT INTO g_all (user_id, a) VALUES (?, ?)"))(t)
		for range 5 {
			res := must(stmt.Exec(users(1)[0], 1))(t)
			if id, _ := res.LastInsertId(); id%16 != int64(next%16) {
				t.Errorf("have: key %d of user %d", id, next)
			}
		}
		if _, err := stmt.Exec(nil, 1); !hasReason(err, "no-gene") {
			t.Errorf("have: %v\nwant: reason no-gene", err)
		}
		stmt.Close()
	}
	for _, query := range []string{"INSERT INTO g_all (user_id) VALUES (?), (NULL)", "INSERT INTO g_all (user_id) VALUES (? + 1)", "INSERT INTO g_all (a) VALUES (?)",
		"INSERT INTO g_all (user_id) VALUES (?), ('x')", "INSERT INTO g_all SET user_id = DEFAULT, a = ?"} {
		if _, err := db.Exec(query, 1000); !hasReason(err, "no-gene") {
			t.Errorf("%s\nhave: %v\nwant: reason no-gene", query, err)
		}
	}
	expectRows(t, db, "SELECT COUNT(*) FROM g_all", next)
	expectRows(t, db, "SELECT COUNT(*) FROM g_all WHERE order_id % 16 <> user_id % 16", 0)
}

// testGenesOfSelect reads the genes from rows that a query returns.
func testGenesOfSelect(t *testing.T, db *sql.DB) {
	var keys Keys
	ctx := WithKeys(t.Context(), &keys)
	mustRun(t, db, "TRUNCATE TABLE g_all")
	must(db.ExecContext(ctx, "INSERT INTO g_all (user_id, a) SELECT user_id, 1 FROM src WHERE user_id > ? ORDER BY user_id DESC", 0))(t)
	var genes []int64
	for _, key := range keys.Values() {
		genes = append(genes, key.(int64)%16)
	}
	if want := []int64{3, 2, 1}; !slices.Equal(genes, want) {
		t.Errorf("have: %v, %v\nwant: %v", keys.Values(), genes, want)
	}
	mustRun(t, db, "INSERT INTO g_all (order_id, user_id) SELECT IF(user_id = 1, 11, NULL), user_id + 100 FROM src WHERE user_id > 0 ORDER BY user_id")
	mustRun(t, db, "INSERT INTO g_all SELECT 0, user_id + 200, 1 FROM src WHERE user_id > 0")
	mustRun(t, db, "INSERT INTO g_all (user_id) SELECT seq.n FROM (SELECT 1000 + 100 * a.user_id + 10 * b.user_id + c.user_id AS n FROM src a, src b, src c WHERE a.user_id > 0 AND b.user_id > 0 AND c.user_id > 0) AS seq")
	mustRun(t, db, "INSERT INTO g_all (user_id, a) SELECT user_id, a FROM (SELECT user_id + 300 AS user_id, 1 AS a FROM src WHERE user_id > 0) AS s ON DUPLICATE KEY UPDATE a = 2")
	expectRows(t, db, "SELECT COUNT(*) FROM g_all WHERE order_id % 16 <> user_id % 16 AND order_id <> 11", 0)
	expectRows(t, db, "SELECT COUNT(*) FROM g_all", 3+3+3+27+3)
	for _, query := range []string{"INSERT INTO g_all (user_id) SELECT user_id + 500 FROM src", "INSERT INTO g_all (a) SELECT user_id FROM src", "INSERT INTO g_order_1 (user_id) SELECT NULL"} {
		if _, err := db.Exec(query); !hasReason(err, "no-gene") {
			t.Errorf("%s\nhave: %v\nwant: reason no-gene", query, err)
		}
	}
	expectRows(t, db, "SELECT COUNT(*) FROM g_all", 39)
	mustRun(t, db, "INSERT INTO g_order_1 (user_id) SELECT user_id FROM src WHERE user_id = 1 UNION ALL SELECT 5")
	if _, err := db.Exec("INSERT INTO g_order_1 (user_id) SELECT user_id FROM src WHERE user_id > 0"); !errors.Is(err, ErrWrongShard) {
		t.Errorf("have: %v\nwant: ErrWrongShard", err)
	}
	mustRun(t, db, "INSERT INTO g_text_2 (name) SELECT name FROM src WHERE name = 'zoë'")
	expectRows(t, db, "SELECT order_id % 16 FROM g_text_2 WHERE name = 'zoë'", 120918%16) // its hash
}

// testGenesOfTables finds each row in the table of its key, and in that of its user.
func testGenesOfTables(t *testing.T, db *sql.DB) {
	for user := range 40 {
		for i := range 4 {
			_, err := db.Exec(fmt.Sprintf("INSERT INTO g_order_%d (user_id) VALUES (?), (?)", i), user, user+16)
			if (err == nil) != (user%4 == i) || err != nil && !errors.Is(err, ErrWrongShard) {
				t.Errorf("user %d into table %d: %v", user, i, err)
			}
			_, err = db.Exec(fmt.Sprintf("INSERT INTO g_text_%d (name) VALUES (?)", i), fmt.Sprintf("u%d", user))
			if err != nil && !errors.Is(err, ErrWrongShard) {
				t.Error(err)
			}
		}
	}
	mustRun(t, db, "INSERT INTO g_order_3 (user_id) VALUES (?)", uint64(1<<64-1))
	mustRun(t, db, "INSERT INTO g_order_2 (user_id) VALUES (18446744073709551614)")
	expectCount(t, db, "SELECT COUNT(*) FROM g_order_%[1]d WHERE order_id %% 4 <> %[1]d OR user_id %% 4 <> %[1]d OR order_id %% 16 <> user_id %% 16", 0)
	expectCount(t, db, "SELECT COUNT(*) FROM g_text_%[1]d WHERE order_id %% 4 <> %[1]d", 0)
	total := 0
	for i := range 4 {
		var n int
		noError(t, db.QueryRow(fmt.Sprintf("SELECT COUNT(*) FROM g_text_%d WHERE name LIKE 'u%%'", i)).Scan(&n))
		total += n
	}
	if total != 40 {
		t.Errorf("have: %d rows of texts\nwant: 40, each in one table", total)
	}
}

func expectRows(t *testing.T, db *sql.DB, query string, want int) {
	t.Helper()
	var have int
	if err := db.QueryRow(query).Scan(&have); err != nil || have != want {
		t.Errorf("%s\nhave: %d, %v\nwant: %d", query, have, err, want)
	}
}

// hasReason reports whether a statement was refused for the reason.
func hasReason(err error, reason string) bool {
	var refused *StatementError
	return errors.As(err, &refused) && refused.Reason == reason
}
