package driver

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
)

// bitsRule returns a rule whose keys have the shard bits of user_id in 4 bits. users selects
// whether tables sharded by user_id use its number or its hash.
func bitsRule(t testing.TB, users string) *rule.Rule {
	t.Helper()
	byHash := users == "hash"
	user := "u4: {type: INLINE, props: {algorithm-expression: \"t_inline_${user_id % 4}\"}}"
	if byHash {
		user = "u4: {type: HASH_MOD, props: {sharding-count: 4}}"
	}
	tables := `
		t_order ds.t_order_${0..3}         -          order_id:o4 order_id:genes
		t_both  ds_${0..2}.t_both_${0..3}  day:d3     order_id:i4 order_id:genes
		t_one   -                          -          -           order_id:genes
`
	if users != "" {
		tables += `		t_item   ds_${0..1}.t_item_${0..3} user_id:two order_id:i4 order_id:genes
		t_inline ds.t_inline_${0..3}       -           user_id:u4  order_id:genes
`
	}
	return mustParseRule(t, ruleText(tables, "", `
  keyGenerators:
    genes: {type: SNOWFLAKE, props: {worker-id: 321, layout: 41-10-12, gene-column: user_id, gene-bits: 4}}
  shardingAlgorithms:
    o4: {type: INLINE, props: {algorithm-expression: "t_order_${order_id % 4}"}}
    i4: {type: MOD, props: {sharding-count: 4}}
    `+user+`
    two: {type: `+map[bool]string{false: "MOD", true: "HASH_MOD"}[byHash]+`, props: {sharding-count: 2}}
    d3: {type: MOD, props: {sharding-count: 3}}
`))
}

func bitsOfKeys(keys Keys) (bits []int64) {
	for _, key := range keys.Values() {
		if key, ok := key.(int64); ok {
			bits = append(bits, key%16)
		}
	}
	return bits
}

// usersOf returns the value of users for a query's rule.
func usersOf(query string) string {
	switch {
	case strings.Contains(query, "hashed."):
		return "hash"
	case strings.Contains(query, "t_item"), strings.Contains(query, "t_inline"):
		return "number"
	}
	return ""
}

func TestShardBits_ofRows(t *testing.T) {
	for _, tt := range append(statementCases(t, "testdata/shardbits.txt"), []statementCase{
		{"INSERT INTO t_order (user_id) VALUES (?)", []any{userID(7)}, "[7]"},
		{"INSERT INTO t_order (user_id) VALUES (?)", []any{sql.NullInt64{Int64: 7, Valid: true}}, "[7]"},
		{"INSERT INTO t_order (user_id) VALUES (?)", []any{true}, "[1]"},
		{"INSERT INTO t_order (user_id) VALUES (?)", []any{[]byte("abc")}, "[2]"},
		{"INSERT INTO t_order (user_id) VALUES (?)", []any{sql.NullString{String: "abc", Valid: true}}, "[2]"}, // a Valuer
		{"INSERT INTO integers.t_order (user_id) VALUES (?)", []any{[]byte(" 12 ")}, "[12]"},
		{"INSERT INTO t_order (user_id) VALUES (?)", []any{[]byte(nil)}, noShardBits},
		{"INSERT INTO t_order (user_id) VALUES (?)", []any{[]byte{0xff}}, noShardBits},
		{"INSERT INTO t_order (user_id) VALUES (?)", []any{time.Unix(0, 0)}, noShardBits},
		{"INSERT INTO hashed.t_one (user_id) VALUES (?)", []any{int64(1) << 33}, "[2]"},
		{"INSERT INTO hashed.t_inline (user_id) VALUES (?)", []any{int64(1)<<31 + 5}, "[11]"}, // hash -2^31 + 5
		{"INSERT INTO hashed.t_inline_2 (user_id) VALUES (?), (?)", []any{int64(1) << 33, 6}, "[2 6]"},
		{"INSERT INTO hashed.t_inline_3 (user_id) VALUES (?)", []any{int64(1) << 33}, "ds.t_inline_2"},
	}...) {
		t.Run(tt.query, func(t *testing.T) {
			db, base := openShards(t, bitsRule(t, usersOf(tt.query)), WithLogger(slog.New(slog.DiscardHandler)))
			switch {
			case strings.Contains(tt.query, "integers."):
				base.Columns = [][2]string{{"user_id", "bigint(20)"}}
			case regexp.MustCompile(`"|'|uint8{`).MatchString(tt.query + fmt.Sprintf("%#v", tt.args)):
				base.Columns = nil // strings stay strings
			}
			base.Result = fakedb.Result{Affected: int64(1 + strings.Count(tt.query, "), ("))}
			for range 2 {
				base.Forget()
				var keys Keys
				_, err := db.ExecContext(WithKeys(t.Context(), &keys), tt.query, tt.args...)
				have := cmp.Or(refusedFor(err), fmt.Sprint(bitsOfKeys(keys)))
				equal(t, have, tt.want, tt.query, tt.args, err)
				if sent := base.Queries("INTO "); err != nil && len(sent) > 0 {
					t.Errorf("have: %q sent\nwant: none", sent)
				}
			}
		})
	}
}

func TestShardBits_errors(t *testing.T) {
	db, _ := openShards(t, bitsRule(t, "number"), WithLogger(slog.New(slog.DiscardHandler)))
	_, err := db.Exec("INSERT INTO app.t_order (user_id) VALUES (?), (NOW())", 7)
	var none *StatementError
	if !errors.As(err, &none) || none.Reason != ReasonNoShardBits || none.Row != 2 || none.Table != "app.t_order" || none.Column != "user_id" || none.Err != nil {
		t.Fatalf("have: %#v", err)
	}
	for _, want := range []string{"table app.t_order: row 2", "shard bits from column user_id", "expression"} {
		contains(t, err.Error(), want, err)
	}
	_, err = db.Exec("INSERT INTO t_inline (user_id) VALUES (?)", -5)
	if place, ok := errors.AsType[*rule.PlaceError](err); !errors.As(err, &none) || !ok || place.Column != "user_id" || !strings.Contains(err.Error(), "t_inline_-1") {
		t.Errorf("have: %v", err)
	}
	for _, table := range []string{"t_order", "t_order_3"} {
		if keys, err := NextKeys(t.Context(), db, table, 2); !errors.As(err, new(*StatementError)) || !strings.Contains(err.Error(), "user_id") {
			t.Errorf("%s\nhave: %v, %v\nwant: no keys without their rows", table, keys, err)
		}
	}
}

// A name of two tables in different schemas is refused, as it is without shard bits.
func TestShardBits_ambiguousTable(t *testing.T) {
	r := mustParseRule(t, `
rules:
- !SHARDING
  tables:
    t_a: {actualDataNodes: ds.s1.t_x, keyGenerateStrategy: {column: order_id, keyGeneratorName: genes}}
    t_b: {actualDataNodes: ds.s2.t_x, keyGenerateStrategy: {column: order_id, keyGeneratorName: genes}}
  keyGenerators:
    genes: {type: SNOWFLAKE, props: {worker-id: 324, gene-column: user_id, gene-bits: 4}}
`)
	db, base := openShards(t, r)
	for _, query := range []string{"INSERT INTO t_x (user_id) VALUES (?)", "INSERT INTO t_x (a) VALUES (?)"} {
		if _, err := db.Exec(query, 7); !errors.As(err, new(*GeneratorError)) || strings.Contains(err.Error(), "panic") || len(base.Queries("INTO ")) > 0 {
			t.Errorf("have: %v, sent: %q", err, base.Queries("INTO "))
		}
	}
	mustExec(t, db, "INSERT INTO s2.t_x (user_id) VALUES (?)", 7)
}

// doubledRule returns a rule that shards orders by their key, and users by user_id, over n tables
// each.
func doubledRule(n int, typ string) string {
	return fmt.Sprintf(ruleText(`
		t_order ds.t_order_${0..%[1]d} - order_id:mod order_id:genes
		t_cart  ds.t_cart_${0..%[1]d}  - user_id:user cart_id:genes
	`, "", `
  keyGenerators:
    genes: {type: SNOWFLAKE, props: {worker-id: 322, gene-column: user_id, gene-bits: 4}}
  shardingAlgorithms:
    mod: {type: MOD, props: {sharding-count: %[2]d}}
    user: {type: %[3]s, props: {sharding-count: %[2]d}}
`), n-1, n, typ)
}

// TestShardBits_doubling generates keys with 2 tables, and doubles the tables up to the 16 that 4
// bits allow. All keys, of any age, belong to the table of their user at each step. The rows of
// each table stay, or move to one other table. 32 tables are refused.
func TestShardBits_doubling(t *testing.T) {
	for _, typ := range []string{"MOD", "HASH_MOD"} {
		users := map[int64]int64{} // by key
		rnd := rand.New(rand.NewPCG(13, 5))
		open := func(n int) (*rule.Rule, *sql.DB) {
			r := mustParseRule(t, doubledRule(n, typ))
			db, base := openShards(t, r)
			base.Result = fakedb.Result{Affected: 20}
			return r, db
		}
		for n := 2; n <= 16; n *= 2 {
			r, db := open(n)
			for i := range 500 {
				args, rows := make([]any, 20), make([]string, 20)
				for i := range args {
					args[i], rows[i] = rnd.Int64()>>rnd.IntN(60), "(?)"
					if typ == "HASH_MOD" && rnd.IntN(2) == 0 {
						args[i] = -args[i].(int64)
					}
				}
				var keys Keys
				table := []string{"t_order", "t_cart"}[i%2]
				must(db.ExecContext(WithKeys(t.Context(), &keys), "INSERT INTO "+table+" (user_id) VALUES "+strings.Join(rows, ","), args...))(t)
				for i, key := range keys.Values() {
					users[key.(int64)] = args[i].(int64)
				}
			}
			orders, carts := r.Tables()[0], r.Tables()[1]
			for key, user := range users {
				byKey, err := orders.Sharding.Place([]any{key})
				byUser, err2 := carts.Sharding.Place([]any{user})
				bits := key % 16
				byBits, err3 := carts.Sharding.Place([]any{bits})
				half := bits % int64(n/2)
				number := strings.TrimPrefix(byKey.Table, "t_order_")
				if err != nil || err2 != nil || err3 != nil || number != strings.TrimPrefix(byUser.Table, "t_cart_") || byBits != byUser ||
					number != fmt.Sprint(half) && number != fmt.Sprint(half+int64(n/2)) {
					t.Fatalf("%s %d, key %d, user %d\nhave: %v, %v, %v; %v %v %v", typ, n, key, user, byKey, byUser, byBits, err, err2, err3)
				}
			}
		}
		equal(t, len(users), 4*500*20)
		failsWith(t, errOf(rule.Parse("32.yaml", []byte(doubledRule(32, typ)))), "set gene-bits to 5 or more")
	}
}

// TestShardBits_rulesReplacedUnderLoad replaces the rule with rules that have other shard bits and
// more tables, while goroutines insert. Each key has the bits of its user that all rules have in
// common, and all keys are unique.
func TestShardBits_rulesReplacedUnderLoad(t *testing.T) {
	rules := make([]*rule.Rule, 12)
	for i := range rules {
		bits := 3 + i%4
		text := strings.Replace(doubledRule(2<<(i%3), "MOD"), "gene-bits: 4", fmt.Sprintf("gene-bits: %d", bits), 1)
		rules[i] = must(rule.Parse(t.Name(), []byte(text)))(t)
	}
	db, connector := idleDB(t, rules[0])
	var wg sync.WaitGroup
	var done atomic.Bool
	var n atomic.Int64
	made := make([]map[int64]int64, 4)
	for i := range made {
		made[i] = map[int64]int64{}
		wg.Go(func() {
			for user := int64(i); !done.Load(); user += 7 {
				res, err := db.Exec("INSERT INTO t_order (user_id) VALUES (?)", user)
				if err != nil {
					t.Error(err)
					n.Store(1 << 40)
					return
				}
				key, _ := res.LastInsertId()
				made[i][key] = user
				n.Add(1)
			}
		})
	}
	for n.Load() < 20_000 {
		for _, r := range rules {
			check(t, connector.SetRule(r))
		}
	}
	done.Store(true)
	wg.Wait()
	all := map[int64]int64{}
	for _, own := range made {
		for key, user := range own {
			if _, twice := all[key]; twice || key%8 != user%8 {
				t.Fatalf("key %d of user %d, made twice: %v", key, user, twice)
			}
			all[key] = user
		}
	}
	t.Logf("%d keys", len(all))
}

var bitsServerRule = ruleText(`
	g_order ds.g_order_${0..3} - order_id:four order_id:genes
	g_text  ds.g_text_${0..3}  - name:hash     order_id:names
	g_all   -                  - -             order_id:genes
`, "", `
  keyGenerators:
    genes: {type: SNOWFLAKE, props: {worker-id: 78, gene-column: user_id, gene-bits: 4}}
    names: {type: SNOWFLAKE, props: {worker-id: 79, gene-column: name, gene-bits: 4}}
  shardingAlgorithms:
    four: {type: MOD, props: {sharding-count: 4}}
    hash: {type: HASH_MOD, props: {sharding-count: 4}}
`)

// TestShardBits_onServers checks that the key of each row has its user's shard bits, with every form
// of INSERT.
func TestShardBits_onServers(t *testing.T) { onEach(t, testShardBits_onServers) }

func testShardBits_onServers(t *testing.T) {
	file := ruleFile(t, bitsServerRule)
	for _, params := range []string{"", "&interpolateParams=true", "&shardkeyStatements=always", "&shardkeyStatements=off"} {
		db := mustOpen(t, "shardkey", testserver.Database(t)+"?parseTime=true&multiStatements=true&shardkeyRule="+file+params)
		mustExec(t, db, "CREATE TABLE g_all (order_id BIGINT PRIMARY KEY, user_id BIGINT, a INT, UNIQUE (user_id))")
		mustExec(t, db, "CREATE TABLE src (user_id BIGINT, name VARCHAR(20), seen DATETIME)")
		mustExec(t, db, "INSERT INTO src VALUES (1, 'ann', NULL), (2, 'bob', NOW()), (3, 'zoë', NULL), (NULL, NULL, NULL)")
		for i := range 4 {
			mustExec(t, db, fmt.Sprintf("CREATE TABLE g_order_%d (order_id BIGINT PRIMARY KEY, user_id BIGINT UNSIGNED, a INT)", i))
			mustExec(t, db, fmt.Sprintf("CREATE TABLE g_text_%d (order_id BIGINT PRIMARY KEY, name VARCHAR(40), a INT)", i))
		}
		testShardBitsOfForms(t, db)
		testShardBitsOfSelect(t, db)
	}
}

// testShardBitsOfForms inserts into one table with statements of all forms.
func testShardBitsOfForms(t *testing.T, db *sql.DB) {
	next := 0
	users := func(n int) (args []any) {
		for range n {
			next++
			args = append(args, next)
		}
		return args
	}
	for range 3 {
		mustExec(t, db, "INSERT INTO g_all (user_id) VALUES (?)", users(1)...)
		mustExec(t, db, "INSERT INTO g_all VALUES (NULL, ?, 1), (0, ?, 2), (DEFAULT, ?, 3)", users(3)...)
		mustExec(t, db, "INSERT INTO g_all (a, user_id) VALUES (?, ?)", 5, fmt.Sprint(users(1)[0])) // a string in an integer column
		mustExec(t, db, "INSERT INTO g_all SET a = 1, user_id = ?", users(1)...)
		mustExec(t, db, "REPLACE INTO g_all (user_id) VALUES (?), (?)", users(2)...)
		mustExec(t, db, "REPLACE INTO g_all SET user_id = ?", users(1)...)
		mustExec(t, db, "INSERT IGNORE INTO g_all (user_id) VALUES (?), (?)", 1, users(1)[0])
		mustExec(t, db, "INSERT INTO g_all (user_id, a) VALUES (?, 1), (?, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)", 2, users(1)[0])
		mustExec(t, db, fmt.Sprintf("INSERT INTO g_all (user_id) VALUES (%d); INSERT INTO g_all (user_id) VALUES (%d)", users(2)...))
		mustExec(t, db, fmt.Sprintf("INSERT INTO g_all (user_id) VALUES (%d), ('%d')", users(1)[0], users(1)[0]))
		stmt := must(db.Prepare("INSERT INTO g_all (user_id, a) VALUES (?, ?)"))(t)
		for range 5 {
			res := must(stmt.Exec(users(1)[0], 1))(t)
			if id, _ := res.LastInsertId(); id%16 != int64(next%16) {
				t.Errorf("have: key %d of user %d", id, next)
			}
		}
		if _, err := stmt.Exec(nil, 1); reasonOf(err) != ReasonNoShardBits {
			t.Errorf("have: %v\nwant: reason no-shard-bits", err)
		}
		stmt.Close()
	}
	for _, query := range []string{"INSERT INTO g_all (user_id) VALUES (?), (NULL)", "INSERT INTO g_all (user_id) VALUES (? + 1)", "INSERT INTO g_all (a) VALUES (?)",
		"INSERT INTO g_all (user_id) VALUES (?), ('x')", "INSERT INTO g_all SET user_id = DEFAULT, a = ?"} {
		if _, err := db.Exec(query, 1000); reasonOf(err) != ReasonNoShardBits {
			t.Errorf("%s\nhave: %v\nwant: reason no-shard-bits", query, err)
		}
	}
	equal(t, number(t, db, "SELECT COUNT(*) FROM g_all"), int64(next))
	equal(t, number(t, db, "SELECT COUNT(*) FROM g_all WHERE order_id % 16 <> user_id % 16"), 0)
}

// testShardBitsOfSelect checks that an INSERT … SELECT of several rows is refused: the server runs it.
func testShardBitsOfSelect(t *testing.T, db *sql.DB) {
	_, err := db.Exec("INSERT INTO g_all (user_id, a) SELECT user_id, 1 FROM src WHERE user_id > ?", 0)
	equal(t, reasonOf(err), ReasonNoShardBits)
}
