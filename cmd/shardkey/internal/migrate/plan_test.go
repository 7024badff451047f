package migrate

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	_ "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/schema"
	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
)

// shop is a schema with what makes a change of a key's type awkward.
const shop = `
CREATE TABLE customer (id INT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'it''s the AUTO_INCREMENT, \\ key', name VARCHAR(20) CHARACTER SET latin1 DEFAULT 'x', PRIMARY KEY (id)) AUTO_INCREMENT=40;
CREATE TABLE orders (id INT NOT NULL AUTO_INCREMENT, customer_id INT UNSIGNED NOT NULL COMMENT 'who; bought', parent_id INT DEFAULT NULL, total DECIMAL(10,2) NOT NULL DEFAULT 0.00,
  twice BIGINT AS (parent_id * 2) VIRTUAL, PRIMARY KEY (id),
  CONSTRAINT fk_customer FOREIGN KEY (customer_id) REFERENCES customer (id) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT ` + "`fk``self`" + ` FOREIGN KEY (parent_id) REFERENCES orders (id) ON DELETE SET NULL);
CREATE TABLE order_item (order_id INT NOT NULL, line SMALLINT NOT NULL, sku VARCHAR(10), PRIMARY KEY (order_id, line),
  CONSTRAINT fk_order FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE);
CREATE TABLE item_note (order_id INT NOT NULL, line SMALLINT NOT NULL, note TEXT, KEY (order_id, line),
  CONSTRAINT fk_item FOREIGN KEY (order_id, line) REFERENCES order_item (order_id, line));
CREATE TABLE audit (n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, order_id INT DEFAULT NULL, bucket INT AS (order_id DIV 7) STORED);
CREATE TABLE visit (id INT NOT NULL AUTO_INCREMENT, day DATE NOT NULL, PRIMARY KEY (id, day)) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (1000));
CREATE TABLE country (code CHAR(2) PRIMARY KEY, name VARCHAR(50));
INSERT INTO customer (id, name) VALUES (7, 'a'), (41, 'b');
INSERT INTO orders (id, customer_id, parent_id) VALUES (1, 7, NULL), (2, 41, 1), (2147483647, 41, 2);
INSERT INTO order_item VALUES (2, 1, 's'), (2147483647, 1, 't');
INSERT INTO item_note VALUES (2, 1, 'n');
INSERT INTO audit (order_id) VALUES (2);
INSERT INTO visit (id, day) VALUES (999, '2026-01-01');
`

// create makes a database with tables.
func create(t *testing.T, tables string) (dsn string) {
	t.Helper()
	dsn = testserver.Database(t)
	exec(t, connect(t, dsn), tables)
	return dsn
}

func connect(t *testing.T, dsn string) *sql.Conn {
	t.Helper()
	cfg := must.Get(mysql.ParseDSN(dsn))(t)
	cfg.MultiStatements = true
	db := must.Get(sql.Open("mysql", cfg.FormatDSN()))(t)
	conn := must.Get(db.Conn(t.Context()))(t)
	t.Cleanup(func() { _ = conn.Close(); _ = db.Close() })
	return conn
}

func exec(t *testing.T, conn *sql.Conn, text string) {
	t.Helper()
	must.Get(conn.ExecContext(t.Context(), text))(t, text)
}

// one reads the first row of a query as a text.
func one(t *testing.T, conn *sql.Conn, query string) (text string) {
	t.Helper()
	var list []string
	must.Do(t, schema.Rows(t.Context(), conn, query, func(row []string) { list = append(list, strings.Join(row, " ")) }), query)
	return strings.Join(list, "; ")
}

func read(t *testing.T, dsn string) (*sql.Conn, Source) {
	t.Helper()
	conn := connect(t, dsn)
	must.Do(t, schema.PrepareSession(t.Context(), conn))
	d := must.Get(schema.Read(t.Context(), conn))(t)
	return conn, Source{schema: d, DSN: dsn}
}

// shape is what SHOW CREATE TABLE says of a schema, without types, AUTO_INCREMENT and
// the order of constraints.
func shape(t *testing.T, conn *sql.Conn, d *schema.Database) string {
	t.Helper()
	var lines []string
	for _, table := range d.Tables {
		text := one(t, conn, "SHOW CREATE TABLE `"+table.Name+"`")
		own := strings.Split(text, "\n")
		for i, line := range own {
			line = strings.TrimSuffix(line, ",")
			for _, typ := range []string{"bigint(20)", "bigint", "int(11)", "int(10)", "int"} {
				line = strings.Replace(line, "` "+typ+" ", "` INT ", 1)
			}
			if i == len(own)-1 || strings.Contains(line, "PARTITION") || strings.HasPrefix(line, "(") || strings.HasPrefix(line, ")") {
				continue
			}
			lines = append(lines, table.Name+": "+strings.Replace(strings.Replace(line, " AUTO_INCREMENT COMMENT", " COMMENT", 1), "NOT NULL AUTO_INCREMENT", "NOT NULL", 1))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestPlan_worksOnACopy(t *testing.T) {
	if testserver.Each(t, TestPlan_worksOnACopy) {
		return
	}
	dsn := create(t, shop)
	conn, source := read(t, dsn)
	before := shape(t, conn, source.schema)
	rows := func() string {
		return one(t, conn, "SELECT id, name FROM customer WHERE id < 100 ORDER BY id") + "|" + one(t, conn, "SELECT id, customer_id, parent_id, total FROM orders WHERE id < 1e10 ORDER BY id") + "|" + one(t, conn, "SELECT order_id, line FROM order_item ORDER BY 1, 2")
	}
	rowsBefore := rows()
	plan := must.Get(NewPlan(t.Context(), conn, source, nil))(t)
	must.Equal(t, fmt.Sprint(plan.Keys), "[audit.n customer.id orders.id visit.id]")
	if after := shape(t, conn, source.schema); after != before {
		t.Fatal("making a plan has changed the schema")
	}

	// Step 1, as it is printed: all of the text but the last step.
	text, _, _ := strings.Cut(plan.SQL(true), "\n-- 4.")
	exec(t, connect(t, dsn), text)
	conn, source = read(t, dsn)
	for _, c := range []string{"customer.id", "orders.id", "orders.customer_id", "orders.parent_id", "order_item.order_id", "item_note.order_id", "audit.order_id", "visit.id", "audit.bucket"} {
		table, column, _ := strings.Cut(c, ".")
		if typ := source.schema.Table(source.schema.Name, table).Column(column).Type; !strings.HasPrefix(typ, "bigint") || strings.Contains(typ, "unsigned") != strings.Contains(c, "customer") {
			t.Errorf("%s is %s", c, typ)
		}
	}
	must.Equal(t, shape(t, conn, source.schema), before, "step 1")
	exec(t, conn, "INSERT INTO customer (name) VALUES ('by the server')") // programs continue
	must.Equal(t, one(t, conn, "SELECT id FROM customer WHERE name = 'by the server'"), "42", "the next of AUTO_INCREMENT")
	exec(t, conn, "DELETE FROM customer WHERE name = 'by the server'")

	// Step 4, and shardkey.
	exec(t, connect(t, dsn), strings.Join(plan.Auto, ";\n"))
	conn, source = read(t, dsn)
	must.Equal(t, shape(t, conn, source.schema), before, "step 4")
	for _, table := range []string{"customer", "orders", "audit", "visit"} {
		if source.schema.Table(source.schema.Name, table).AutoIncrement() != nil {
			t.Errorf("%s has AUTO_INCREMENT", table)
		}
	}
	must.Equal(t, rows(), rowsBefore)
	again := must.Get(NewPlan(t.Context(), conn, source, nil, "orders", "customer", "visit"))(t)
	must.Equal(t, len(again.Widen)+len(again.Auto), 0, "statements of another plan")
	must.Contain(t, again.SQL(true), "No column needs a change.")
	must.Contain(t, again.SQL(true), "No key has AUTO_INCREMENT.")
	file := filepath.Join(t.TempDir(), "rule.yaml")
	must.Do(t, os.WriteFile(file, []byte(plan.Rule), 0o600))
	db := must.Get(sql.Open("shardkey", dsn+"?shardkeyRule="+file))(t, plan.Rule)
	defer db.Close()
	insert := func(query string, args ...any) int64 {
		t.Helper()
		res := must.Get(db.Exec(query, args...))(t)
		id, _ := res.LastInsertId()
		return id
	}
	customer := insert("INSERT INTO customer (name) VALUES ('new')")
	parent := insert("INSERT INTO orders (customer_id) VALUES (?)", customer)
	order := insert("INSERT INTO orders (customer_id, parent_id) VALUES (?, ?)", customer, parent)
	insert("INSERT INTO order_item VALUES (?, 1, 'x')", order)
	insert("INSERT INTO item_note VALUES (?, 1, 'x')", order)
	insert("INSERT INTO audit (order_id) VALUES (?)", order)
	visit := insert("INSERT INTO visit (day) VALUES ('2026-01-02')")
	for _, key := range []int64{customer, parent, order, visit} {
		if key < 1e18 {
			t.Errorf("have: key %d\nwant: one above the old ones", key)
		}
	}
	// The foreign keys do what they did.
	must.Fail(t, must.Err(db.Exec("INSERT INTO order_item VALUES (5, 1, 'x')")), "a foreign key is lost")
	insert("DELETE FROM item_note")
	insert("DELETE FROM customer WHERE id IN (7, ?)", customer)
	must.Equal(t, one(t, conn, "SELECT id, IFNULL(parent_id, 'none') FROM orders ORDER BY id"), "2 none; 2147483647 2", "orders deleted with their customer, and parents forgotten")
	must.Equal(t, one(t, conn, "SELECT order_id FROM order_item"), "2; 2147483647")
}

func TestPlan_tables(t *testing.T) {
	conn, source := read(t, create(t, shop))
	for name, want := range map[string]string{
		"oders":   "did you mean orders?",
		"country": "has the key code of type char(2)",
	} {
		if _, err := NewPlan(t.Context(), conn, source, nil, name); !errors.Is(err, ErrNoTable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nhave: %v\nwant: %s", name, err, want)
		}
	}
	plan, err := NewPlan(t.Context(), conn, source, nil, "customer")
	if err != nil || len(plan.Widen) != 4 || fmt.Sprint(plan.Keys) != "[customer.id]" || strings.Contains(plan.Rule, "orders") {
		t.Errorf("have: %v, %v\nwant: a foreign key dropped, two columns changed, the key made again", plan, err)
	}
}

// A column whose name refers to no key may hold one. Its type is left, and a note names it.
func TestPlan_narrowColumns(t *testing.T) {
	if testserver.Each(t, TestPlan_narrowColumns) {
		return
	}
	conn, source := read(t, create(t, `
CREATE TABLE customer (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, city_id SMALLINT, flag TINYINT UNSIGNED, since BIGINT);
CREATE TABLE country (id INT PRIMARY KEY);
CREATE TABLE audit_log_1 (n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, actor INT UNSIGNED, customer_id INT UNSIGNED);
CREATE TABLE visitor (link INT, FOREIGN KEY (link) REFERENCES country (id));
CREATE TABLE audit_log_2 LIKE audit_log_1;
CREATE TABLE leases (namespace VARCHAR(9), worker_id INT);
CREATE VIEW v AS SELECT city_id FROM customer;
`))
	plan := must.Get(NewPlan(t.Context(), conn, source, nil))(t)
	typ := regexp.MustCompile(`\(\d+\)`) // of MySQL before 8.0.19 and MariaDB
	have := typ.ReplaceAllString(strings.Join(plan.Notes, "\n"), "")
	must.Contain(t, have, "make it BIGINT too: audit_log_….actor (int unsigned), customer.city_id (smallint)\n")
	must.Equal(t, plan.Maxima[0], "SELECT MAX(`n`) AS `audit_log_1_n` FROM `audit_log_1`")
}

// source is a database with tables of two columns: "t_order_0", or with the type of
// their key after a blank, "t_order_0 int auto".
func source(name string, tables ...string) Source {
	d := &schema.Database{Name: "shop"}
	for _, text := range tables {
		table, typ, _ := strings.Cut(text, " ")
		typ, auto := strings.CutSuffix(typ, " auto")
		if typ == "" {
			typ = "bigint"
		}
		columns := []*schema.Column{{Name: "id", Type: typ, AutoIncrement: auto}, {Name: "x", Type: "text"}}
		if typ == "state" { // of worker IDs
			columns[0], columns[1] = &schema.Column{Name: "namespace"}, &schema.Column{Name: "worker_id"}
		}
		if typ == "other" { // columns
			columns[0].Name, columns[1].Name = "y", "z"
		}
		d.Tables = append(d.Tables, &schema.Table{
			Schema: "shop", Name: table, Columns: columns,
			Indexes: []*schema.Index{{Name: "PRIMARY", Unique: true, Columns: []string{"id"}}},
		})
	}
	return Source{Name: name, schema: d, DSN: "app@tcp(127.0.0.1:3306)/" + name}
}

func TestNew_dataNodes(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/datanodes.txt", 3) {
		var sources []Source
		for of := range strings.SplitSeq(c[1], " / ") {
			name, tables, named := strings.Cut(of, ": ")
			if !named {
				name, tables = "", of
			}
			sources = append(sources, source(name, strings.Split(tables, ", ")...))
		}
		t.Run(c[0], func(t *testing.T) {
			r := NewRule(sources)
			var have []string
			for _, table := range r.tables {
				s := table.logical + ": "
				if nodes := table.nodes(); nodes != table.logical {
					s += nodes
				}
				if narrow := table.narrow(); narrow != "" {
					s += " (" + narrow + ")"
				}
				have = append(have, s)
			}
			for _, l := range r.LeftOut {
				have = append(have, "left out "+l.Name)
				if l.Why == "" {
					t.Errorf("%s is left out without a reason", l.Name)
				}
			}
			must.Equal(t, strings.Join(have, "; "), c[2])
			// What is written is a rule that means the tables that are there.
			parsed := must.Get(rule.Parse("rule.yaml", []byte(r.YAML())))(t, r.YAML())
			if len(parsed.Warnings()) > 0 {
				t.Errorf("%v\n%s", parsed.Warnings(), r.YAML())
			}
			for _, table := range r.tables {
				found := 0
				for p := range parsed.Places(table.logical) {
					for _, s := range sources {
						if (p.DataSource == "" || p.DataSource == s.Name) && (strings.Contains(p.Table, "${") || has(s, p.Table)) {
							found++
						}
					}
				}
				if found != len(table.members) && !strings.Contains(table.nodes(), "yyyy") {
					t.Errorf("%d tables of %s are found by\n%s\nwant: %d", found, table.logical, r.YAML(), len(table.members))
				}
			}
		})
	}
}

func has(s Source, name string) bool {
	return slices.ContainsFunc(s.schema.Tables, func(t *schema.Table) bool { return t.Name == name })
}

func TestNewRule_only(t *testing.T) {
	s := []Source{source("", "t_0", "t_1", "u bigint auto", "v")}
	for only, want := range map[string]string{"t": "t", "T_1": "t", "u": "u", "v": "v"} {
		if r := NewRule(s, only); len(r.tables) != 1 || r.tables[0].logical != want || len(r.LeftOut) > 0 {
			t.Errorf("%s\nhave: %+v\nwant: %s", only, r, want)
		}
	}
}
