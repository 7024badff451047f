// Command spider shows shardkey before MariaDB's Spider engine: two heads that take
// statements, three back ends that hold the rows, and the keys of shardkey beside those
// of Spider's own AUTO_INCREMENT.
//
//	go run -C examples ./spider
//
// It starts five private MariaDB servers on 127.0.0.1, and ends them and removes their
// files when it is done or interrupted. They are MariaDB 10.11 with its Spider engine,
// which make servers fetches on Debian.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/examples/internal/printed"
	"github.com/shardkey/shardkey/internal/engines"
	_ "github.com/shardkey/shardkey/keygen/snowflake"
	_ "github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/rule"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "spider:", err)
		os.Exit(1)
	}
}

const (
	heads    = 2
	backEnds = 3
)

// Both heads are programs of their own to shardkey: each gets a worker id of its own, out
// of a table at the first back end.
const ruleText = `
rules:
- !SHARDING
  tables:
    t_order:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: leases}}
  workerIdAssigners:
    leases: {type: SQL, props: {dsn: %q, namespace: orders}}
`

func run(ctx context.Context, out, progress io.Writer) error {
	fmt.Fprintf(progress, "starting %d heads and %d back ends\n", heads, backEnds)
	s, err := engines.NewSpider(heads, backEnds)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := errors.Join(
		s.CreateTable("t_order", "id BIGINT NOT NULL PRIMARY KEY, item VARCHAR(20)", "HASH (id)"),
		s.CreateTable("t_auto", "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20)", "HASH (id)"),
	); err != nil {
		return err
	}
	var ours, theirs []*sql.DB
	for i, head := range s.Heads {
		r, err := rule.Parse(fmt.Sprintf("head%d.yaml", i), fmt.Appendf(nil, ruleText, s.BackEnds[0].DSN()+"app"))
		if err != nil {
			return err
		}
		name := fmt.Sprintf("head%d", i)
		if err := driver.RegisterRule(name, r); err != nil {
			return err
		}
		sharded, err := sql.Open("shardkey", head.DSN()+"app?shardkeyRule="+name)
		if err != nil {
			return err
		}
		defer sharded.Close()
		// 0, the default, asks the back ends for their highest key each time, and several
		// programs at once hang in it. 1 counts in the head.
		plain, err := sql.Open("mysql", head.DSN()+"app?spider_auto_increment_mode=1")
		if err != nil {
			return err
		}
		defer plain.Close()
		ours, theirs = append(ours, sharded), append(theirs, plain)
	}
	fmt.Fprintf(out, "Keys of shardkey (SNOWFLAKE): %d heads, %d back ends, partitioned by HASH (id)\n\n", heads, backEnds)
	if err := showRows(ctx, out, s, ours); err != nil {
		return err
	}
	const users, statements = 4, 100 // of each head
	fmt.Fprintf(out, "\nBoth heads at once, %d goroutines with %d INSERTs of two rows at each\n\n", users, statements)
	auto, err := race(ctx, theirs, "INSERT INTO t_auto (item) VALUES ('a'), ('b')", users, statements)
	if err != nil {
		return err
	}
	keyed, err := race(ctx, ours, "INSERT INTO t_order (item) VALUES ('a'), ('b')", users, statements)
	if err != nil {
		return err
	}
	printed.Table(out, [][]any{
		{"keys of", "INSERTs", "failed: Duplicate entry (1062)", "Deadlock (1213)"},
		{"Spider's AUTO_INCREMENT", heads * users * statements, auto.duplicates, auto.deadlocks},
		{"shardkey", heads * users * statements, keyed.duplicates, keyed.deadlocks},
	})
	if keyed.duplicates > 0 {
		return errors.New("shardkey gave a key twice")
	}
	return nil
}

// showRows inserts rows through each head, and shows which back end has them.
func showRows(ctx context.Context, out io.Writer, s *engines.Spider, dbs []*sql.DB) error {
	lines := [][]any{{"head", "row", "back end", "key", "WithKeys", "LastInsertId"}}
	for head, db := range dbs {
		items := []string{"pen", "ink", "cup"}
		args := make([]any, len(items))
		for i, item := range items {
			args[i] = fmt.Sprintf("%s %d", item, head)
		}
		var keys driver.Keys
		res, err := db.ExecContext(driver.WithKeys(ctx, &keys), "INSERT INTO t_order (item) VALUES (?), (?), (?)", args...)
		if err != nil {
			return err
		}
		id, err := res.LastInsertId()
		if err != nil {
			return err
		}
		for i, item := range args {
			backEnd, key, err := find(ctx, s, item)
			if err != nil {
				return err
			}
			if key != keys.Values()[i] || i == 0 && key != id {
				return fmt.Errorf("%v has key %d, but LastInsertId said %d and WithKeys %v", item, key, id, keys.Values())
			}
			line := []any{"", item, backEnd, key, keys.Values()[i], ""}
			if i == 0 {
				line[0], line[5] = head, id
			}
			lines = append(lines, line)
		}
	}
	printed.Table(out, lines)
	return nil
}

// find looks for a row at all back ends.
func find(ctx context.Context, s *engines.Spider, item any) (backEnd int, key int64, err error) {
	for i, b := range s.BackEnds {
		db, err := sql.Open("mysql", b.DSN()+"app")
		if err != nil {
			return 0, 0, err
		}
		err = db.QueryRowContext(ctx, "SELECT id FROM t_order WHERE item = ?", item).Scan(&key)
		err = errors.Join(err, db.Close())
		if !errors.Is(err, sql.ErrNoRows) {
			return i, key, err
		}
	}
	return 0, 0, fmt.Errorf("no back end has %v", item)
}

// failures are INSERTs that failed, by the server's error.
type failures struct{ duplicates, deadlocks int64 }

// race runs a statement many times at all heads at once, and returns how many failed
// because of a key that was there.
func race(ctx context.Context, dbs []*sql.DB, text string, users, statements int) (f failures, err error) {
	const duplicateEntry, deadlock = 1062, 1213
	var all sync.WaitGroup
	var duplicates, deadlocks atomic.Int64
	other := make(chan error, len(dbs)*users)
	for _, db := range dbs {
		for range users {
			all.Go(func() {
				for range statements {
					_, err := db.ExecContext(ctx, text)
					var answer *mysql.MySQLError
					switch {
					case errors.As(err, &answer) && answer.Number == duplicateEntry:
						duplicates.Add(1)
					case errors.As(err, &answer) && answer.Number == deadlock:
						deadlocks.Add(1)
					case err != nil:
						other <- fmt.Errorf("%s: %w", strings.TrimSpace(text), err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	close(other)
	return failures{duplicates.Load(), deadlocks.Load()}, <-other
}
