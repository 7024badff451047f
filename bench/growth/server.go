package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/shardkey/shardkey/bench"
	shardkey "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
)

// server is a server with two databases of the same table: one for the plain driver
// and one for shardkey.
type server struct {
	version, dsn string
	admin        *sql.DB
	node         *snowflake.Node
}

const (
	plainDatabase = "shardkey_growth_plain"
	ourDatabase   = "shardkey_growth"
)

func newServer(dsn string) (*server, error) {
	r, err := rule.Parse("growth.yaml", []byte(ruleText))
	if err == nil {
		err = shardkey.RegisterRule("growth", r)
	}
	if err != nil {
		return nil, err
	}
	s := &server{dsn: dsn}
	if s.node, err = snowflake.NewNode(1); err != nil {
		return nil, err
	}
	if s.admin, err = sql.Open("mysql", dsn); err != nil {
		return nil, err
	}
	if err := s.admin.QueryRow("SELECT VERSION()").Scan(&s.version); err != nil {
		return nil, errors.Join(err, s.admin.Close())
	}
	return s, nil
}

func (s *server) close() {
	_, _ = s.admin.Exec("DROP DATABASE IF EXISTS " + plainDatabase)
	_, _ = s.admin.Exec("DROP DATABASE IF EXISTS " + ourDatabase)
	_ = s.admin.Close()
}

// open makes the tables anew and opens both. With auto the plain table has
// AUTO_INCREMENT.
func (s *server) open(auto string) (plain, ours *sql.DB, err error) {
	for _, database := range []string{plainDatabase, ourDatabase} {
		for _, query := range []string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database,
			"CREATE TABLE " + database + ".t_order (id BIGINT NOT NULL " + auto + " PRIMARY KEY, user_id BIGINT)",
			"CREATE TABLE " + database + ".source (user_id BIGINT NOT NULL PRIMARY KEY)"} {
			if _, err := s.admin.Exec(query); err != nil {
				return nil, nil, err
			}
		}
		auto = ""
	}
	dsn, err := dsnOf(s.dsn, plainDatabase, "")
	if err != nil {
		return nil, nil, err
	}
	if plain, err = sql.Open("mysql", dsn); err != nil {
		return nil, nil, err
	}
	if dsn, err = dsnOf(s.dsn, ourDatabase, "shardkeyRule=growth"); err != nil {
		return nil, nil, err
	}
	ours, err = sql.Open("shardkey", dsn)
	return plain, ours, err
}

// both measures the plain driver's turn and ours, one after the other, and returns
// the medians in microseconds.
func both(rounds int, plain, ours func() error) (p, o float64, err error) {
	var took [2][]time.Duration
	for round := range rounds + 1 { // the first warms up
		for i := range 2 {
			arm := (i + round) % 2
			start := time.Now()
			if err := []func() error{plain, ours}[arm](); err != nil {
				return 0, 0, err
			}
			if round > 0 {
				took[arm] = append(took[arm], time.Since(start))
			}
		}
	}
	return micros(bench.Median(took[0])), micros(bench.Median(took[1])), nil
}

func execs(db *sql.DB, query func() string) func() error {
	return func() error { _, err := db.Exec(query()); return err }
}

// rows inserts so many rows with one text, without arguments.
func (s *server) rows(top int) (growth, error) {
	g := growth{title: "Rows of a statement", counted: "rows"}
	plain, ours, err := s.open("")
	if err != nil {
		return g, err
	}
	defer plain.Close()
	defer ours.Close()
	g.lines = []line{{name: "go-sql-driver, keys by bwmarrin, µs"}, {name: "shardkey, µs"}}
	for _, n := range counts(top) {
		given := func() string {
			var b strings.Builder
			b.WriteString("INSERT INTO t_order (id, user_id) VALUES ")
			for i := range n {
				if i > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, "(%d,%d)", s.node.Generate().Int64(), i)
			}
			return b.String()
		}
		made := func() string {
			var b strings.Builder
			b.WriteString("INSERT INTO t_order (user_id) VALUES ")
			for i := range n {
				if i > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, "(%d)", i)
			}
			return b.String()
		}
		p, o, err := both(max(5, min(200, 20_000/n)), execs(plain, given), execs(ours, made))
		if err != nil {
			return g, err
		}
		g.add(n, p, o)
	}
	return g, nil
}

func (g *growth) add(n int, values ...float64) {
	for i, v := range values {
		g.lines[i].points = append(g.lines[i].points, point{float64(n), v})
	}
}

// insertSelect copies so many rows.
func (s *server) insertSelect(top int) (growth, error) {
	g := growth{title: "Rows of an INSERT … SELECT", counted: "rows"}
	plain, ours, err := s.open("AUTO_INCREMENT")
	if err != nil {
		return g, err
	}
	defer plain.Close()
	defer ours.Close()
	g.lines = []line{{name: "go-sql-driver, AUTO_INCREMENT, µs"}, {name: "shardkey, µs"}}
	filled := 0
	for _, n := range counts(top) {
		for ; filled < n; filled = min(n, filled+10_000) {
			var b strings.Builder
			b.WriteString(".source VALUES (")
			for i := filled; i < min(n, filled+10_000); i++ {
				if i > filled {
					b.WriteString("),(")
				}
				fmt.Fprint(&b, i)
			}
			for _, database := range []string{plainDatabase, ourDatabase} {
				if _, err := s.admin.Exec("INSERT INTO " + database + b.String() + ")"); err != nil {
					return g, err
				}
			}
		}
		query := func() string {
			return fmt.Sprintf("INSERT INTO t_order (user_id) SELECT user_id FROM source WHERE user_id < %d", n)
		}
		rounds := max(1, min(100, 10_000/n))
		p, o, err := both(rounds, execs(plain, query), execs(ours, query))
		if err != nil {
			return g, err
		}
		g.add(n, p, o)
	}
	return g, nil
}

// connections inserts on so many connections in turn.
func (s *server) connections(top int) (growth, error) {
	g := growth{title: "Connections", counted: "connections"}
	var limit int
	if err := s.admin.QueryRow("SELECT @@max_connections").Scan(&limit); err != nil {
		return g, err
	}
	if _, err := s.admin.Exec(fmt.Sprintf("SET GLOBAL max_connections = %d", 2*top+50)); err != nil {
		return g, err
	}
	defer func() { _, _ = s.admin.Exec(fmt.Sprintf("SET GLOBAL max_connections = %d", limit)) }()
	plain, ours, err := s.open("")
	if err != nil {
		return g, err
	}
	defer plain.Close()
	defer ours.Close()
	g.lines = []line{{name: "go-sql-driver, an INSERT, µs"}, {name: "shardkey, an INSERT, µs"}, {name: "go-sql-driver, kB a connection"}, {name: "shardkey, kB a connection"}}
	var conns [2][]*sql.Conn
	defer func() {
		for _, c := range append(conns[0], conns[1]...) {
			_ = c.Close()
		}
	}()
	var used [2]float64
	ctx := context.Background()
	insert := func(arm, i int) error {
		if arm == 0 {
			_, err := conns[0][i].ExecContext(ctx, "INSERT INTO t_order (user_id, id) VALUES (?, ?)", i, s.node.Generate().Int64())
			return err
		}
		_, err := conns[1][i].ExecContext(ctx, "INSERT INTO t_order (user_id) VALUES (?)", i)
		return err
	}
	// 16 goroutines go through all connections.
	all := func(arm, n int) func() error {
		return func() error {
			errs := make([]error, 16)
			var wg sync.WaitGroup
			for w := range errs {
				wg.Go(func() {
					for i := w; i < n && errs[w] == nil; i += len(errs) {
						errs[w] = insert(arm, i)
					}
				})
			}
			wg.Wait()
			return errors.Join(errs...)
		}
	}
	for _, n := range counts(top) {
		for arm, db := range []*sql.DB{plain, ours} {
			before := heap()
			for i := len(conns[arm]); i < n; i++ {
				c, err := db.Conn(ctx)
				if err != nil {
					return g, err
				}
				conns[arm] = append(conns[arm], c)
				if err := insert(arm, i); err != nil {
					return g, err
				}
			}
			used[arm] += heap() - before
		}
		p, o, err := both(max(5, min(200, 5_000/n)), all(0, n), all(1, n))
		if err != nil {
			return g, err
		}
		x := float64(n)
		g.add(n, p/x, o/x, used[0]/x/1000, used[1]/x/1000)
	}
	return g, nil
}
