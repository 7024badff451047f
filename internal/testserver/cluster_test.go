package testserver

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// sequences is an unsharded keyspace with a sequence.
var sequences = Keyspace{Name: "lookup", Shards: []string{"0"}, VSchema: `{"tables": {"ids": {"type": "sequence"}}}`}

var sharded = Keyspace{Name: "app", Shards: []string{"-80", "80-"}, VSchema: `{"sharded": true, "vindexes": {"xxhash": {"type": "xxhash"}},
	"tables": {"t": {"column_vindexes": [{"column": "id", "name": "xxhash"}], "auto_increment": {"column": "id", "sequence": "lookup.ids"}}}}`}

func TestVitess_shardsRows(t *testing.T) {
	for _, over := range []Kind{KindMySQL, KindMariaDB} {
		t.Run(string(over), func(t *testing.T) {
			v := StartVitess(t, over, sharded, sequences)
			mustRun(t, v.DSN("lookup"), "CREATE TABLE ids (id BIGINT PRIMARY KEY, next_id BIGINT, cache BIGINT) COMMENT 'vitess_sequence'",
				"INSERT INTO ids (id, next_id, cache) VALUES (0, 1, 10)")
			mustRun(t, v.DSN("app"), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t (a) VALUES (1), (2), (3), (4), (5), (6), (7), (8)")
			v.Gate.Kill()
			v.SQL.Kill()
			v.SQL.Start()
			v.Gate.Start()
			all := 0
			for _, shard := range sharded.Shards {
				var n int
				if err := open(t, v.ShardDSN("app", shard)).QueryRow("SELECT COUNT(*) FROM t").Scan(&n); err != nil || n == 0 {
					t.Errorf("shard %s holds %d rows, %v", shard, n, err)
				}
				all += n
			}
			if all != 8 {
				t.Errorf("rows\nhave: %d\nwant: 8", all)
			}
		})
	}
}

// The program runs from a version that a go.mod beside it names.
func TestVTCombo_isOfItsModulesVersion(t *testing.T) {
	text, err := os.ReadFile("vtcombo/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\tvitess.io/vitess " + vitessVersion + " //"; !strings.Contains(string(text), want) {
		t.Errorf("vtcombo/go.mod has no %q", want)
	}
}

func mustRun(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	if err := Run(dsn, statements...); err != nil {
		t.Fatal(err)
	}
}

func TestReplication_promotes(t *testing.T) {
	for _, semiSync := range []bool{true, false} {
		t.Run(fmt.Sprintf("semiSync=%v", semiSync), func(t *testing.T) {
			r := StartReplication(t, semiSync)
			mustRun(t, r.Source.DSN(), "CREATE DATABASE app", "CREATE TABLE app.t (id BIGINT PRIMARY KEY)", "INSERT INTO app.t VALUES (1), (2), (3)")
			if err := Run(r.Replica.DSN(), "CREATE DATABASE other"); err == nil {
				t.Error("the replica is written to")
			}
			// A commit at a source that is semi-synchronous is at the replica; another one
			// gets there.
			if !semiSync {
				awaitRows(t, r.Replica, "SELECT COUNT(*) FROM app.t", 3)
			}
			r.Source.Kill()
			if err := r.Promote(); err != nil {
				t.Fatal(err)
			}
			r.Replica.Kill()
			r.Replica.Start()
			mustRun(t, r.Replica.DSN(), "INSERT INTO app.t VALUES (4)")
			if n := count(t, r.Replica.DSN(), "SELECT COUNT(*) FROM app.t"); n != 4 {
				t.Errorf("rows at the new source\nhave: %d\nwant: 4", n)
			}
		})
	}
}

func TestSpider_sharesRowsOut(t *testing.T) {
	s := StartSpider(t, 2, 3)
	for name, by := range map[string][]string{
		"hashed": {"HASH (id)"}, "keyed": {"KEY (id)"}, "ranged": {"RANGE (id)", "(10)", "(20)", "MAXVALUE"},
	} {
		if err := s.CreateTable(name, "id BIGINT NOT NULL PRIMARY KEY", by[0], by[1:]...); err != nil {
			t.Fatal(err)
		}
		for i, head := range s.Heads {
			mustRun(t, head.DSN()+"app", fmt.Sprintf("INSERT INTO %s VALUES (%d), (%d), (%d)", name, 3+i, 13+i, 23+i))
		}
		all := 0
		for _, b := range s.BackEnds {
			n := count(t, b.DSN()+"app", "SELECT COUNT(*) FROM "+name)
			if by[1:] != nil && n != 2 {
				t.Errorf("%s: %d rows at one back end", name, n)
			}
			all += n
		}
		if all != 6 {
			t.Errorf("%s: rows\nhave: %d\nwant: 6", name, all)
		}
	}
}

func TestGalera_nodesComeBack(t *testing.T) {
	if os.Getenv("SHARDKEY_ENGINES") == "" {
		t.Skip("make test-engines runs it")
	}
	g := StartGalera(t, 3)
	mustRun(t, g.Proxy.DSN(), "CREATE DATABASE app", "CREATE TABLE app.t (id BIGINT PRIMARY KEY)", "INSERT INTO app.t VALUES (1)")
	g.Nodes[2].Kill()
	if err := g.AwaitWithout(g.Nodes[2]); err != nil {
		t.Fatal(err)
	}
	mustRun(t, g.Nodes[0].DSN(), "INSERT INTO app.t VALUES (2)")
	g.Nodes[2].Start()
	g.Nodes[0].Stop()
	mustRun(t, g.Nodes[2].DSN(), "INSERT INTO app.t VALUES (3)")
	g.Nodes[0].Start()
	if err := g.Isolate(g.Nodes[1], true); err != nil {
		t.Fatal(err)
	}
	if err := g.AwaitWithout(g.Nodes[1]); err != nil {
		t.Fatal(err)
	}
	if err := Run(g.Nodes[1].DSN(), "INSERT INTO app.t VALUES (9)"); err == nil {
		t.Error("a node that is cut off is written to")
	}
	mustRun(t, g.Nodes[0].DSN(), "INSERT INTO app.t VALUES (4)")
	if err := errors.Join(g.Isolate(g.Nodes[1], false), g.AwaitAll()); err != nil {
		t.Fatal(err)
	}
	for i, node := range g.Nodes {
		if n := count(t, node.DSN(), "SELECT COUNT(*) FROM app.t"); n != 4 {
			t.Errorf("node %d\nhave: %d rows\nwant: 4", i, n)
		}
	}
}

func TestHAProxy_cutsAndMoves(t *testing.T) {
	a, b := StartMariaDB(t, "--server-id=1"), StartMariaDB(t, "--server-id=2")
	h := StartHAProxy(t, a, b)
	if err := h.Enable(b, false); err != nil {
		t.Fatal(err)
	}
	db := open(t, h.DSN())
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Cut(); err != nil {
		t.Fatal(err)
	}
	if err := conn.PingContext(t.Context()); err == nil {
		t.Error("a connection that was cut answers")
	}
	if err := errors.Join(h.Enable(a, false), h.Enable(b, true)); err != nil {
		t.Fatal(err)
	}
	awaitRows(t, h.Server, "SELECT @@server_id", 2)
}

// awaitRows polls until a query of a number says the one that is wanted.
func awaitRows(t *testing.T, s *Server, query string, want int) {
	t.Helper()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	deadline := time.After(stopTimeout)
	db := open(t, s.DSN())
	for {
		var have int
		err := db.QueryRow(query).Scan(&have)
		if err == nil && have == want {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s\nhave: %d, %v\nwant: %d", query, have, err, want)
		}
	}
}

func count(t *testing.T, dsn, query string) (n int) {
	t.Helper()
	if err := open(t, dsn).QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
