package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/spi"
)

// injected is text that no integer of a server may bring into a statement.
const injected = "2,3),(4,(SELECT password FROM mysql.user LIMIT 1)"

// liar makes answers by chance: right ones, odd ones, and none at all.
type liar struct{ rand *rand.Rand }

// oneOf is one of its values, by chance.
func oneOf[T any](l liar, values ...T) T { return values[l.rand.IntN(len(values))] }

func (l liar) err() error {
	server := func(n uint16) error { return &mysql.MySQLError{Number: n, Message: "x"} }
	return oneOf(l, driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, errScript, context.Canceled,
		server(1054), server(1136), server(1364), server(1146), server(1143), server(1348), server(1050), server(1060), server(1067), server(1044), server(4091), server(3748))
}

func (l liar) value() driver.Value {
	return oneOf[driver.Value](l, nil, int64(1), int64(2), int64(-1), int64(math.MaxInt64), uint64(math.MaxUint64), "1", "2", []byte("3"), "", "x", injected, []byte(injected),
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
	return lyingResult{oneOf[int64](l, 0, 1, 2, 7, -1, math.MaxInt64, math.MinInt64), oneOf[int64](l, 0, 1, 1, 2, 2, 3, 4, -1, 1<<33, math.MaxInt64, math.MinInt64)}, nil
}

// manyResults is what the server says of several statements, as mysql.Result.
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
	a := answer{columns: []string{"id", "a", "b", "c", "d", "e", "f", "g", "h"}[:l.rand.IntN(10)]}
	if l.rand.IntN(2) == 0 {
		l.rand.Shuffle(len(a.columns), func(i, j int) {
			a.columns = append([]string(nil), a.columns...)
			a.columns[i], a.columns[j] = a.columns[j], a.columns[i]
		})
	}
	for range l.rand.IntN(4) {
		row := make([]driver.Value, len(a.columns))
		for i := range row {
			row[i] = l.value()
		}
		a.values = append(a.values, row)
	}
	return a.rows(), nil
}

func (l liar) statement() string {
	insert := oneOf(l, "INSERT", "INSERT IGNORE", "REPLACE", "INSERT") + " INTO " + oneOf(l, "ruled", "`ruled`", "s.ruled", "two", "none")
	columns := oneOf(l, "", "", " (a)", " (id, a)", " (a, b)", " (a, id, b)", " ()")
	value := func() string {
		return oneOf(l, "1", "NULL", "0", "''", "DEFAULT", "?", "'x'", "1 + 1", "LAST_INSERT_ID()", "-1")
	}
	row := func() string {
		values := make([]string, l.rand.IntN(4))
		for i := range values {
			values[i] = value()
		}
		return "(" + strings.Join(values, ",") + ")"
	}
	rows := row()
	for range l.rand.IntN(3) {
		rows += ", " + row()
	}
	source := oneOf(l, " VALUES "+rows, " VALUES "+rows, " VALUES "+rows, " SELECT "+value()+","+value()+" FROM x", " SELECT * FROM x", " SET a = "+value(), " TABLE x", " SELECT 1")
	tail := oneOf(l, "", "", "", " ON DUPLICATE KEY UPDATE a = 1", " RETURNING id", " ON DUPLICATE KEY UPDATE a = a + LAST_INSERT_ID()")
	return oneOf(l, insert+columns+source+tail, insert+columns+source+tail, insert+columns+source+tail, insert+columns+source+"; "+insert+columns+source, "SELECT LAST_INSERT_ID()", "ALTER TABLE ruled ADD c INT", "USE s", "SET sql_mode = ''")
}

var quotedName = regexp.MustCompile("`(?:[^`]|``)*`")

// Whatever a server says, it costs an error at most: no panic, no endless
// questions, no text of the server's in our statements.
func TestLyingServer_randomStatements(t *testing.T) {
	const statements = 6_000
	l := liar{rand.New(rand.NewPCG(7, 11))}
	kinds := []func(context.Context, int) []any{
		func(_ context.Context, n int) []any { return keysOfInts(n, 1) },
		func(_ context.Context, n int) []any { return keysOfInts(n, 3) },
		func(_ context.Context, n int) []any {
			keys := make([]any, n)
			for i := range keys {
				keys[i] = fmt.Sprint("k", i)
			}
			return keys
		},
	}
	const perConnector = 50
	for range statements / perConnector {
		kind := oneOf(l, kinds...)
		r := scriptRule(t, func(ctx context.Context, _ spi.Column, n int) ([]any, error) {
			if n < 1 || n > 100_000 {
				t.Fatalf("%d keys are asked for", n)
			}
			return kind(ctx, n), nil
		}, "ruled.id", "two.a")
		base := &lyingBase{result: l.result, rows: l.rows}
		if l.rand.IntN(4) == 0 {
			base.stmt = func(query string) (driver.Stmt, error) {
				if l.rand.IntN(3) == 0 {
					return nil, nil
				}
				return &lyingStmt{&lyingConn{base}, query}, nil
			}
		}
		db := sql.OpenDB(mustConnector(t, base, r))
		db.SetMaxOpenConns(1)
		for range perConnector {
			query := l.statement()
			var args []any
			for range strings.Count(query, "?") {
				args = append(args, oneOf[any](l, nil, 1, 0, "", "x"))
			}
			var keys Keys
			ctx := t.Context()
			if l.rand.IntN(2) == 0 {
				ctx = WithKeys(ctx, &keys)
			}
			before := len(base.calls)
			lyingCall(ctx, l, db, query, args)
			if n := len(base.calls) - before; n > 200 {
				t.Fatalf("%s\n%d questions", query, n)
			}
			for _, call := range base.calls[before:] {
				bare := quotedName.ReplaceAllString(call, "") // what is quoted is a name, whatever it says
				if strings.Contains(bare, "SELECT password") || strings.Contains(bare, "DROP TABLE t;") {
					t.Fatalf("%s\nsent: %s", query, call)
				}
			}
		}
		_ = db.Close()
	}
}

// lyingCall runs a statement by one of the doors; its outcome is of no interest.
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

// readResult reads a result, which of a statement that passes is the base's own
// and may be nil.
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

// The columns of a table that are others each time, and never right, are read a
// few times and no more.
func TestLyingServer_columnsThatKeepChanging(t *testing.T) {
	n := 0
	lying := &lyingBase{result: func(query string) (driver.Result, error) {
		return nil, &mysql.MySQLError{Number: 1054, Message: "Unknown column"}
	}}
	lying.rows = func(query string) (driver.Rows, error) {
		if strings.HasPrefix(query, "SELECT * FROM") {
			n++
			return answer{columns: []string{"id", fmt.Sprint("a", n)}}.rows(), nil
		}
		return nil, errScript
	}
	for name, exec := range map[string]func(*sql.DB) error{
		"exec":    func(db *sql.DB) error { _, err := db.Exec("INSERT INTO ruled VALUES (NULL, 1)"); return err },
		"query":   func(db *sql.DB) error { return drain(db.Query("INSERT INTO ruled VALUES (NULL, 1) RETURNING id")) },
		"prepare": func(db *sql.DB) error { _, err := db.Exec("INSERT INTO ruled VALUES (?, 1)", nil); return err },
	} {
		n, lying.calls = 0, nil
		db := sql.OpenDB(mustConnector(t, lying, scriptRule(t, func(_ context.Context, _ spi.Column, n int) ([]any, error) { return keysOfInts(n, 1), nil }, "ruled.id")))
		if err := exec(db); !base.IsServerError(err, 1054) && name != "query" {
			t.Errorf("%s\nhave: %v\nwant: the server's error", name, err)
		}
		if n > 3*maxStale {
			t.Errorf("%s: the columns were read %d times", name, n)
		}
		_ = db.Close()
	}
}
