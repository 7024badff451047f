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
	"github.com/shardkey/shardkey/internal/test/must"
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
		return openWith(t, txdbDriver(driver.Wrap(mysql.MySQLDriver{}, r), dsn), "test")
	},
	"go-txdb below": func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
		return openWith(t, driver.Wrap(txdbDriver(mysql.MySQLDriver{}, dsn), r), "test")
	},
	"sqlmw above and below": func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
		return openWith(t, sqlmwDriver(driver.Wrap(sqlmwDriver(mysql.MySQLDriver{}), r)), dsn)
	},
	"otelsql.OpenDB": func(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
		wrapped := driver.Wrap(mysql.MySQLDriver{}, r).(sqldriver.DriverContext)
		db := otelsql.OpenDB(must.Get(wrapped.OpenConnector(dsn))(t))
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
func txdbDriver(d sqldriver.Driver, dsn string) sqldriver.Driver {
	return txdb.New(register(d), dsn).Driver()
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

// openWith registers a driver and opens a database with it.
func openWith(t *testing.T, d sqldriver.Driver, dsn string) (*sql.DB, execer) {
	t.Helper()
	db := must.Open(t, register(d), dsn)
	return db, db.ExecContext
}

func register(d sqldriver.Driver) (name string) {
	name = rand.Text() // database/sql never forgets a driver
	sql.Register(name, d)
	return name
}

func withResolver(t *testing.T, dsn string, r *rule.Rule) (*sql.DB, execer) {
	db, _ := openWith(t, driver.Wrap(mysql.MySQLDriver{}, r), dsn)
	dialector := gormmysql.New(gormmysql.Config{Conn: db})
	g := must.Get(gorm.Open(dialector, &gorm.Config{}))(t)
	both := []gorm.Dialector{dialector}
	must.Do(t, g.Use(dbresolver.Register(dbresolver.Config{Sources: both, Replicas: both})))
	pool := must.Get(g.DB())(t)
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
	r := must.Get(rule.Parse("wrappers", []byte(ruleText)))(t)
	for name, open := range wrappers {
		t.Run(name, func(t *testing.T) {
			dsn := testserver.Database(t)
			// Without the wrapper, because the table would end go-txdb's transaction.
			must.Get(must.Open(t, "mysql", dsn).ExecContext(t.Context(), table))(t)
			db, exec := open(t, dsn, r)
			defer db.Close()
			checkWrapper(t, db, exec)
		})
	}
}

const insert = "INSERT INTO t_order_1 (item) VALUES (?)"

func checkWrapper(t *testing.T, db *sql.DB, exec execer) {
	ctx := t.Context()
	res, err := exec(ctx, insert, "direct")
	checkKey(t, db, "direct", res, err)

	st := must.Get(db.PrepareContext(ctx, insert))(t)
	defer st.Close()
	for _, item := range []string{"prepared", "again"} {
		res, err := st.ExecContext(ctx, item)
		checkKey(t, db, item, res, err)
	}

	tx := must.Get(db.BeginTx(ctx, nil))(t)
	res, err = tx.ExecContext(ctx, insert, "transaction")
	checkKey(t, db, "transaction", res, errors.Join(err, tx.Commit()))

	var keys driver.Keys
	must.Get(exec(driver.WithKeys(ctx, &keys), insert+", (?)", "one", "two"))(t)
	must.EqualSlices(t, keys.Values(), []any{keyOf(t, db, "one"), keyOf(t, db, "two")}, "WithKeys")

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
	if connector == nil { // the driver above doesn't show this one
		if _, err := driver.NextKeys(t.Context(), db, "t_order", 2); err == nil {
			t.Error("NextKeys finds a connector")
		}
		return
	}
	conn := must.Get(db.Conn(t.Context()))(t)
	defer conn.Close()
	must.Equal(t, driver.ConnectorOf(conn), connector, "ConnectorOf a connection")
	must.Do(t, connector.Ready(t.Context()))
	if keys, err := driver.NextKeys(t.Context(), db, "t_order", 2); err != nil || len(keys) != 2 {
		t.Errorf("NextKeys: %v, %v", keys, err)
	}
}

// checkKey checks that a result has the key in the table.
func checkKey(t *testing.T, db *sql.DB, item string, res sql.Result, err error) {
	t.Helper()
	must.Do(t, err, item)
	have := must.Get(res.LastInsertId())(t, item)
	if want := keyOf(t, db, item); have != want || have < 1<<40 {
		t.Errorf("%s\nhave: %d\nwant: %d", item, have, want)
	}
}

func keyOf(t *testing.T, db *sql.DB, item string) (key int64) {
	t.Helper()
	row := db.QueryRowContext(t.Context(), "SELECT order_id FROM t_order_1 WHERE item = ?", item)
	must.Do(t, row.Scan(&key), item)
	return key
}

// go-sqlmock, below the driver, gets the statements with the keys.
func TestWrappers_sqlmock(t *testing.T) {
	r := must.Get(rule.Parse("sqlmock", []byte(ruleText)))(t)
	mocked, mock, err := sqlmock.NewWithDSN("wrappers")
	must.Do(t, err)
	defer mocked.Close()
	if driver.ConnectorOf(mocked) != nil {
		t.Error("sqlmock has a connector")
	}
	db, _ := openWith(t, driver.Wrap(mocked.Driver(), r, driver.Config{Server: "other"}), "wrappers")
	defer db.Close()
	mock.ExpectExec("INSERT INTO t_order_1").WithArgs("tea", sqlmock.AnyArg()).WillReturnResult(sqlmock.NewResult(0, 1))
	res := must.Get(db.ExecContext(t.Context(), insert, "tea"))(t)
	if id, err := res.LastInsertId(); err != nil || id < 1<<40 {
		t.Errorf("have: %d, %v\nwant: the generated key", id, err)
	}
	checkConnector(t, db) // without a statement
	must.Do(t, mock.ExpectationsWereMet())
}
