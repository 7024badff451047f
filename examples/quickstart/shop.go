package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver"
)

// shop is a program's database: two tables that orders go to, and the driver
// that it is opened with.
type shop struct {
	db     *sql.DB
	shown  string // its DSN without the password
	tables [2]string
}

type shops struct{ plain, sharded *shop }

// openShops makes the tables and opens both shops: one of AUTO_INCREMENT, with
// the plain driver, and one with shardkey.
func openShops(ctx context.Context, dsn, rule string) (*shops, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	if cfg.DBName == "" {
		return nil, errors.New("-dsn names no database: write …/app")
	}
	s := &shops{
		plain:   &shop{tables: [2]string{"t_plain_0", "t_plain_1"}},
		sharded: &shop{tables: [2]string{"t_order_0", "t_order_1"}},
	}
	if err := s.plain.open(ctx, cfg, "mysql", "", "BIGINT AUTO_INCREMENT PRIMARY KEY"); err != nil {
		return nil, err
	}
	if err := s.sharded.open(ctx, cfg, "shardkey", "shardkeyRule="+rule, "BIGINT PRIMARY KEY"); err != nil {
		return nil, errors.Join(err, s.plain.close())
	}
	return s, nil
}

func (s *shops) close() error { return errors.Join(s.sharded.close(), s.plain.close()) }

// open opens the database and makes the tables, which must not be there.
func (s *shop) open(ctx context.Context, cfg *mysql.Config, driverName, param, column string) error {
	shown := cfg.Clone()
	if shown.Passwd != "" {
		shown.Passwd = "..."
	}
	s.shown = withParam(shown.FormatDSN(), param)
	db, err := sql.Open(driverName, withParam(cfg.FormatDSN(), param))
	if err != nil {
		return err
	}
	for i, table := range s.tables {
		_, err := db.ExecContext(ctx, "CREATE TABLE "+table+
			" (order_id "+column+", user_id INT NOT NULL, item VARCHAR(20) NOT NULL)")
		if err != nil {
			const tableExists = 1050
			if refused := (*mysql.MySQLError)(nil); errors.As(err, &refused) && refused.Number == tableExists {
				err = fmt.Errorf("database %s has such a table already, which is left as it is; give -dsn another database, for example an empty one", cfg.DBName)
			}
			s.db, s.tables = db, [2]string(append(s.tables[:i:i], make([]string, 2-i)...))
			return errors.Join(fmt.Errorf("make table %s: %w", table, err), s.close())
		}
	}
	s.db = db
	return nil
}

func withParam(dsn, param string) string {
	switch {
	case param == "":
		return dsn
	case strings.Contains(dsn[strings.LastIndex(dsn, "/"):], "?"):
		return dsn + "&" + param
	}
	return dsn + "?" + param
}

// close drops the tables that open has made, and closes the database.
func (s *shop) close() error {
	var errs []error
	for _, table := range s.tables {
		if table != "" {
			_, err := s.db.Exec("DROP TABLE " + table)
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, s.db.Close())...)
}

// order puts orders into both tables: single rows, a batch, and a prepared
// statement. It knows nothing of keys but what it is told.
func (s *shop) order(ctx context.Context) ([]order, error) {
	var orders []order
	for shard, table := range s.tables {
		got, err := s.orderFrom(ctx, table, shard)
		if err != nil {
			return nil, err
		}
		orders = append(orders, got...)
	}
	return orders, nil
}

func (s *shop) orderFrom(ctx context.Context, table string, shard int) ([]order, error) {
	insert := "INSERT INTO " + table + " (user_id, item) VALUES "
	prepared, err := s.db.PrepareContext(ctx, insert+"(?, ?)")
	if err != nil {
		return nil, err
	}
	defer prepared.Close()

	// Users with even numbers go to shard 0, the others to shard 1.
	a, b, c := shard, shard+2, shard+4
	statements := []struct {
		how  string
		exec func(context.Context) (sql.Result, error)
	}{
		{"single", func(ctx context.Context) (sql.Result, error) {
			return s.db.ExecContext(ctx, insert+"(?, ?)", a, "tea")
		}},
		{"literal", func(ctx context.Context) (sql.Result, error) {
			return s.db.ExecContext(ctx, fmt.Sprintf("%s(%d, 'cups')", insert, b))
		}},
		{"batch", func(ctx context.Context) (sql.Result, error) {
			return s.db.ExecContext(ctx, insert+"(?, ?), (?, ?), (?, ?)", a, "milk", b, "sugar", c, "lemon")
		}},
		{"prepared", func(ctx context.Context) (sql.Result, error) { return prepared.ExecContext(ctx, b, "spoons") }},
		{"prepared", func(ctx context.Context) (sql.Result, error) { return prepared.ExecContext(ctx, c, "biscuits") }},
	}
	var told []order
	for _, statement := range statements {
		var keys driver.Keys
		result, err := statement.exec(driver.WithKeys(ctx, &keys))
		if err != nil {
			return nil, err
		}
		rows, err := report(table, statement.how, result, &keys)
		if err != nil {
			return nil, err
		}
		told = append(told, rows...)
	}
	return s.readKeys(ctx, table, told)
}
