package driver

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
)

// vitessTables are sharded by another column than the key, and by the key.
var vitessTables = testserver.Keyspace{Name: "app", Shards: []string{"-40", "40-80", "80-c0", "c0-"}, VSchema: `{"sharded": true,
	"vindexes": {"xxhash": {"type": "xxhash"}},
	"tables": {
		"ruled": {"column_vindexes": [{"column": "a", "name": "xxhash"}]},
		"byid": {"column_vindexes": [{"column": "id", "name": "xxhash"}]},
		"src": {"column_vindexes": [{"column": "a", "name": "xxhash"}]}}}`}

// Who is at the other end shows though vtgate has the version that it was given.
func TestVitess_withAVersionOfItsOwn(t *testing.T) {
	v := testserver.StartVitess(t, testserver.KindMySQL, vitessTables)
	for _, version := range []string{"", "8.0.40", "10.11.6-MariaDB", "5.7.9-vitess-12.0"} {
		if version != "" {
			v.Restart("--mysql-server-version=" + version)
		}
		name := "vitess " + version
		if err := RegisterRule(name, taggedSnowflake(t)); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("shardkey", v.DSN("app")+"?shardkeyRule="+strings.ReplaceAll(name, " ", "%20"))
		if err != nil {
			t.Fatal(err)
		}
		if version == "" {
			mustExec(t, db, "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, a INT, u INT UNIQUE)")
		}
		if version == "" {
			// An expression is a sharding key as it stands: Vitess evaluates no function of ours there.
			mustExec(t, db, "CREATE TABLE byid (id BIGINT NOT NULL PRIMARY KEY, a INT)")
			mustExec(t, db, "INSERT INTO byid (id, a) VALUES (1 + 2000 + 3, 1), (? + 5, 2), (CAST('44' AS SIGNED), 3)", 10)
			if have := column(t, db, "SELECT id FROM byid ORDER BY a"); have != "2004 15 44" {
				t.Errorf("keys by expressions\nhave: %s", have)
			}
		}
		mustExec(t, db, "INSERT INTO ruled (a) VALUES (1)")
		if text := ConnectorOf(db).Describe(); !strings.Contains(text, "server: vitess") {
			t.Errorf("%q\nhave: %s", version, text)
		}
		_ = db.Close()
	}
}

// After a transaction that Vitess ended, the pool is of use as soon as Vitess is.
func TestVitess_connectionAfterAFailedTransaction(t *testing.T) {
	v := testserver.StartVitess(t, testserver.KindMySQL, vitessTables)
	if err := RegisterRule("vitess, failing", taggedSnowflake(t)); err != nil {
		t.Fatal(err)
	}
	ours, err := sql.Open("shardkey", v.DSN("app")+"?shardkeyRule=vitess,%20failing")
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	ours.SetMaxOpenConns(1)
	mustExec(t, ours, "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, a INT)")
	insert := func() error {
		_, err := ours.Exec("INSERT INTO ruled (id, a) VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8) ON DUPLICATE KEY UPDATE id = id")
		return err
	}
	if err := insert(); err != nil {
		t.Fatal(err)
	}
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

// An INSERT … SELECT through vtgate keeps text and dates, inside a transaction and outside.
func TestVitess_insertSelect(t *testing.T) {
	for _, over := range []testserver.Kind{testserver.KindMySQL, testserver.KindMariaDB} {
		v := testserver.StartVitess(t, over, vitessTables)
		name := "vitess, select, " + string(over)
		if err := RegisterRule(name, taggedSnowflake(t)); err != nil {
			t.Fatal(err)
		}
		for i, params := range []string{"", "&charset=latin1", "&parseTime=true"} {
			db, err := sql.Open("shardkey", v.DSN("app")+"?shardkeyRule="+strings.ReplaceAll(name, " ", "%20")+params)
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1)
			if i == 0 {
				const columns = "a INT, s VARCHAR(20) CHARACTER SET utf8mb4, l VARCHAR(20) CHARACTER SET latin1, d DATETIME(3))"
				mustExec(t, db, "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, "+columns)
				mustExec(t, db, "CREATE TABLE src ("+columns)
				mustExec(t, db, "INSERT INTO src (a, s, l, d) VALUES (1, X'C3A9E697A5', X'E4', '2024-01-02 03:04:05.678'), (2, '', NULL, NULL)")
			}
			mustExec(t, db, "DELETE FROM ruled")
			mustExec(t, db, "INSERT INTO ruled (a, s, l, d) SELECT a, s, l, d FROM src")
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("INSERT INTO ruled (a, s, l, d) SELECT a + ? AS a, s, l, d FROM src", 2); err != nil {
				t.Error(err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			have := column(t, db, "SELECT CONCAT_WS(' ', a, HEX(s), HEX(l), d) FROM ruled ORDER BY a")
			if want := column(t, db, "SELECT CONCAT_WS(' ', a, HEX(s), HEX(l), d) FROM src ORDER BY a"); !strings.HasPrefix(have, want) || number(t, db, "SELECT COUNT(*) FROM ruled WHERE id > 0") != 4 {
				t.Errorf("%s%s\nhave: %s\nwant: %s twice", over, params, have, want)
			}
			_ = db.Close()
		}
	}
}
