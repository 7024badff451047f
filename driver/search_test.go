package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// The limits of package fill: the keys of one call of the generator, and of a statement while others
// search too; the keys without a match before a search ends, and those for each target.
const (
	maxBatch  = 1024
	maxFree   = 256
	maxInVain = 4096
	perTarget = 8
)

// searchRule returns a rule with n tables sharded by the key. The lowest bits of keys are the
// shard bits of user_id.
func searchRule(t testing.TB, n int, algorithm, generator string) *rule.Rule {
	t.Helper()
	return mustParseRule(t, ruleText(fmt.Sprintf("t_order ds.t_order_${0..%d} - order_id:a order_id:keys", n-1), "",
		fmt.Sprintf("  keyGenerators: {keys: {type: %s}}\n  shardingAlgorithms: {a: {%s}}\n", generator, algorithm)))
}

// openSearch opens a rule with a server that executes everything and records nothing.
func openSearch(t testing.TB, r *rule.Rule, options ...Option) (*sql.DB, *Connector) {
	t.Helper()
	return idleDB(t, r, append(options, WithLogger(slog.New(slog.DiscardHandler)))...)
}

// spreads are the ways to choose tables by the key.
var spreads = []struct {
	name      string
	algorithm string // %d is the number of tables
	generator string // more properties of SNOWFLAKE, with a comma behind them
}{
	{"MOD", "type: MOD, props: {sharding-count: %d}", ""},
	{"HASH_MOD", "type: HASH_MOD, props: {sharding-count: %d}", ""},
	{"INLINE", "type: INLINE, props: {algorithm-expression: 't_order_${order_id %% %d}'}", ""},
	{"bits", "type: MOD, props: {sharding-count: %d}", "gene-column: user_id, gene-bits: 4, "},
}

// steppedClock is a clock that advances only by Sleep.
type steppedClock struct{ ns atomic.Int64 }

func (c *steppedClock) Now() time.Time { return time.Unix(0, c.ns.Load()) }

func (c *steppedClock) Sleep(_ context.Context, d time.Duration) error {
	c.ns.Add(int64(d))
	return nil
}

// TestSearch_rowsSpreadWhenTablesAreDoubled inserts rows into 4 tables, and computes their tables
// among 8 and 16. The rows of each table must spread evenly over the new tables.
func TestSearch_rowsSpreadWhenTablesAreDoubled(t *testing.T) {
	const rows = 10_000
	tables := map[string]func(i int, r *rand.Rand) int{
		"in turn":   func(i int, _ *rand.Rand) int { return i % 4 },
		"at random": func(_ int, r *rand.Rand) int { return r.IntN(4) },
		"one":       func(int, *rand.Rand) int { return 2 },
	}
	for _, s := range spreads {
		for order, choose := range tables {
			for _, pause := range []time.Duration{2 * time.Millisecond, 0} {
				t.Run(fmt.Sprint(s.name, " ", order, " ", pause), func(t *testing.T) {
					rnd := rand.New(rand.NewPCG(4, 8))
					generator := "SNOWFLAKE, props: {" + s.generator + "worker-id: 77, max-vibration-offset: 15}"
					rules := map[int]*rule.Rule{}
					for n := 4; n <= 16; n *= 2 {
						rules[n] = searchRule(t, n, fmt.Sprintf(s.algorithm, n), generator)
					}
					clock := &steppedClock{}
					clock.ns.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
					_, c := openSearch(t, rules[4], WithClock(clock))
					var keys []int64
					for i := range rows {
						table, values := choose(i, rnd), []any(nil)
						if s.generator != "" {
							values = []any{int64(table) + 4*rnd.Int64N(1000)} // a user of this table
						}
						made := must(c.NextKeys(t.Context(), fmt.Sprint("t_order_", table), 1, values...))(t)
						keys = append(keys, made[0].(int64))
						clock.ns.Add(int64(pause))
					}
					for n := 8; n <= 16; n *= 2 {
						expectSpread(t, rules[4], rules[n], n/4, keys)
					}
				})
			}
		}
	}
}

// expectSpread checks that the rows of each of four tables spread evenly over that many parts. It
// uses a χ² test in which random rows fail with a probability of one in a million.
func expectSpread(t *testing.T, old, doubled *rule.Rule, parts int, keys []int64) {
	t.Helper()
	count, of := map[string]map[string]float64{}, map[string]float64{}
	place := func(r *rule.Rule, key int64) string {
		p := must(r.Tables()[0].Sharding.Place([]any{key}))(t)
		return p.Table
	}
	for _, key := range keys {
		from, to := place(old, key), place(doubled, key)
		if count[from] == nil {
			count[from] = map[string]float64{}
		}
		count[from][to]++
		of[from]++
	}
	most := map[int]float64{2: 23.9, 4: 30.7}[parts] // for 1 and 3 degrees of freedom
	for from, to := range count {
		mean, sum := of[from]/float64(parts), 0.0
		for _, n := range to {
			sum += (n - mean) * (n - mean) / mean
		}
		sum += float64(parts-len(to)) * mean
		if sum > most || len(to) > parts {
			t.Errorf("the rows of %s in %d tables\nhave: %v, χ² %.1f\nwant: %.1f at most", from, 4*parts, to, sum, most)
		}
	}
}

// workers is a SNOWFLAKE with few bits whose worker ID a test replaces. Its keys are worker<<2 |
// sequence below the time, which begins at 1<<40.
type workers struct {
	worker atomic.Int64
	next   atomic.Int64
	most   atomic.Int64 // largest number of keys in parallel calls
	now    atomic.Int64
	asked  func(n int)
}

func (g *workers) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	now := g.now.Add(int64(len(keys)))
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
	defer g.now.Add(-int64(len(keys)))
	if g.asked != nil {
		g.asked(len(keys))
	}
	first := g.next.Add(int64(len(keys))) - int64(len(keys))
	for i := range keys {
		n := first + int64(i)
		keys[i] = 1<<40 | n>>2<<6 | g.worker.Load()<<2 | n&3
	}
	return nil
}

func (g *workers) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, g, c, n)
}

func (g *workers) Health() spi.Health { return spi.Health{WorkerID: new(g.worker.Load())} }

// openWorkers opens 16 tables sharded by key % 16. Keys of one worker ID belong to four of them.
func openWorkers(t *testing.T) (*workers, *sql.DB, *Connector) {
	t.Helper()
	g := &workers{}
	r := must(rule.New(rule.Config{
		Tables: []rule.TableConfig{{
			Name: "t_order", ActualDataNodes: "ds.t_order_${0..15}",
			KeyConfig:     rule.KeyConfig{Column: "order_id", Generator: "g"},
			TableStrategy: rule.StrategyConfig{Columns: []string{"order_id"}, Type: "MOD", Props: map[string]any{"sharding-count": 16}},
		}},
		Generators: map[string]rule.GeneratorConfig{"g": {Generator: g}},
	}))(t)
	db, c := openSearch(t, r)
	return g, db, c
}

// If no key of the worker ID belongs to a table, a search ends after some thousands of keys. After the
// second, INSERTs are refused at once, until the generator has another worker ID.
func TestSearch_noFit(t *testing.T) {
	g, db, _ := openWorkers(t)
	insert := func(table int) (made int64, err error) {
		before := g.next.Load()
		_, err = db.Exec(fmt.Sprintf("INSERT INTO t_order_%d (a) VALUES (?)", table), 1)
		return g.next.Load() - before, err
	}
	for range 2 {
		made, err := insert(9)
		if !errors.Is(err, spi.ErrNoFittingKey) || made < maxInVain || made > maxInVain+16*perTarget+maxBatch {
			t.Errorf("have: %v after %d keys\nwant: ErrNoFittingKey after some thousands", err, made)
		}
	}
	if made, err := insert(9); !errors.Is(err, spi.ErrNoFittingKey) || made > 0 {
		t.Errorf("again\nhave: %v after %d keys\nwant: ErrNoFittingKey at once", err, made)
	}
	if made, err := insert(3); err != nil || made > 17 {
		t.Errorf("another table\nhave: %v after %d keys", err, made)
	}
	g.worker.Store(2)
	if made, err := insert(9); err != nil || made > 18 {
		t.Errorf("another worker ID\nhave: %v after %d keys\nwant: no error", err, made)
	}
}

// If many goroutines look for keys that don't exist, one of them at a time uses the generator,
// and requests few keys at once.
func TestSearch_hopelessOnesTakeTurns(t *testing.T) {
	g, _, c := openWorkers(t)
	var most atomic.Int64
	g.asked = func(n int) { most.Store(max(most.Load(), int64(n))) }
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			isError(t, errOf(c.NextKeys(t.Context(), fmt.Sprint("t_order_", 4+i%12), 1)), spi.ErrNoFittingKey)
		})
	}
	wg.Wait()
	if limit := int64(maxBatch + 64*17); g.most.Load() > limit || most.Load() > maxBatch {
		t.Errorf("have: %d keys in the making at once, %d of one call\nwant: %d at most, and %d", g.most.Load(), most.Load(), limit, maxBatch)
	}
}

// A search ends with its context, even if it is waiting for the lock.
func TestSearch_endsWithItsContext(t *testing.T) {
	g, _, c := openWorkers(t)
	ctx, cancel := context.WithCancel(t.Context())
	g.asked = func(int) { cancel() }
	isError(t, errOf(c.NextKeys(ctx, "t_order_9", 1)), context.Canceled)
	ctx, cancel = context.WithCancel(t.Context())
	g.asked = func(n int) {
		if n > maxFree { // a goroutine that has the lock
			cancel()
			g.asked = nil
			<-ctx.Done()
			isError(t, errOf(c.NextKeys(ctx, "t_order_9", 1)), context.Canceled, "waiting")
		}
	}
	isError(t, errOf(c.NextKeys(context.WithoutCancel(ctx), "t_order_8", 1)), spi.ErrNoFittingKey)
}

// If the generator fails or panics in a search, the next goroutine gets the lock.
func TestSearch_failureReleasesTheLock(t *testing.T) {
	g, _, c := openWorkers(t)
	g.asked = func(n int) {
		if n > maxFree {
			panic("no keys")
		}
	}
	for range 2 {
		if _, err := c.NextKeys(t.Context(), "t_order_1", 1000); !errors.As(err, new(*GeneratorError)) {
			t.Errorf("have: %v\nwant: a GeneratorError", err)
		}
	}
	g.asked = nil
	equal(t, len(must(c.NextKeys(t.Context(), "t_order_1", 1000))(t)), 1000, "keys")
}

// Rows with random shard bits share the keys. They use no more keys than the most frequent
// bits need.
func TestSearch_rowsShareTheirKeys(t *testing.T) {
	g := &shardCounter{}
	r := must(rule.New(rule.Config{
		Tables:     []rule.TableConfig{{Name: "t_own", KeyConfig: rule.KeyConfig{Column: "order_id", Generator: "own"}}},
		Generators: map[string]rule.GeneratorConfig{"own": {Generator: g, Props: map[string]any{"gene-column": "user_id", "gene-bits": 4}}},
	}))(t)
	db, base := openShards(t, r)
	base.Result = fakedb.Result{Affected: 1000}
	rnd := rand.New(rand.NewPCG(1, 6))
	users, most := make([]any, 1000), [16]int{}
	for i := range users {
		user := rnd.Int64N(1 << 40)
		users[i] = user
		most[user%16]++
	}
	var keys Keys
	query := "INSERT INTO t_own (user_id) VALUES (?)" + strings.Repeat(", (?)", len(users)-1)
	must(db.ExecContext(WithKeys(t.Context(), &keys), query, users...))(t)
	last := [16]int64{}
	for i, key := range keys.Values() {
		bits := users[i].(int64) % 16
		if key := key.(int64); key%16 != bits || key <= last[bits] {
			t.Fatalf("row %d of user %d\nhave: key %d after %d\nwant: a later one with bits %d", i, users[i], key, last[bits], bits)
		}
		last[bits] = key.(int64)
	}
	if limit := int64(16 * (slices.Max(most[:]) + 3)); g.next > limit {
		t.Errorf("have: %d keys for 1000 rows\nwant: %d at most", g.next, limit)
	}
}

// NextKeys returns keys for rows by the values of the column that determines the shard bits.
func TestNextKeys_withShardBits(t *testing.T) {
	_, c := openSearch(t, searchRule(t, 4, "type: MOD, props: {sharding-count: 4}", "SNOWFLAKE, props: {worker-id: 78, gene-column: user_id, gene-bits: 4}"))
	for _, tt := range []struct {
		table  string
		n      int
		values []any
		want   string // the bits, or part of the error
	}{
		{"t_order", 2, []any{7}, "[7 7]"},
		{"t_order", 3, []any{7, int64(24), "abc"}, "[7 8 2]"},
		{"t_order_3", 2, []any{7, uint8(19)}, "[7 3]"},
		{"t_order", 2, nil, "one for each of 2 keys, found 0"},
		{"t_order", 3, []any{1, 2}, "one for each of 3 keys, found 2"},
		{"t_order", 1, []any{nil}, "value 1 is invalid for column user_id"},
		{"t_order", 2, []any{7, 1.5}, "value 2 is invalid for column user_id"},
		{"t_order_3", 1, []any{8}, "t_order_0"},
	} {
		given := slices.Clone(tt.values)
		keys, err := c.NextKeys(t.Context(), tt.table, tt.n, tt.values...)
		have := fmt.Sprint(err)
		if err == nil {
			bits := make([]int64, len(keys))
			for i, key := range keys {
				bits[i] = key.(int64) % 16
			}
			have = fmt.Sprint(bits)
		} else if !errors.As(err, new(*StatementError)) {
			t.Errorf("%v\nhave: %T", tt, err)
		}
		if !strings.Contains(have, tt.want) || !slices.Equal(given, tt.values) {
			t.Errorf("%v\nhave: %s\nwant: %s", tt, have, tt.want)
		}
	}
	_, c = openSearch(t, searchRule(t, 4, "type: MOD, props: {sharding-count: 4}", "SNOWFLAKE, props: {worker-id: 78}"))
	if _, err := c.NextKeys(t.Context(), "t_order", 1, 7); !errors.As(err, new(*StatementError)) {
		t.Errorf("a value for keys without shard bits\nhave: %v\nwant: a StatementError", err)
	}
}

// The strategy can't be computed for any key, so the error says that.
func TestSearch_keysWithoutPlace(t *testing.T) {
	const text = `
rules:
- !SHARDING
  tables:
    t:
      actualDataNodes: ds.t_${0..1}
      tableStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: a}}
      keyGenerateStrategy: {column: id, keyGeneratorName: g}
  keyGenerators: {g: {type: UUID}}
  shardingAlgorithms: {a: {type: INLINE, props: {algorithm-expression: "t_${id % 2}"}}}
`
	db, _ := openFake(t, &fakedb.Server{Columns: [][2]string{{"id", "varchar(32)"}, {"a", "int"}}}, mustParseRule(t, text), Config{Server: "other"})
	_, err := db.Exec("INSERT INTO t_1 (a) VALUES (1)")
	if !errors.Is(err, spi.ErrNoFittingKey) || !strings.Contains(err.Error(), "belongs in t_1: cannot compute the actual table of a row of \"t\": "+
		"cannot apply INLINE to the value of id: String % Integer") {
		t.Errorf("have: %v\nwant: the reason", err)
	}
}
