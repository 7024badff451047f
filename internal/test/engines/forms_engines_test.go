package engines_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/engines"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	_ "github.com/shardkey/shardkey/keygen/segment"
	_ "github.com/shardkey/shardkey/keygen/workerid"
)

// registerForms registers a rule for the tables of forms. Worker IDs and segments come from the
// database at dsn.
func registerForms(t *testing.T, name, dsn string) {
	t.Helper()
	r := mustParse(t, name, fmt.Sprintf(`
rules:
- !SHARDING
  tables:
    t_user:   {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
    t_id:     {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
    t_hash:   {keyGenerateStrategy: {column: id, keyGeneratorName: leaf}}
    t_range:  {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
    t_text:   {keyGenerateStrategy: {column: id, keyGeneratorName: uuid}}
    t_lookup: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
    t_whole:  {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: leases}}
    leaf: {type: LEAF_SEGMENT, props: {dsn: %q, leaf.key: forms}}
    uuid: {type: UUID}
  workerIdAssigners:
    leases: {type: SQL, props: {dsn: %[1]q, namespace: forms}}
`, dsn))
	must.Do(t, driver.RegisterRule(name, r))
}

const leafTable = "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, " +
	"description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)"

const leafRow = "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('forms', 100000, 1000)"

// columns returns the columns of the tables of forms.
func columns(key string) string {
	return "id " + key + " NOT NULL, user_id BIGINT NOT NULL, a INT, u INT, s VARCHAR(64), "
}

const srcTable = "CREATE TABLE src (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT, a INT)"
const srcRows = "INSERT INTO src (id, user_id, a) VALUES (1, 7, 1), (2, 8, 2), (3, 9, 3), (4, 10, 4)"

// vitessKeyspaces are a sharded keyspace and an unsharded one. Tables of the first are sharded by
// the key, by another column, and by the key with a unique lookup of another column.
var vitessKeyspaces = []engines.Keyspace{
	{Name: "app", Shards: []string{"-40", "40-80", "80-c0", "c0-"}, VSchema: `{"sharded": true,
		"vindexes": {
			"xxhash": {"type": "xxhash"}, "hash": {"type": "hash"},
			"a_lookup": {"type": "consistent_lookup_unique", "params": {"table": "whole.a_lookup", "from": "a", "to": "keyspace_id"}, "owner": "t_lookup"}},
		"tables": {
			"t_user": {"column_vindexes": [{"column": "user_id", "name": "xxhash"}]},
			"t_id": {"column_vindexes": [{"column": "id", "name": "xxhash"}]},
			"t_hash": {"column_vindexes": [{"column": "id", "name": "hash"}]},
			"t_text": {"column_vindexes": [{"column": "id", "name": "xxhash"}]},
			"t_lookup": {"column_vindexes": [{"column": "id", "name": "xxhash"}, {"column": "a", "name": "a_lookup"}]},
			"src": {"column_vindexes": [{"column": "id", "name": "xxhash"}]}}}`},
	{Name: "whole", Shards: []string{"0"}, VSchema: `{"tables": {"a_lookup": {}, "t_whole": {}, "src": {}, "leaf_alloc": {}, "shardkey_worker": {}}}`},
}

// vtgate routes each row by the generated key.
func TestForms_vitess(t *testing.T) {
	for _, over := range []testserver.Kind{testserver.KindMySQL, testserver.KindMariaDB} {
		t.Run(string(over), func(t *testing.T) {
			v := engines.StartVitess(t, over, vitessKeyspaces...)
			mustRun(t, v.DSN("app"),
				"CREATE TABLE t_user ("+columns("BIGINT")+"PRIMARY KEY (id), UNIQUE KEY (user_id, u))",
				"CREATE TABLE t_id ("+columns("BIGINT")+"PRIMARY KEY (id))",
				"CREATE TABLE t_hash ("+columns("BIGINT UNSIGNED")+"PRIMARY KEY (id))",
				"CREATE TABLE t_text ("+columns("VARCHAR(36)")+"PRIMARY KEY (id))",
				"CREATE TABLE t_lookup ("+columns("BIGINT")+"PRIMARY KEY (id))",
				srcTable, srcRows)
			mustRun(t, v.DSN("whole"),
				"CREATE TABLE a_lookup (a INT NOT NULL PRIMARY KEY, keyspace_id VARBINARY(16))",
				"CREATE TABLE t_whole ("+columns("BIGINT")+"PRIMARY KEY (id), UNIQUE KEY (user_id, u))",
				leafTable, leafRow, srcTable, srcRows)
			name := "forms-vitess-" + string(over)
			registerForms(t, name, v.DSN("whole"))
			sharded := func(f insertForm, _ bool) string {
				if f.replace {
					return "VT12001" // REPLACE INTO in a sharded keyspace
				}
				return ""
			}
			tryForms(t, engine{dsn: v.DSN("app"), database: "app", upserts: true, targets: []target{
				{name: "t_user", unique: true, refuses: sharded},
				{name: "t_id", refuses: sharded},
				{name: "t_hash", refuses: sharded},
				{name: "t_text", texts: true, refuses: sharded},
				{name: "t_lookup", refuses: sharded},
			}}, name)
			many := manyRows(40)
			must.Get(open(t, "shardkey", v.DSN("app")+"?shardkeyRule="+name).Exec(strings.ReplaceAll(many.text, "{t}", "t_id"), many.args...))(t)
			for _, shard := range vitessKeyspaces[0].Shards {
				if n := count(t, v.ShardDSN("app", shard), "SELECT COUNT(*) FROM t_id"); n == 0 {
					t.Errorf("shard %s has none of %d rows", shard, many.affected)
				}
			}
			tryForms(t, engine{dsn: v.DSN("whole"), database: "whole", upserts: true, targets: []target{
				{name: "t_whole", unique: true},
			}}, name)
		})
	}
}

// MariaDB's Spider engine routes each row to the back end of its partition.
func TestForms_spider(t *testing.T) {
	s := engines.StartSpider(t, 2, 3)
	for _, table := range []struct {
		name, columns string
		by            []string
	}{
		{"t_user", columns("BIGINT") + "PRIMARY KEY (id, user_id), UNIQUE KEY (user_id, u)", []string{"KEY (user_id)"}},
		{"t_id", columns("BIGINT") + "PRIMARY KEY (id)", []string{"HASH (id)"}},
		{"t_text", columns("VARCHAR(36)") + "PRIMARY KEY (id)", []string{"KEY (id)"}},
		{"t_range", columns("BIGINT") + "PRIMARY KEY (id)", []string{"RANGE (id)", "(1000000000000000000)", "(2000000000000000000)", "MAXVALUE"}},
	} {
		must.Do(t, s.CreateTable(table.name, table.columns, table.by[0], table.by[1:]...))
	}
	mustRun(t, s.BackEnds[0].DSN()+"app", leafTable, leafRow)
	registerForms(t, "forms-spider", s.BackEnds[0].DSN()+"app")
	for i, head := range s.Heads {
		t.Run(fmt.Sprintf("head %d", i), func(t *testing.T) {
			mustRun(t, head.DSN()+"app", srcTable, srcRows)
			tryForms(t, engine{dsn: head.DSN() + "app", database: "app", upserts: true, targets: []target{
				{name: "t_user", unique: true}, {name: "t_id"}, {name: "t_text", texts: true}, {name: "t_range"},
			}}, "forms-spider")
		})
	}
}

// The test writes to every node of a Galera cluster.
func TestForms_galera(t *testing.T) {
	g := engines.StartGalera(t, 3)
	mustRun(t, g.Proxy.DSN(), "CREATE DATABASE app")
	mustRun(t, g.Proxy.DSN()+"app", leafTable, leafRow, srcTable, srcRows,
		"CREATE TABLE t_user ("+columns("BIGINT")+"PRIMARY KEY (id), UNIQUE KEY (user_id, u))",
		"CREATE TABLE t_text ("+columns("VARCHAR(36)")+"PRIMARY KEY (id))")
	// The plain driver connects to another node than shardkey.
	registerForms(t, "forms-galera", g.Proxy.DSN()+"app")
	tryForms(t, engine{dsn: g.Proxy.DSN() + "app", params: "wsrep_sync_wait=15", database: "app", upserts: true, targets: []target{
		{name: "t_user", unique: true}, {name: "t_text", texts: true},
	}}, "forms-galera")
}

// Spider shards a table over servers, each with its own AUTO_INCREMENT. With shardkey, the whole
// table has one generator.
func TestSpider_oneGenerator(t *testing.T) {
	s := engines.StartSpider(t, 1, 2)
	if err := s.CreateTable("ruled", "id BIGINT NOT NULL PRIMARY KEY, a INT", "HASH (id)"); err != nil {
		t.Fatal(err)
	}
	dsn := s.Heads[0].DSN() + "app"
	ours := openRuled(t, dsn)
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for i := range 5 {
				for _, query := range []string{"INSERT INTO ruled (a) VALUES (?)",
					"INSERT INTO ruled (a) VALUES (?), (2), (3)", "INSERT INTO ruled VALUES (NULL, ?)"} {
					if _, err := ours.Exec(query, i); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	users.Wait()
	mustRun(t, dsn, "CREATE TABLE src (a INT)", "INSERT INTO src VALUES (1), (2), (3)")
	res := mustExec(t, ours, "INSERT INTO ruled (a) SELECT a + 100 FROM src")
	first := count(t, dsn, "SELECT MIN(id) FROM ruled WHERE a > 100")
	if id, err := res.LastInsertId(); id != int64(first) || err != nil {
		t.Errorf("LastInsertId of INSERT … SELECT\nhave: %d, %v\nwant: %d", id, err, first)
	}
	const want = 4*5*5 + 3
	must.Equal(t, count(t, dsn, "SELECT COUNT(DISTINCT id) FROM ruled WHERE id > 0"), want, "rows")
	for i, b := range s.BackEnds {
		if n := count(t, b.DSN()+"app", "SELECT COUNT(*) FROM ruled"); n < want/2-10 {
			t.Errorf("back end %d holds %d rows of %d", i, n, want)
		}
	}
}
