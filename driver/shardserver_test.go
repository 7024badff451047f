package driver

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	testrouter "github.com/shardkey/shardkey/internal/test/router"
	testserver "github.com/shardkey/shardkey/internal/test/server"
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
func TestShardGuard_asStored(t *testing.T) { onEach(t, testShardGuard_asStored) }

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
	file := ruleFile(t, rules)
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
					isError(t, insert(names[(at+1)%4]), ErrWrongShard, value, args, "in", c.typ, "stored as", stored.String)
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
