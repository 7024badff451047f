package driver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
)

// A program that comes from ShardingSphere inserts into the logical table. The server's error for it,
// and the plan, have the actual tables.
func TestUnrouted(t *testing.T) {
	onEach(t, testUnrouted)
}

func testUnrouted(t *testing.T) {
	r := mustParseRule(t, ruleText("t_order 'ds.t_order_${0..4}' - - id:g", "", "  keyGenerators: {g: {type: COUNTER}}\n"))
	db, plain := openScripted(t, r)
	mustExec(t, plain, "CREATE TABLE t_order_1 (id BIGINT PRIMARY KEY, a INT)")
	for _, query := range []string{
		"INSERT INTO t_order (a) VALUES (1)", "INSERT INTO T_ORDER (a) VALUES (1)", "INSERT INTO t_order VALUES (NULL, 1)",
		"INSERT INTO t_order (a) SELECT a FROM t_order_1", "REPLACE INTO t_order (a) VALUES (1)",
	} {
		for _, door := range doors {
			_, err := door.exec(t.Context(), db, query)
			if server, ok := errors.AsType[*mysql.MySQLError](err); !ok || server.Number != sqlerr.UnknownTable {
				t.Errorf("%s, %s\nhave: %v\nwant: error 1146", door.name, query, err)
			}
			contains(t, fmt.Sprint(err), "shardkey doesn't route; name an actual table (t_order_0, t_order_1, t_order_2, …)", door.name, query)
		}
	}
	for _, query := range []string{"INSERT INTO t_order_3 (a) VALUES (1)", "INSERT INTO t_order_1 (a) SELECT a FROM nothing"} {
		if err := errOf(db.Exec(query)); err == nil || strings.Contains(err.Error(), "route") {
			t.Errorf("%s\nhave: %v\nwant: the server's error alone", query, err)
		}
	}
}

// The plan of an INSERT into the logical table has a note, unless that is an actual table.
func TestUnrouted_plan(t *testing.T) {
	for nodes, want := range map[string]string{
		"'ds.t_order_${0..1}'": "(t_order_0, t_order_1)", "'ds.t_order_${*}'": "(t_order_${*})",
		"'ds.t_order,ds.t_order_1'": "", "-": "", "'ds.t_order_${0..99},ds.t_order'": "",
	} {
		r := mustParseRule(t, ruleText("t_order "+nodes+" - - id:g", "", "  keyGenerators: {g: {type: COUNTER}}\n"))
		_, c := idleDB(t, r)
		p := must(c.Plan("INSERT INTO t_order (a) VALUES (1)"))(t, nodes)
		equal(t, p.Detail.Unrouted != "", want != "", nodes, p.Detail.Unrouted)
		contains(t, p.Detail.Unrouted, want, nodes)
		equal(t, strings.Contains(strings.Join(p.Detail.Notes, "\n"), "route"), want != "", nodes)
	}
}
