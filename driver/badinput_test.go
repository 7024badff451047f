package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// Bad input to statements that are filled. Whatever is wrong, the error says so,
// no INSERT is sent without its keys, and nothing is left open.

var errScript = errors.New("the script's own error")

var badGenerators = []struct {
	name string
	script
	want string
}{
	{"fails", func(context.Context, spi.Column, int) ([]any, error) { return nil, errScript }, errScript.Error()},
	{"panics", func(context.Context, spi.Column, int) ([]any, error) { panic("oh") }, "it panicked: oh"},
	{"panics with an error", func(context.Context, spi.Column, int) ([]any, error) { panic(errScript) }, "it panicked: " + errScript.Error()},
	{"too few", func(_ context.Context, _ spi.Column, n int) ([]any, error) { return make([]any, n-1), nil }, "it made 1 keys where 2 were asked for"},
	{"too many", func(context.Context, spi.Column, int) ([]any, error) { return []any{1, 2, 3}, nil }, "it made 3 keys where 2 were asked for"},
	{"none", func(context.Context, spi.Column, int) ([]any, error) { return nil, nil }, "it made 0 keys where 2 were asked for"},
	{"nil", func(context.Context, spi.Column, int) ([]any, error) { return []any{1, nil}, nil }, "key 2 of 2 is nil"},
	{"nil bytes", func(context.Context, spi.Column, int) ([]any, error) { return []any{[]byte(nil), 1}, nil }, "key 1 of 2 is nil"},
	{"nil pointer", func(context.Context, spi.Column, int) ([]any, error) { return []any{(*int)(nil), 1}, nil }, "key 1 of 2 is nil"},
	{"valuer of nil", func(context.Context, spi.Column, int) ([]any, error) { return []any{sql.NullInt64{}, 1}, nil }, "key 1 of 2 is nil"},
}

func TestGenerators_bad(t *testing.T) {
	for _, bad := range badGenerators {
		for _, kind := range fakeKinds {
			for _, d := range doors {
				t.Run(bad.name+"/"+kind+"/"+d.name, func(t *testing.T) {
					base := &fakeBase{kind: kind}
					db := sql.OpenDB(mustConnector(t, base, scriptRule(t, bad.script, "ruled.id")))
					_, err := d.exec(t.Context(), db, "INSERT INTO ruled (a, id) VALUES (?, NULL), (2, DEFAULT)", 1)
					var failed *GeneratorError
					if !errors.As(err, &failed) || failed.Table != "ruled" || failed.Column != "id" || !strings.Contains(fmt.Sprint(err), bad.want) {
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

// checkNothingSent closes the database, and holds that no INSERT was executed
// and that nothing stays open.
func checkNothingSent(t *testing.T, base *fakeBase, db *sql.DB) {
	t.Helper()
	check(t, db.Close())
	for _, call := range base.calls {
		if strings.Contains(call, "INSERT") && !strings.HasPrefix(call, "prepare") {
			t.Errorf("sent: %s", call)
		}
	}
	if base.stmts != 0 || base.open != 0 {
		t.Errorf("%d statements and %d connections are left", base.stmts, base.open)
	}
}

// Without arguments the server would run the statements before the placeholder.
func TestScript_withoutItsArguments(t *testing.T) {
	for _, kind := range fakeKinds {
		base := &fakeBase{kind: kind}
		db := sql.OpenDB(mustConnector(t, base, scriptRule(t, badGenerators[0].script, "ruled.id")))
		if _, err := db.ExecContext(t.Context(), "INSERT INTO ruled (a) VALUES (1); SELECT ?"); err == nil {
			t.Errorf("%s\nhave: no error\nwant: one", kind)
		}
		if rows, err := db.QueryContext(t.Context(), "INSERT INTO ruled (a) VALUES (1); SELECT ?"); err == nil {
			rows.Close()
			t.Errorf("%s, query\nhave: no error\nwant: one", kind)
		}
		checkNothingSent(t, base, db)
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
		"INSERT INTO ruled (a) VALUES (1); /*!99999 SELECT ? */",
		"INSERT INTO ruled (a) SELECT 1; SELECT 2",
	} {
		for _, kind := range []string{"direct", "skipping", "minimal", "legacy"} {
			for _, d := range doors {
				base := &fakeBase{kind: kind}
				db := sql.OpenDB(mustConnector(t, base, scriptRule(t, listed(1, 2), "ruled.id")))
				_, err := d.exec(t.Context(), db, query)
				var where *StatementError
				if !errors.Is(err, ErrUnsupportedStatement) || !errors.As(err, &where) || where.Line != 1 {
					t.Errorf("%s, %s, %s: %v", kind, d.name, query, err)
				}
				checkNothingSent(t, base, db)
			}
		}
	}
}

// The error for a wrong number of arguments is the one without us.
func TestArguments_wrongCount(t *testing.T) {
	if testserver.Each(t, TestArguments_wrongCount) {
		return
	}
	for _, params := range bothWays {
		ours, plain, _ := openFilled(t, params)
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
						t.Errorf("%s, %s, %d of %s\nhave: %v\nwant: %v", params, d.name, n, query, have, want)
					}
				}
			}
		}
		if n := number(t, ours, "SELECT COUNT(*) FROM ruled WHERE id IS NULL") - number(t, ours, "SELECT COUNT(*) FROM ruled WHERE id = 0"); n == 0 {
			t.Error("the plain driver inserted nothing")
		}
	}
}

func TestKeyColumn_stringKeyInInteger(t *testing.T) {
	if testserver.Each(t, TestKeyColumn_stringKeyInInteger) {
		return
	}
	for _, params := range bothWays {
		for _, d := range doors {
			ours, plain := openScripted(t, scriptRule(t, listed("abc", "def"), "ruled.id"), params)
			mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
			_, err := d.exec(t.Context(), ours, "INSERT INTO ruled (a) VALUES (?)", 1)
			var refused *StatementError
			if !errors.As(err, &refused) || refused.Reason != reasonNarrowColumn || !strings.Contains(refused.Message, "'abc'") {
				t.Errorf("%s, %s: %v", params, d.name, err)
			}
		}
	}
}

// A call that waits for the generator returns when the context ends, and the
// connection goes on.
func TestContext_endsWhileGeneratorWaits(t *testing.T) {
	if testserver.Each(t, TestContext_endsWhileGeneratorWaits) {
		return
	}
	entered := make(chan struct{}, 1)
	waiting := script(func(ctx context.Context, _ spi.Column, n int) ([]any, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return nil, fmt.Errorf("waiting for the clock: %w", ctx.Err())
	})
	ours, plain := openScripted(t, scriptRule(t, waiting, "ruled.id"))
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	ours.SetMaxOpenConns(1)
	id := number(t, ours, "SELECT CONNECTION_ID()")
	for _, d := range doors {
		for _, query := range []string{"INSERT INTO ruled (a) VALUES (?)", "INSERT INTO ruled (a) SELECT ?"} {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-entered; cancel() }()
			if _, err := d.exec(ctx, ours, query, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("%s, %s: %v", d.name, query, err)
			}
			cancel()
			equal(t, number(t, ours, "SELECT CONNECTION_ID()"), id, d.name, query, "another connection")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	go func() { <-entered }()
	if _, err := ours.ExecContext(ctx, "INSERT INTO ruled (a) VALUES (1)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 0, "rows")
}

func TestPlaceholders_tooManyInEveryDoor(t *testing.T) {
	if testserver.Each(t, TestPlaceholders_tooManyInEveryDoor) {
		return
	}
	if testing.Short() {
		t.Skip("-short: it binds 65,536 arguments in every door")
	}
	args := make([]any, base.MaxPlaceholders+1)
	for i := range args {
		args[i] = i
	}
	query := "INSERT INTO ruled (a) VALUES (? IN (?" + strings.Repeat(",?", base.MaxPlaceholders-1) + "))"
	for _, params := range bothWays {
		ours, plain, _ := openFilled(t, params)
		sent := int64(0)
		for _, d := range doors {
			_, err := d.exec(t.Context(), ours, query, args...)
			if direct := d.name != "Stmt"; direct && params == "interpolateParams=true" {
				if err != nil { // no placeholder reaches the server
					t.Errorf("%s, %s: %v", params, d.name, err)
				}
				sent++
				continue
			}
			if !errors.Is(err, ErrTooManyPlaceholders) || !strings.Contains(err.Error(), "insert fewer rows at a time") {
				t.Errorf("%s, %s: %v", params, d.name, err)
			}
		}
		equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), sent, params)
	}
}
