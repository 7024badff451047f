package driver

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
)

// A query's key is kept, or taken for none, as the same key of VALUES is.
func TestInsertSelect_keepsGivenKeys(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_keepsGivenKeys) {
		return
	}
	integers := []any{7001, 7002, 7003, 7004, 7005, 7006, 7007, 7008, 7009, 7010}
	texts := []any{"g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8", "g9", "ga"}
	for _, c := range []struct {
		column string
		made   []any
		given  []string
	}{
		{"VARCHAR(32)", integers, []string{"NULL", "'0'", "'abc'", "'0x'", "'0.4'", "' 0 '", "'0e3'", "'.'", "'-1'"}},
		{"VARBINARY(32)", integers, []string{"NULL", "'0'", "'abc'", "'00'", "'-0'"}},
		{"BIGINT", integers, []string{"NULL", "0", "'0'", "0.4", "5", "-9223372036854775808"}},
		{"DECIMAL(20,2)", integers, []string{"NULL", "0", "0.00", "5"}},
		{"CHAR(8)", texts, []string{"NULL", "''", "'x '", "'   '"}},
		{"VARCHAR(8) CHARACTER SET latin1", texts, []string{"NULL", "''", "'  '", "'ö'"}},
		{"BINARY(4)", texts, []string{"NULL", "''", "'abcd'", "X'00'"}},
		{"VARBINARY(4)", texts, []string{"NULL", "''", "'ab'", "X'00'"}},
	} {
		read := func(query func(key string) string) string {
			ours, plain := openScripted(t, scriptRule(t, listed(c.made...), "ruled.id"))
			mustExec(t, plain, "CREATE TABLE ruled (a INT, id "+c.column+" NOT NULL)")
			mustExec(t, ours, "INSERT INTO ruled (a) VALUES (-1)") // which kind of keys is made is known now
			for i, key := range c.given {
				if _, err := ours.Exec(strings.ReplaceAll(query(key), "$", fmt.Sprint(i))); err != nil {
					t.Errorf("%s %s: %v", c.column, key, err)
				}
			}
			return column(t, plain, "SELECT CONCAT(a, ':', HEX(id), ' ', id) FROM ruled ORDER BY a")
		}
		want := read(func(key string) string { return "INSERT INTO ruled (id, a) VALUES (" + key + ", $)" })
		have := read(func(key string) string { return "INSERT INTO ruled (id, a) SELECT " + key + ", $" })
		if have != want || want == "" {
			t.Errorf("%s %s\nhave: %s\nwant: %s", c.column, c.given, have, want)
		}
	}
}

// Functions that read LAST_INSERT_ID() do not see the rows' numbers.
func TestInsertSelect_lastInsertID(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_lastInsertID) {
		return
	}
	for _, column := range []string{"BIGINT PRIMARY KEY", "BIGINT AUTO_INCREMENT PRIMARY KEY"} {
		ours, plain := one(t)
		mustExec(t, plain, "DROP TABLE ruled")
		mustExec(t, plain, "CREATE TABLE ruled (id "+column+", a INT, u INT UNIQUE)")
		mustExec(t, plain, "CREATE FUNCTION last_id() RETURNS BIGINT READS SQL DATA RETURN LAST_INSERT_ID()")
		mustExec(t, plain, "CREATE VIEW last_ids AS SELECT last_id() AS id")
		for _, c := range []struct {
			query string
			made  int64 // LAST_INSERT_ID() is the key of the row with this a, 0 for the former one
			fails bool
		}{
			{query: "INSERT INTO ruled (a, u) SELECT 1, 11 UNION ALL SELECT 2, 12", made: 1},
			{query: "INSERT INTO ruled (a, u) SELECT 3, 13 FROM DUAL WHERE FALSE"},
			{query: "INSERT INTO ruled (a, u) SELECT 4, 14 UNION ALL SELECT 5, 11", fails: true},
			{query: "INSERT INTO ruled (a, u) SELECT 6, nope", fails: true},
			{query: "INSERT INTO ruled (id, a) SELECT 9001, 7 UNION ALL SELECT NULL, 8 UNION ALL SELECT 0, 9", made: 8},
			{query: "INSERT INTO ruled (id, a) SELECT 9002, 10"},
			{query: "INSERT IGNORE INTO ruled (a, u) SELECT 11, 11 UNION ALL SELECT 12, 22", made: 12},
			{query: "INSERT IGNORE INTO ruled (a, u) SELECT 13, 11"},
			{query: "INSERT INTO ruled (a, u) SELECT 14, 22 ON DUPLICATE KEY UPDATE a = 14"},
			{query: "REPLACE INTO ruled (a, u) SELECT 15, 11", made: 15},
			{query: "INSERT INTO ruled (a) SELECT 16 UNION ALL SELECT last_id()", made: 16},
		} {
			former := number(t, ours, "SELECT id FROM last_ids")
			if _, err := ours.Exec(c.query); (err != nil) != c.fails {
				t.Errorf("%s: %v", c.query, err)
			}
			have, want := number(t, ours, "SELECT id FROM last_ids"), former
			if c.made != 0 {
				want = number(t, plain, fmt.Sprintf("SELECT id FROM ruled WHERE a = %d", c.made))
			}
			if again := number(t, ours, "SELECT LAST_INSERT_ID()"); have != want || again != want {
				t.Errorf("%s, %s\nhave: %d, %d\nwant: %d", column, c.query, have, again, want)
			}
		}
	}
}

// What an INSERT … SELECT sends, in round trips.
func TestInsertSelect_roundTrips(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_roundTrips) {
		return
	}
	ours, plain := openScripted(t, taggedSnowflake(t))
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	mustExec(t, ours, "INSERT INTO ruled (id, a) SELECT NULL, 1")
	for _, c := range []struct {
		query string
		trips int64
	}{
		{"INSERT INTO ruled (a) SELECT 1", 5}, // create, read, number, insert, drop
		{"INSERT INTO ruled (a) SELECT 1 FROM DUAL WHERE FALSE", 4},
		{"INSERT INTO ruled (id, a) SELECT NULL, 1", 8}, // count; create, number, insert keys
		{"INSERT INTO ruled (id, a) SELECT 900, 1", 6},  // count; ask for the last key
	} {
		before := number(t, ours, "SHOW STATUS LIKE 'Questions'")
		mustExec(t, ours, c.query)
		if have := number(t, ours, "SHOW STATUS LIKE 'Questions'") - before - 1; have != c.trips {
			t.Errorf("%s\nhave: %d\nwant: %d", c.query, have, c.trips)
		}
	}
}

// Locked tables are enough.
func TestInsertSelect_underLockTables(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_underLockTables) {
		return
	}
	ours, plain := one(t)
	mustExec(t, plain, "CREATE TABLE src (a INT)")
	mustExec(t, plain, "INSERT INTO src VALUES (1), (2)")
	mustExec(t, ours, "LOCK TABLES ruled WRITE, src READ")
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT a FROM src")
	mustExec(t, ours, "INSERT INTO ruled (id, a) SELECT NULL, a FROM src")
	mustExec(t, ours, "INSERT IGNORE INTO ruled (id, a) SELECT id, a FROM ruled UNION SELECT NULL, 3")
	mustExec(t, ours, "UNLOCK TABLES")
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0"); n != 5 {
		t.Errorf("%d rows", n)
	}
}

// Within XA one of the servers takes no temporary table, and says so. The rows are
// copied where that is not what was asked for.
func TestInsertSelect_inXA(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_inXA) {
		return
	}
	ours, plain := one(t)
	mustExec(t, ours, "XA START 'x'")
	mustExec(t, ours, "INSERT INTO ruled (a) SELECT 7")
	mustExec(t, ours, "XA END 'x'")
	mustExec(t, ours, "XA COMMIT 'x' ONE PHASE")
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled WHERE a = 7 AND id > 0"); n != 1 {
		t.Errorf("%d rows", n)
	}
	defer selecting(InsertSelectTemporary)()
	ours, plain = one(t)
	mustExec(t, ours, "XA START 'x'")
	_, err := ours.Exec("INSERT INTO ruled (a) SELECT 1")
	if testserver.Has(t, testserver.KindMySQL, "XA without temporary tables") {
		if !errors.Is(err, ErrUnsupportedStatement) || !isServerError(err, 4091) || !strings.Contains(err.Error(), "xa_detach_on_prepare") {
			t.Errorf("have: %v", err)
		}
	} else if err != nil {
		t.Error(err)
	}
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (2)")
	mustExec(t, ours, "XA END 'x'")
	mustExec(t, ours, "XA COMMIT 'x' ONE PHASE")
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled WHERE a = 2 AND id > 0"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// A zero date as a default of the target is no error.
func TestInsertSelect_zeroDates(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_zeroDates) {
		return
	}
	ours, plain := one(t)
	plain.SetMaxOpenConns(1)
	mustExec(t, plain, "SET sql_mode = ''")
	mustExec(t, plain, `ALTER TABLE ruled ADD d DATE NOT NULL DEFAULT '0000-00-00', ADD dt DATETIME(3) NOT NULL DEFAULT '0000-00-00 00:00:00',
		ADD ts TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00'`)
	mustExec(t, ours, "SET sql_mode = 'TRADITIONAL'")
	mustExec(t, ours, "INSERT INTO ruled (a, dt, d, ts) SELECT 1, '2024-02-03 04:05:06.789', '2024-02-29', '2024-05-06 07:08:09'")
	mustExec(t, ours, "INSERT INTO ruled (id, a, TS, dt, D) SELECT NULL, 2, '2024-05-06 07:08:09', '2024-02-03', '2024-02-29'")
	if _, err := ours.Exec("INSERT INTO ruled (a, d, dt, ts) SELECT 3, NULL, '2024-02-03', '2024-05-06'"); !isServerError(err, 1048) {
		t.Errorf("have: %v", err)
	}
	want := "1 2024-02-03 04:05:06.789 2024-02-29 2024-05-06 07:08:09"
	if have := column(t, plain, "SELECT CONCAT_WS(' ', a, dt, d, ts) FROM ruled WHERE a = 1 AND id > 0"); !strings.Contains(have, want) {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
}

// RETURNING is a name like any other to MySQL.
func TestInsertSelect_namedReturning(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_namedReturning) {
		return
	}
	if !testserver.Has(t, testserver.KindMySQL, "RETURNING as a name") {
		return
	}
	ours, plain := one(t)
	mustExec(t, plain, "CREATE TABLE src (returning INT)")
	mustExec(t, plain, "INSERT INTO src VALUES (4)")
	for _, query := range []string{
		"INSERT INTO ruled (a) SELECT returning FROM src",
		"INSERT INTO ruled (a) SELECT 4 AS returning",
		"INSERT INTO ruled (a) SELECT 4 returning",
		"INSERT INTO ruled (a) SELECT 4 FROM src returning",
	} {
		mustExec(t, ours, query)
	}
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled WHERE a = 4 AND id > 0"); n != 4 {
		t.Errorf("%d rows", n)
	}
}

// Where statements are logged for GTIDs, the error says what to do.
func TestInsertSelect_underGTID(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_underGTID) {
		return
	}
	if !testserver.Has(t, testserver.KindMySQL, "gtid_mode") {
		return
	}
	server := testserver.StartSQL(t, "--log-bin=bin", "--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--sql-require-primary-key=ON")
	cfg, err := mysql.ParseDSN(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	base, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	plain := sql.OpenDB(base)
	mustExec(t, plain, "CREATE DATABASE app")
	_ = plain.Close()
	cfg.DBName = "app"
	ours, plain, _ := openFilledOn(t, cfg.FormatDSN())
	mustExec(t, plain, "SET GLOBAL binlog_format = STATEMENT")
	ours.SetMaxIdleConns(0)
	if err := inTx(ours, func(tx *sql.Tx) error { _, err := tx.Exec("INSERT INTO ruled (a) SELECT 1"); return err }); err != nil {
		t.Errorf("by copying: %v", err)
	}
	mustExec(t, plain, "DROP TABLE ruled")
	defer selecting(InsertSelectTemporary)()
	ours, plain, _ = openFilledOn(t, cfg.FormatDSN())
	for _, format := range []string{"ROW", "MIXED", "STATEMENT"} {
		mustExec(t, plain, "SET GLOBAL binlog_format = "+format)
		ours.SetMaxIdleConns(0) // a new session
		mustExec(t, ours, "INSERT INTO ruled (a) SELECT 1")
		tx, err := ours.Begin()
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.Exec("INSERT INTO ruled (a) SELECT 1")
		switch {
		case format != "STATEMENT":
			if err != nil {
				t.Errorf("%s: %v", format, err)
			}
		case !errors.Is(err, ErrUnsupportedStatement) || !isServerError(err, 3748) || !strings.Contains(err.Error(), "binlog_format"):
			t.Errorf("%s: %v", format, err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	}
	if n := number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0"); n != 5 {
		t.Errorf("%d rows", n)
	}
}

// taggedSnowflake rules ruled.id with a generator of consecutive int64.
func taggedSnowflake(t *testing.T) *rule.Rule {
	t.Helper()
	r, err := rule.Parse("test.yaml", []byte(`
rules:
- !SHARDING
  tables:
    ruled:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 5}}
`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
