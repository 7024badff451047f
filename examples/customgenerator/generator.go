package main

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/shardkey/shardkey/spi"
)

// A generator of integer keys needs two methods, and a call that registers its type.

// counter counts in a row of a database, so that the numbers are unique across restarts,
// processes and shards.
type counter struct {
	name string
	// open opens the database in its first call, because a factory must not start a goroutine.
	open func() (*sql.DB, error)
}

const countersDDL = "CREATE TABLE counters (name VARCHAR(64) PRIMARY KEY, last BIGINT NOT NULL)"

// GenerateKeys calls GenerateInt64Keys, as in each generator of integers.
func (c *counter) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, c, column, n)
}

// GenerateInt64Keys reserves numbers in its own transaction. A rollback of the caller's transaction
// can't cause duplicates. Until the commit, the UPDATE locks the row for other processes.
func (c *counter) GenerateInt64Keys(ctx context.Context, _ spi.Column, keys []int64) error {
	db, err := c.open()
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no effect after Commit
	if _, err := tx.ExecContext(ctx, "UPDATE counters SET last = last + ? WHERE name = ?", len(keys), c.name); err != nil {
		return err
	}
	var last int64
	err = tx.QueryRowContext(ctx, "SELECT last FROM counters WHERE name = ?", c.name).Scan(&last)
	if err != nil {
		return fmt.Errorf("counter %q: %w", c.name, err)
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for i := range keys {
		keys[i] = last - int64(len(keys)-1-i)
	}
	return nil
}

// Close closes the database. shardkey calls it when the last connector that uses the generator is
// closed.
func (c *counter) Close() error {
	db, err := c.open()
	if err != nil {
		return err
	}
	return db.Close()
}

func init() {
	spi.RegisterKeyGenerator("COUNTER", func(p spi.Props) (spi.KeyGenerator, error) {
		dsn, name := p.Secret("dsn").Reveal(), p.String("name", "")
		if dsn == "" {
			return nil, p.Wrong("dsn", "the DSN of the one database that has the table counters")
		}
		if name == "" {
			return nil, p.Wrong("name", "the name of a row of the table counters")
		}
		open := sync.OnceValues(func() (*sql.DB, error) { return sql.Open("mysql", dsn) })
		return &counter{name, open}, nil
	})
}
