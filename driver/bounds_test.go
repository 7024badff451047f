package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/spi"
)

// Without a server, each of two sharding columns may store a number or a string. The guard accepts
// a row if one combination belongs in the table. It queries a column's type once, and again before
// it refuses a row.
func TestShardGuard_storedValues(t *testing.T) {
	r := mustParseRule(t, ruleText("t ds_${0..1}.t_${0..1} user_id:h id:h id:keys", "", `
  keyGenerators: {keys: {type: SHARD_COUNTER}}
  shardingAlgorithms: {h: {type: HASH_MOD, props: {sharding-count: 2}}}
`))
	db, s := openShards(t, r)
	for _, tt := range []struct {
		table, values string
		want          bool
	}{
		{"ds_0.t_0", "10, 10", true}, {"ds_0.t_1", "10, 10", true}, {"ds_1.t_0", "10, 10", true},
		{"ds_1.t_1", "10, 10", true}, {"ds_0.t_0", "1, 10", false}, {"ds_1.t_1", "1, 10", true},
	} {
		_, err := ConnectorOf(db).Plan(fmt.Sprintf("INSERT INTO %s (user_id, id) VALUES (%s)", tt.table, tt.values))
		equal(t, errors.Is(err, ErrWrongShard), !tt.want, tt, err)
	}
	asked := func() int { return s.Count("queryContext SHOW FULL COLUMNS") }
	mustExec(t, db, "INSERT INTO ds_0.t_0 (user_id, id) VALUES (10, 10)")
	before := asked()
	mustExec(t, db, "INSERT INTO ds_0.t_0 (user_id, id) VALUES (12, 12)")
	equal(t, asked(), before, "a row of the table")
	s.Columns = [][2]string{{"id", "varchar(9)"}, {"user_id", "varchar(9)"}} // altered
	mustExec(t, db, "INSERT INTO ds_1.t_1 (user_id, id) VALUES (10, 10)")
}

// The guard skips a row or statement that only the server can judge, and checks the next one.
func TestShardGuard_laterRows(t *testing.T) {
	db, _ := openShards(t, shardedRule(t, ""))
	_, err := db.Exec("INSERT INTO t_user_3 (user_id) VALUES (DEFAULT), (8)")
	equal(t, errors.Is(err, ErrWrongShard), true, err)
	const refused = "INSERT INTO t_user_3 (a, user_id) VALUES (1); " // by the server
	_, err = ConnectorOf(db).Plan(refused + "INSERT INTO t_user_3 (user_id) VALUES (8)")
	equal(t, errors.Is(err, ErrWrongShard), true, err)
}

// A plan is cached if its columns match the statement, and if it is small together with its
// statement.
func TestPlanCache_holds(t *testing.T) {
	s := &fakedb.Server{Columns: [][2]string{{"id", "bigint"}, {"a", "int"}}}
	db, c := openFake(t, s, generatorRule(t, new(shardCounter), "t.id"), Config{Server: "other"})
	for query, want := range map[string]int{
		"INSERT INTO t VALUES (NULL, ?)":                                       1,
		"INSERT INTO t VALUES (NULL, ?, 3)":                                    0,
		"INSERT INTO t (a) VALUES (?)" + strings.Repeat(" ", maxPlanBytes*3/4): 0,
	} {
		before, _ := c.rules.Load().plans.size()
		mustExec(t, db, query, 1)
		after, _ := c.rules.Load().plans.size()
		equal(t, after-before, want, query[:30])
	}
}

// The first upsert of a table already reports an existing key: the type of the key column shows the
// kind of keys.
func TestUpsert_firstOfItsTable(t *testing.T) {
	s := &fakedb.Server{Columns: [][2]string{{"id", "bigint"}, {"a", "int"}}}
	db, _ := openFake(t, s, generatorRule(t, counted(), "t.id"), Config{Server: "mysql"})
	mustExec(t, db, "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2")
	equal(t, len(s.Queries("LAST_INSERT_ID(")), 1)
}

// With more placeholders the keys are literals, but a key that replaces an argument is bound. Each row
// has its own key.
func TestPlaceholders_tooMany(t *testing.T) {
	s := &fakedb.Server{}
	db, _ := openFake(t, s, generatorRule(t, new(shardCounter), "t.id"), Config{Server: "other"})
	const bound = base.MaxPlaceholders - 1
	query := "INSERT INTO t (id) VALUES (?), (NULL), (?), (7), (DEFAULT)" + strings.Repeat(", (?)", bound-2)
	args := make([]any, bound)
	args[1] = 9 // an explicit key
	mustExec(t, db, query, args...)
	sent := s.Sent[0]
	equal(t, sent.Query[:strings.Index(sent.Query, ", (?), (?)")], "INSERT INTO t (id) VALUES (?), (2), (?), (7), (3)")
	equal(t, fmt.Sprint(sent.Args[:4]), "[1 9 4 5]")
	equal(t, len(sent.Args), bound)
}

// NextKeys returns 1 to 1,000,000 keys. It checks the number before the context.
func TestNextKeys_bounds(t *testing.T) {
	_, c := idleDB(t, testRule(t))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for n, want := range map[int]bool{0: false, 1: true, 1_000_000: true, 1_000_001: false} {
		_, err := c.NextKeys(ended, "nobodys_table", n)
		equal(t, errors.Is(err, context.Canceled), want, n, err)
	}
}

// A file is checked at the shortest interval of its users. Another user doesn't delay the check.
func TestWatch_interval(t *testing.T) {
	for _, tt := range []struct{ first, second, seen time.Duration }{
		{time.Hour, time.Minute, time.Minute},
		{time.Minute, time.Hour, time.Minute / 2},
		{time.Minute, time.Minute, time.Minute / 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			file := ruleFile(t, watched("t_order", 5))
			log := defaultLog(t)
			defer openWatched(t, file, "&shardkeyReload="+tt.first.String()).Close()
			time.Sleep(time.Minute / 2)
			defer openWatched(t, file, "&shardkeyReload="+tt.second.String()).Close()
			check(t, os.Remove(file))
			time.Sleep(tt.seen - time.Second)
			log.want(t, "early", "rule not loaded", 0)
			time.Sleep(2 * time.Second)
			log.want(t, "on time", "rule not loaded", 2) // of each connector
		})
	}
}

// fixedClock is a clock that stands still.
type fixedClock struct{ spi.Clock }

func (fixedClock) Now() time.Time { return time.Unix(5, 0) }

// nilConnector is a connector without connections.
type nilConnector struct{ fakedb.Server }

func (*nilConnector) Connect(context.Context) (driver.Conn, error) { return nil, nil }

// A connector uses its clock, describes its cache and returns the errors of its connections. It logs
// one line about a rule without warnings.
func TestConnector_reports(t *testing.T) {
	var log jsonLog
	_, c := idleDB(t, testRule(t), WithClock(fixedClock{}), WithLogger(log.logger()))
	equal(t, c.now(), time.Unix(5, 0))
	equal(t, strings.Contains(fmt.Sprint(c), "cached of"), false, fmt.Sprint(c))
	under := must(base.New(must((&fakedb.Server{}).Connect(t.Context()))(t), c.cache))(t)
	under.SetLimit("0")
	equal(t, strings.Contains(fmt.Sprint(c), "cached of 0"), true, fmt.Sprint(c))
	noError(t, takeRule([]*Connector{c}, testRule(t)))
	equal(t, len(log.take(t)), 1, "lines about the rules, of which takeRule's caller logs the second")

	away := &fakedb.Server{Faults: []fakedb.Fault{{At: "connect", Err: fakedb.Err}}}
	_, err := mustConnector(t, away, testRule(t)).Connect(t.Context())
	equal(t, err, fakedb.Err)
	_, err = mustConnector(t, new(nilConnector), testRule(t)).Connect(t.Context())
	equal(t, err, base.ErrNoAnswer)
	opened := must(mustConnector(t, &fakedb.Server{}, testRule(t)).Connect(t.Context()))(t).(*conn)
	opened.closeWith(func() error { return fakedb.Err })
	equal(t, opened.Close(), fakedb.Err)
}

// splitQuery separates the parameters from the rest of a DSN, even if the DSN is invalid.
func TestSplitQuery_bounds(t *testing.T) {
	for _, tt := range [][3]string{
		{"/db?a=1", "/db", "a=1"}, {"?shardkeyRule=x", "", "shardkeyRule=x"}, {"?a=1", "?a=1", ""},
	} {
		head, query, _ := splitQuery(tt[0])
		equal(t, [3]string{tt[0], head, query}, tt)
	}
	for name, want := range map[string]bool{"shardkey": true, "ShardKeyRule": true, "shardke": false} {
		equal(t, isOurs(name), want, name)
	}
}

// Errors and log lines contain the known facts only.
func TestMessages_parts(t *testing.T) {
	db, _ := openShards(t, bitsRule(t, ""))
	_, err := db.Exec("INSERT INTO t_one (user_id) VALUES (NULL)")
	equal(t, strings.Contains(fmt.Sprint(err), "has no shard bits: the value is NULL;"), true, err)
	only := []*debug.Module{{Path: modulePath, Version: "v1.2.3"}}
	equal(t, versionOf(&debug.BuildInfo{Deps: only}), "v1.2.3")
	var log jsonLog
	for want, e := range map[string]StatementError{
		"level msg reason time":                  {},
		"column level msg reason row table time": {Table: "t", Row: 1, Column: "c"},
		"char level line msg near reason time":   {Line: 1, Char: 1, Near: "n"},
		"error level msg reason time":            {Message: "do this"},
		"error generator level msg reason time":  {Err: &GeneratorError{Generator: "g", Err: spi.ErrStore}},
	} {
		new(refusals).add(log.logger(), &e)
		equal(t, strings.Join(slices.Sorted(maps.Keys(log.take(t)[0])), " "), want)
	}
}

// An underlying driver may report the rows of the last statement only, or nothing.
func TestResult_allRowsAffected(t *testing.T) {
	for want, base := range map[string]driver.Result{"[3]": driver.RowsAffected(3), "[]": driver.ResultNoRows} {
		equal(t, fmt.Sprint((&result{Result: base}).AllRowsAffected()), want, "rows of", base)
	}
}
