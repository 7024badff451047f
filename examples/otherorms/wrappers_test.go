package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/DATA-DOG/go-sqlmock"
	"github.com/DATA-DOG/go-txdb"
	"github.com/XSAM/otelsql"
	"github.com/go-sql-driver/mysql"
	"github.com/ngrok/sqlmw"
	"github.com/qustavo/sqlhooks/v2"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	gormmysql "gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"

	"github.com/shardkey/shardkey/driver"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
)

type execer func(ctx context.Context, query string, args ...any) (sql.Result, error)

// wrappers are libraries above and below the driver. Each opens a database, and returns a function
// that executes a statement the library's way.
var wrappers = map[string]func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer){
	"otelsql above":       above(otelsqlDriver),
	"otelsql below":       below(otelsqlDriver),
	"sqlmw above":         above(sqlmwDriver),
	"sqlmw below":         below(sqlmwDriver),
	"otelsql above sqlmw": above(sqlmwDriver, otelsqlDriver),
	"sqlhooks above":      above(sqlhooksDriver),
	"sqlhooks below":      below(sqlhooksDriver),
	"go-txdb above": func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
		return openWith(t, txdbDriver(t, driver.Wrap(mysql.MySQLDriver{}, r), dsn), "test")
	},
	"go-txdb below": func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
		return openWith(t, driver.Wrap(txdbDriver(t, mysql.MySQLDriver{}, dsn), r), "test")
	},
	"sqlmw above and below": func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
		return openWith(t, sqlmwDriver(driver.Wrap(sqlmwDriver(mysql.MySQLDriver{}), r)), dsn)
	},
	"otelsql.OpenDB": func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
		db := otelsql.OpenDB(connectorOf(t, driver.Wrap(mysql.MySQLDriver{}, r), dsn))
		return db, db.ExecContext
	},
	"bun": func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
		db, _ := openWith(t, driver.Wrap(mysql.MySQLDriver{}, r), dsn)
		return db, bun.NewDB(db, mysqldialect.New()).ExecContext
	},
	"ent": func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
		db, _ := openWith(t, driver.Wrap(mysql.MySQLDriver{}, r), dsn)
		drv := entsql.OpenDB(dialect.MySQL, db)
		return drv.DB(), func(ctx context.Context, query string, args ...any) (res sql.Result, err error) {
			err = drv.Exec(ctx, query, args, &res)
			return res, err
		}
	},
	"GORM with dbresolver": withResolver,
}

func otelsqlDriver(d sqldriver.Driver) sqldriver.Driver { return otelsql.WrapDriver(d) }
func sqlmwDriver(d sqldriver.Driver) sqldriver.Driver {
	return sqlmw.Driver(d, sqlmw.NullInterceptor{})
}
func sqlhooksDriver(d sqldriver.Driver) sqldriver.Driver { return sqlhooks.Wrap(d, hooks{}) }

// hooks does nothing.
type hooks struct{}

func (hooks) Before(ctx context.Context, _ string, _ ...any) (context.Context, error) {
	return ctx, nil
}
func (hooks) After(ctx context.Context, _ string, _ ...any) (context.Context, error) { return ctx, nil }

// txdbDriver returns a driver all of whose connections are one transaction of d.
func txdbDriver(t *testing.T, d sqldriver.Driver, dsn string) sqldriver.Driver {
	name := rand.Text() // database/sql never forgets a driver
	sql.Register(name, d)
	return txdb.New(name, dsn).Driver()
}

func above(wrap ...func(sqldriver.Driver) sqldriver.Driver) func(*testing.T, string, *rule.Rule) (*sql.DB, execer) {
	return func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
		d := driver.Wrap(mysql.MySQLDriver{}, r)
		for _, w := range wrap {
			d = w(d)
		}
		return openWith(t, d, dsn)
	}
}

func below(wrap func(sqldriver.Driver) sqldriver.Driver) func(*testing.T, string, *rule.Rule) (*sql.DB, execer) {
	return func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
		return openWith(t, driver.Wrap(wrap(mysql.MySQLDriver{}), r), dsn)
	}
}

// openWith opens a database as sql.Open does with a registered driver.
func openWith(t *testing.T, d sqldriver.Driver, dsn string) (*sql.DB, execer) {
	t.Helper()
	db := sql.OpenDB(connectorOf(t, d, dsn))
	return db, db.ExecContext
}

func connectorOf(t *testing.T, d sqldriver.Driver, dsn string) sqldriver.Connector {
	t.Helper()
	of, ok := d.(sqldriver.DriverContext)
	if !ok {
		return opener{d, dsn}
	}
	c, err := of.OpenConnector(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// opener is the connector of database/sql for a driver without connectors.
type opener struct {
	driver sqldriver.Driver
	dsn    string
}

func (c opener) Connect(context.Context) (sqldriver.Conn, error) { return c.driver.Open(c.dsn) }
func (c opener) Driver() sqldriver.Driver                        { return c.driver }

func withResolver(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
	db, _ := openWith(t, driver.Wrap(mysql.MySQLDriver{}, r), dsn)
	dialector := gormmysql.New(gormmysql.Config{Conn: db})
	g, err := gorm.Open(dialector, &gorm.Config{})
	if err == nil {
		err = g.Use(dbresolver.Register(dbresolver.Config{Sources: []gorm.Dialector{dialector}, Replicas: []gorm.Dialector{dialector}}))
	}
	if err != nil {
		t.Fatal(err)
	}
	pool, err := g.DB()
	if err != nil {
		t.Fatal(err)
	}
	return pool, func(ctx context.Context, query string, args ...any) (sql.Result, error) {
		result := gorm.WithResult()
		err := gorm.G[map[string]any](g, result).Exec(ctx, query, args...)
		return result.Result, err
	}
}

func TestWrappers(t *testing.T) {
	if testserver.Each(t, TestWrappers) {
		return
	}
	r, err := rule.Parse("wrappers", []byte(ruleText))
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range wrappers {
		t.Run(name, func(t *testing.T) {
			dsn := testserver.Database(t)
			createTable(t, dsn)
			db, exec := open(t, dsn, r)
			defer db.Close()
			checkWrapper(t, db, exec)
		})
	}
}

// createTable creates the table without the wrapper, since go-txdb's transaction would end.
func createTable(t *testing.T, dsn string) {
	t.Helper()
	plain, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.ExecContext(t.Context(), table); err != nil {
		t.Fatal(err)
	}
}

const insert = "INSERT INTO t_order_1 (item) VALUES (?)"

func checkWrapper(t *testing.T, db *sql.DB, exec execer) {
	ctx := t.Context()
	res, err := exec(ctx, insert, "direct")
	checkKey(t, db, "direct", res, err)

	st, err := db.PrepareContext(ctx, insert)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, item := range []string{"prepared", "again"} {
		res, err := st.ExecContext(ctx, item)
		checkKey(t, db, item, res, err)
	}

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err = tx.ExecContext(ctx, insert, "transaction")
	if err := errors.Join(err, tx.Commit()); err != nil {
		t.Fatal(err)
	}
	checkKey(t, db, "transaction", res, nil)

	var keys driver.Keys
	if _, err := exec(driver.WithKeys(ctx, &keys), insert+", (?)", "one", "two"); err != nil {
		t.Error(err)
	}
	for i, item := range []string{"one", "two"} {
		if values := keys.Values(); len(values) != 2 || values[i] != keyOf(t, db, item) {
			t.Errorf("WithKeys\nhave: %v\nwant: %d for %s", values, keyOf(t, db, item), item)
		}
	}

	var refused *mysql.MySQLError
	if _, err := exec(ctx, insert, "one"); !errors.As(err, &refused) || refused.Number != 1062 {
		t.Errorf("a duplicate\nhave: %v\nwant: a MySQLError", err)
	}
	var statement *driver.StatementError
	if _, err := exec(ctx, "INSERT INTO t_order_9 (item) VALUES (?)", "x"); !errors.As(err, &statement) {
		t.Errorf("an unlisted table\nhave: %v\nwant: a StatementError", err)
	}
	checkConnector(t, db)
}

// checkConnector checks the functions that need the connector.
func checkConnector(t *testing.T, db *sql.DB) {
	t.Helper()
	connector := driver.ConnectorOf(db)
	if connector == nil {
		t.Fatal("ConnectorOf returns nil")
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if have := driver.ConnectorOf(conn); have != connector {
		t.Errorf("of a connection\nhave: %p\nwant: %p", have, connector)
	}
	if err := connector.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if keys, err := driver.NextKeys(t.Context(), db, "t_order", 2); err != nil || len(keys) != 2 {
		t.Errorf("NextKeys: %v, %v", keys, err)
	}
}

// checkKey checks that a result has the key in the table.
func checkKey(t *testing.T, db *sql.DB, item string, res sql.Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if have, err := res.LastInsertId(); err != nil || have != keyOf(t, db, item) || have < 1<<40 {
		t.Errorf("%s\nhave: %d, %v\nwant: %d", item, have, err, keyOf(t, db, item))
	}
}

func keyOf(t *testing.T, db *sql.DB, item string) (key int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT order_id FROM t_order_1 WHERE item = ?", item).Scan(&key); err != nil {
		t.Error(err)
	}
	return key
}

// go-sqlmock, below the driver, gets the statements with the keys.
func TestWrappers_sqlmock(t *testing.T) {
	r, err := rule.Parse("sqlmock", []byte(ruleText))
	if err != nil {
		t.Fatal(err)
	}
	mocked, mock, err := sqlmock.NewWithDSN("wrappers")
	if err != nil {
		t.Fatal(err)
	}
	defer mocked.Close()
	if driver.ConnectorOf(mocked) != nil {
		t.Error("sqlmock has a connector")
	}
	db, _ := openWith(t, driver.Wrap(mocked.Driver(), r, driver.Config{Server: "other"}), "wrappers")
	defer db.Close()
	mock.ExpectExec("INSERT INTO t_order_1").WithArgs("tea", sqlmock.AnyArg()).WillReturnResult(sqlmock.NewResult(0, 1))
	res, err := db.ExecContext(t.Context(), insert, "tea")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := res.LastInsertId(); err != nil || id < 1<<40 {
		t.Errorf("have: %d, %v\nwant: the generated key", id, err)
	}
	checkConnector(t, db) // without a statement
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}
