package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testrouter"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// storedColumn is a type of the sharding column, with the sharding of its tables.
type storedColumn struct {
	name, typ  string
	understood bool
	// read returns the Java value for a stored value, or nil if the router doesn't support the
	// type.
	read      func(stored string) any
	algorithm string
	router    *testrouter.Strategy
}

func storedColumns() (all []storedColumn) {
	number := func(stored string) any {
		var n int64
		if _, err := fmt.Sscan(stored, &n); err != nil {
			return nil // more than int64
		}
		return n
	}
	text := func(stored string) any { return stored }
	at := func(stored string) any {
		t, err := time.Parse(time.DateTime, stored[:min(len(stored), len(time.DateTime))])
		if len(stored) == len(time.DateOnly) {
			t, err = time.Parse(time.DateOnly, stored)
		}
		if err != nil {
			return nil // 0000-00-00
		}
		return t
	}
	none := func(string) any { return nil }
	four := map[string]string{"sharding-count": "4"}
	add := func(typ string, read func(string) any, algorithm string, props map[string]string) {
		var written []string
		for name, value := range props {
			written = append(written, name+": '"+value+"'")
		}
		c := storedColumn{name: fmt.Sprintf("t_c%d", len(all)), typ: typ, read: read, understood: true, algorithm: "{type: " + algorithm + ", props: {" + strings.Join(written, ", ") + "}}"}
		c.router = &testrouter.Strategy{Columns: []string{"c"}, Type: algorithm, Props: props}
		all = append(all, c)
	}
	for _, typ := range []string{"BIGINT", "BIGINT UNSIGNED", "SMALLINT NOT NULL"} {
		add(typ, number, "HASH_MOD", four)
	}
	add("BIGINT", number, "MOD", four)
	for _, typ := range []string{"VARCHAR(40)", "VARCHAR(6) CHARACTER SET latin1", "CHAR(20)"} {
		add(typ, text, "HASH_MOD", four)
	}
	months := map[string]string{"datetime-pattern": "yyyy-MM-dd HH:mm:ss", "datetime-lower": "2026-01-01 00:00:00", "datetime-upper": "2026-04-30 23:59:59",
		"sharding-suffix-pattern": "yyyyMM", "datetime-interval-amount": "1", "datetime-interval-unit": "MONTHS"}
	for _, typ := range []string{"DATE", "DATETIME", "TIMESTAMP(1) NULL"} {
		add(typ, at, "INTERVAL", months)
	}
	for _, typ := range []string{"DECIMAL(20,2)", "ENUM('131', 'abc')"} {
		add(typ, none, "HASH_MOD", four)
		all[len(all)-1].understood = false
	}
	return all
}

// storedValues returns values as arguments and as literals.
func storedValues() (args []any, literals []string) {
	shanghai := time.FixedZone("+08", 8*3600)
	end := time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC)
	args = []any{131, 7, -7, int64(1) << 40, uint64(math.MaxUint64), 20260131, int64(20260131235959), 260131, 7.0, 1e6, 7.5, math.Copysign(0, -1), true, nil,
		"131", "0131", " 131", "131 ", "+131", "131\n", "1.31e2", "131.4", "131abc", "abc", "ABC ", "a b", " abc", "", "caf\u00e9", "\u4e2d\u6587", "\U0001f600", "abcdefgh", []byte("131"),
		end, end.Add(400 * time.Millisecond), end.Add(999_999_600 * time.Nanosecond), end.Add(time.Second), end.In(shanghai), time.Date(2026, 2, 1, 4, 0, 0, 0, shanghai), time.Time{},
		"2026-01-31", "2026-1-31", "2026/01/31", "2026-01-31 23:59:59.9", "2026-01-31T23:59:59", "20260131235959", "260131", "2026-01-31 23:59:59.9999", "2026-02-30", "2026-01-31 23:59:59+08:00", " 2026-01-31"}
	literals = []string{"131", "-7", "007", "+7", "1e2", "7.0", "7.5", "'131'", "' 131'", "'131 '", "'abc'", "N'abc'", "_utf8mb4'abc'", "'a' 'bc'", "0x41", "x'41'", "b'111'", "TRUE", "NULL",
		"DATE '2026-01-31'", "DATE '2026-1-31'", "TIMESTAMP '2026-01-31 23:59:59.6'", "TIMESTAMP '2026-02-28 23:59:59.96'", "{d '2026-01-31'}", "'2026-01-31 23:59:59.96'", "'2026-1-31'", "20260131", "20260228235959", "99999999999999999999"}
	return args, literals
}

// TestShardGuard_asStored inserts values of all kinds into columns of all types. It reads the
// stored values and computes their table with the router. A row for that table is never refused.
// A row for another table is refused if the client can know the stored value.
func TestShardGuard_asStored(t *testing.T) { onEachAndOldest(t, testShardGuard_asStored) }

func testShardGuard_asStored(t *testing.T) {
	dsn := testserver.Database(t)
	columns := storedColumns()
	rules := "rules:\n- !SHARDING\n  tables:\n"
	algorithms := ""
	for _, c := range columns {
		nodes := c.name + "_${0..3}"
		if c.router.Type == "INTERVAL" {
			nodes = c.name + "_2026${['01', '02', '03', '04']}"
		}
		rules += fmt.Sprintf("    %[1]s:\n      actualDataNodes: ds.%[2]s\n      tableStrategy: {standard: {shardingColumn: c, shardingAlgorithmName: %[1]s}}\n      keyGenerateStrategy: {column: id, keyGeneratorName: s}\n", c.name, nodes)
		algorithms += "    " + c.name + ": " + c.algorithm + "\n"
	}
	rules += "  keyGenerators: {s: {type: SNOWFLAKE, props: {worker-id: 8}}}\n  shardingAlgorithms:\n" + algorithms
	file := filepath.Join(t.TempDir(), "rule.yaml")
	noError(t, os.WriteFile(file, []byte(rules), 0o600))
	plain := mustOpen(t, "mysql", dsn)
	for _, c := range columns {
		mustExec(t, plain, "CREATE TABLE "+c.name+"_probe (id BIGINT AUTO_INCREMENT PRIMARY KEY, c "+c.typ+")")
		for _, table := range c.tables() {
			mustExec(t, plain, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, c "+c.typ+")")
		}
	}
	var right, refused int
	args, literals := storedValues()
	for n, params := range []string{"?loc=Asia%2FShanghai", "?interpolateParams=true&sql_mode=%27%27"} {
		probe, own := mustOpen(t, "mysql", dsn+params), mustOpen(t, "shardkey", dsn+params+"&shardkeyRule="+file)
		plainTx, err1 := probe.Begin()
		tx, err2 := own.Begin()
		noError(t, errors.Join(err1, err2))
		for _, c := range columns {
			try := func(value string, args ...any) {
				t.Helper()
				res, err := plainTx.Exec("INSERT INTO "+c.name+"_probe (c) VALUES ("+value+")", args...)
				if err != nil {
					return // the server stores nothing
				}
				var stored sql.NullString
				id, _ := res.LastInsertId()
				noError(t, plainTx.QueryRow(fmt.Sprintf("SELECT c FROM %s_probe WHERE id = %d", c.name, id)).Scan(&stored))
				names, belongs := c.tables(), c.belongs(stored)
				at := slices.Index(names, belongs)
				insert := func(table string) error {
					_, err := tx.Exec("INSERT INTO "+table+" (c) VALUES ("+value+")", args...)
					return err
				}
				if at >= 0 || !c.understood && stored.Valid {
					if err := insert(names[max(at, 0)]); err != nil {
						t.Errorf("%s %#v in %s, stored as %q\nhave: %v\nwant: sent", value, args, c.typ, stored.String, err)
					}
					right++
				}
				if c.understood && c.isPlain(args) {
					if err := insert(names[(at+1)%4]); !errors.Is(err, ErrWrongShard) {
						t.Errorf("%s %#v in %s, stored as %q\nhave: %v\nwant: refused in %s", value, args, c.typ, stored.String, err, names[(at+1)%4])
					}
					refused++
				}
			}
			for i, arg := range args {
				if n == 0 || i%2 == 0 {
					try("?", arg)
				}
			}
			for _, literal := range literals {
				try(literal)
			}
		}
		check(t, errors.Join(plainTx.Rollback(), tx.Rollback()))
	}
	t.Logf("%d right rows sent, %d wrong ones refused", right, refused)
	if right < 600 || refused < 40 {
		t.Errorf("have: %d right rows, %d wrong ones\nwant: more of both", right, refused)
	}
}

// isPlain reports whether the guard knows the stored value of the arguments.
func (c *storedColumn) isPlain(args []any) bool {
	if len(args) == 0 {
		return false
	}
	if at, ok := args[0].(time.Time); ok {
		return c.router.Type == "INTERVAL" && at.Nanosecond() == 0 && !at.IsZero()
	}
	return c.router.Type != "INTERVAL" && (args[0] == 131 || args[0] == 7 || args[0] == "131" || args[0] == "0131")
}

// belongs returns the router's table for a stored value, or "" if there is none.
func (c *storedColumn) belongs(stored sql.NullString) string {
	v := c.read(stored.String)
	if v == nil || !stored.Valid {
		return ""
	}
	of := testrouter.Table{Logic: c.name, Table: c.router}
	for _, table := range c.tables() {
		of.Nodes = append(of.Nodes, testrouter.Node{DataSource: "ds", Table: table})
	}
	node, _ := of.Route(map[string]any{"c": v})
	return node.Table
}

func (c *storedColumn) tables() (names []string) {
	for i := range 4 {
		if c.router.Type == "INTERVAL" {
			names = append(names, fmt.Sprintf("%s_2026%02d", c.name, i+1))
		} else {
			names = append(names, fmt.Sprintf("%s_%d", c.name, i))
		}
	}
	return names
}

// byThree is a custom generator that counts in steps of three.
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

// routedTable is a table with four actual tables in each of two databases. Its data source is
// user_id modulo 2.
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

// routedTables returns tables with every algorithm, and every kind of generator that needs no
// other server.
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

// routedRule returns a rule for the tables. leaf is the DSN of their sequences.
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
	parsed := mustParseRule(t, text+"  keyGenerators:\n"+generators+"  shardingAlgorithms:\n"+algorithms)
	return parsed
}

// openRouted opens a rule for a database.
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

// TestShards_routerFindsThemOnServers inserts rows into two databases, each into the table that
// the program chooses. Then it looks for each row in the router's table, by its key alone and by
// its sharding columns alone.
func TestShards_routerFindsThemOnServers(t *testing.T) {
	onEach(t, testShards_routerFindsThemOnServers)
}

func testShards_routerFindsThemOnServers(t *testing.T) {
	tables := routedTables()
	sources := []string{testserver.Database(t), testserver.Database(t)}
	raw := []*sql.DB{mustOpen(t, "mysql", sources[0]+"?parseTime=true"), mustOpen(t, "mysql", sources[1]+"?parseTime=true")}
	mustExec(t, raw[0], "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL, max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))")
	mustExec(t, raw[0], "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('t', 1, 40), ('u', 1, 40)")
	for _, r := range tables {
		typ := "BIGINT"
		if strings.Contains(r.generator, "UUID") || strings.Contains(r.generator, "NANOID") {
			typ = "VARCHAR(36) CHARACTER SET ascii COLLATE ascii_bin"
		}
		for i := range 4 {
			for _, db := range raw {
				mustExec(t, db, "CREATE TABLE "+r.actual(i)+" (id "+typ+" PRIMARY KEY, user_id BIGINT, amount BIGINT, made DATETIME, name VARCHAR(40))")
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
	t.Logf("%d rows are where a router finds them", found)
}

// insertRouted inserts rows of the same table.
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

// lookAt reads a table, and compares it with the router's table for each row.
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
