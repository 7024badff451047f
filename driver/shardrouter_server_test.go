package driver

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testrouter"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// byThree counts by threes: a generator of one's own.
type byThree struct{ last atomic.Int64 }

func (g *byThree) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	for i := range keys {
		keys[i] = g.last.Add(3)
	}
	return nil
}

func (g *byThree) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	return spi.BoxedKeys(ctx, g, c, n)
}

func init() {
	spi.RegisterKeyGenerator("BY_THREE", func(spi.Props) (spi.KeyGenerator, error) { return new(byThree), nil })
}

// routedTable is a table of both databases with four actual tables in each, whose
// data source is user_id modulo 2.
type routedTable struct {
	name, generator, algorithm string
	router                     *testrouter.Strategy
	month                      bool // its tables are numbered by month
}

func (r *routedTable) actual(i int) string {
	if r.month {
		return fmt.Sprintf("%s_2026%02d", r.name, i+1)
	}
	return fmt.Sprintf("%s_%d", r.name, i)
}

func (r *routedTable) byKey() bool { return r.router.Columns[0] == "id" }

func (r *routedTable) table() *testrouter.Table {
	t := &testrouter.Table{Logic: r.name, Table: r.router,
		Database: &testrouter.Strategy{Columns: []string{"user_id"}, Type: "INLINE", Prefix: "ds_", Expression: testrouter.Column("user_id").Modulo(2, 1)}}
	for s := range 2 {
		for i := range 4 {
			t.Nodes = append(t.Nodes, testrouter.Node{DataSource: fmt.Sprint("ds_", s), Table: r.actual(i)})
		}
	}
	return t
}

// routedTables have every algorithm and every kind of generator that needs no other
// server.
func routedTables() []*routedTable {
	props := func(typ, column string, kv ...string) (string, *testrouter.Strategy) {
		s := &testrouter.Strategy{Columns: []string{column}, Type: typ, Props: map[string]string{}}
		text := "{type: " + typ + ", props: {"
		for i := 0; i < len(kv); i += 2 {
			s.Props[kv[i]] = kv[i+1]
			text += kv[i] + ": '" + kv[i+1] + "', "
		}
		return strings.TrimSuffix(text, ", ") + "}}", s
	}
	of := func(name, generator string, month bool, algorithm string, s *testrouter.Strategy) *routedTable {
		if s.Type == "INLINE" {
			s.Prefix, s.Expression = name+"_", testrouter.Column(s.Columns[0]).Modulo(4, 1)
		}
		return &routedTable{name, generator, algorithm, s, month}
	}
	list := []*routedTable{}
	add := func(name, generator string, month bool, typ, column string, kv ...string) {
		text, s := props(typ, column, kv...)
		list = append(list, of(name, generator, month, text, s))
	}
	add("t_mod", "{type: SNOWFLAKE, props: {worker-id: 11}}", false, "MOD", "id", "sharding-count", "4")
	add("t_hash", "{type: SNOWFLAKE_RING, props: {worker-id: 12}}", false, "HASH_MOD", "id", "sharding-count", "4")
	add("t_leaf", "{type: LEAF_SEGMENT, props: {leaf.key: t, dsn: 'LEAF'}}", false, "MOD", "id", "sharding-count", "4")
	add("t_leafhash", "{type: LEAF_SEGMENT, props: {leaf.key: u, dsn: 'LEAF'}}", false, "HASH_MOD", "id", "sharding-count", "4")
	add("t_three", "{type: BY_THREE}", false, "INLINE", "id", "algorithm-expression", "t_three_${id % 4}")
	add("t_uuid", "{type: UUID}", false, "HASH_MOD", "id", "sharding-count", "4")
	add("t_nano", "{type: NANOID}", false, "HASH_MOD", "id", "sharding-count", "4")
	add("t_volume", "{type: SNOWFLAKE, props: {worker-id: 13}}", false, "VOLUME_RANGE", "amount", "range-lower", "100", "range-upper", "300", "sharding-volume", "100")
	add("t_bound", "{type: SNOWFLAKE, props: {worker-id: 14}}", false, "BOUNDARY_RANGE", "amount", "sharding-ranges", "50, 150, 290")
	add("t_month", "{type: SNOWFLAKE, props: {worker-id: 16}}", true, "INTERVAL", "made", "datetime-pattern", "yyyy-MM-dd HH:mm:ss", "datetime-lower", "2026-01-01 00:00:00",
		"datetime-upper", "2026-04-30 23:59:59", "sharding-suffix-pattern", "yyyyMM", "datetime-interval-amount", "1", "datetime-interval-unit", "MONTHS")
	add("t_name", "{type: SNOWFLAKE, props: {worker-id: 17}}", false, "HASH_MOD", "name", "sharding-count", "4")
	return list
}

// routedRule is a rule of the tables; leaf is the DSN of their sequences.
func routedRule(t *testing.T, tables []*routedTable, leaf string) *rule.Rule {
	t.Helper()
	text, generators, algorithms := "rules:\n- !SHARDING\n  tables:\n", "", "    source: {type: INLINE, props: {algorithm-expression: \"ds_${user_id % 2}\"}}\n"
	for _, r := range tables {
		nodes := "ds_${0..1}." + r.name + "_${0..3}"
		if r.month {
			nodes = "ds_${0..1}." + r.name + "_2026${['01', '02', '03', '04']}"
		}
		text += fmt.Sprintf("    %[1]s:\n      actualDataNodes: %[2]s\n      databaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: source}}\n"+
			"      tableStrategy: {standard: {shardingColumn: %[3]s, shardingAlgorithmName: %[1]s}}\n      keyGenerateStrategy: {column: id, keyGeneratorName: %[1]s}\n", r.name, nodes, r.router.Columns[0])
		generators += "    " + r.name + ": " + strings.Replace(r.generator, "'LEAF'", "'"+leaf+"'", 1) + "\n"
		algorithms += "    " + r.name + ": " + r.algorithm + "\n"
	}
	parsed := must(rule.Parse(fmt.Sprint(t.Name(), shardRules.Add(1)), []byte(text+"  keyGenerators:\n"+generators+"  shardingAlgorithms:\n"+algorithms)))(t)
	return parsed
}

var shardRules atomic.Int64

// openRouted opens a rule over a database.
func openRouted(t *testing.T, dsn string, r *rule.Rule) *sql.DB {
	t.Helper()
	cfg := must(mysql.ParseDSN(dsn))(t)
	cfg.ParseTime = true
	base := must(mysql.NewConnector(cfg))(t)
	connector := must(NewConnector(base, r, WithLogger(slog.New(slog.DiscardHandler))))(t)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

// TestShards_routerFindsThemOnServers inserts rows of two databases, each into the
// table that the program names, and looks where the router does: every row is there,
// by its key and by its sharding columns alone.
func TestShards_routerFindsThemOnServers(t *testing.T) {
	if testserver.Each(t, TestShards_routerFindsThemOnServers) {
		return
	}
	tables := routedTables()
	sources := []string{testserver.Database(t), testserver.Database(t)}
	raw := []*sql.DB{openFor(t, "mysql", sources[0]+"?parseTime=true"), openFor(t, "mysql", sources[1]+"?parseTime=true")}
	mustRun(t, raw[0], "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL, max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))")
	mustRun(t, raw[0], "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('t', 1, 40), ('u', 1, 40)")
	for _, r := range tables {
		typ := "BIGINT"
		if strings.Contains(r.generator, "UUID") || strings.Contains(r.generator, "NANOID") {
			typ = "VARCHAR(36) CHARACTER SET ascii COLLATE ascii_bin"
		}
		for i := range 4 {
			for _, db := range raw {
				mustRun(t, db, "CREATE TABLE "+r.actual(i)+" (id "+typ+" PRIMARY KEY, user_id BIGINT, amount BIGINT, made DATETIME, name VARCHAR(40))")
			}
		}
	}
	shared := routedRule(t, tables, sources[0])
	dbs := []*sql.DB{openRouted(t, sources[0], shared), openRouted(t, sources[1], shared)}
	r := rand.New(rand.NewPCG(13, 7))
	const statements = 40
	sent := 0
	for _, table := range tables {
		router := table.table()
		for range statements {
			sent += insertRouted(t, r, dbs, table, router)
		}
	}
	found := 0
	for _, table := range tables {
		router := table.table()
		for s, db := range raw {
			for i := range 4 {
				found += lookAt(t, db, table, router, testrouter.Node{DataSource: fmt.Sprint("ds_", s), Table: table.actual(i)})
			}
		}
	}
	if found != sent || sent < statements*len(tables) {
		t.Errorf("have: %d rows found\nwant: %d", found, sent)
	}
	testserver.Ran(t, "rows where a router finds them", fmt.Sprint(found))
}

// insertRouted sends an INSERT of rows that belong together.
func insertRouted(t *testing.T, r *rand.Rand, dbs []*sql.DB, table *routedTable, router *testrouter.Table) int {
	t.Helper()
	at := testrouter.Node{DataSource: fmt.Sprint("ds_", r.IntN(2)), Table: table.actual(r.IntN(4))}
	var tuples []string
	var args []any
	for want := 1 + r.IntN(6); len(tuples) < want; {
		made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(120*24*3600)) * time.Second)
		row := map[string]any{"user_id": r.Int64N(1000), "amount": r.Int64N(400), "made": made, "name": fmt.Sprint("n-", r.IntN(1e6))}
		if table.byKey() {
			row["id"] = int64(0)
		}
		node, err := router.Route(row)
		if !table.byKey() && len(tuples) == 0 && err == nil {
			at = node // some tables are for few rows
		}
		if !table.byKey() && (err != nil || node != at) || row["user_id"].(int64)%2 != int64(at.DataSource[3]-'0') {
			continue
		}
		tuples, args = append(tuples, "(?, ?, ?, ?)"), append(args, row["user_id"], row["amount"], row["made"], row["name"])
	}
	db := dbs[at.DataSource[3]-'0']
	mustExec(t, db, "INSERT INTO "+at.Table+" (user_id, amount, made, name) VALUES "+strings.Join(tuples, ", "), args...)
	return len(tuples)
}

// lookAt reads a table as it is, and asks the router where each row belongs.
func lookAt(t *testing.T, db *sql.DB, table *routedTable, router *testrouter.Table, at testrouter.Node) (n int) {
	t.Helper()
	rows := must(db.Query("SELECT id, user_id, amount, made, name FROM " + at.Table))(t)
	defer rows.Close()
	for rows.Next() {
		var id any
		var user, amount int64
		var made time.Time
		var name string
		noError(t, rows.Scan(&id, &user, &amount, &made, &name))
		if text, ok := id.([]byte); ok {
			id = string(text)
			if table.router.Type != "HASH_MOD" || !strings.Contains(table.generator, "ID}") {
				var number int64
				fmt.Sscan(string(text), &number)
				id = number
			}
		}
		have, err := router.Route(map[string]any{"id": id, "user_id": user, "amount": amount, "made": made, "name": name})
		if err != nil || have != at {
			t.Errorf("%s: row %v of user %d, amount %d, made %v, name %s\nhave: %v, %v", at, id, user, amount, made, name, have, err)
		}
		n++
	}
	noError(t, rows.Err())
	return n
}

// TestShards_oneHotTableOnServers has many goroutines insert into one actual table,
// by each generator that can choose its keys: all keys differ, and all belong there.
func TestShards_oneHotTableOnServers(t *testing.T) {
	if testserver.Each(t, TestShards_oneHotTableOnServers) {
		return
	}
	dsn := testserver.Database(t)
	var tables []*routedTable
	for _, r := range routedTables() {
		if r.byKey() {
			tables = append(tables, r)
		}
	}
	raw := openFor(t, "mysql", dsn)
	mustRun(t, raw, "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL, max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))")
	mustRun(t, raw, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('t', 1, 40), ('u', 1, 40)")
	db := openRouted(t, dsn, routedRule(t, tables, dsn))
	const goroutines, each = 8, 15
	for _, table := range tables {
		typ := "BIGINT"
		if strings.Contains(table.generator, "ID}") {
			typ = "VARCHAR(36) CHARACTER SET ascii COLLATE ascii_bin"
		}
		name := table.actual(2)
		mustRun(t, raw, "CREATE TABLE "+name+" (id "+typ+" PRIMARY KEY, user_id BIGINT)")
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for i := range each {
					query, args := "INSERT INTO "+name+" (user_id) VALUES (?)", []any{g}
					if i%3 == 0 {
						query, args = query+", (?), (?)", []any{g, g, g}
					}
					if _, err := db.Exec(query, args...); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
		wg.Wait()
		var rows int
		if err := raw.QueryRow("SELECT COUNT(*) FROM " + name).Scan(&rows); err != nil || rows != goroutines*(each+each/3*2) {
			t.Errorf("%s\nhave: %d rows, %v\nwant: %d", name, rows, err, goroutines*(each+each/3*2))
		}
		if table.router.Type != "HASH_MOD" {
			var wrong int
			if err := raw.QueryRow("SELECT COUNT(*) FROM " + name + " WHERE id % 4 <> 2").Scan(&wrong); err != nil || wrong > 0 {
				t.Errorf("%s: %d keys of other tables, %v", name, wrong, err)
			}
		}
	}
}
