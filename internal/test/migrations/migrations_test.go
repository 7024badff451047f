// Package migrations runs migrations of golang-migrate and goose through shardkey and directly
// through go-sql-driver.
package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	_ "github.com/go-sql-driver/mysql"
	"github.com/golang-migrate/migrate/v4"
	migratemysql "github.com/golang-migrate/migrate/v4/database/mysql"
	_ "github.com/golang-migrate/migrate/v4/source/file"
	"github.com/pressly/goose/v3"

	_ "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

const ruleYAML = `rules:
- !SHARDING
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 7}}}
  tables:
    item: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
`

// steps are migrations, one per file. %s is AUTO_INCREMENT without shardkey, and empty with it.
var steps = []string{
	"CREATE TABLE item (id BIGINT NOT NULL%s PRIMARY KEY, name VARCHAR(20), n INT);\nCREATE TABLE acct (n INT);\nINSERT INTO acct VALUES (100);",
	"INSERT INTO item (name, n) VALUES ('a', 1);\nINSERT INTO item (name, n) VALUES ('b', 2), ('c', 3);",
	"INSERT INTO item VALUES (NULL, 'd', 4);",
	"ALTER TABLE item ADD COLUMN z INT DEFAULT 3;\nUPDATE acct SET n = n - 10;",
	"INSERT INTO item VALUES (NULL, 'late', 1, 4);",
	"ALTER TABLE item RENAME COLUMN n TO m;\nUPDATE acct SET n = n - 10;",
	"INSERT INTO item (name, m) VALUES ('last', 5);",
}

// mixed is a migration that creates a table, fills a sharded table from it, and alters that.
const mixed = `CREATE TABLE legacy (name VARCHAR(20), m INT);
INSERT INTO legacy VALUES ('one;', 10), ('two', 11), ('three', 12);
INSERT INTO item (name, m) SELECT name, m FROM legacy ORDER BY m DESC;
ALTER TABLE item ADD COLUMN y INT DEFAULT 6; -- the next statement needs it;
UPDATE acct SET n = n - 10;
INSERT INTO item (name, m, y) VALUES ('mixed', 8, 7);
INSERT INTO item SELECT NULL, CONCAT(name, y), m, z, y FROM item WHERE name = 'mixed';
DROP TABLE legacy;`

// A tool runs migrations on a database.
type tool func(t *testing.T, db *sql.DB, steps []string) error

func withMigrate(t *testing.T, db *sql.DB, steps []string) error {
	dir := t.TempDir()
	for i, step := range steps {
		must.Do(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d_step.up.sql", i+1)), []byte(step), 0o600))
	}
	target := must.Get(migratemysql.WithInstance(db, &migratemysql.Config{}))(t)
	m := must.Get(migrate.NewWithDatabaseInstance("file://"+filepath.ToSlash(dir), "mysql", target))(t)
	return m.Up()
}

func withGoose(t *testing.T, db *sql.DB, steps []string) error {
	files := fstest.MapFS{}
	for i, step := range steps {
		files[fmt.Sprintf("%05d_step.sql", i+1)] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + step + "\n")}
	}
	p := must.Get(goose.NewProvider(goose.DialectMySQL, db, files))(t)
	_, err := p.Up(context.Background())
	return err
}

func TestMigrations_sameAsPlain(t *testing.T) {
	if testserver.Each(t, TestMigrations_sameAsPlain) {
		return
	}
	for name, run := range map[string]tool{"golang-migrate": withMigrate, "goose": withGoose} {
		t.Run(name, func(t *testing.T) {
			ours, plain := open(t, "shardkey"), open(t, "mysql")
			all := append(steps, mixed)
			must.Do(t, run(t, ours, fill(all, "")))
			must.Do(t, run(t, plain, fill(all, " AUTO_INCREMENT")))
			must.Equal(t, rows(t, ours), rows(t, plain))
		})
	}
}

// TestPage_calls checks that the tools are called here as docs/guides/migrations.md shows.
func TestPage_calls(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../../docs/guides/migrations.md"))(t))
	own := strings.ReplaceAll(string(must.Get(os.ReadFile("migrations_test.go"))(t)), "migratemysql.", "mysql.")
	for _, call := range []string{
		"mysql.WithInstance(db, &mysql.Config{})", `migrate.NewWithDatabaseInstance("file://`, "goose.NewProvider(goose.DialectMySQL, db, files)",
	} {
		if !strings.Contains(page, call) || strings.Count(own, call) < 2 { // one is in this list
			t.Errorf("%s: in the page %t, %d times in this file", call, strings.Contains(page, call), strings.Count(own, call))
		}
	}
}

func fill(steps []string, auto string) []string {
	filled := make([]string, len(steps))
	for i, step := range steps {
		filled[i] = strings.ReplaceAll(step, "%s", auto)
	}
	return filled
}

func open(t *testing.T, name string) *sql.DB {
	t.Helper()
	dsn := testserver.Database(t) + "?multiStatements=true"
	if name == "shardkey" {
		file := filepath.Join(t.TempDir(), "rule.yaml")
		must.Do(t, os.WriteFile(file, []byte(ruleYAML), 0o600))
		dsn += "&shardkeyRule=" + file
	}
	return must.Open(t, name, dsn)
}

// rows returns the rows of both tables without their keys.
func rows(t *testing.T, db *sql.DB) string {
	t.Helper()
	var items string
	var keyless, n int
	row := db.QueryRow("SELECT GROUP_CONCAT(name, ' ', m, ' ', z ORDER BY id), SUM(id = 0), (SELECT n FROM acct) FROM item")
	must.Do(t, row.Scan(&items, &keyless, &n))
	if keyless > 0 {
		t.Errorf("%d rows without a key", keyless)
	}
	return fmt.Sprintf("%s; %d", items, n)
}
