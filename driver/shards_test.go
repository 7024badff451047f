package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	testrouter "github.com/shardkey/shardkey/internal/test/router"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// shardedRule returns a rule whose tables are sharded in all ways that the guard distinguishes.
// settings are settings of t_order's key column.
func shardedRule(t testing.TB, settings string) *rule.Rule {
	t.Helper()
	return mustParseRule(t, ruleText(`
		t_order ds_${0..1}.t_order_${0..3}                  user_id:d2  order_id:o4 order_id:keys
		t_user  ds.t_user_${0..3}                           -           user_id:h4  id:keys
		t_log   ds.t_log_2026${['01','02','03']}            -           made:month  id:keys
		t_both  ds_${0..1}.t_both_${0..1}                   user_id:two id:two      id:keys
		t_item  ds_0.t_item_${0..1},ds_1.t_item_${2..3}     user_id:d2  user_id:i4  id:keys
		t_one   ds_${0..1}.t_one                            user_id:d2  -           id:keys
		t_class ds.t_class_${0..1}                          -           user_id:c   id:keys
		t_text  ds.t_text_${0..3}                           -           id:x4       id:texts
	`, settings, `
    t_typed:
      actualDataNodes: ds.t_typed_${0..3}
      tableStrategy: {standard: {shardingColumn: user_id, javaType: Integer, shardingAlgorithmName: h4}}
      keyGenerateStrategy: {column: id, keyGeneratorName: keys`+settings+`}
  keyGenerators:
    keys: {type: SHARD_COUNTER}
    texts: {type: SHARD_TEXTS}
  shardingAlgorithms:
    d2: {type: INLINE, props: {algorithm-expression: "ds_${(user_id >> 1) % 2}"}}
    o4: {type: INLINE, props: {algorithm-expression: "t_order_${order_id % 4}"}}
    i4: {type: INLINE, props: {algorithm-expression: "t_item_${user_id % 4}"}}
    h4: {type: HASH_MOD, props: {sharding-count: 4}}
    x4: {type: HASH_MOD, props: {sharding-count: 4}}
    two: {type: MOD, props: {sharding-count: 2}}
    month: {type: INTERVAL, props: {datetime-pattern: "yyyy-MM-dd HH:mm:ss", datetime-lower: "2026-01-01 00:00:00", datetime-upper: "2026-03-31 00:00:00", sharding-suffix-pattern: yyyyMM, datetime-interval-amount: 1, datetime-interval-unit: MONTHS}}
    c: {type: CLASS_BASED, props: {strategy: STANDARD, algorithmClassName: a.B}}
`))
}

// shardCounter generates the keys 1, 2, …, and counts its calls.
type shardCounter struct {
	next  int64
	calls int
}

func (g *shardCounter) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	g.calls++
	for i := range keys {
		g.next++
		keys[i] = g.next
	}
	return nil
}

func (g *shardCounter) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, g, c, n)
}

var lastCounter *shardCounter

func init() {
	spi.RegisterKeyGenerator("SHARD_COUNTER", func(spi.Props) (spi.KeyGenerator, error) {
		lastCounter = &shardCounter{}
		return lastCounter, nil
	})
	spi.RegisterKeyGenerator("SHARD_TEXTS", func(spi.Props) (spi.KeyGenerator, error) {
		return texts(func(i int) any { return fmt.Sprintf("k%05d", i+1) }), nil
	})
}

// openShards opens a rule with a server of one connection, whose tables have these columns.
func openShards(t testing.TB, r *rule.Rule, options ...Option) (*sql.DB, *fakedb.Server) {
	t.Helper()
	base := &fakedb.Server{Columns: [][2]string{{"order_id", "bigint(20)"}, {"id", "bigint(20)"}, {"user_id", "bigint(20)"}, {"made", "datetime"}}}
	db, _ := openFake(t, base, r, append([]Option{Config{Server: "other"}}, options...)...)
	db.SetMaxOpenConns(1)
	return db, base
}

type userID int

func TestShardGuard_refuses(t *testing.T) {
	feb := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, tt := range append(statementCases(t, "testdata/shardguard.txt"), []statementCase{
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{[]byte("6")}, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{uint8(6)}, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{userID(6)}, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{sql.NullInt64{Int64: 6, Valid: true}}, "t_order_2"},
		{"INSERT INTO t_user_0 (user_id) VALUES (?)", []any{true}, "ds.t_user_1"},
		{"INSERT INTO t_user_1 (user_id) VALUES (?)", []any{[]byte("abc")}, ""},
		{"INSERT INTO t_log_202602 (made) VALUES (?)", []any{feb}, ""},
		{"INSERT INTO t_log_202601 (made) VALUES (?)", []any{feb}, "ds.t_log_202602"},
		{"INSERT INTO t_log_202601 (made) VALUES (?)", []any{feb.AddDate(3, 0, 0)}, "nowhere"},
	}...) {
		t.Run(tt.query, func(t *testing.T) {
			db, base := openShards(t, shardedRule(t, ""))
			switch {
			case strings.Contains(tt.query, "18446744073709551615"):
				base.Columns = [][2]string{{"user_id", "bigint unsigned"}}
			case strings.Contains(tt.query+fmt.Sprint(tt.args), "abc"), strings.Contains(tt.query, "'bc'"):
				base.Columns = [][2]string{{"user_id", "varchar(36)"}}
			case strings.Contains(tt.query, "t_text"):
				base.Columns = [][2]string{{"id", "varchar(36)"}}
			}
			_, err := db.Exec(tt.query, tt.args...)
			isWrong := errors.Is(err, ErrWrongShard)
			if !isWrong && strings.Contains(tt.query, "SELECT") {
				err = nil // the fake server has no such rows
			}
			equal(t, refusedFor(err), tt.want, tt.query, tt.args, err)
			if sent := base.Queries("INTO "); isWrong && (len(sent) > 0 || lastCounter.calls > 1) {
				t.Errorf("have: %q sent, %d calls of the generator\nwant: none", sent, lastCounter.calls)
			}
		})
	}
}

func TestShardGuard_error(t *testing.T) {
	db, base := openShards(t, shardedRule(t, ""))
	base.Columns = [][2]string{{"user_id", "varchar(200)"}}
	_, err := db.Exec("INSERT INTO app.t_user_3 (user_id) VALUES (?), (?)", 7, "a"+strings.Repeat("b", 100))
	var at *StatementError
	if wrong, ok := errors.AsType[*WrongShardError](err); !errors.As(err, &at) || !ok || at.Row != 2 || at.Table != "app.t_user_3" || wrong.Columns[0] != "user_id" || len(wrong.Values) != 1 || wrong.Meant.Table == "" {
		t.Fatalf("have: %#v", err)
	}
	for _, want := range []string{"table app.t_user_3: row 2: column user_id places the row in ds.t_user_", "; insert it there"} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "abb") {
			t.Errorf("have: %v\nwant: %s in it, and no value", err, want)
		}
	}
}

func TestShardGuard_warnAndOff(t *testing.T) {
	for _, tt := range []struct {
		settings string
		warnings int
	}{{", shardGuard: warn", 1}, {", shardGuard: off", 0}} {
		var log strings.Builder
		db, base := openShards(t, shardedRule(t, tt.settings), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		for range 2 {
			mustExec(t, db, "INSERT INTO t_user_1 (user_id) VALUES (?)", 7)
			mustExec(t, db, "INSERT INTO t_user_1 (user_id) VALUES (8)")
		}
		if n := strings.Count(log.String(), "row sent to the wrong table"); n != tt.warnings || len(base.Queries("INTO ")) != 4 {
			t.Errorf("%s\nhave: %d warnings, %d sent: %s\nwant: %d and 4", tt.settings, n, len(base.Queries("INTO ")), log.String(), tt.warnings)
		}
	}
}

func TestDrawnKeys_belongToTheTableNamed(t *testing.T) {
	for _, tt := range []struct {
		query string
		args  []any
		want  string // the keys
		calls int
	}{
		{"INSERT INTO t_order_2 (a) VALUES (?)", []any{1}, "[2]", 1},
		{"INSERT INTO t_order_2 (a) VALUES (?), (?), (?)", []any{1, 2, 3}, "[2 6 10]", 1},
		{"INSERT INTO t_order_0 (a) VALUES (1), (2)", nil, "[4 8]", 1},
		{"INSERT INTO t_order_0 (order_id, a) VALUES (?, 1), (?, 2), (?, 3)", []any{nil, 16, 0}, "[4 16 8]", 1},
		{"INSERT INTO t_order_3 SET a = 1", nil, "[3]", 1},
		{"INSERT INTO t_order (a) VALUES (1), (2)", nil, "[1 2]", 1},
		{"INSERT INTO ds_0.t_both_1 (user_id) VALUES (4), (6)", nil, "[1 3]", 1},
		{"INSERT INTO ds_0.t_both_1 (user_id) VALUES (?), (?)", []any{4, 4}, "[1 3]", 1},
		{"INSERT INTO t_text_0 (a) VALUES (?)", []any{1}, "[k00003]", 0},
		{"INSERT INTO t_text_0 (a) VALUES (?), (?)", []any{1, 2}, "[k00003 k00007]", 0},
		{"INSERT INTO t_text_2 (a) VALUES (1)", nil, "[k00001]", 0},
	} {
		t.Run(tt.query, func(t *testing.T) {
			db, base := openShards(t, shardedRule(t, ""))
			if strings.Contains(tt.query, "t_text") {
				base.Columns = [][2]string{{"id", "varchar(36)"}}
			}
			var keys Keys
			_, err := db.ExecContext(WithKeys(t.Context(), &keys), tt.query, tt.args...)
			if have := fmt.Sprint(keys.Values()); err != nil || have != tt.want || lastCounter.calls != tt.calls {
				t.Errorf("%s %v\nhave: %s, %d calls (%v)\nwant: %s, %d", tt.query, tt.args, have, lastCounter.calls, err, tt.want, tt.calls)
			}
		})
	}
}

func TestDrawnKeys_nextKeys(t *testing.T) {
	db, _ := openShards(t, shardedRule(t, ""))
	keys, err := NextKeys(t.Context(), db, "t_order_3", 3)
	if have := fmt.Sprint(keys); err != nil || have != "[3 7 11]" {
		t.Errorf("have: %s, %v\nwant: [3 7 11]", have, err)
	}
}

func TestDrawnKeys_none(t *testing.T) {
	db, base := openShards(t, shardedRule(t, ""))
	_, err := db.Exec("INSERT INTO ds_0.t_both_1 (user_id) VALUES (?)", 5) // every row of user 5 is in ds_1
	if !errors.Is(err, spi.ErrNoFittingKey) || !errors.As(err, new(*GeneratorError)) || len(base.Queries("INTO ")) != 0 {
		t.Errorf("have: %v, %q\nwant: ErrNoFittingKey, nothing sent", err, base.Queries("INTO "))
	}
}

// Results of refusedFor, in addition to the right table of a row.
const (
	nowhere     = "nowhere"
	expression  = "expression" // of an assignment that only the server can evaluate
	noShardBits = "no shard bits"
)

// refusedFor describes why a statement was refused, with "" for no error.
func refusedFor(err error) string {
	wrong, ok := errors.AsType[*WrongShardError](err)
	switch {
	case err == nil:
		return ""
	case ok && (reasonOf(err) != ReasonWrongShard || !errors.Is(err, ErrWrongShard)):
		return err.Error()
	case ok && wrong.Values == nil:
		return expression
	case ok && wrong.Err != nil:
		return nowhere
	case ok:
		return wrong.Meant.String()
	case reasonOf(err) == ReasonNoShardBits && errors.Is(err, ErrUnsupportedStatement):
		return noShardBits
	}
	return err.Error()
}

func TestUpsertGuard_refuses(t *testing.T) {
	const user = "INSERT INTO t_user_3 (id, user_id) VALUES (1, 7) ON DUPLICATE KEY UPDATE "
	const bits = "INSERT INTO t_item_3 (order_id, user_id) VALUES (19, 3) ON DUPLICATE KEY UPDATE "
	for _, tt := range append(statementCases(t, "testdata/upsertguard.txt"), []statementCase{
		{user + "user_id = ?", []any{uint64(8)}, "ds.t_user_0"},
		{user + "user_id = ?", []any{sql.NullInt64{Int64: 8, Valid: true}}, "ds.t_user_0"},
		{user + "user_id = ?", []any{[]byte("8")}, ""}, // only the server knows the stored value
		// The shard bits of another user may belong in another table.
		{bits + "user_id = ?", []any{7}, ""},
		{bits + "user_id = ?", []any{8}, "t_item_0"},
		{bits + "user_id = 8, a = 1", nil, "t_item_0"},
		{bits + "user_id = user_id", nil, ""},
		{bits + "user_id = user_id + 1", nil, expression},
	}...) {
		t.Run(tt.query, func(t *testing.T) {
			r := shardedRule(t, "")
			if strings.HasPrefix(tt.query, bits) {
				r = bitsRule(t, "number")
			}
			db, base := openShards(t, r)
			base.Columns = [][2]string{{"id", "bigint"}, {"order_id", "bigint"}, {"user_id", "bigint"}}
			_, err := db.Exec(tt.query, tt.args...)
			equal(t, refusedFor(err), tt.want, tt.query, tt.args)
			if at, ok := errors.AsType[*StatementError](err); ok {
				equal(t, at.Row, 0, "row")
			}
			if (len(base.Sent) > 0) != (tt.want == "") {
				t.Errorf("have: %q\nwant: nothing sent if it is refused", base.Calls)
			}
		})
	}
}

// An UPDATE is sent unchanged, with any assignments.
func TestShardGuard_leavesUpdates(t *testing.T) {
	for _, query := range []string{
		"UPDATE t_user_3 SET user_id = 8",
		"UPDATE t_user_3 SET user_id = user_id + 1 WHERE id = 5",
		"UPDATE x JOIN t_user_3 u ON u.id = x.id SET u.user_id = x.n",
		"WITH n AS (SELECT 1 AS id) UPDATE t_user_3 u JOIN n USING (id) SET u.user_id = 8",
	} {
		db, base := openShards(t, shardedRule(t, ""))
		if _, err := db.Exec(query); err != nil {
			t.Errorf("%s\nhave: %v", query, err)
		}
		equal(t, fmt.Sprint(base.Sent), "["+query+" []]", "sent")
	}
}

// randomColumns are the columns of random rules' tables.
var randomColumns = [][2]string{
	{"order_id", "bigint"}, {"user_id", "bigint"}, {"name", "varchar(64)"}, {"created", "varchar(32)"},
}

// openRandom opens a random rule with a server that accepts all rows.
func openRandom(t *testing.T, r *rule.Rule) (*sql.DB, *fakedb.Server) {
	t.Helper()
	db, base := openShards(t, r, WithLogger(slog.New(slog.DiscardHandler)))
	base.Columns = randomColumns
	base.Exec = func(query string) (driver.Result, error) {
		return driver.RowsAffected(strings.Count(query, "(") - 1), nil
	}
	return db, base
}

// generatorsOfRandomRules generate the key of a column.
var generatorsOfRandomRules = []struct{ column, generator string }{
	{"order_id", "{type: SNOWFLAKE, props: {worker-id: 5, max-vibration-offset: 4095}}"},
	{"order_id", "{type: SNOWFLAKE, props: {worker-id: 6}}"},
	{"order_id", "{type: SNOWFLAKE_RING, props: {worker-id: 7}}"},
	{"order_id", "{type: SHARD_COUNTER}"},
	{"order_id", "{type: SNOWFLAKE, props: {worker-id: 8, layout: 41-4-18}}"},
	{"name", "{type: UUID}"},
	{"name", "{type: NANOID}"},
}

// shardColumns are the columns of a random rule's table in INSERTs.
var shardColumns = []string{"order_id", "user_id", "name", "created"}

// shardStatement is an INSERT of random rows into an actual table.
type shardStatement struct {
	query string
	args  []any
	rows  []map[string]any // without generated keys
	node  testrouter.Node
	// schema means that the data source qualifies the table.
	schema bool
}

// rowPool contains rows of a rule by actual table, in the order of their generation.
type rowPool struct {
	nodes []testrouter.Node
	rows  map[testrouter.Node][]map[string]any
}

func newRowPool(rr *testrouter.Rule) *rowPool {
	p := &rowPool{rows: map[testrouter.Node][]map[string]any{}}
	for range 400 {
		row := rr.Row()
		at, err := rr.Router.Route(row)
		if err != nil {
			at = rr.Router.Nodes[0] // it belongs to no table
		}
		if row["order_id"] == int64(0) {
			continue // 0 and NULL request a generated key
		}
		if p.rows[at] == nil {
			p.nodes = append(p.nodes, at)
		}
		p.rows[at] = append(p.rows[at], row)
	}
	return p
}

func newShardStatement(rr *testrouter.Rule, pool *rowPool, key string, generated bool, rows int) *shardStatement {
	from := rr.IntN(len(pool.nodes))
	s := &shardStatement{node: pool.nodes[from], schema: rr.IntN(2) == 0}
	right := rr.IntN(8) > 0 // the rows belong to the table, apart from their keys
	for range rows {
		if !right && rr.IntN(4) == 0 {
			from = rr.IntN(len(pool.nodes))
		}
		rows := pool.rows[pool.nodes[from]]
		s.rows = append(s.rows, maps.Clone(rows[rr.IntN(len(rows))]))
	}
	name := s.node.Table
	if s.schema {
		name = s.node.DataSource + "." + name
	}
	var columns, values []string
	for _, c := range shardColumns {
		if c != key || !generated {
			columns, values = append(columns, c), append(values, "?")
		}
	}
	tuple := "(" + strings.Join(values, ", ") + ")"
	s.query = "INSERT INTO " + name + " (" + strings.Join(columns, ", ") + ") VALUES " + tuple + strings.Repeat(", "+tuple, len(s.rows)-1)
	for _, row := range s.rows {
		for _, c := range columns {
			s.args = append(s.args, row[c])
		}
	}
	return s
}

// complete sets the keys of the rows to those that were sent.
func (s *shardStatement) complete(key string, sent []driver.Value) {
	width := len(sent) / len(s.rows)
	for i, row := range s.rows {
		row[key] = sent[i*width+width-1]
	}
}

// isHere reports whether the router chooses the statement's table for a row.
func (s *shardStatement) isHere(rr *testrouter.Rule, row map[string]any) (is bool, err error) {
	at, err := rr.Router.Route(row)
	return err == nil && at.Table == s.node.Table && (!s.schema || at.DataSource == s.node.DataSource), err
}

// TestShards_asTheRouter inserts random rows of random rules into random actual tables, with keys
// of every kind of generator. It compares the results with an independent router: a row may be
// sent only if the router chooses the statement's table, and refused only if it doesn't.
func TestShards_asTheRouter(t *testing.T) {
	const rules, statements = 60, 25
	r := rand.New(rand.NewPCG(13, 15))
	var rows, refused, unfit int
	types, generators := map[string]int{}, map[string]int{}
	for range rules {
		rr := testrouter.RandomRule(r)
		g := generatorsOfRandomRules[r.IntN(len(generatorsOfRandomRules))]
		if g.column == "name" && rr.Numeric("name") {
			g = generatorsOfRandomRules[0] // strings that are no numbers belong to no table
		}
		text := rr.Text(g.column, g.generator, "")
		parsed := mustParseRule(t, text)
		db, base := openRandom(t, parsed)
		pool := newRowPool(rr)
		mayGenerate := true // finding out that no key matches takes long
		statements, most := statements, 60
		if strings.Contains(g.generator, "SNOWFLAKE") && rr.Uses("order_id") {
			statements, most = 6, 6 // matching keys are rare, so each takes long
		}
		for range statements {
			generated := mayGenerate && rr.IntN(3) > 0
			s := newShardStatement(rr, pool, g.column, generated, 1+rr.IntN(most))
			_, err := db.Exec(s.query, s.args...)
			var at *StatementError
			var wrong *WrongShardError
			switch {
			case errors.As(err, &at) && errors.As(err, &wrong):
				refused++
				row := s.rows[at.Row-1]
				is, routeErr := s.isHere(rr, row)
				if generated {
					// The key isn't generated yet, and maybe no key matches.
					is = is && !rr.Uses(g.column)
				}
				if is || !generated && s.schema && errors.Is(routeErr, testrouter.ErrNowhere) != (wrong.Err != nil) {
					t.Fatalf("%s\n%s\n%v\nhave: %v\nwant: %v", text, s.query, row, err, routeErr)
				}
			case errors.Is(err, spi.ErrNoFittingKey):
				unfit++
				mayGenerate = false
			case err != nil:
				t.Fatalf("%s\n%s\nhave: %v", text, s.query, err)
			default:
				if generated {
					s.complete(g.column, base.Sent[len(base.Sent)-1].Args)
				}
				for _, row := range s.rows {
					is, err := s.isHere(rr, row)
					if err != nil && (!s.schema || !errors.Is(err, testrouter.ErrNowhere)) {
						continue // the router doesn't know the table, or the data source differs, which the name doesn't show
					}
					if !is {
						t.Fatalf("%s\n%s\n%v is sent\nhave: %v\nwant: it is not in %s", text, s.query, row, err, s.node)
					}
					rows++
				}
				generators[g.generator] += len(s.rows)
				if rr.Router.Table != nil {
					types[rr.Router.Table.Type] += len(s.rows)
				}
			}
		}
		noError(t, db.Close())
	}
	if rows < rules*statements*4 || refused < rules*statements/40 || len(generators) < len(generatorsOfRandomRules) || len(types) < 6 {
		t.Errorf("have: %d rows sent, %d statements refused, %v %v\nwant: more of each", rows, refused, types, generators)
	}
	t.Logf("%d rows sent and found, %d statements refused, %d without a key that fits\n%v\n%v", rows, refused, unfit, types, generators)
}

// The guard refuses a row only if the router knows that it belongs to another table. An
// expression that can't be evaluated is no reason to refuse a row.
func TestShards_unknownPlacesAreSent(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 8))
	var right, unknown, refused, accepted int
	for range 300 {
		rr := testrouter.RandomRuleOfNames(r)
		text := rr.Text("order_id", "{type: SHARD_COUNTER}", "")
		parsed := mustParseRule(t, text)
		db, _ := openRandom(t, parsed)
		for range 40 {
			name := testrouter.RandomString(r)
			named := rr.Router.Nodes[rr.IntN(len(rr.Router.Nodes))].Table
			_, err := db.Exec("INSERT INTO "+named+" (name) VALUES (?)", name)
			at, unplaced := rr.Router.Route(map[string]any{"name": name})
			switch {
			case err != nil && !errors.Is(err, ErrWrongShard):
				t.Fatalf("%s\n%q\nhave: %v", text, name, err)
			case unplaced == nil && at.Table == named:
				right++
			case unplaced != nil && !errors.Is(unplaced, testrouter.ErrNowhere):
				unknown++
			case err != nil:
				refused++
				continue
			default:
				accepted++ // only Java evaluates toUpperCase beyond ASCII
				continue
			}
			if err != nil {
				t.Fatalf("%s\n%q in %s\nhave: %v\nwant: sent; the router: %v, %v", text, name, named, err, at, unplaced)
			}
		}
		noError(t, db.Close())
	}
	if right < 2000 || unknown < 100 || refused < 4000 || accepted > refused/3 {
		t.Errorf("have: %d right, %d of unknown place, %d refused, %d wrong ones sent", right, unknown, refused, accepted)
	}
	t.Logf("%d right, %d of unknown place, %d refused, %d wrong ones sent", right, unknown, refused, accepted)
}
