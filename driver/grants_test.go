package driver

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
)

// The key is a column of the INSERT that is sent, so a user with privileges on columns
// needs them on the key column as well: INSERT, and for an upsert on MariaDB UPDATE, which
// that server wants for every column that the INSERT names.
func TestGrants_onColumns(t *testing.T) {
	if testserver.Each(t, TestGrants_onColumns) {
		return
	}
	dsn := testserver.Database(t)
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	root := mustOpen(t, "mysql", dsn)
	for _, query := range []string{
		"CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(20) UNIQUE, n INT)",
		"CREATE TABLE auto (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) UNIQUE, n INT)",
	} {
		mustExec(t, root, query)
	}
	mariaDB := testserver.Name(t) != "mysql"
	const insert, upsert = "INSERT INTO %s (name, n) VALUES ('a', 1)", "INSERT INTO %s (name, n) VALUES ('a', 1) ON DUPLICATE KEY UPDATE n = 5"
	for i, c := range []struct {
		grants, query string
		denied, plain bool // through this driver and through the plain one
	}{
		{"INSERT (name, n)", insert, true, false},
		{"INSERT (id, name, n)", insert, false, false},
		{"SELECT, INSERT, UPDATE (n)", upsert, mariaDB, mariaDB},
		{"SELECT, INSERT, UPDATE (name, n)", upsert, mariaDB, false},
		{"SELECT, INSERT, UPDATE (id, name, n)", upsert, false, false},
	} {
		user := fmt.Sprintf("g%d%s", i, cfg.DBName[max(0, len(cfg.DBName)-20):])
		mustExec(t, root, "CREATE USER "+user)
		for _, table := range []string{"ruled", "auto"} {
			mustExec(t, root, "DELETE FROM "+table)
			mustExec(t, root, "GRANT "+c.grants+" ON "+table+" TO "+user)
		}
		as := *cfg
		as.User, as.Passwd = user, ""
		base, err := mysql.NewConnector(&as)
		if err != nil {
			t.Fatal(err)
		}
		ours, plain := sql.OpenDB(mustConnector(t, base, taggedRule(t, "ruled", 0))), sql.OpenDB(base)
		for range 2 {
			_, err = ours.Exec(fmt.Sprintf(c.query, "ruled"))
			isDenied(t, "ours: "+c.grants, err, c.denied)
			_, err = plain.Exec(fmt.Sprintf(c.query, "auto"))
			isDenied(t, "plain: "+c.grants, err, c.plain)
			if !strings.Contains(c.query, "DUPLICATE") {
				break
			}
		}
		_, _ = ours.Close(), plain.Close()
		mustExec(t, root, "DROP USER "+user)
	}
}

func isDenied(t *testing.T, what string, err error, want bool) {
	t.Helper()
	var refused *mysql.MySQLError
	if denied := errors.As(err, &refused) && refused.Number == columnDenied; denied != want || err != nil && !denied {
		t.Errorf("%s\nhave: %v\nwant: error 1143: %t", what, err, want)
	}
}
