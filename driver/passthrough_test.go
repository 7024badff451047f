package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// countingValuer counts how often database/sql asks it.
type countingValuer struct{ asked *int }

func (v countingValuer) Value() (driver.Value, error) { *v.asked++; return int64(5), nil }

// oddValuer returns what no driver takes.
type oddValuer struct{}

func (oddValuer) Value() (driver.Value, error) { return struct{}{}, nil }

// uses are what programs do with a database. Each runs over a base directly and
// through the wrapper: the base must see the same calls, and the program the
// same outcome.
var uses = []struct {
	name string
	run  func(ctx context.Context, db *sql.DB, say func(...any))
}{
	{"exec", func(ctx context.Context, db *sql.DB, say func(...any)) {
		res, err := db.ExecContext(ctx, "UPDATE t SET a = 1")
		say(err)
		id, err := res.LastInsertId()
		n, err2 := res.RowsAffected()
		say(id, err, n, err2)
	}},
	{"exec with arguments", func(ctx context.Context, db *sql.DB, say func(...any)) {
		_, err := db.ExecContext(ctx, "UPDATE t SET a = ?, b = ?, c = ?", 1, "x", []byte("y"))
		say(err)
	}},
	{"valuer", func(ctx context.Context, db *sql.DB, say func(...any)) {
		asked := 0
		_, err := db.ExecContext(ctx, "UPDATE t SET a = ?", countingValuer{&asked})
		say(asked, err)
		rows, err := db.QueryContext(ctx, "SELECT ?", countingValuer{&asked})
		say(asked, err)
		rows.Close()
	}},
	{"types of arguments", func(ctx context.Context, db *sql.DB, say func(...any)) {
		for _, arg := range []any{uint64(1) << 63, fakeWide{3}, nil, struct{}{}, true, sql.Named("a", 1), sql.NullString{}, oddValuer{}} {
			_, err := db.ExecContext(ctx, "UPDATE t SET a = ?", arg)
			say(err)
			_, err = db.QueryContext(ctx, "SELECT ? FAIL", arg)
			say(err)
			st, err := db.PrepareContext(ctx, "UPDATE t SET a = ?")
			say(err)
			_, err = st.ExecContext(ctx, arg)
			say(err)
			say(st.Close())
		}
	}},
	{"wrong count of arguments", func(ctx context.Context, db *sql.DB, say func(...any)) {
		for _, args := range [][]any{{}, {1}, {1, 2, 3}} {
			_, err := db.ExecContext(ctx, "UPDATE t SET a = ?, b = ?", args...)
			say(err)
			st, err := db.PrepareContext(ctx, "UPDATE t SET a = ?, b = ?")
			say(err)
			_, err = st.ExecContext(ctx, args...)
			say(err)
			st.Close()
		}
	}},
	{"rows", func(ctx context.Context, db *sql.DB, say func(...any)) {
		for _, args := range [][]any{nil, {1}} {
			rows, err := db.QueryContext(ctx, "SELECT c"+strings.Repeat(" ?", len(args)), args...)
			say(err)
			types, err := rows.ColumnTypes()
			say(types[0].DatabaseTypeName(), types[0].ScanType(), err)
			for more := true; more; more = rows.NextResultSet() {
				for rows.Next() {
					var n int
					say(rows.Scan(&n), n)
				}
			}
			say(rows.Err(), rows.Close())
		}
	}},
	{"errors", func(ctx context.Context, db *sql.DB, say func(...any)) {
		_, err := db.ExecContext(ctx, "FAIL")
		say(err, err == errFake)
		_, err = db.ExecContext(ctx, "FAIL ?", 1)
		say(err, err == errFake)
		_, err = db.QueryContext(ctx, "FAIL ?", 1)
		say(err, err == errFake)
		_, err = db.PrepareContext(ctx, "UNPREPARABLE")
		say(err, err == errFake)
	}},
	{"bad connection", func(ctx context.Context, db *sql.DB, say func(...any)) {
		base := fakeOf(db)
		for _, bad := range []int{1, 2, 3} {
			base.bad = bad
			_, err := db.ExecContext(ctx, "UPDATE t SET a = ?", 1)
			say(err, err == driver.ErrBadConn)
		}
		base.bad = 0
	}},
	{"transactions", func(ctx context.Context, db *sql.DB, say func(...any)) {
		for _, opts := range []*sql.TxOptions{nil, {ReadOnly: true}, {Isolation: sql.LevelSerializable}} {
			tx, err := db.BeginTx(ctx, opts)
			say(err)
			if err != nil {
				continue
			}
			_, err = tx.ExecContext(ctx, "UPDATE t SET a = ?", 1)
			say(err, tx.Commit())
		}
	}},
	{"prepared across connections", func(ctx context.Context, db *sql.DB, say func(...any)) {
		st, err := db.PrepareContext(ctx, "UPDATE t SET a = ?")
		say(err)
		tx, err := db.BeginTx(ctx, nil)
		say(err)
		_, err = st.ExecContext(ctx, 1) // on a second connection
		say(err)
		_, err = tx.StmtContext(ctx, st).ExecContext(ctx, 2)
		say(err, tx.Rollback(), st.Close())
	}},
	{"ping", func(ctx context.Context, db *sql.DB, say func(...any)) { say(db.PingContext(ctx)) }},
}

// fakeOf finds the base of a database that runUse opened.
func fakeOf(db *sql.DB) *fakeBase {
	switch d := db.Driver().(type) {
	case fakeDriver:
		return d.base
	case *wrapped:
		return d.base.(fakeDriver).base
	}
	return nil
}

func TestPassThrough_callsOfBase(t *testing.T) {
	for _, kind := range fakeKinds {
		for _, use := range uses {
			t.Run(kind+"/"+use.name, func(t *testing.T) {
				plain, ours := &fakeBase{kind: kind}, &fakeBase{kind: kind}
				want := runUse(sql.OpenDB(plain), use.run)
				connector := must(NewConnector(ours, testRule(t)))(t)
				have := runUse(sql.OpenDB(connector), use.run)
				if !slices.Equal(have, want) {
					t.Errorf("the program saw\nhave: %s\nwant: %s", lines(have), lines(want))
				}
				if !slices.Equal(ours.calls, plain.calls) {
					t.Errorf("the base saw\nhave: %s\nwant: %s", lines(ours.calls), lines(plain.calls))
				}
				if ours.open != 0 || ours.stmts != 0 || ours.closed != 1 {
					t.Errorf("left: %d connections, %d statements, %d Close", ours.open, ours.stmts, ours.closed)
				}
			})
		}
	}
}

// runUse runs a use twice, live and with a context that has ended in between.
func runUse(db *sql.DB, use func(context.Context, *sql.DB, func(...any))) (said []string) {
	defer db.Close()
	use(context.Background(), db, func(v ...any) { said = append(said, fmt.Sprint(v...)) })
	return said
}

func lines(s []string) string { return "\n\t" + strings.Join(s, "\n\t") }

// TestPassThrough_canceledContext: where the base has no contexts, an ended one
// is seen as database/sql sees it for such a base.
func TestPassThrough_canceledContext(t *testing.T) {
	for _, kind := range fakeKinds {
		ctx, cancel := context.WithCancel(context.Background())
		doors := func(base driver.Connector) (said []string) {
			c, err := base.Connect(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if p, ok := c.(driver.ConnPrepareContext); ok {
				_, err = p.PrepareContext(ctx, "SELECT 1")
			}
			said = append(said, fmt.Sprint(err))
			if b, ok := c.(driver.ConnBeginTx); ok {
				_, err = b.BeginTx(ctx, driver.TxOptions{})
			}
			return append(said, fmt.Sprint(err))
		}
		cancel()
		base := &fakeBase{kind: kind}
		connector := must(NewConnector(base, testRule(t)))(t)
		want := []string{context.Canceled.Error(), context.Canceled.Error()}
		if kind == "direct" || kind == "skipping" { // these take a context, and ignore it
			want = []string{"<nil>", "<nil>"}
			base.stmts--
		}
		if have := doors(connector); !slices.Equal(have, want) {
			t.Errorf("%s\nhave: %q\nwant: %q", kind, have, want)
		}
		if base.stmts != 0 {
			t.Errorf("%s: %d statements left", kind, base.stmts)
		}
		check(t, connector.Close())
	}
}

// TestPassThrough_interfacesInRaw: what go-sql-driver's README tells people to
// assert in Raw.
func TestPassThrough_interfacesInRaw(t *testing.T) {
	for _, kind := range fakeKinds {
		base := &fakeBase{kind: kind}
		connector := must(NewConnector(base, testRule(t)))(t)
		db := sql.OpenDB(connector)
		conn, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		err = conn.Raw(func(c any) error {
			if ConnectorOf(c) != connector {
				t.Errorf("%s: ConnectorOf is %v", kind, ConnectorOf(c))
			}
			if _, ok := c.(interface{ Unwrap() driver.Conn }).Unwrap().(interface{ Connector() *Connector }); ok {
				t.Errorf("%s: Unwrap returns ours", kind)
			}
			if _, err := c.(oldExecer).Exec("UPDATE t", nil); err != nil && err != driver.ErrSkip {
				t.Errorf("%s: Exec: %v", kind, err)
			}
			rows, err := c.(oldQueryer).Query("SELECT 1", nil)
			if err != nil && err != driver.ErrSkip {
				t.Errorf("%s: Query: %v", kind, err)
			}
			if err == nil {
				_ = rows.Close()
			}
			return oldStatement(c.(driver.Conn))
		})
		if err = errors.Join(err, conn.Close(), db.Close()); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if base.stmts != 0 || base.open != 0 {
			t.Errorf("%s: %d statements, %d connections left", kind, base.stmts, base.open)
		}
	}
}

func oldStatement(c driver.Conn) error {
	st, err := c.Prepare("SELECT ?")
	if err != nil {
		return err
	}
	old := st.(interface {
		Exec(args []driver.Value) (driver.Result, error)
		Query(args []driver.Value) (driver.Rows, error)
	})
	_, err = old.Exec([]driver.Value{int64(1)})
	rows, err2 := old.Query([]driver.Value{int64(1)})
	if err2 == nil {
		_ = rows.Close()
	}
	return errors.Join(err, err2, st.Close())
}

// A connection answers the pool as the base's does, and as database/sql takes a base to
// answer that has neither interface.
func TestConn_answersThePoolAsTheBase(t *testing.T) {
	for _, kind := range fakeKinds {
		connector := must(NewConnector(&fakeBase{kind: kind}, testRule(t)))(t)
		c := must(connector.Connect(t.Context()))(t)
		plain, _ := (&fakeBase{kind: kind}).Connect(t.Context())
		var wantReset error
		if r, ok := plain.(driver.SessionResetter); ok {
			wantReset = r.ResetSession(t.Context())
		}
		wantValid := true
		if v, ok := plain.(driver.Validator); ok {
			wantValid = v.IsValid()
		}
		reset, valid := c.(driver.SessionResetter).ResetSession(t.Context()), c.(driver.Validator).IsValid()
		if reset != wantReset || valid != wantValid {
			t.Errorf("%s\nhave: %v, valid %v\nwant: %v, %v", kind, reset, valid, wantReset, wantValid)
		}
		_ = c.Close()
	}
}
