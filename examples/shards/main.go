// Command shards opens one sql.DB for each of two databases, with one rule: their
// keys come from one generator, with one worker id for the process.
//
//	go run -C examples ./shards
//
// The rule is embedded in the program. The program chooses the database; shardkey
// fills the key.
package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/embedded"
	"github.com/shardkey/shardkey/rule"
)

//go:embed rule.yaml
var ruleText []byte

func main() {
	dsn, stop, err := embedded.Start()
	if err == nil {
		err = errors.Join(run(context.Background(), os.Stdout, dsn), stop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shards:", err)
		os.Exit(1)
	}
}

// shop is an application over several databases.
type shop struct {
	shards     []*sql.DB
	connectors []*driver.Connector
	databases  []string
}

// run makes a shop on a server, beside the database that its DSN names, and inserts
// orders.
func run(ctx context.Context, out io.Writer, dsn string) (err error) {
	store, err := os.MkdirTemp("", "shards")
	if err != nil {
		return err
	}
	defer os.RemoveAll(store)
	if err := os.Setenv("SHARDKEY_STORE_DIR", store); err != nil { // as a deployment would
		return err
	}
	r, err := rule.Parse("rule.yaml", ruleText)
	if err != nil {
		return err
	}
	if err := driver.RegisterRule("shop", r); err != nil {
		return err
	}
	s := new(shop)
	defer func() { err = errors.Join(err, s.drop(dsn), s.close()) }()
	for i := range 2 {
		if err := s.open(ctx, dsn, i); err != nil {
			return err
		}
	}
	for _, user := range []int{7, 8, 9, 10, 11, 12} {
		if err := s.insert(ctx, user); err != nil {
			return err
		}
	}
	return s.report(ctx, out, store)
}

// open makes the database of shard i, and opens it.
func (s *shop) open(ctx context.Context, dsn string, i int) error {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	cfg.DBName = fmt.Sprintf("%s_shard_%d", cfg.DBName, i)
	s.databases = append(s.databases, cfg.DBName)
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer admin.Close()
	for _, query := range []string{
		"DROP DATABASE IF EXISTS " + cfg.DBName,
		"CREATE DATABASE " + cfg.DBName,
		"CREATE TABLE " + cfg.DBName + ".t_order (order_id BIGINT PRIMARY KEY, user_id INT NOT NULL)",
	} {
		if _, err := admin.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	cfg.Params = map[string]string{"shardkeyRule": "shop"}
	db, connector, err := driver.Open(cfg.FormatDSN())
	if err != nil {
		return err
	}
	s.shards, s.connectors = append(s.shards, db), append(s.connectors, connector)
	return connector.Ready(ctx) // before the first request comes
}

// insert writes an order into the shard of its user.
func (s *shop) insert(ctx context.Context, user int) error {
	_, err := s.shards[user%len(s.shards)].ExecContext(ctx, "INSERT INTO t_order (user_id) VALUES (?)", user)
	return err
}

// report prints all orders, and which worker ids are leased.
func (s *shop) report(ctx context.Context, out io.Writer, store string) error {
	keys := map[int64]bool{}
	rows := 0
	for i, db := range s.shards {
		found, err := db.QueryContext(ctx, "SELECT order_id, user_id FROM t_order ORDER BY order_id")
		if err != nil {
			return err
		}
		for found.Next() {
			var key int64
			var user int
			if err := found.Scan(&key, &user); err != nil {
				return err
			}
			fmt.Fprintf(out, "shard %d  order %d  user %d\n", i, key, user)
			keys[key] = true
			rows++
		}
		if err := errors.Join(found.Err(), found.Close()); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d rows, %d keys\n", rows, len(keys))
	for i, c := range s.connectors {
		for _, g := range c.Stats().Generators {
			if !g.Assigner {
				fmt.Fprintf(out, "shard %d  %s  worker id %d\n", i, g.Name, *g.Health.WorkerID)
			}
		}
	}
	leases, err := filepath.Glob(filepath.Join(store, "shop", "[0-9]*.json"))
	fmt.Fprintf(out, "%d worker id leased for the process\n", len(leases))
	return err
}

// drop drops the shards' databases: this is an example.
func (s *shop) drop(dsn string) error {
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer admin.Close()
	for _, name := range s.databases {
		_, dropErr := admin.Exec("DROP DATABASE IF EXISTS " + name)
		err = errors.Join(err, dropErr)
	}
	return err
}

// close closes all databases; the last one gives the worker id back.
func (s *shop) close() (err error) {
	for _, db := range s.shards {
		err = errors.Join(err, db.Close())
	}
	return err
}
