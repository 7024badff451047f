package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
)

// openOn opens a server's database through the wrapper, with parameters added to
// its DSN, and plainly.
func openOn(t *testing.T, dsn string, params ...string) (ours, plain *sql.DB) {
	t.Helper()
	name := "rule of " + t.Name()
	noError(t, RegisterRule(name, testRule(t)))
	t.Cleanup(func() { DeregisterRule(name) })
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	query := strings.Join(params, "&")
	plain = must(sql.Open("mysql", dsn+sep+query))(t)
	ours = must(sql.Open("shardkey", dsn+sep+query+"&shardkeyRule="+strings.ReplaceAll(name, "/", "%2F")))(t)
	t.Cleanup(func() {
		check(t, errors.Join(ours.Close(), plain.Close()))
	})
	return ours, plain
}

func openDB(t *testing.T, params ...string) (ours, plain *sql.DB) {
	t.Helper()
	return openOn(t, testserver.Database(t), params...)
}

// number asks for one number.
func number(t *testing.T, db *sql.DB, query string) (n int64) {
	t.Helper()
	var name string
	row := db.QueryRow(query)
	if strings.HasPrefix(query, "SHOW") {
		if err := row.Scan(&name, &n); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return n
	}
	if err := row.Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestServer_killsIdleConnection(t *testing.T) {
	if testserver.Each(t, TestServer_killsIdleConnection) {
		return
	}
	ours, plain := openDB(t)
	ours.SetMaxOpenConns(1)
	mustExec(t, ours, "CREATE TABLE t (a INT)")
	for range 3 {
		id := number(t, ours, "SELECT CONNECTION_ID()")
		mustExec(t, plain, fmt.Sprintf("KILL %d", id))
		waitGone(t, plain, id)
		mustExec(t, ours, "INSERT INTO t VALUES (?)", 1)
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM t"), 3, "rows")
}

// waitGone returns when the server has ended a connection.
func waitGone(t *testing.T, db *sql.DB, id int64) {
	t.Helper()
	for number(t, db, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d", id)) > 0 {
	}
}

func TestServer_rollbackByContext(t *testing.T) {
	if testserver.Each(t, TestServer_rollbackByContext) {
		return
	}
	ours, _ := openDB(t)
	ours.SetMaxOpenConns(1)
	first := number(t, ours, "SELECT CONNECTION_ID()")
	for range 5 {
		ctx, cancel := context.WithCancel(context.Background())
		tx := must(ours.BeginTx(ctx, nil))(t)
		must(tx.ExecContext(ctx, "SELECT 1"))(t)
		cancel()
		if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
			t.Fatal(err)
		}
		equal(t, number(t, ours, "SELECT CONNECTION_ID()"), first, "connection")
	}
}

func TestServer_pingAfterStop(t *testing.T) {
	if testserver.Each(t, TestServer_pingAfterStop) {
		return
	}
	server := testserver.StartSQL(t)
	ours, _ := openOn(t, server.DSN(), "timeout=5s")
	noError(t, ours.Ping())
	server.Stop()
	if err := ours.Ping(); err == nil {
		t.Error("Ping says that a stopped server is up")
	}
	server.Start()
	check(t, ours.Ping())
}

// What is prepared and not closed is the same through us: the statements that
// the server refused to prepare.
func TestServer_preparedStatementsAreClosed(t *testing.T) {
	if testserver.Each(t, TestServer_preparedStatementsAreClosed) {
		return
	}
	ours, plain := openDB(t)
	mustExec(t, plain, "CREATE TABLE t (a INT PRIMARY KEY)")
	want := preparedAndNotClosed(t, plain)
	mustExec(t, plain, "DELETE FROM t")
	equal(t, preparedAndNotClosed(t, ours), want)
}

func preparedAndNotClosed(t *testing.T, db *sql.DB) int64 {
	t.Helper()
	db.SetMaxOpenConns(1) // one session's count
	before := prepared(t, db)
	for i := range 20 {
		mustExec(t, db, "INSERT INTO t VALUES (?)", i)
		if _, err := db.Exec("INSERT INTO t VALUES (?)", i); err == nil {
			t.Error("no duplicate")
		}
		if _, err := db.Exec("INSERT INTO t VALUES (?, ?)", i, i); err == nil {
			t.Error("two values in one column")
		}
		check(t, db.QueryRow("SELECT a FROM t WHERE a = ?", i).Scan(new(int)))
	}
	return prepared(t, db) - before
}

func TestServer_canceledPrepare(t *testing.T) {
	if testserver.Each(t, TestServer_canceledPrepare) {
		return
	}
	ours, _ := openDB(t)
	ours.SetMaxOpenConns(1)
	open := func() int64 { // other programs use the server too
		return number(t, ours, "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'") - number(t, ours, "SHOW SESSION STATUS LIKE 'Com_stmt_close'")
	}
	before := open()
	for range 10 {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if st, err := ours.PrepareContext(ctx, "SELECT ?"); err != context.Canceled {
			t.Errorf("have: %v, %v\nwant: %v", st, err, context.Canceled)
		}
	}
	if have := open(); have > before {
		t.Errorf("statements\nhave: %d\nwant: %d", have, before)
	}
}

// Each door returns when its context ends, not when the server is done, which
// the test would not live to see.
func TestServer_canceledCallsReturn(t *testing.T) {
	if testserver.Each(t, TestServer_canceledCallsReturn) {
		return
	}
	ours, _ := openDB(t)
	st := must(ours.Prepare("DO SLEEP(?)"))(t)
	defer st.Close()
	sel := must(ours.Prepare("SELECT SLEEP(?)"))(t)
	defer sel.Close()
	doors := map[string]func(context.Context) error{
		"Exec":       func(ctx context.Context) error { _, err := ours.ExecContext(ctx, "DO SLEEP(1000)"); return err },
		"Exec, args": func(ctx context.Context) error { _, err := ours.ExecContext(ctx, "DO SLEEP(?)", 1000); return err },
		"Query":      func(ctx context.Context) error { return drain(ours.QueryContext(ctx, "SELECT SLEEP(1000)")) },
		"Stmt.Exec":  func(ctx context.Context) error { _, err := st.ExecContext(ctx, 1000); return err },
		"Stmt.Query": func(ctx context.Context) error { return drain(sel.QueryContext(ctx, 1000)) },
	}
	for name, door := range doors {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		err := door(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func drain(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func TestServer_transactionOptions(t *testing.T) {
	if testserver.Each(t, TestServer_transactionOptions) {
		return
	}
	ours, _ := openDB(t)
	mustExec(t, ours, "CREATE TABLE t (a INT)")
	tx := must(ours.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true}))(t)
	var refused *mysql.MySQLError
	if _, err := tx.Exec("INSERT INTO t VALUES (1)"); !errors.As(err, &refused) || refused.Number != 1792 {
		t.Errorf("a write in a read-only transaction: %v", err)
	}
	_ = tx.Rollback()
	// What another transaction inserts is seen by READ UNCOMMITTED alone.
	for level, want := range map[sql.IsolationLevel]int{sql.LevelReadUncommitted: 1, sql.LevelRepeatableRead: 0} {
		other := must(ours.Begin())(t)
		mustExec(t, other, "INSERT INTO t VALUES (1)")
		tx := must(ours.BeginTx(context.Background(), &sql.TxOptions{Isolation: level}))(t)
		var have int
		if err := tx.QueryRow("SELECT COUNT(*) FROM t").Scan(&have); err != nil || have != want {
			t.Errorf("%v\nhave: %d, %v\nwant: %d", level, have, err, want)
		}
		_, _ = tx.Rollback(), other.Rollback()
	}
}

func TestServer_bigUnsigned(t *testing.T) {
	if testserver.Each(t, TestServer_bigUnsigned) {
		return
	}
	const big = uint64(1)<<63 + 5
	for _, params := range []string{"interpolateParams=false", "interpolateParams=true"} {
		ours, _ := openDB(t, params)
		mustExec(t, ours, "CREATE TABLE t (a BIGINT UNSIGNED)")
		mustExec(t, ours, "INSERT INTO t VALUES (?)", big)
		st := must(ours.Prepare("INSERT INTO t VALUES (?)"))(t)
		must(st.Exec(big))(t)
		_ = st.Close()
		var n int
		if err := ours.QueryRow("SELECT COUNT(*) FROM t WHERE a = ?", big).Scan(&n); err != nil || n != 2 {
			t.Errorf("%s: %d rows, %v", params, n, err)
		}
	}
}

// TestServer_errorsOfBase compares the texts of what goes wrong.
func TestServer_errorsOfBase(t *testing.T) {
	if testserver.Each(t, TestServer_errorsOfBase) {
		return
	}
	for _, params := range []string{"interpolateParams=false", "interpolateParams=true"} {
		ours, plain := openDB(t, params)
		mustExec(t, plain, "CREATE TABLE t (a INT PRIMARY KEY)")
		mustExec(t, plain, "INSERT INTO t VALUES (1)")
		for _, use := range []func(db *sql.DB) error{
			func(db *sql.DB) error { _, err := db.Exec("INSERT INTO t VALUES (?)"); return err },
			func(db *sql.DB) error { _, err := db.Exec("INSERT INTO t VALUES (?)", 1, 2); return err },
			func(db *sql.DB) error { _, err := db.Exec("INSERT INTO t VALUES (?)", 1); return err },
			func(db *sql.DB) error { _, err := db.Exec("INSERT INTO t VALUES (1)"); return err },
			func(db *sql.DB) error { _, err := db.Exec("NONSENSE ?", 1); return err },
			func(db *sql.DB) error { return db.QueryRow("SELECT ?", 1, 2).Scan(new(int)) },
			func(db *sql.DB) error { return db.QueryRow("SELECT a FROM nowhere").Scan(new(int)) },
			func(db *sql.DB) error { _, err := db.Prepare("SELECT FROM"); return err },
			func(db *sql.DB) error { _, err := db.Exec("INSERT INTO t VALUES (?)", struct{}{}); return err },
			func(db *sql.DB) error { _, err := db.Exec("SET @a = ?", sql.Named("a", 1)); return err },
		} {
			want, have := use(plain), use(ours)
			if fmt.Sprintf("%T %v", have, have) != fmt.Sprintf("%T %v", want, want) {
				t.Errorf("%s\nhave: %T %v\nwant: %T %v", params, have, have, want, want)
			}
		}
	}
}

func TestServer_rawConnection(t *testing.T) {
	if testserver.Each(t, TestServer_rawConnection) {
		return
	}
	ours, _ := openDB(t)
	mustExec(t, ours, "CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b INT)")
	conn, err := ours.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Raw(func(c any) error {
		res, err := c.(oldExecer).Exec("INSERT INTO t (b) VALUES (1), (2)", nil)
		if err != nil {
			return err
		}
		if ids := res.(mysql.Result).AllLastInsertIds(); len(ids) != 1 || ids[0] != 1 {
			t.Errorf("AllLastInsertIds: %v", ids)
		}
		base := c.(interface{ Unwrap() driver.Conn }).Unwrap()
		equal(t, fmt.Sprintf("%T", base), "*mysql.mysqlConn", "Unwrap returns")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestServer_columnTypes(t *testing.T) {
	if testserver.Each(t, TestServer_columnTypes) {
		return
	}
	ours, plain := openDB(t, "multiStatements=true")
	const query = "SELECT 1 a, 'x' b, CAST(2.5 AS DECIMAL(7,3)) c, NOW(6) d; SELECT 2"
	describe := func(db *sql.DB) (all []string) {
		rows := must(db.Query(query))(t)
		defer rows.Close()
		for more := true; more; more = rows.NextResultSet() {
			types := must(rows.ColumnTypes())(t)
			for _, typ := range types {
				all = append(all, fmt.Sprintf("%+v", *typ))
			}
		}
		return all
	}
	want, have := describe(plain), describe(ours)
	if fmt.Sprint(have) != fmt.Sprint(want) || len(have) != 5 {
		t.Errorf("have: %s\nwant: %s", lines(have), lines(want))
	}
}

func TestServer_preparedOnOtherConnections(t *testing.T) {
	if testserver.Each(t, TestServer_preparedOnOtherConnections) {
		return
	}
	ours, _ := openDB(t)
	mustExec(t, ours, "CREATE TABLE t (a INT)")
	st := must(ours.Prepare("INSERT INTO t VALUES (?)"))(t)
	defer st.Close()
	for range 3 { // each transaction takes one more connection
		tx := must(ours.Begin())(t)
		defer tx.Rollback()
		must(tx.Stmt(st).Exec(1))(t)
		must(st.Exec(2))(t)
	}
}
