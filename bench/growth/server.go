package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/bwmarrin/snowflake"

	"github.com/shardkey/shardkey/bench"
	shardkey "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
)

// arm is a way to get keys, with its own database. The first arm is the plain driver.
type arm struct {
	name, driver, database, params string
	db                             *sql.DB
	conns                          []*sql.Conn
	used                           float64 // memory of the connections
	filled                         int     // rows of the table source
}

// server is a database server with both arms.
type server struct {
	version string
	limit   int // original @@max_connections, or 0 if it wasn't raised
	admin   *sql.DB
	node    *snowflake.Node
	arms    [2]arm
}

func newServer(dsn string) (s *server, err error) {
	r, err := rule.Parse("growth.yaml", []byte(ruleText))
	if err == nil {
		err = shardkey.RegisterRule("growth", r)
	}
	if err != nil {
		return nil, err
	}
	s = &server{arms: [2]arm{
		{name: "go-sql-driver", driver: "mysql", database: "shardkey_growth_plain"},
		{name: "shardkey", driver: "shardkey", database: "shardkey_growth", params: "shardkeyRule=growth"},
	}}
	if s.node, err = snowflake.NewNode(1); err != nil {
		return nil, err
	}
	if s.admin, err = sql.Open("mysql", dsn); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.admin.QueryRow("SELECT VERSION()").Scan(&s.version); err != nil {
		return nil, err
	}
	for i := range s.arms {
		a := &s.arms[i]
		own, err := bench.Database(s.admin, dsn, a.database, a.params,
			"t_order (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT)", "source (user_id BIGINT NOT NULL PRIMARY KEY)")
		if err != nil {
			return nil, err
		}
		if a.db, err = sql.Open(a.driver, own); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *server) close() {
	for _, a := range s.arms {
		for _, c := range a.conns {
			_ = c.Close()
		}
		if a.db != nil {
			_ = a.db.Close()
		}
		_, _ = s.admin.Exec("DROP DATABASE IF EXISTS " + a.database)
	}
	if s.limit > 0 {
		_, _ = s.admin.Exec(fmt.Sprintf("SET GLOBAL max_connections = %d", s.limit))
	}
	_ = s.admin.Close()
}

func (s *server) growths() []growth {
	plain, ours := s.arms[0].name, s.arms[1].name
	return []growth{
		{"rows", "Rows of a statement", "rows", 65_535, []string{plain + ", keys by bwmarrin, µs", ours + ", µs"}, s.rows},
		{"connections", "Connections", "connections", 1_000, []string{plain + ", an INSERT, µs", ours + ", an INSERT, µs",
			plain + ", kB a connection", ours + ", kB a connection"}, s.connections},
		{"select", "Rows of an INSERT … SELECT", "rows", 1_000_000,
			[]string{plain + ", AUTO_INCREMENT, µs", ours + ", µs"}, s.insertSelect},
	}
}

// both runs the arms in turn, after emptying the tables, and returns the medians in microseconds.
func (s *server) both(rounds int, turn func(i int) error) ([]float64, error) {
	for _, a := range s.arms {
		if _, err := s.admin.Exec("TRUNCATE TABLE " + a.database + ".t_order"); err != nil {
			return nil, err
		}
	}
	took, err := bench.Rounds(rounds, len(s.arms), func(i int) (time.Duration, error) {
		start := time.Now()
		err := turn(i)
		return time.Since(start), err
	})
	if err != nil {
		return nil, err
	}
	return []float64{micros(bench.Median(took[0])), micros(bench.Median(took[1]))}, nil
}

func (s *server) exec(i int, query string) error {
	_, err := s.arms[i].db.Exec(query)
	return err
}

// list returns the values that f writes, separated by commas.
func list(n int, f func(b *strings.Builder, i int)) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		f(&b, i)
	}
	return b.String()
}

// rows measures the INSERT of n rows with one statement, without arguments.
func (s *server) rows(n int) ([]float64, error) {
	return s.both(max(5, min(200, 20_000/n)), func(i int) error {
		if i == 0 {
			return s.exec(i, "INSERT INTO t_order (id, user_id) VALUES "+list(n, func(b *strings.Builder, i int) {
				fmt.Fprintf(b, "(%d,%d)", s.node.Generate().Int64(), i)
			}))
		}
		return s.exec(i, "INSERT INTO t_order (user_id) VALUES "+list(n, func(b *strings.Builder, i int) {
			fmt.Fprintf(b, "(%d)", i)
		}))
	})
}

// insertSelect measures copying n rows. The plain driver's keys come from the server.
func (s *server) insertSelect(n int) ([]float64, error) {
	if s.arms[0].filled == 0 {
		if err := s.exec(0, "ALTER TABLE t_order MODIFY id BIGINT NOT NULL AUTO_INCREMENT"); err != nil {
			return nil, err
		}
	}
	for i := range s.arms {
		for a := &s.arms[i]; a.filled < n; {
			first := a.filled
			a.filled = min(n, first+10_000)
			err := s.exec(i, "INSERT INTO source VALUES "+list(a.filled-first, func(b *strings.Builder, i int) {
				fmt.Fprintf(b, "(%d)", first+i)
			}))
			if err != nil {
				return nil, err
			}
		}
	}
	return s.both(max(1, min(100, 10_000/n)), func(i int) error {
		return s.exec(i, fmt.Sprintf("INSERT INTO t_order (user_id) SELECT user_id FROM source WHERE user_id < %d", n))
	})
}

// connections measures INSERTs on n connections in turn.
func (s *server) connections(n int) ([]float64, error) {
	if s.limit == 0 {
		if err := s.admin.QueryRow("SELECT @@max_connections").Scan(&s.limit); err != nil {
			return nil, err
		}
	}
	if _, err := s.admin.Exec(fmt.Sprintf("SET GLOBAL max_connections = %d", 2*n+50)); err != nil {
		return nil, err
	}
	for i := range s.arms {
		a, before := &s.arms[i], heap()
		for len(a.conns) < n {
			c, err := a.db.Conn(context.Background())
			if err != nil {
				return nil, err
			}
			a.conns = append(a.conns, c)
			if err := s.insert(i, c); err != nil {
				return nil, err
			}
		}
		a.used += heap() - before
	}
	took, err := s.both(max(5, min(200, 5_000/n)), s.insertOnAll)
	if err != nil {
		return nil, err
	}
	x := float64(n)
	return []float64{took[0] / x, took[1] / x, s.arms[0].used / x / 1000, s.arms[1].used / x / 1000}, nil
}

func (s *server) insert(i int, c *sql.Conn) (err error) {
	if ctx := context.Background(); i == 0 {
		_, err = c.ExecContext(ctx, "INSERT INTO t_order (user_id, id) VALUES (?, ?)", 1, s.node.Generate().Int64())
	} else {
		_, err = c.ExecContext(ctx, "INSERT INTO t_order (user_id) VALUES (?)", 1)
	}
	return err
}

// insertOnAll inserts on all connections of an arm, with 16 goroutines.
func (s *server) insertOnAll(arm int) error {
	conns := s.arms[arm].conns
	return bench.AtOnce(16, func(w int) error {
		for i := w; i < len(conns); i += 16 {
			if err := s.insert(arm, conns[i]); err != nil {
				return err
			}
		}
		return nil
	})
}
