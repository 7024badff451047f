package schema

import (
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// Columns are read also from a server that has no generated ones. Foreign keys between
// two schemas are read once, whichever of them is the connection's own.
func TestRead_otherSchemas(t *testing.T) {
	if testserver.Each(t, TestRead_otherSchemas) {
		return
	}
	own, other := testserver.Database(t), testserver.Database(t)
	open := func(dsn string) (*sql.DB, string) {
		cfg := must.Get(mysql.ParseDSN(dsn))(t)
		db := must.Open(t, "mysql", dsn)
		return db, cfg.DBName
	}
	db, name := open(own)
	_, otherName := open(other)
	for _, statement := range []string{
		"CREATE TABLE parent (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b))",
		"CREATE TABLE " + otherName + ".child (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT," +
			" CONSTRAINT f FOREIGN KEY (a, b) REFERENCES " + name + ".parent (a, b))",
	} {
		must.Get(db.Exec(statement))(t)
	}
	for _, others := range [][]string{nil, {otherName}, {name, otherName}} {
		d := must.Get(Read(t.Context(), db, others...))(t)
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

func TestDefinition_typeAndAutoIncrement(t *testing.T) {
	for _, c := range []struct{ definition, typed, plain string }{
		{"int NOT NULL AUTO_INCREMENT", "bigint NOT NULL AUTO_INCREMENT", "int NOT NULL"},
		{"int(11) unsigned zerofill NOT NULL AUTO_INCREMENT COMMENT 'a AUTO_INCREMENT b'", "bigint NOT NULL AUTO_INCREMENT COMMENT 'a AUTO_INCREMENT b'", "int(11) unsigned zerofill NOT NULL COMMENT 'a AUTO_INCREMENT b'"},
		{`int DEFAULT 5 COMMENT 'it''s \' AUTO_INCREMENT'`, `bigint DEFAULT 5 COMMENT 'it''s \' AUTO_INCREMENT'`, `int DEFAULT 5 COMMENT 'it''s \' AUTO_INCREMENT'`},
		{"decimal(10,0) DEFAULT NULL", "bigint DEFAULT NULL", "decimal(10,0) DEFAULT NULL"},
		{"varchar(10) CHARACTER SET latin1 NOT NULL /*!80023 INVISIBLE */", "bigint CHARACTER SET latin1 NOT NULL /*!80023 INVISIBLE */", "varchar(10) CHARACTER SET latin1 NOT NULL /*!80023 INVISIBLE */"},
		{"int GENERATED ALWAYS AS (`a` * 2) STORED", "bigint GENERATED ALWAYS AS (`a` * 2) STORED", "int GENERATED ALWAYS AS (`a` * 2) STORED"},
	} {
		must.Equal(t, withType(c.definition, "bigint"), c.typed)
		must.Equal(t, withoutAutoIncrement(c.definition), c.plain)
	}
}

func TestBigint_keepsSignAndWidth(t *testing.T) {
	for typ, want := range map[string]string{
		"int": "bigint", "int(11)": "bigint", "mediumint unsigned": "bigint unsigned", "INT(10) UNSIGNED": "bigint unsigned", "int(5) unsigned zerofill": "bigint(5) unsigned zerofill",
	} {
		must.Equal(t, Bigint(&Column{Type: typ}), want, typ)
	}
}

func TestReferring_namesByHabit(t *testing.T) {
	for _, c := range []struct{ table, key, want string }{
		{"t_order", "order_id", "[order_id]"},
		{"t_order", "id", "[t_order_id order_id]"},
		{"orders", "id", "[orders_id order_id]"},
		{"tbl_users", "uid", "[tbl_users_uid tbl_user_uid users_uid user_uid]"},
		{"addresses", "id", "[addresses_id addresse_id address_id]"},
		{"categories", "id", "[categories_id categorie_id categori_id category_id]"},
	} {
		must.Equal(t, fmt.Sprint(Referring(c.table, c.key)), c.want, c.table, ".", c.key)
	}
}

func TestColumnsIn_namesInQuotes(t *testing.T) {
	have := columnsIn("CREATE TABLE `t\n  ``x`` (` (\n  `a` int NOT NULL,\n  `B``c` int(11) COMMENT '`x`, y\\'',\n" +
		"  `d\n  ``a`` DROP, CONSTRAINT ``f`` FOREIGN KEY (` decimal(10,2) DEFAULT (1,2) /*!80023 INVISIBLE */,\n" +
		"  PRIMARY KEY (`a`),\n  CONSTRAINT `F`k` FOREIGN KEY (`a`) REFERENCES `u` (`id`) ON DELETE CASCADE\n) ENGINE=InnoDB")
	want := map[string]string{
		"a": "int NOT NULL", "b`c": "int(11) COMMENT '`x`, y\\''",
		"d\n  `a` drop, constraint `f` foreign key (": "decimal(10,2) DEFAULT (1,2) /*!80023 INVISIBLE */",
	}
	if !maps.Equal(have, want) {
		t.Errorf("have: %q\nwant: %q", have, want)
	}
	if have := columnsIn("CREATE TABLE `t` (\n  `a` int\n)"); have["a"] != "int" {
		t.Errorf("have: %q", have)
	}
}
