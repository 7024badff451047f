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
	root := mustOpen(t, "mysql", testserver.Database(t))
	for _, query := range []string{
		"CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(20) UNIQUE, n INT)",
		"CREATE TABLE auto (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) UNIQUE, n INT)",
	} {
		mustExec(t, root, query)
	}
	mariaDB := testserver.Name(t) != "mysql"
	const insert, upsert = "INSERT INTO %s (name, n) VALUES ('a', 1)", "INSERT INTO %s (name, n) VALUES ('a', 1) ON DUPLICATE KEY UPDATE n = 5"
	for _, c := range []struct {
		grants, query string
		denied, plain bool // through this driver and through the plain one
	}{
		{"INSERT (name, n)", insert, true, false},
		{"INSERT (id, name, n)", insert, false, false},
		{"SELECT, INSERT, UPDATE (n)", upsert, mariaDB, mariaDB},
		{"SELECT, INSERT, UPDATE (name, n)", upsert, mariaDB, false},
		{"SELECT, INSERT, UPDATE (id, name, n)", upsert, false, false},
	} {
		mustExec(t, root, "DELETE FROM ruled")
		mustExec(t, root, "DELETE FROM auto")
		ours, plain := openAs(t, root, c.grants+" ON ruled", c.grants+" ON auto")
		for range 2 {
			_, err := ours.Exec(fmt.Sprintf(c.query, "ruled"))
			isDenied(t, "ours: "+c.grants, err, c.denied)
			_, err = plain.Exec(fmt.Sprintf(c.query, "auto"))
			isDenied(t, "plain: "+c.grants, err, c.plain)
			if !strings.Contains(c.query, "DUPLICATE") {
				break
			}
		}
	}
}

// openAs opens the database of root as a user with these grants on its tables only: with the rule
// of taggedRule, and through the plain driver.
func openAs(t *testing.T, root *sql.DB, grants ...string) (ours, plain *sql.DB) {
	t.Helper()
	cfg := must(mysql.ParseDSN(testserver.Database(t)))(t)
	cfg.DBName = column(t, root, "SELECT DATABASE()")
	cfg.User, cfg.Passwd = "sk_"+cfg.DBName[len(cfg.DBName)-12:], "Ttt-123-secret"
	mustExec(t, root, "DROP USER IF EXISTS "+cfg.User)
	mustExec(t, root, "CREATE USER "+cfg.User+" IDENTIFIED BY 'Ttt-123-secret'")
	t.Cleanup(func() { _, _ = root.Exec("DROP USER IF EXISTS " + cfg.User) })
	for _, grant := range grants {
		mustExec(t, root, "GRANT "+strings.ReplaceAll(grant, " ON ", " ON `"+cfg.DBName+"`.")+" TO "+cfg.User)
	}
	base := must(mysql.NewConnector(cfg))(t)
	ours, plain = sql.OpenDB(mustConnector(t, base, taggedRule(t, "ruled", 0))), sql.OpenDB(base)
	t.Cleanup(func() { _, _ = ours.Close(), plain.Close() })
	return ours, plain
}

func isDenied(t *testing.T, what string, err error, want bool) {
	t.Helper()
	var refused *mysql.MySQLError
	if denied := errors.As(err, &refused) && refused.Number == columnDenied; denied != want || err != nil && !denied {
		t.Errorf("%s\nhave: %v\nwant: error 1143: %t", what, err, want)
	}
}
