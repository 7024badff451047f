package driver_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	_ "embed"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/rule"
)

// The test of a program can replace the server by sqlmock, and the generator by one with known
// keys. This one returns 1001, 1002 and so on.
func ExampleWrap_testing() {
	server, mock, err := sqlmock.NewWithDSN("example_server")
	if err != nil {
		panic(err)
	}
	defer server.Close()
	mock.ExpectExec(regexp.QuoteMeta("INSERT INTO t_order_0 (user_id, `order_id`) VALUES (?, ?), (?, ?)")).
		WithArgs(7, 1001, 8, 1002).WillReturnResult(sqlmock.NewResult(0, 2))

	r, err := rule.Parse("rule.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_0.t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: fixed}
  keyGenerators:
    fixed: {type: COUNTER} # registered with spi.RegisterKeyGenerator
`))
	if err != nil {
		panic(err)
	}
	connector, err := driver.Wrap(server.Driver(), r).(sqldriver.DriverContext).OpenConnector("example_server")
	if err != nil {
		panic(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()

	res, err := db.Exec("INSERT INTO t_order_0 (user_id) VALUES (?), (?)", 7, 8)
	if err != nil {
		panic(err)
	}
	id, err := res.LastInsertId()
	fmt.Println("first key:", id, err)
	fmt.Println("expected statements sent:", mock.ExpectationsWereMet() == nil)
	// Output:
	// first key: 1001 <nil>
	// expected statements sent: true
}

// WithKeys returns the key of each row of a batch.
func ExampleWithKeys() {
	db, done := exampleServer() // sql.Open("shardkey", dsn)
	defer done()

	var keys driver.Keys
	ctx := driver.WithKeys(context.Background(), &keys)
	_, err := db.ExecContext(ctx, "INSERT INTO t_order (user_id) VALUES (?), (?), (?)", 7, 8, 9)
	if err != nil {
		panic(err)
	}
	fmt.Println(keys.Column(), keys.Values())
	// Output:
	// order_id [1001 1002 1003]
}

// Opening a database returns the errors of its DSN and rule.
func Example_openErrors() {
	for _, dsn := range []string{
		"user:secret@tcp(127.0.0.1:3306)/app",
		"user:secret@tcp(127.0.0.1:3306)/app?shardkeyRul=rule.yaml",
		"user:secret@tcp(127.0.0.1:3306)/app?parseTime=maybe&shardkeyRule=rule.yaml",
	} {
		_, err := sql.Open("shardkey", dsn)
		fmt.Println(err)
	}
	// Output:
	// shardkey: DSN: no sharding rule: add ?shardkeyRule= with the path of the rule's file, or a name given to driver.RegisterRule
	// shardkey: DSN: parameter shardkeyRul: unknown parameter; known: shardkeyRule, shardkeyServer, shardkeyVerify, shardkeyStatements, shardkeyReload; did you mean shardkeyRule?
	// shardkey: DSN: parameter parseTime: invalid bool value: maybe
}

// An order, its items and an event about them are inserted in one transaction. Their keys are
// generated before.
func ExampleNextKeys() {
	db, done := exampleServer() // sql.Open("shardkey", dsn)
	defer done()
	ctx := context.Background()

	order, err := driver.NextKeys(ctx, db, "t_order", 1)
	if err != nil {
		panic(err)
	}
	items, err := driver.NextKeys(ctx, db, "t_item", 2)
	if err != nil {
		panic(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		panic(err)
	}
	defer tx.Rollback()
	for _, insert := range []struct {
		query string
		args  []any
	}{
		{"INSERT INTO t_order (order_id, user_id) VALUES (?, ?)", []any{order[0], 7}},
		{"INSERT INTO t_item (item_id, order_id, name) VALUES (?, ?, ?), (?, ?, ?)", []any{items[0], order[0], "pen", items[1], order[0], "ink"}},
		{"INSERT INTO outbox (event) VALUES (?)", []any{fmt.Sprintf("order %d: items %d, %d", order[0], items[0], items[1])}},
	} {
		if _, err := tx.ExecContext(ctx, insert.query, insert.args...); err != nil {
			panic(err)
		}
	}
	fmt.Println("order", order[0], "items", items, tx.Commit())
	// Output:
	// order 1001 items [1002 1003] <nil>
}

// exampleServer returns a database for the examples, and a function that closes it.
func exampleServer() (db *sql.DB, done func()) {
	r, err := rule.Parse("next.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: counter}}
    t_item: {keyGenerateStrategy: {column: item_id, keyGeneratorName: counter}}
  keyGenerators:
    counter: {type: COUNTER}
`))
	if err != nil {
		panic(err)
	}
	connector, err := driver.NewConnector(&fakedb.Server{}, r)
	if err != nil {
		panic(err)
	}
	db = sql.OpenDB(connector)
	return db, func() { db.Close() }
}

//go:embed testdata/embedded.yaml
var embeddedRule []byte

// A rule that is embedded in the program is registered under a name. It is parsed once, so that
// all databases of the process share its generators.
func ExampleOpen() {
	r, err := rule.Parse("embedded.yaml", embeddedRule)
	if err != nil {
		panic(err)
	}
	if err := driver.RegisterRule("embedded", r); err != nil {
		panic(err)
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	db, connector, err := driver.Open("user:pass@tcp(127.0.0.1:3306)/app?shardkeyRule=embedded", driver.WithLogger(logger))
	if err != nil {
		panic(err)
	}
	defer db.Close()
	// None of the following contacts the server.
	fmt.Println(connector.Ready(context.Background()))
	fmt.Println(connector.Lookup("", "t_order_1"))
	fmt.Println(driver.ConnectorOf(db) == connector)
	// Output:
	// <nil>
	// table t_order: column order_id from snowflake (SNOWFLAKE), actual tables: t_order_0, t_order_1
	// true
}

// A router computes the table of a row from the value of its sharding column.
func ExampleConnector_Lookup() {
	r, err := rule.Parse("router.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_0.t_order_${0..3}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: by_user}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: counter}
  keyGenerators:
    counter: {type: COUNTER}
  shardingAlgorithms:
    by_user: {type: MOD, props: {sharding-count: 4}}
`))
	if err != nil {
		panic(err)
	}
	connector, err := driver.NewConnector(&fakedb.Server{}, r) // sql.Open("shardkey", dsn)
	if err != nil {
		panic(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()

	orders := driver.ConnectorOf(db).Lookup("", "t_order")
	for _, user := range []int64{7, 8} {
		place, err := orders.Sharding.Place([]any{user})
		if err != nil {
			panic(err)
		}
		_, err = db.Exec("INSERT INTO "+place.Table+" (user_id) VALUES (?)", user)
		fmt.Println(place.Table, err)
	}
	// Output:
	// t_order_3 <nil>
	// t_order_0 <nil>
}

// The error of a refused statement has the place and the reason.
func ExampleStatementError() {
	db, done := exampleServer() // sql.Open("shardkey", dsn)
	defer done()

	_, err := db.Exec("INSERT INTO t_order (user_id) VALUES (7),\n  (8")
	if refused, ok := errors.AsType[*driver.StatementError](err); ok {
		fmt.Println(refused.Reason, refused.Table, "line", refused.Line, "char", refused.Char)
	}
	fmt.Println(errors.Is(err, driver.ErrUnsupportedStatement))
	// Output:
	// unsupported t_order line 2 char 5
	// true
}

// A program that configures go-sql-driver in Go wraps its connector.
func ExampleNewConnector() {
	r, err := rule.Parse("embedded.yaml", embeddedRule)
	if err != nil {
		panic(err)
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = "user", "p@/?ss", "tcp", "127.0.0.1:3306", "app"
	base, err := mysql.NewConnector(cfg)
	if err != nil {
		panic(err)
	}
	connector, err := driver.NewConnector(base, r)
	if err != nil {
		panic(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	fmt.Println(driver.ConnectorOf(db) == connector)
	// Output:
	// true
}

// A program serves a readiness probe and the connector's statistics over HTTP.
func ExampleConnector_Stats() {
	r, err := rule.Parse("embedded.yaml", embeddedRule)
	if err != nil {
		panic(err)
	}
	if err := driver.RegisterRule("embedded", r); err != nil {
		panic(err)
	}
	db, connector, err := driver.Open("user:pass@tcp(127.0.0.1:3306)/app?shardkeyRule=embedded")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	expvar.Publish("shardkey", expvar.Func(func() any { return connector.Stats() }))
	mux := http.NewServeMux()
	mux.Handle("/debug/vars", expvar.Handler())
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := connector.Ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})

	if _, err := driver.NextKeys(context.Background(), db, "t_order", 3); err != nil {
		panic(err)
	}
	for _, path := range []string{"/readyz", "/debug/vars"} {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(answer.Code, strings.Contains(answer.Body.String(), `"table":"t_order","column":"order_id","generator":"snowflake","type":"SNOWFLAKE","keys":3,`))
	}
	// Output:
	// 200 false
	// 200 true
}
