package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// shardedRule is a rule whose tables are sharded in every way that the guard has to
// tell apart. settings stand beside the key's column of t_order.
func shardedRule(t testing.TB, settings string) *rule.Rule {
	t.Helper()
	r := must(rule.Parse(t.Name()+strconv.FormatInt(ruleNumber.Add(1), 10), []byte(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_${0..1}.t_order_${0..3}
      databaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: d2}}
      tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: o4}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: keys`+settings+`}
    t_user:
      actualDataNodes: ds.t_user_${0..3}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: h4}}
      keyGenerateStrategy: {column: id, keyGeneratorName: keys`+settings+`}
    t_typed:
      actualDataNodes: ds.t_typed_${0..3}
      tableStrategy: {standard: {shardingColumn: user_id, javaType: Integer, shardingAlgorithmName: h4}}
      keyGenerateStrategy: {column: id, keyGeneratorName: keys`+settings+`}
    t_log:
      actualDataNodes: ds.t_log_2026${['01', '02', '03']}
      tableStrategy: {standard: {shardingColumn: made, shardingAlgorithmName: month}}
      keyGenerateStrategy: {column: id, keyGeneratorName: keys`+settings+`}
    t_both:
      actualDataNodes: ds_${0..1}.t_both_${0..1}
      databaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: two}}
      tableStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: two}}
      keyGenerateStrategy: {column: id, keyGeneratorName: keys`+settings+`}
    t_item:
      actualDataNodes: ds_0.t_item_${0..1},ds_1.t_item_${2..3}
      databaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: d2}}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: i4}}
      keyGenerateStrategy: {column: id, keyGeneratorName: keys`+settings+`}
    t_one:
      actualDataNodes: ds_${0..1}.t_one
      databaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: d2}}
      keyGenerateStrategy: {column: id, keyGeneratorName: keys`+settings+`}
    t_class:
      actualDataNodes: ds.t_class_${0..1}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: c}}
      keyGenerateStrategy: {column: id, keyGeneratorName: keys`+settings+`}
    t_text:
      actualDataNodes: ds.t_text_${0..3}
      tableStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: x4}}
      keyGenerateStrategy: {column: id, keyGeneratorName: texts`+settings+`}
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
`)))(t)
	return r
}

// shardCounter counts from 1, and its calls.
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
	return spi.BoxedKeys(ctx, g, c, n)
}

// shardTexts makes texts.
type shardTexts struct{ next int }

func (g *shardTexts) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i := range keys {
		g.next++
		keys[i] = fmt.Sprintf("k%05d", g.next)
	}
	return keys, nil
}

var lastCounter *shardCounter

func init() {
	spi.RegisterKeyGenerator("SHARD_COUNTER", func(spi.Props) (spi.KeyGenerator, error) {
		lastCounter = &shardCounter{}
		return lastCounter, nil
	})
	spi.RegisterKeyGenerator("SHARD_TEXTS", func(spi.Props) (spi.KeyGenerator, error) { return &shardTexts{}, nil })
}

// openShards opens a rule over a fake, whose calls are those beside checks of arguments.
func openShards(t testing.TB, r *rule.Rule, options ...Option) (*sql.DB, *answeringBase) {
	t.Helper()
	base := &answeringBase{fakeBase: &fakeBase{kind: "direct"}, columns: [][2]string{{"order_id", "bigint(20)"}, {"id", "bigint(20)"}}}
	base.answer = cannedAnswer{Affected: 1}
	connector := must(NewConnector(base, r, append([]Option{Config{Server: "other"}}, options...)...))(t)
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db, base
}

func (b *answeringBase) sentInserts() (sent []string) {
	for _, call := range b.calls {
		if strings.Contains(strings.ToUpper(call), "INTO ") {
			sent = append(sent, call)
		}
	}
	return sent
}

type userID int

func TestShardGuard_refuses(t *testing.T) {
	feb := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, tt := range []struct {
		query string
		args  []any
		want  string // the table that is meant; "" when it is sent; "nowhere"
	}{
		// The key is given.
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{5}, ""},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{6}, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (6, 1)", nil, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES ('6', 1)", nil, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{"6"}, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{"5"}, ""},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{[]byte("6")}, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{uint8(6)}, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{userID(6)}, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (?, 1)", []any{sql.NullInt64{Int64: 6, Valid: true}}, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (-1, 1)", nil, "nowhere"},
		{"INSERT INTO t_order_1 (order_id, a) VALUES (5 + 1, 1)", nil, ""},
		{"INSERT INTO t_order (order_id, a) VALUES (6, 1)", nil, ""},
		{"INSERT INTO app.T_ORDER_1 (order_id, a) VALUES (6, 1)", nil, "t_order_2"},
		{"REPLACE INTO t_order_1 SET a = 1, order_id = 6", nil, "t_order_2"},
		{"INSERT INTO t_order_1 (order_id) VALUES (6) ON DUPLICATE KEY UPDATE a = 1", nil, "t_order_2"},
		// The qualifier is the name of a data source.
		{"INSERT INTO ds_1.t_order_1 (order_id, user_id) VALUES (5, 2)", nil, ""},
		{"INSERT INTO ds_0.t_order_1 (order_id, user_id) VALUES (5, 2)", nil, "ds_1.t_order_1"},
		{"INSERT INTO ds_0.t_order_1 (order_id, user_id) VALUES (5, ?)", []any{2}, "ds_1.t_order_1"},
		{"INSERT INTO ds_0.t_order_1 (order_id) VALUES (6)", nil, ""}, // user_id is not known
		// Another column decides, and the key is generated.
		{"INSERT INTO t_user_3 (user_id) VALUES (?)", []any{7}, ""},
		{"INSERT INTO t_user_1 (user_id) VALUES (?)", []any{7}, "ds.t_user_3"},
		{"INSERT INTO t_user_1 (user_id) VALUES (7)", nil, "ds.t_user_3"},
		{"INSERT INTO t_user_1 (user_id) VALUES (+7)", nil, "ds.t_user_3"},
		{"INSERT INTO t_user_1 (user_id) VALUES ((007))", nil, "ds.t_user_3"},
		{"INSERT INTO t_user_0 (user_id) VALUES (-1)", nil, ""},
		{"INSERT INTO t_user_1 (user_id) VALUES (-1)", nil, "ds.t_user_0"},
		{"INSERT INTO t_typed_1 (user_id) VALUES (-1)", nil, ""},
		{"INSERT INTO t_typed_0 (user_id) VALUES (-1)", nil, "ds.t_typed_1"},
		{"INSERT INTO t_user_1 (user_id) VALUES ('abc')", nil, "ds.t_user_2"},
		{"INSERT INTO t_user_2 (user_id) VALUES (/* c */ 'a' 'bc')", nil, ""},
		{"INSERT INTO t_user_1 (user_id) VALUES (?)", []any{"abc"}, "ds.t_user_2"},
		{"INSERT INTO t_user_1 (user_id) VALUES (?)", []any{7.0}, "ds.t_user_3"},
		{"INSERT INTO t_user_0 (user_id) VALUES (?)", []any{true}, "ds.t_user_1"},
		{"INSERT INTO t_user_1 (user_id) VALUES (?)", []any{nil}, "nowhere"},
		{"INSERT INTO t_user_1 (user_id) VALUES (NULL)", nil, "nowhere"},
		{"INSERT INTO t_user_1 (user_id) VALUES (DEFAULT)", nil, ""},
		{"INSERT INTO t_user_1 (user_id) VALUES (7.5)", nil, ""},
		{"INSERT INTO t_user_1 (user_id) VALUES (0x07)", nil, ""},
		{"INSERT INTO t_user_1 (user_id) VALUES (@u)", nil, ""},
		{"INSERT INTO t_user_1 (user_id) VALUES (LAST_INSERT_ID())", nil, ""},
		{"INSERT INTO t_user_1 (user_id) VALUES (?)", []any{[]byte("abc")}, ""},
		{"INSERT INTO t_user_1 (a) VALUES (?)", []any{7}, ""},
		{"INSERT INTO t_user_1 (a, `USER_ID`, b) VALUES (?, ?, ?)", []any{1, 7, 1}, "ds.t_user_3"},
		{"INSERT INTO t_user_1 SET user_id = ?, b = 1", []any{7}, "ds.t_user_3"},
		{"INSERT INTO t_user_1 () VALUES ()", nil, ""},
		{"INSERT INTO t_user_1 (user_id) SELECT 7", nil, ""},
		// One of several rows, of several statements.
		{"INSERT INTO t_user_3 (a, user_id, id) VALUES (1, 7, 1), (?, ?, ?), (3, 15, 3)", []any{1, 8, 1}, "ds.t_user_0"},
		{"INSERT INTO t_user_3 (a, user_id, id) VALUES (1, 7, 1), (?, ?, ?), (3, 15, 3)", []any{1, 11, 1}, ""},
		{"INSERT INTO t_user_3 (user_id) VALUES (7); INSERT INTO t_user_1 (user_id) VALUES (?)", []any{7}, "ds.t_user_3"},
		// Times.
		{"INSERT INTO t_log_202602 (made) VALUES (?)", []any{feb}, ""},
		{"INSERT INTO t_log_202601 (made) VALUES (?)", []any{feb}, "ds.t_log_202602"},
		{"INSERT INTO t_log_202601 (made) VALUES ('2026-02-03 04:05:06')", nil, "ds.t_log_202602"},
		{"INSERT INTO t_log_202601 (made) VALUES (?)", []any{feb.AddDate(3, 0, 0)}, "nowhere"},
		{"INSERT INTO t_log_202601 (made) VALUES (NOW())", nil, ""},
		// The data source and the table are decided together.
		{"INSERT INTO t_item_3 (user_id) VALUES (3)", nil, ""},
		{"INSERT INTO t_item_1 (user_id) VALUES (3)", nil, "ds_1.t_item_3"},
		{"INSERT INTO t_one (user_id) VALUES (3)", nil, ""},
		{"INSERT INTO ds_0.t_one (user_id) VALUES (3)", nil, "ds_1.t_one"},
		{"INSERT INTO ds_1.t_both_0 (user_id, id) VALUES (3, 4)", nil, ""},
		{"INSERT INTO ds_1.t_both_0 (user_id, id) VALUES (3, 5)", nil, "ds_1.t_both_1"},
		{"INSERT INTO t_class_0 (user_id) VALUES (7)", nil, ""},
		{"INSERT INTO t_user_1 (user_id) VALUES (18446744073709551615)", nil, ""}, // beyond 64 bits
		{"INSERT INTO t_text_0 (id) VALUES ('k00001')", nil, "ds.t_text_2"},
	} {
		db, base := openShards(t, shardedRule(t, ""))
		switch {
		case strings.Contains(tt.query, "18446744073709551615"):
			base.columns = append(base.columns, [2]string{"user_id", "bigint unsigned"})
		case strings.Contains(tt.query, "t_text"):
			base.columns = [][2]string{{"id", "varchar(36)"}}
		}
		_, err := db.Exec(tt.query, tt.args...)
		var wrong *WrongShardError
		have := ""
		switch {
		case errors.As(err, &wrong) && wrong.Err != nil:
			have = "nowhere"
		case errors.As(err, &wrong):
			have = wrong.Meant.String()
		case err != nil && !strings.Contains(tt.query, "SELECT"):
			have = err.Error()
		}
		if have != tt.want || (wrong != nil) != errors.Is(err, ErrWrongShard) {
			t.Errorf("%s %v\nhave: %s (%v)\nwant: %s", tt.query, tt.args, have, err, tt.want)
		}
		if sent := base.sentInserts(); wrong != nil && (len(sent) > 0 || lastCounter.calls > 1) {
			t.Errorf("%s\nhave: %q sent, %d calls of the generator\nwant: none", tt.query, sent, lastCounter.calls)
		}
	}
}

func TestShardGuard_error(t *testing.T) {
	db, _ := openShards(t, shardedRule(t, ""))
	_, err := db.Exec("INSERT INTO app.t_user_3 (user_id) VALUES (?), (?)", 7, "a"+strings.Repeat("b", 100))
	var at *StatementError
	var wrong *WrongShardError
	if !errors.As(err, &at) || !errors.As(err, &wrong) || at.Row != 2 || at.Table != "app.t_user_3" || wrong.Columns[0] != "user_id" || len(wrong.Values) != 1 || wrong.Meant.Table == "" {
		t.Fatalf("have: %#v", err)
	}
	for _, want := range []string{"table app.t_user_3: row 2: by user_id", "belongs to ds.t_user_", "shardGuard"} {
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
		}
		if n := strings.Count(log.String(), "does not belong"); n != tt.warnings || len(base.sentInserts()) != 2 {
			t.Errorf("%s\nhave: %d warnings, %d sent: %s\nwant: %d and 2", tt.settings, n, len(base.sentInserts()), log.String(), tt.warnings)
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
		db, base := openShards(t, shardedRule(t, ""))
		if strings.Contains(tt.query, "t_text") {
			base.columns = [][2]string{{"id", "varchar(36)"}}
		}
		var keys Keys
		_, err := db.ExecContext(WithKeys(t.Context(), &keys), tt.query, tt.args...)
		if have := fmt.Sprint(keys.Values()); err != nil || have != tt.want || lastCounter.calls != tt.calls {
			t.Errorf("%s %v\nhave: %s, %d calls (%v)\nwant: %s, %d", tt.query, tt.args, have, lastCounter.calls, err, tt.want, tt.calls)
		}
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
	var generator *GeneratorError
	if !errors.Is(err, spi.ErrNoFittingKey) || !errors.As(err, &generator) || len(base.sentInserts()) != 0 {
		t.Errorf("have: %v, %q\nwant: ErrNoFittingKey, nothing sent", err, base.sentInserts())
	}
}

// Executions of a cached plan look at the row and fit the key too.
func TestShardGuard_cachedPlan(t *testing.T) {
	db, base := openShards(t, shardedRule(t, ""))
	base.columns = [][2]string{{"id", "bigint(20)"}}
	const query = "INSERT INTO t_user_3 (user_id) VALUES (?)"
	for _, user := range []int{7, 11, 15} {
		mustExec(t, db, query, user)
	}
	calls := lastCounter.calls
	if _, err := db.Exec(query, 8); !errors.Is(err, ErrWrongShard) || len(base.sentInserts()) != 3 || lastCounter.calls != calls {
		t.Errorf("have: %v, %q\nwant: ErrWrongShard, and no key made", err, base.sentInserts())
	}
	base.columns = [][2]string{{"order_id", "bigint(20)"}}
	for range 3 {
		if res, err := db.Exec("INSERT INTO t_order_2 (a) VALUES (?)", 1); err != nil {
			t.Error(err)
		} else if id, _ := res.LastInsertId(); id%4 != 2 {
			t.Errorf("have: %d\nwant: a key of t_order_2", id)
		}
	}
}
