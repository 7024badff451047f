package driver

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
)

// MariaDB's Spider engine shards a table over servers by itself, and leaves
// AUTO_INCREMENT to each of them. Through shardkey the whole table has one
// generator. Both shards are databases of one server here, reached by TCP as
// others would be.
func TestSpider_oneGenerator(t *testing.T) {
	testserver.Needs(t, testserver.KindMariaDB, "the Spider engine")
	server := testserver.StartMariaDB(t)
	plain, err := sql.Open("mysql", server.DSN()+"?multiStatements=true")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Exec("INSTALL SONAME 'ha_spider'; SET GLOBAL spider_same_server_link = ON"); err != nil {
		testserver.Missing(t, fmt.Errorf("no Spider engine (apt-get install mariadb-plugin-spider): %w", err))
	}
	host, port, _ := strings.Cut(server.Addr(), ":")
	for i := range 2 {
		mustExec(t, plain, fmt.Sprintf("CREATE DATABASE shard%d; CREATE TABLE shard%[1]d.ruled (id BIGINT NOT NULL PRIMARY KEY, a INT, u INT UNIQUE)", i))
		mustExec(t, plain, fmt.Sprintf("CREATE SERVER shard%d FOREIGN DATA WRAPPER mysql OPTIONS (HOST '%s', PORT %s, USER 'root', DATABASE 'shard%[1]d')", i, host, port))
	}
	mustExec(t, plain, `CREATE DATABASE app; CREATE TABLE app.ruled (id BIGINT NOT NULL PRIMARY KEY, a INT, u INT)
		ENGINE=SPIDER COMMENT='wrapper "mysql", table "ruled"' PARTITION BY HASH (id) (PARTITION p0 COMMENT 'srv "shard0"', PARTITION p1 COMMENT 'srv "shard1"')`)
	cfg, err := mysql.ParseDSN(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	cfg.DBName = "app"
	base, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ours := sql.OpenDB(mustConnector(t, base, taggedRule(t, "ruled", 0)))
	defer ours.Close()
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for i := range 5 {
				for _, query := range []string{"INSERT INTO ruled (a) VALUES (?)", "INSERT INTO ruled (a) VALUES (?), (2), (3)", "INSERT INTO ruled VALUES (NULL, ?, NULL)"} {
					if _, err := ours.Exec(query, i); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	users.Wait()
	res := mustExec(t, ours, "INSERT INTO ruled (a) SELECT a FROM shard0.ruled LIMIT 3")
	if id, err := res.LastInsertId(); id != 101 || err != nil {
		t.Errorf("LastInsertId of INSERT … SELECT\nhave: %d, %v\nwant: 101", id, err)
	}
	const want = 4*5*5 + 3
	if n := number(t, ours, "SELECT COUNT(DISTINCT id) FROM ruled WHERE id BETWEEN 1 AND 103"); n != want {
		t.Errorf("rows\nhave: %d\nwant: %d", n, want)
	}
	for i := range 2 {
		if n := number(t, plain, fmt.Sprintf("SELECT COUNT(*) FROM shard%d.ruled", i)); n < want/2-2 {
			t.Errorf("shard %d holds %d rows of %d", i, n, want)
		}
	}
}
