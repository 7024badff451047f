package schema

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
)

// Columns are read also from a server that has no generated ones. Foreign keys between
// two schemas are read once, whichever of them is the connection's own.
func TestRead_otherSchemas(t *testing.T) {
	if testserver.EachAndOldest(t, TestRead_otherSchemas) {
		return
	}
	own, other := testserver.Database(t), testserver.Database(t)
	open := func(dsn string) (*sql.DB, string) {
		cfg, err := mysql.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db, cfg.DBName
	}
	db, name := open(own)
	_, otherName := open(other)
	for _, statement := range []string{
		"CREATE TABLE parent (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b))",
		"CREATE TABLE " + otherName + ".child (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT," +
			" CONSTRAINT f FOREIGN KEY (a, b) REFERENCES " + name + ".parent (a, b))",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, others := range [][]string{nil, {otherName}, {name, otherName}} {
		d, err := Read(t.Context(), db, others...)
		if err != nil {
			t.Fatal(err)
		}
		child := d.Table(otherName, "child")
		if len(d.ForeignKeys) != 1 || child == nil || child.Outside != (others == nil) ||
			len(child.Columns) != 3 || !child.Columns[0].AutoIncrement {
			t.Fatalf("%v\nhave: %+v, %d foreign keys", others, child, len(d.ForeignKeys))
		}
		fk := d.ForeignKeys[0]
		if fk.Child != child || fk.Parent != d.Table(name, "parent") ||
			strings.Join(fk.Columns, " ") != "a b" || strings.Join(fk.ParentCols, " ") != "a b" {
			t.Errorf("%v\nhave: %+v", others, fk)
		}
	}
}
