package testserver

import (
	"os"
	"strings"
	"testing"
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
