package engines_test

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
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

// insertForms are the forms of INSERT for engines that distribute a table over servers. Every
// table has the columns id, user_id, a, u and s. In a query, {t} stands for the table, {db} for
// the database, and {5} for an explicit key. Column a of the n-th row is n, which identifies the
// row.
var insertForms = []insertForm{
	{name: "one row", text: "INSERT INTO {t} (user_id, a) VALUES (7, 1)", rows: "g", affected: 1},
	{name: "one row bound", text: "INSERT INTO {t} (user_id, a, s) VALUES (?, ?, ?)", args: []any{7, 1, "x"}, rows: "g", affected: 1},
	{name: "rows", text: "INSERT INTO {t} (user_id, a) VALUES (7, 1), (8, 2), (9, 3)", rows: "ggg", affected: 3},
	{name: "rows bound", text: "INSERT INTO {t} (user_id, a) VALUES (?, ?), (?, ?), (?, ?)", args: []any{7, 1, 8, 2, 9, 3}, rows: "ggg", affected: 3},
	{name: "mixed", text: "INSERT INTO {t} (user_id, a, s) VALUES (?, 1, 'x'), (8, ?, ?), (9, 3, NULL)", args: []any{7, 2, "y"}, rows: "ggg", affected: 3},
	manyRows(40),
	{name: "NULL", text: "INSERT INTO {t} (id, user_id, a) VALUES (NULL, 7, 1), (NULL, 8, 2)", rows: "gg", affected: 2},
	{name: "DEFAULT", text: "INSERT INTO {t} (id, user_id, a) VALUES (DEFAULT, 7, 1), (DEFAULT, 8, 2)", rows: "gg", affected: 2},
	{name: "zero", text: "INSERT INTO {t} (id, user_id, a) VALUES (0, 7, 1), ('0', 8, 2)", rows: "gg", affected: 2, integers: true},
	{name: "empty text", text: "INSERT INTO {t} (id, user_id, a) VALUES ('', 7, 1)", rows: "g", affected: 1, texts: true},
	{name: "bound NULL", text: "INSERT INTO {t} (id, user_id, a) VALUES (?, 7, 1), (?, 8, 2)", args: []any{nil, nil}, rows: "gg", affected: 2},
	{name: "bound zero", text: "INSERT INTO {t} (id, user_id, a) VALUES (?, 7, 1)", args: []any{0}, rows: "g", affected: 1, integers: true},
	{name: "given", text: "INSERT INTO {t} (id, user_id, a) VALUES ({1}, 7, 1), ({2}, 8, 2)", rows: "GG", affected: 2},
	{name: "given bound", text: "INSERT INTO {t} (id, user_id, a) VALUES (?, 7, 1), (?, 8, 2)", args: []any{given(1), given(2)}, rows: "GG", affected: 2},
	{name: "given and not", text: "INSERT INTO {t} (id, user_id, a) VALUES ({1}, 7, 1), (NULL, 8, 2), ({3}, 9, 3), (DEFAULT, 10, 4)", rows: "GgGg", affected: 4},
	{name: "SET", text: "INSERT INTO {t} SET user_id = 7, a = ?", args: []any{1}, rows: "g", affected: 1},
	{name: "SET key", text: "INSERT INTO {t} SET user_id = 7, id = NULL, a = 1", rows: "g", affected: 1},
	{name: "no column list", text: "INSERT INTO {t} VALUES (NULL, 7, 1, NULL, 'x'), ({2}, 8, 2, NULL, ?)", args: []any{"y"}, rows: "gG", affected: 2},
	{name: "qualified table", text: "INSERT INTO {db}.{t} (user_id, a) VALUES (7, 1), (8, 2)", rows: "gg", affected: 2},
	{name: "qualified columns", text: "INSERT INTO {t} ({t}.user_id, {t}.a) VALUES (7, 1)", rows: "g", affected: 1},
	{name: "quoted names", text: "INSERT INTO `{t}` (`user_id`, `a`) VALUES (7, 1)", rows: "g", affected: 1},
	{name: "comments", text: "/* one */ INSERT /* two */ INTO {t} -- three\n (user_id, a) VALUES (7, 1 /* ) */) /* ? */", rows: "g", affected: 1},
	{name: "directive", text: "INSERT /*vt+ MULTI_SHARD_AUTOCOMMIT=1 */ INTO {t} (user_id, a) VALUES (7, 1), (8, 2)", rows: "gg", affected: 2},
	{name: "expressions", text: "INSERT INTO {t} (user_id, a, s) VALUES (7, 1, CONCAT('a', ?)), (8, 2, 'it''s (?)')", args: []any{"b"}, rows: "gg", affected: 2},
	{name: "IGNORE of new rows", text: "INSERT IGNORE INTO {t} (user_id, a) VALUES (7, 1), (8, 2)", rows: "gg", affected: 2},
	{name: "IGNORE of given ones", text: "INSERT IGNORE INTO {t} (id, user_id, a) VALUES ({5}, 7, 1), (NULL, 8, 2)", exists: []int{1}, rows: "-g", affected: 1},
	{name: "IGNORE of all", text: "INSERT IGNORE INTO {t} (id, user_id, a) VALUES ({5}, 7, 1)", exists: []int{1}, rows: "-", affected: 0},
	{name: "IGNORE of some", text: "INSERT IGNORE INTO {t} (user_id, a, u) VALUES (7, 1, 1), (8, 2, 2), (?, ?, ?)", args: []any{9, 3, 3}, exists: []int{1}, rows: "-gg", affected: 2, unique: true},
	{name: "upsert of a new row", text: "INSERT INTO {t} (user_id, a, s) VALUES (7, 1, 'x') ON DUPLICATE KEY UPDATE s = VALUES(s)", rows: "g", affected: 1},
	{name: "upsert of one that exists", text: "INSERT INTO {t} (user_id, a, u, s) VALUES (7, 1, 1, ?) ON DUPLICATE KEY UPDATE s = VALUES(s)", args: []any{"new"}, exists: []int{1}, rows: "e", affected: 2, unique: true},
	{name: "upsert of both", text: "INSERT INTO {t} (user_id, a, u, s) VALUES (7, 1, 1, 'new'), (8, 2, 2, 'new') ON DUPLICATE KEY UPDATE s = VALUES(s)", exists: []int{1}, rows: "eg", affected: 3, unique: true},
	{name: "upsert with the key", text: "INSERT INTO {t} (user_id, a, u) VALUES (7, 1, 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), s = 'new'", exists: []int{1}, rows: "i", affected: 2, unique: true, integers: true},
	{name: "SELECT", text: "INSERT INTO {t} (user_id, a) SELECT user_id, a FROM src WHERE a < 4 ORDER BY a", rows: "ggg", affected: 3, query: true},
	{name: "SELECT bound", text: "INSERT INTO {t} (user_id, a, s) SELECT user_id, a, ? FROM src WHERE a < ? ORDER BY a", args: []any{"x", 3}, rows: "gg", affected: 2, query: true},
	{name: "REPLACE", text: "REPLACE INTO {t} (user_id, a) VALUES (7, 1), (8, 2)", rows: "gg", affected: 2, replace: true},
}

// insertForm is a statement with its expected result.
type insertForm struct {
	name string
	text string
	args []any
	// exists are the rows that exist before, by column a, with key 5.
	exists []int
	// rows has a letter for each row: g for a generated key, G for an explicit key, e for an
	// existing row, i for an existing row whose key the statement makes the insert ID, and - for
	// a row that isn't inserted.
	rows     string
	affected int64
	// Requirements: a key column of integers or of strings, or a table with unique user_id and u.
	// query and replace mark statements with a query, and REPLACEs.
	integers, texts, unique, query, replace bool
}

// given is an explicit key of the table's type.
type given int

func manyRows(n int) insertForm {
	f := insertForm{name: "many rows", rows: strings.Repeat("g", n), affected: int64(n)}
	var values []string
	for i := range n {
		values = append(values, "(?, ?)")
		f.args = append(f.args, 100+i, i+1)
	}
	f.text = "INSERT INTO {t} (user_id, a) VALUES " + strings.Join(values, ", ")
	return f
}

// target is a table for the forms.
type target struct {
	name   string
	texts  bool // the key is a string
	unique bool // user_id and u are unique
	// refuses returns the beginning of the engine's error for a form that it doesn't support even
	// without shardkey, or "" for others.
	refuses func(f insertForm, inTx bool) string
}

// engine is a database to test with the forms.
type engine struct {
	dsn, params, database string
	targets               []target
}

// tryForms runs all forms in all ways on all tables of an engine.
func tryForms(t *testing.T, e engine, ruleName string) {
	plain := must.Open(t, "mysql", e.dsn+"?"+e.params)
	ours := must.Open(t, "shardkey", e.dsn+"?"+e.params+"&shardkeyRule="+ruleName)
	for _, prepared := range []bool{false, true} {
		for _, inTx := range []bool{false, true} {
			for _, to := range e.targets {
				t.Run(fmt.Sprintf("%s/prepared=%v,tx=%v", to.name, prepared, inTx), func(t *testing.T) {
					conn := must.Get(ours.Conn(t.Context()))(t)
					defer conn.Close()
					for _, f := range insertForms {
						if f.integers && to.texts || f.texts && !to.texts || f.unique && !to.unique {
							continue
						}
						t.Run(f.name, func(t *testing.T) {
							(&trial{engine: e, target: to, insertForm: f, plain: plain, conn: conn}).run(t, prepared, inTx)
						})
					}
				})
			}
		}
	}
}

// trial is the test of a form on a table.
type trial struct {
	engine
	target
	insertForm
	plain *sql.DB
	conn  *sql.Conn
}

func (x *trial) run(t *testing.T, prepared, inTx bool) {
	for _, query := range x.preparation() {
		must.Get(x.plain.Exec(query))(t, query)
	}
	before := x.sessionID(t)
	var run runner = x.conn
	if inTx {
		tx := must.Get(x.conn.BeginTx(t.Context(), nil))(t)
		defer tx.Rollback()
		run = tx
	}
	var keys driver.Keys
	res, err := execute(driver.WithKeys(t.Context(), &keys), run, prepared, x.text(), x.args())
	if why := x.refusal(inTx); why != "" {
		must.FailWith(t, err, why, x.text())
		return
	}
	must.Do(t, err, x.text())
	if tx, ok := run.(*sql.Tx); ok {
		must.Do(t, tx.Commit())
	}
	x.check(t, res, keys.Values(), before)
}

func (x *trial) refusal(inTx bool) string {
	if x.refuses == nil {
		return ""
	}
	return x.refuses(x.insertForm, inTx)
}

// preparation returns the statements that empty the table and insert the existing rows.
func (x *trial) preparation() []string {
	queries := []string{"DELETE FROM " + x.target.name}
	for _, a := range x.exists {
		queries = append(queries, fmt.Sprintf("INSERT INTO %s (id, user_id, a, u, s) VALUES (%s, %d, %d, %d, 'old')", x.target.name, x.literal(5), 6+a, a, a))
	}
	return queries
}

func (x *trial) literal(key given) string {
	if x.target.texts {
		return fmt.Sprintf("'k%d'", key)
	}
	return fmt.Sprint(int(key))
}

func (x *trial) text() string {
	pairs := []string{"{t}", x.target.name, "{db}", x.database}
	for k := given(1); k <= 5; k++ {
		pairs = append(pairs, fmt.Sprintf("{%d}", int(k)), x.literal(k))
	}
	return strings.NewReplacer(pairs...).Replace(x.insertForm.text)
}

func (x *trial) args() []any {
	args := make([]any, len(x.insertForm.args))
	for i, arg := range x.insertForm.args {
		if key, ok := arg.(given); ok {
			arg = x.key(key)
		}
		args[i] = arg
	}
	return args
}

// key returns an explicit key as an argument.
func (x *trial) key(k given) any {
	if x.target.texts {
		return fmt.Sprintf("k%d", k)
	}
	return int64(k)
}

// runner is implemented by *sql.Conn and *sql.Tx.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

func execute(ctx context.Context, run runner, prepared bool, text string, args []any) (sql.Result, error) {
	if !prepared {
		return run.ExecContext(ctx, text, args...)
	}
	stmt, err := run.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	return stmt.ExecContext(ctx, args...)
}

// check compares the reported keys with the rows in the table.
func (x *trial) check(t *testing.T, res sql.Result, keys []any, before int64) {
	t.Helper()
	must.Equal(t, must.Get(res.RowsAffected())(t), x.affected, "rows affected")
	if len(keys) != len(x.rows) && !(x.query && keys == nil) {
		t.Fatalf("keys\nhave: %v\nwant: %d", keys, len(x.rows))
	}
	there := x.stored(t)
	id, session := int64(0), before
	generated := false
	for i, letter := range x.rows {
		stored, ok := there[int64(i+1)]
		must.Equal(t, ok, letter != '-', "row", i+1, "is in the table")
		if !ok {
			continue
		}
		delete(there, int64(i+1))
		want := stored
		switch letter {
		case 'g':
			if len(fmt.Sprint(stored)) < 4 {
				t.Errorf("row %d\nhave: key %v\nwant: a generated one", i+1, stored)
			}
			if !generated {
				generated = true
				id, _ = stored.(int64)
				session = id
			}
		case 'G':
			must.Equal(t, stored, x.key(given(i+1)), "row", i+1)
			if !generated {
				id, _ = stored.(int64)
			}
		case 'i':
			id, session = 5, 5
		case 'e':
			if !generated {
				id, _ = stored.(int64)
			}
			if keys != nil && keys[i] == nil {
				want = nil // unknown
			}
		}
		if keys != nil && letter != 'i' && !reflect.DeepEqual(plainKey(keys[i]), want) {
			t.Errorf("row %d\nhave: key %v of WithKeys\nwant: %v", i+1, keys[i], want)
		}
	}
	delete(there, 0)
	must.Equal(t, len(there), 0, "rows that nobody inserted", there)
	if x.target.texts {
		id, session = 0, before
	}
	must.Equal(t, must.Get(res.LastInsertId())(t, "LastInsertId"), id, "LastInsertId")
	must.Equal(t, x.sessionID(t), session, "LAST_INSERT_ID()")
}

// plainKey returns a key as the plain driver would return it.
func plainKey(key any) any {
	switch key := key.(type) {
	case uint64:
		return int64(key)
	case int:
		return int64(key)
	case []byte:
		return string(key)
	}
	return key
}

// stored returns the keys of the table's rows by column a.
func (x *trial) stored(t *testing.T) map[int64]any {
	t.Helper()
	rows := must.Get(x.plain.Query("SELECT a, id, s FROM " + x.target.name))(t)
	defer rows.Close()
	keys := map[int64]any{}
	for rows.Next() {
		var a, number int64
		var text string
		var s sql.NullString
		dest := any(&number)
		if x.target.texts {
			dest = &text
		}
		must.Do(t, rows.Scan(&a, dest, &s))
		if s.String == "old" && !strings.ContainsAny(x.rows[a-1:a], "ei") {
			continue // an unchanged row
		}
		if keys[a] = number; x.target.texts {
			keys[a] = text
		}
	}
	must.Do(t, rows.Err())
	return keys
}

// sessionID returns LAST_INSERT_ID() of the session.
func (x *trial) sessionID(t *testing.T) (id int64) {
	t.Helper()
	must.Do(t, x.conn.QueryRowContext(t.Context(), "SELECT LAST_INSERT_ID()").Scan(&id))
	return id
}

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
			tryForms(t, engine{dsn: v.DSN("app"), database: "app", targets: []target{
				{name: "t_user", unique: true, refuses: sharded},
				{name: "t_id", refuses: sharded},
				{name: "t_hash", refuses: sharded},
				{name: "t_text", texts: true, refuses: sharded},
				{name: "t_lookup", refuses: sharded},
			}}, name)
			many := manyRows(40)
			must.Get(must.Open(t, "shardkey", v.DSN("app")+"?shardkeyRule="+name).Exec(strings.ReplaceAll(many.text, "{t}", "t_id"), many.args...))(t)
			for _, shard := range vitessKeyspaces[0].Shards {
				if n := count(t, v.ShardDSN("app", shard), "SELECT COUNT(*) FROM t_id"); n == 0 {
					t.Errorf("shard %s has none of %d rows", shard, many.affected)
				}
			}
			tryForms(t, engine{dsn: v.DSN("whole"), database: "whole", targets: []target{
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
			tryForms(t, engine{dsn: head.DSN() + "app", database: "app", targets: []target{
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
	tryForms(t, engine{dsn: g.Proxy.DSN() + "app", params: "wsrep_sync_wait=15", database: "app", targets: []target{
		{name: "t_user", unique: true}, {name: "t_text", texts: true},
	}}, "forms-galera")
}

// Spider shards a table over servers, each with its own AUTO_INCREMENT. With shardkey, the whole
// table has one generator.
func TestSpider_oneGenerator(t *testing.T) {
	s := engines.StartSpider(t, 1, 2)
	must.Do(t, s.CreateTable("ruled", "id BIGINT NOT NULL PRIMARY KEY, a INT", "HASH (id)"))
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
