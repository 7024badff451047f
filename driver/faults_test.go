package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/test/differential"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/spi"
)

// These tests check bad input to INSERTs that get keys. The error describes the problem, no
// INSERT is sent without its keys, and nothing is left open.

var errScript = errors.New("the script's own error")

// failing is a generator that fails.
var failing = script(func(context.Context, spi.Column, int) ([]any, error) { return nil, errScript })

// panicsWith returns a generator that panics.
func panicsWith(v any) script {
	return func(context.Context, spi.Column, int) ([]any, error) { panic(v) }
}

// returns returns a generator of these keys, however many are wanted.
func returns(keys ...any) script {
	return func(context.Context, spi.Column, int) ([]any, error) { return slices.Clone(keys), nil }
}

// fixedInts is returns for an Int64KeyGenerator.
type fixedInts []int64

func (g fixedInts) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	copy(keys, g)
	return nil
}

func (g fixedInts) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, g, c, n)
}

const (
	notNil     = "expected a string or []byte that isn't empty, found nil"
	notInteger = "expected a string or []byte that isn't empty, found an integer, whose generator must be an spi.Int64KeyGenerator"
)

// badGenerators are generators of three keys.
var badGenerators = []struct {
	name string
	spi.KeyGenerator
	want string
}{
	{"fails", failing, errScript.Error()},
	{"panics", panicsWith("oh"), "it panicked: oh"},
	{"panics with an error", panicsWith(errScript), "it panicked: " + errScript.Error()},
	{"too few", returns("a", "b"), "expected 3 keys, found 2"},
	{"too many", returns("a", "b", "c", "d"), "expected 3 keys, found 4"},
	{"none", returns(), "expected 3 keys, found 0"},
	{"nil", returns("a", nil, "b"), "key 2 of 3: " + notNil},
	{"nil bytes", returns([]byte(nil), "a", "b"), "key 1 of 3: " + notNil},
	{"nil pointer", returns((*string)(nil), "a", "b"), "key 1 of 3: " + notNil},
	{"valuer of nil", returns(sql.NullString{}, "a", "b"), "key 1 of 3: " + notNil},
	{"int64 zero", fixedInts{1, 2, 0}, "found 0"},
	{"integer", returns("a", int8(1), "b"), "key 2 of 3: " + notInteger},
	{"unsigned integer", returns(uint64(math.MaxUint64), "a", "b"), notInteger},
	{"valuer of an integer", returns(sql.NullInt64{Int64: 1, Valid: true}, "a", "b"), notInteger},
	{"empty string", returns("a", "", "b"), "found an empty one"},
	{"empty bytes", returns([]byte{}, "a", "b"), "found an empty one"},
	{"float", returns(1.5, 2.5, 3.5), "found a float64"},
	{"time", returns("a", time.Now(), "b"), "found a time.Time"},
	{"bool", returns(true, "a", "b"), "found a bool"},
	{"struct", returns("a", struct{}{}, "b"), "found a struct {}"},
	{"array", returns([16]byte{1}, "a", "b"), "found a [16]uint8"},
	// REPLACE, IGNORE and upserts would lose a row.
	{"the same int64", fixedInts{7, 3, 7}, "key 3 of 3 is the same as an earlier one"},
	{"the same string", returns("a", []byte("a"), "b"), "key 2 of 3 is the same as an earlier one"},
}

func TestGenerators_bad(t *testing.T) {
	for _, bad := range badGenerators {
		for _, kind := range fakedb.Kinds {
			for _, d := range doors {
				t.Run(fmt.Sprint(bad.name, "/", kind, "/", d.name), func(t *testing.T) {
					base := &fakedb.Server{Kind: kind}
					db := sql.OpenDB(mustConnector(t, base, generatorRule(t, bad.KeyGenerator, "ruled.id")))
					_, err := d.exec(t.Context(), db, "INSERT INTO ruled (a, id) VALUES (?, NULL), (2, DEFAULT), (3, NULL)", 1)
					if failed, ok := errors.AsType[*GeneratorError](err); !ok || failed.Table != "ruled" || failed.Column != "id" || !strings.Contains(fmt.Sprint(err), bad.want) {
						t.Errorf("have: %v\nwant: a GeneratorError with %q", err, bad.want)
					}
					if bad.name == "fails" && !errors.Is(err, errScript) {
						t.Errorf("%v does not wrap the generator's error", err)
					}
					checkNothingSent(t, base, db)
				})
			}
		}
	}
}

// The key 0 of a generator is refused everywhere, since an AUTO_INCREMENT column would replace it.
func TestGenerators_zero(t *testing.T) {
	byKey := ruleText(`
		t -              - -      id:zeros
		s ds.s_${0..1}   - id:two id:zeros
	`, "", `
  keyGenerators: {zeros: {type: TEST_ZEROS}}
  shardingAlgorithms: {two: {type: MOD, props: {sharding-count: 2}}}
`)
	spi.RegisterKeyGenerator("TEST_ZEROS", func(spi.Props) (spi.KeyGenerator, error) { return &shardCounter{next: -1}, nil })
	for _, query := range []string{
		"INSERT INTO t (a) VALUES (1)", "INSERT INTO t (a) VALUES (1), (2)", "INSERT INTO s_0 (a) VALUES (1)", "INSERT INTO s_1 (a) VALUES (1), (2)",
	} {
		base := &fakedb.Server{Columns: [][2]string{{"id", "bigint"}, {"a", "int"}}}
		told := false
		db := sql.OpenDB(must(NewConnector(base, mustParseRule(t, byKey), WithKeyHook(func(context.Context, GeneratedKeys) { told = true })))(t))
		_, err := db.Exec(query)
		var failed *GeneratorError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), "found 0") || told {
			t.Errorf("%s\nhave: %v, told %v\nwant: a GeneratorError", query, err, told)
		}
		table := strings.Fields(query)[2]
		other := sql.OpenDB(mustConnector(t, base, mustParseRule(t, byKey)))
		if keys, err := NextKeys(t.Context(), other, table, 2); !errors.As(err, &failed) {
			t.Errorf("NextKeys of %s\nhave: %v, %v\nwant: a GeneratorError", table, keys, err)
		}
		check(t, errors.Join(db.Close(), other.Close()))
	}
}

// damagedRows are rows whose end is missing: reading on after an error would wait forever.
type damagedRows struct {
	fakedb.Rows
	t     *testing.T
	query string
	more  bool // the answer ends, and announces another one
}

func (r *damagedRows) Next([]driver.Value) error {
	if r.more {
		return io.EOF
	}
	return mysql.ErrMalformPkt
}
func (r *damagedRows) HasNextResultSet() bool { return r.more }
func (r *damagedRows) NextResultSet() error   { return r.Close() }

func (r *damagedRows) Close() error {
	r.t.Errorf("%s: Close reads on", r.query)
	return nil
}

// If the answer to a metadata query is damaged, the connection is closed, and the rest of the answer
// isn't read, which the context wouldn't end.
func TestQuestions_damagedAnswers(t *testing.T) {
	const noList, upserts = "INSERT INTO t VALUES (0, ?)", "INSERT INTO t (a) VALUES (?), (2) ON DUPLICATE KEY UPDATE a = 3"
	for question, query := range map[string]string{
		"SHOW FULL COLUMNS": noList, "information_schema": noList, "LIMIT 0": noList, "SELECT DATABASE()": noList, "@@sql_mode": noList,
		"VERSION()": noList, "SELECT `id`": upserts, "SELECT LAST_INSERT_ID()": noList,
	} {
		for _, more := range []bool{false, true} {
			base := &fakedb.Server{Columns: [][2]string{{"id", "bigint"}, {"a", "int"}}, Version: "8.4.0", Comment: "MySQL", Result: fakedb.Result{Affected: 3}}
			asked := 0
			base.Query = func(text string) (driver.Rows, error) {
				if !strings.Contains(text, question) {
					return nil, driver.ErrSkip
				}
				asked++
				return &damagedRows{fakedb.Rows{Names: []string{"a"}}, t, text, more}, nil
			}
			db, _ := openFake(t, base, generatorRule(t, new(shardCounter), "t.id"), Config{})
			conn := pinned(t, db)
			mustExec(t, conn, "CALL p()") // LAST_INSERT_ID() is unknown
			_, err := conn.ExecContext(t.Context(), query, 1)
			if settles := query == upserts; asked == 0 || !settles && !errors.Is(err, mysql.ErrInvalidConn) || settles && err != nil {
				t.Errorf("%s, more results %v, asked %d times\nhave: %v", question, more, asked, err)
			}
			equal(t, base.Conns, 0, question, "connections left open")
		}
	}
}

// checkNothingSent closes the database, and checks that no INSERT was executed and nothing is
// left open.
func checkNothingSent(t *testing.T, base *fakedb.Server, db *sql.DB) {
	t.Helper()
	check(t, db.Close())
	for _, call := range base.Calls {
		if strings.Contains(call, "INSERT") && !strings.HasPrefix(call, "prepare") {
			t.Errorf("sent: %s", call)
		}
	}
	if base.Stmts != 0 || base.Conns != 0 {
		t.Errorf("%d statements and %d connections are left", base.Stmts, base.Conns)
	}
}

func TestConn_refusesWhatItCannotRead(t *testing.T) {
	for _, query := range []string{
		"INSERT INTO ruled (a) VALUES (1",
		"INSERT INTO ruled (a) VALUES ('x)",
		"INSERT INTO ruled (a) VALUES (1) garbage",
		"INSERT INTO ruled (a VALUES (1)",
		"INSERT INTO ruled",
		"INSERT INTO ruled (a) /* no end",
		"REPLACE ruled (a) EXECUTE (1)",
		"INSERT INTO app.ruled (a) VALUES (1), 2",
		"BEGIN NOT ATOMIC INSERT INTO ruled (a) VALUES (1); END",
		"ANALYZE INSERT INTO ruled (a) VALUES (1)",
		"INSERT INTO ruled (a) VALUES (1 /*!99999 ), (2 */)",
	} {
		for _, kind := range []fakedb.Kind{fakedb.Direct, fakedb.Skipping, fakedb.Minimal} {
			for _, d := range doors {
				base := &fakedb.Server{Kind: kind}
				db := sql.OpenDB(mustConnector(t, base, generatorRule(t, listed(1, 2), "ruled.id")))
				_, err := d.exec(t.Context(), db, query)
				if where, ok := errors.AsType[*StatementError](err); !errors.Is(err, ErrUnsupportedStatement) || !ok || where.Line != 1 {
					t.Errorf("%s, %s, %s: %v", kind, d.name, query, err)
				}
				checkNothingSent(t, base, db)
			}
		}
	}
}

// The error for a wrong number of arguments is the same as without shardkey.
func TestArguments_wrongCount(t *testing.T) { onEach(t, testArguments_wrongCount) }

func testArguments_wrongCount(t *testing.T) {
	for _, params := range bothWays {
		t.Run(params, func(t *testing.T) {
			ours, plain := openFilled(t, params)
			mustExec(t, plain, "ALTER TABLE ruled DROP PRIMARY KEY, MODIFY id BIGINT NULL")
			for _, query := range []string{"INSERT INTO ruled (a) VALUES (?)", "INSERT INTO ruled (a, id) VALUES (?, ?)",
				"INSERT INTO ruled (a) VALUES (1)", "INSERT INTO ruled (a) VALUES (?) ON DUPLICATE KEY UPDATE a = ?", "INSERT INTO ruled (a) SELECT ?"} {
				for n := range 4 {
					args := make([]any, n)
					for i := range args {
						args[i] = 5
					}
					for _, d := range doors {
						_, want := d.exec(t.Context(), plain, query, args...)
						_, have := d.exec(t.Context(), ours, query, args...)
						if fmt.Sprintf("%T %v", have, have) != fmt.Sprintf("%T %v", want, want) {
							t.Errorf("%s, %d of %s\nhave: %v\nwant: %v", d.name, n, query, have, want)
						}
					}
				}
			}
			if n := number(t, ours, "SELECT COUNT(*) FROM ruled WHERE id IS NULL") - number(t, ours, "SELECT COUNT(*) FROM ruled WHERE id = 0"); n == 0 {
				t.Error("the plain driver inserted nothing")
			}
		})
	}
}

// A call that waits for the generator returns when its context ends, and the connection remains
// usable.
func TestContext_endsWhileGeneratorWaits(t *testing.T) {
	entered := make(chan struct{}, 1)
	waiting := script(func(ctx context.Context, _ spi.Column, n int) ([]any, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return nil, fmt.Errorf("waiting for the clock: %w", ctx.Err())
	})
	base := &fakedb.Server{Query: func(query string) (driver.Rows, error) {
		if query == "SELECT ?" {
			return &fakedb.Rows{Names: []string{"a"}, Values: [][]driver.Value{{int64(1)}}}, nil
		}
		return nil, driver.ErrSkip
	}}
	db, _ := openFake(t, base, generatorRule(t, waiting, "ruled.id"), Config{Server: "other"})
	for _, d := range doors {
		for _, query := range []string{"INSERT INTO ruled (a) VALUES (?)", "INSERT INTO ruled (a) SELECT ?"} {
			t.Run(d.name+"/"+query, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				go func() { <-entered; cancel() }()
				isError(t, errOf(d.exec(ctx, db, query, 1)), context.Canceled)
				equal(t, base.Count("connect"), 1, "connections")
			})
		}
	}
	equal(t, len(base.Queries("INSERT")), 0, "rows")
}

// go-sql-driver closes a connection whose context ends. Another query of the same statement then
// fails with driver.ErrBadConn.
func TestContext_endsBetweenQueries(t *testing.T) {
	var cancel context.CancelFunc
	canceling := integers(func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		cancel()
		return keysOfInts(n, 1), nil
	})
	base := &fakedb.Server{Faults: []fakedb.Fault{
		{At: "execContext INSERT", Times: -1, Err: driver.ErrBadConn},
		{At: "queryContext INSERT", Times: -1, Err: driver.ErrBadConn},
	}}
	db, _ := openFake(t, base, generatorRule(t, canceling, "ruled.id"), Config{Server: "other"})
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			var ctx context.Context
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			isError(t, errOf(d.exec(ctx, db, "INSERT INTO ruled (a) VALUES (1)")), context.Canceled)
		})
	}
}

// brokenStore is a generator whose store has a broken connection.
type brokenStore struct {
	err   error
	calls int
}

func (g *brokenStore) GenerateKeys(context.Context, spi.Column, int) ([]any, error) {
	g.calls++
	if g.err == nil {
		panic(driver.ErrBadConn)
	}
	return nil, g.err
}

// brokenInts is a brokenStore of integer keys.
type brokenInts struct{ *brokenStore }

func (g brokenInts) GenerateInt64Keys(ctx context.Context, column spi.Column, _ []int64) error {
	_, err := g.GenerateKeys(ctx, column, 1)
	return err
}

// isBadConn implements Is and matches driver.ErrBadConn.
type isBadConn struct{ *spi.PropError }

func (isBadConn) Is(target error) bool { return target == driver.ErrBadConn || target == fakedb.Err }

// database/sql treats driver.ErrBadConn as a broken connection to the database: it closes the
// connection and executes the statement again on another one. A generator's error must not have
// this effect.
func TestGeneratorError_isNoBadConnection(t *testing.T) {
	for name, err := range map[string]error{
		"itself":     driver.ErrBadConn,
		"wrapped":    fmt.Errorf("%w: %w: %w", spi.ErrStore, fakedb.Err, driver.ErrBadConn),
		"joined":     errors.Join(spi.ErrStore, driver.ErrBadConn, fakedb.Err),
		"by Is":      isBadConn{&spi.PropError{Name: "x"}},
		"by a panic": nil,
		"another":    fakedb.Err,
	} {
		for _, ints := range []bool{true, false} {
			for _, query := range []string{"INSERT INTO ruled (a) VALUES (1)", "INSERT INTO ruled (a) VALUES (1), (2)", "INSERT INTO ruled (a) VALUES (1) RETURNING id"} {
				broken := &brokenStore{err: err}
				g := spi.KeyGenerator(broken)
				if ints {
					g = brokenInts{broken}
				}
				base := &fakedb.Server{}
				db, _ := openFake(t, base, generatorRule(t, g, "ruled.id"))
				if err := db.Ping(); err != nil && !errors.Is(err, fakedb.Err) {
					t.Fatal(err)
				}
				_, have := db.ExecContext(t.Context(), query)
				if !errors.As(have, new(*GeneratorError)) || errors.Is(have, driver.ErrBadConn) || broken.calls != 1 || base.Count("connect") != 1 {
					t.Errorf("%s, integers %t: %s\nhave: %v, after %d calls of the generator and %d connections\nwant: a GeneratorError that is not driver.ErrBadConn, after 1 and 1", name, ints, query, have, broken.calls, base.Count("connect"))
				}
				var prop *spi.PropError
				if err != nil && (have == nil || errors.Is(have, spi.ErrStore) != errors.Is(err, spi.ErrStore) || errors.Is(have, fakedb.Err) != errors.Is(err, fakedb.Err) || errors.As(have, &prop) != errors.As(err, &prop)) {
					t.Errorf("%s\nhave: %v\nwant: everything else that is in the chain of %v", name, have, err)
				}
			}
		}
	}
}

// If an assigner or a lease panics or returns nil, the statement returns an error, and all waiting
// callers continue.

// panicky is a worker-ID assigner and its lease. It panics in one method.
type panicky struct{ at string }

func (p *panicky) in(method string) {
	if p.at == method {
		panic(errScript)
	}
}

func (p *panicky) AcquireWorkerID(context.Context, int64) (spi.WorkerIDLease, error) {
	switch p.at {
	case "nil":
		return nil, nil
	case "nil pointer":
		return (*panicky)(nil), nil
	}
	p.in("AcquireWorkerID")
	return p, nil
}

func (p *panicky) WorkerID() int64 { p.in("WorkerID"); return 1 }
func (p *panicky) Floor() int64    { p.in("Floor"); return 0 }

func (p *panicky) Limit() int64 {
	p.in("Limit")
	return 1
}

func (p *panicky) Renew(context.Context, int64) error   { p.in("Renew"); return errScript }
func (p *panicky) Release(context.Context, int64) error { p.in("Release"); return nil }

func init() {
	spi.RegisterWorkerIDAssigner("PANICKY", func(p spi.Props) (spi.WorkerIDAssigner, error) {
		return &panicky{p.String("at", "")}, nil
	})
}

// insertTogether runs INSERTs of several callers and returns their errors. A caller that waits forever
// is in the stacks of go test's timeout.
func insertTogether(t *testing.T, db *sql.DB) error {
	t.Helper()
	var wait sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wait.Go(func() { _, errs[i] = db.Exec("INSERT INTO ruled (a) VALUES (1)") })
	}
	wait.Wait()
	return errors.Join(errs...)
}

func TestPanic_ofAnAssigner(t *testing.T) {
	for _, typ := range []string{"SNOWFLAKE", "SNOWFLAKE_RING"} {
		for _, at := range []string{"AcquireWorkerID", "nil", "nil pointer", "WorkerID", "Floor", "Limit", "Renew"} {
			t.Run(typ+"/"+at, func(t *testing.T) {
				r := mustParseRule(t, ruleText("ruled - - - id:g", "", fmt.Sprintf(`
  keyGenerators: {g: {type: %s, props: {worker-id-assigner: a}}}
  workerIdAssigners: {a: {type: PANICKY, props: {at: '%s'}}}
`, typ, at)))
				db, _ := openFake(t, &fakedb.Server{}, r)
				for range 2 {
					if err := insertTogether(t, db); !errors.As(err, new(*GeneratorError)) {
						t.Errorf("\nhave: %v\nwant: a GeneratorError", err)
					}
				}
			})
		}
	}
}

// injected is a string that must never get from a server's integer into a statement.
const injected = "2,3),(4,(SELECT password FROM mysql.user LIMIT 1)"

// liar returns random answers: correct ones, odd ones, and none.
type liar struct{ rand *rand.Rand }

// oneOf returns one of the values at random.
func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func (l liar) err() error {
	server := func(n uint16) error { return &mysql.MySQLError{Number: n, Message: "x"} }
	return oneOf(l.rand, driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, errScript, context.Canceled,
		server(1054), server(1136), server(1364), server(1146), server(1143), server(1348), server(1050), server(1060), server(1067), server(1044), server(4091), server(3748))
}

func (l liar) value() driver.Value {
	return oneOf[driver.Value](l.rand, nil, int64(1), int64(2), int64(-1), int64(math.MaxInt64), uint64(math.MaxUint64), "1", "2", []byte("3"), "", "x", injected, []byte(injected),
		"1e400", 1.5, math.NaN(), true, []byte(nil), "\x00", "int(11)", "bit(100)", "decimal(-5,3)", "decimal(70,-9)", "char(10)", "char(10) ); DROP TABLE t; --", "datetime); DROP TABLE t; --",
		"timestamp /* x */", "utf8mb4_bin", "x; DROP TABLE t", "auto_increment", "INVISIBLE", "id", "a", "INSERT", "BEFORE", "STRICT_ALL_TABLES", "NO_AUTO_VALUE_ON_ZERO", "utf8mb4", "gbk", "8.0.0", "10.11-MariaDB", "MySQL", strings.Repeat("9", 400))
}

func (l liar) result(string) (driver.Result, error) {
	switch l.rand.IntN(12) {
	case 0:
		return nil, l.err()
	case 1:
		return nil, nil
	case 2:
		return driver.ResultNoRows, nil
	case 3:
		return manyResults{l}, nil
	}
	return fakedb.Result{ID: oneOf[int64](l.rand, 0, 1, 2, 7, -1, math.MaxInt64, math.MinInt64), Affected: oneOf[int64](l.rand, 0, 1, 1, 2, 2, 3, 4, -1, 1<<33, math.MaxInt64, math.MinInt64)}, nil
}

// manyResults is a server's result of several statements, a mysql.Result.
type manyResults struct{ l liar }

func (r manyResults) LastInsertId() (int64, error) { return 1, nil }
func (r manyResults) RowsAffected() (int64, error) { return 0, errScript }
func (r manyResults) AllLastInsertIds() []int64    { return make([]int64, r.l.rand.IntN(4)) }
func (r manyResults) AllRowsAffected() []int64     { return make([]int64, r.l.rand.IntN(4)) }

func (l liar) rows(string) (driver.Rows, error) {
	switch l.rand.IntN(12) {
	case 0:
		return nil, l.err()
	case 1:
		return nil, nil
	}
	a := &fakedb.Rows{Names: []string{"id", "a", "b", "c", "d", "e", "f", "g", "h"}[:l.rand.IntN(10)]}
	if l.rand.IntN(2) == 0 {
		l.rand.Shuffle(len(a.Names), func(i, j int) {
			a.Names = append([]string(nil), a.Names...)
			a.Names[i], a.Names[j] = a.Names[j], a.Names[i]
		})
	}
	for range l.rand.IntN(4) {
		row := make([]driver.Value, len(a.Names))
		for i := range row {
			row[i] = l.value()
		}
		a.Values = append(a.Values, row)
	}
	return a, nil
}

// statement returns a statement of the differential test's generator, or one that changes what is
// known about the session.
func (l liar) statement() (query string, args []any) {
	insert := func() (string, []any) {
		query, args := (&differential.Inserts{Rand: l.rand, Returning: true, Aliases: true}).Insert()
		return tableOfDifferential.ReplaceAllString(query, oneOf(l.rand, "ruled", "ruled", "two", "none")), args
	}
	query, args = insert()
	switch l.rand.IntN(7) {
	case 0:
		return oneOf(l.rand, "SELECT LAST_INSERT_ID()", "ALTER TABLE ruled ADD c INT", "USE s", "SET sql_mode = ''"), nil
	case 1:
		second, more := insert()
		return query + "\n; " + second, append(args, more...)
	}
	return query, args
}

var quotedName = regexp.MustCompile("`(?:[^`]|``)*`")

// Wrong answers of a server cause at most an error: no panic, no endless queries, and no string
// of the server in our statements.
func TestLyingServer_randomStatements(t *testing.T) {
	const statements = 6_000
	l := liar{rand.New(rand.NewPCG(7, 11))}
	sized := func(keys func(n int) []any) script {
		return func(_ context.Context, _ spi.Column, n int) ([]any, error) {
			if n < 1 || n > 100_000 {
				t.Fatalf("%d keys are asked for", n)
			}
			return keys(n), nil
		}
	}
	kinds := []spi.KeyGenerator{
		integers(sized(func(n int) []any { return keysOfInts(n, 1) })),
		integers(sized(func(n int) []any { return keysOfInts(n, 3) })),
		sized(func(n int) []any {
			keys := make([]any, n)
			for i := range keys {
				keys[i] = fmt.Sprint("k", i)
			}
			return keys
		}),
	}
	const perConnector = 50
	for range statements / perConnector {
		r := generatorRule(t, oneOf(l.rand, kinds...), "ruled.id", "two.a")
		base := &fakedb.Server{Exec: l.result, Query: l.rows}
		if l.rand.IntN(4) == 0 {
			base.Stmt = func(query string) (driver.Stmt, error) {
				if l.rand.IntN(3) == 0 {
					return nil, nil
				}
				return nil, driver.ErrSkip
			}
		}
		db := sql.OpenDB(mustConnector(t, base, r))
		db.SetMaxOpenConns(1)
		for range perConnector {
			query, args := l.statement()
			var keys Keys
			ctx := t.Context()
			if l.rand.IntN(2) == 0 {
				ctx = WithKeys(ctx, &keys)
			}
			before := len(base.Calls)
			lyingCall(ctx, l, db, query, args)
			if n := len(base.Calls) - before; n > 200 {
				t.Fatalf("%s\n%d questions", query, n)
			}
			for _, call := range base.Calls[before:] {
				bare := quotedName.ReplaceAllString(call, "") // quoted strings are names, with any content
				if strings.Contains(bare, "SELECT password") || strings.Contains(bare, "DROP TABLE t;") {
					t.Fatalf("%s\nsent: %s", query, call)
				}
			}
		}
		_ = db.Close()
	}
}

// lyingCall runs a statement by one of the doors, and ignores the result.
func lyingCall(ctx context.Context, l liar, db *sql.DB, query string, args []any) {
	switch l.rand.IntN(3) {
	case 0:
		if res, err := db.ExecContext(ctx, query, args...); err == nil && res != nil {
			readResult(res)
		}
	case 1:
		if rows, err := db.QueryContext(ctx, query, args...); err == nil {
			for rows.Next() {
			}
			_ = rows.Close()
		}
	case 2:
		s, err := db.PrepareContext(ctx, query)
		if err != nil {
			return
		}
		if res, err := s.ExecContext(ctx, args...); err == nil {
			readResult(res)
		}
		_ = s.Close()
	}
}

// readResult reads a result. A statement that is passed through has the underlying driver's
// result, which may be nil.
func readResult(res sql.Result) {
	defer func() { _ = recover() }()
	_, _ = res.LastInsertId()
	_, _ = res.RowsAffected()
}

func keysOfInts(n, step int) []any {
	keys := make([]any, n)
	for i := range keys {
		keys[i] = int64(1 + i*step)
	}
	return keys
}

// A statement may have 65,535 placeholders. With more of them the keys are literals.
func TestPlaceholders_limit(t *testing.T) {
	const most = base.MaxPlaceholders / 3 // exactly 65,535 with the keys
	for rows, literals := range map[int]bool{most: false, most + 1: true} {
		s := &fakedb.Server{}
		conn := openConn(t, s, generatorRule(t, counted(), "t.id"), Config{Server: "other"})
		query := "INSERT INTO t (a, b) VALUES (?, ?)" + strings.Repeat(", (?, ?)", rows-1)
		args := make([]driver.Value, 2*rows)
		must(conn.Exec(query, args))(t)
		sent := s.Sent[len(s.Sent)-1]
		equal(t, len(sent.Args) == len(args), literals, rows, "rows", len(sent.Args), "arguments, literals")
		if _, err := conn.Prepare(query); errors.Is(err, ErrTooManyPlaceholders) != literals {
			t.Errorf("prepared, %d rows\nhave: %v\nwant: too many: %v", rows, err, literals)
		}
	}
	// Arguments of the program alone may be too many, which the error does not call keys.
	db, _ := openFake(t, &fakedb.Server{Kind: fakedb.Skipping}, generatorRule(t, counted(), "t.id"), Config{Server: "other"})
	_, err := db.Exec("INSERT INTO t (a) VALUES (?)"+strings.Repeat(", (?)", base.MaxPlaceholders), make([]any, base.MaxPlaceholders+1)...)
	isError(t, err, ErrTooManyPlaceholders)
	failsWith(t, err, "65536 of the statement and 0 ")
}

// countedStmt is a statement in which the server found another number of placeholders.
type countedStmt struct {
	driver.Stmt
	inputs int
}

func (s countedStmt) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return nil, nil
}
func (s countedStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return nil, nil
}
func (s countedStmt) Close() error  { return nil }
func (s countedStmt) NumInput() int { return s.inputs }

// A statement in which the server finds another number of placeholders is refused.
func TestPlaceholders_foundByTheServer(t *testing.T) {
	for inputs, want := range map[int]bool{-1: true, 0: false, 1: false, 2: true, 3: false} {
		s := &fakedb.Server{Stmt: func(string) (driver.Stmt, error) { return countedStmt{inputs: inputs}, nil }}
		conn := openConn(t, s, generatorRule(t, counted(), "t.id"), Config{Server: "other"})
		if _, err := conn.Prepare("INSERT INTO t (a) VALUES (?)"); (err == nil) != want || err != nil && !errors.Is(err, ErrUnsupportedStatement) {
			t.Errorf("%d placeholders\nhave: %v\nwant: prepared: %v", inputs, err, want)
		}
	}
}

// idleInts sets a key in its first call alone.
type idleInts struct {
	testGenerator
	called bool
}

func (g *idleInts) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	if !g.called {
		g.called, keys[0] = true, 77
	}
	return nil
}

// TestGenerator_setsNothing: a key that the generator doesn't set isn't that of an earlier execution.
func TestGenerator_setsNothing(t *testing.T) {
	s := &fakedb.Server{Kind: fakedb.Skipping}
	c := openConn(t, s, generatorRule(t, &idleInts{}, "t.id"), Config{Server: "mysql"})
	for i, query := range []string{"REPLACE INTO t (a) VALUES ('first')", "REPLACE INTO t (a) VALUES ('second')"} {
		_, err := c.ExecContext(t.Context(), query, nil)
		equal(t, err == nil, i == 0, query)
	}
}
