package main

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/bwmarrin/snowflake"
	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/bench"
	"github.com/shardkey/shardkey/driver"
)

// variant is a way to get the keys.
type variant struct {
	name   string
	to     int  // index of the variant that this one is compared with
	byHand bool // the program generates the keys
}

// The variants. The second one shows what any wrapper costs, and the third one what the server
// pays for shardkey's query.
var variants = []variant{
	{name: "go-sql-driver", byHand: true},
	{name: "do-nothing wrapper"},
	{name: "go-sql-driver, shardkey's query", byHand: true},
	{name: "shardkey"},
	{name: "shardkey, WithKeys", to: shardkey},
}

// Indexes of variants.
const (
	plain = iota
	doNothing
	sameQuery
	shardkey
	withKeys
)

// node generates the keys of programs and of the do-nothing wrapper.
var node, _ = snowflake.NewNode(0)

// workload is what a program does in a loop: a row of the table.
type workload struct {
	name                  string
	goroutines, rows      int
	prepared, interpolate bool
	variants              []int
	open                  func(*program) (call, error)
	// before is executed before each call, and not measured.
	before func(*program) (call, error)
}

// call executes a statement. The numbers of a program's calls differ.
type call func(n int64) error

// program is a variant of a workload that is running.
type program struct {
	workload
	variant int
	db      *sql.DB
	before  call
	call    call
	calls   int64
}

func workloads() (all []workload) {
	inserts := []int{plain, doNothing, sameQuery, shardkey, withKeys}
	others, two := []int{plain, doNothing, shardkey}, []int{plain, shardkey}
	for _, mode := range []workload{
		{name: "default DSN"}, {name: "prepared", prepared: true}, {name: "interpolateParams", interpolate: true},
	} {
		add := func(name string, w workload) {
			w.name, w.prepared, w.interpolate = name+", "+mode.name, mode.prepared, mode.interpolate
			w.goroutines, w.rows = max(1, w.goroutines), max(1, w.rows)
			all = append(all, w)
		}
		add("INSERT", workload{variants: inserts, open: insert})
		add("INSERT in 8 goroutines", workload{variants: inserts, open: insert, goroutines: 8})
		add("INSERT in 64 goroutines", workload{variants: inserts, open: insert, goroutines: 64})
		add("INSERT of 10 rows", workload{variants: inserts, open: insert, rows: 10})
		add("INSERT of 100 rows", workload{variants: inserts, open: insert, rows: 100})
		add("INSERT of 1000 rows", workload{variants: inserts, open: insert, rows: 1000})
		for _, n := range []int{0, 2, 3, 5, 10} {
			add(fmt.Sprintf("INSERT with %d nullable columns", n), workload{variants: two, open: insertNulls(n)})
		}
		if !mode.prepared { // the comment differs each time
			add("INSERT with a trace ID", workload{variants: two, open: insertTraced("t_order", false)})
			add("INSERT elsewhere with a trace ID", workload{variants: two, open: insertTraced("t_other", true)})
		}
		add("GORM Create", workload{variants: two, open: gormCreate(false)})
		add("GORM Create without transaction", workload{variants: two, open: gormCreate(true)})
		add("GORM CreateInBatches", workload{variants: two, open: gormCreate(false), rows: 2 * gormBatch})
		add("SELECT by key", workload{variants: others, open: selectByKey})
		add("SELECT after an INSERT", workload{variants: others, open: selectByKey, before: insert})
		add("UPDATE by key", workload{variants: others, open: updateByKey})
		add("UPDATE after an INSERT", workload{variants: others, open: updateByKey, before: insert})
	}
	return all
}

// insert opens a program that inserts rows.
func insert(p *program) (call, error) {
	byHand := variants[p.variant].byHand
	query := insertQuery(p.rows, byHand)
	if p.variant == sameQuery {
		var err error
		if query, err = sentQuery(p.rows); err != nil {
			return nil, err
		}
	}
	exec, err := p.exec(query)
	return func(n int64) error {
		args := make([]any, 0, 4*p.rows)
		for row := range p.rows {
			if args = append(args, n, int64(row), "a note"); byHand {
				args = append(args, node.Generate().Int64())
			}
		}
		ctx := context.Background()
		if p.variant == withKeys {
			ctx = driver.WithKeys(ctx, new(driver.Keys))
		}
		_, err := exec(ctx, args...)
		return err
	}, err
}

// nullable is the number of columns of t_nullable without the key.
const nullable = 10

// insertNulls opens a program that inserts a row in which n columns are NULL half of the time. It has
// at least five columns.
func insertNulls(n int) func(*program) (call, error) {
	return func(p *program) (call, error) {
		var names []string
		for i := range max(n, nullable/2) {
			names = append(names, fmt.Sprint("c", i))
		}
		columns, byHand := len(names), variants[p.variant].byHand
		if byHand {
			names = append(names, "id")
		}
		exec, err := p.exec("INSERT INTO t_nullable (" + strings.Join(names, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(names)-1) + ")")
		random := rand.New(rand.NewPCG(uint64(n), 1)) // the same rows for each variant
		return func(i int64) error {
			args := make([]any, 0, len(names))
			for column := range columns {
				if args = append(args, i); column < n && random.IntN(2) == 0 {
					args[column] = nil
				}
			}
			if byHand {
				args = append(args, node.Generate().Int64())
			}
			_, err := exec(context.Background(), args...)
			return err
		}, err
	}
}

// insertTraced opens a program that inserts a row by a statement with a trace ID of its own. keys
// reports whether all variants generate the keys themselves.
func insertTraced(table string, keys bool) func(*program) (call, error) {
	return func(p *program) (call, error) {
		keys := keys || variants[p.variant].byHand
		query := strings.Replace(insertQuery(1, keys), "t_order", table, 1)
		return func(n int64) error {
			args := []any{n, int64(0), "a note"}
			if keys {
				args = append(args, node.Generate().Int64())
			}
			_, err := p.db.Exec(fmt.Sprintf("%s /*traceparent='00-%032x-%016x-01'*/", query, n*n, n), args...)
			return err
		}, nil
	}
}

// storedRows is the number of rows that programs with SELECT and UPDATE use, with keys from 1.
const storedRows = 1000

// store inserts these rows.
func (p *program) store() error {
	args := make([]any, 0, 4*storedRows)
	for i := range int64(storedRows) {
		args = append(args, i, int64(0), "a note", 1+i)
	}
	_, err := p.db.Exec(insertQuery(storedRows, true), args...)
	return err
}

func selectByKey(p *program) (call, error) {
	const query = "SELECT note FROM t_order WHERE id = ?"
	row := func(key int64) *sql.Row { return p.db.QueryRow(query, key) }
	if p.prepared {
		st, err := p.db.Prepare(query)
		if err != nil {
			return nil, err
		}
		row = func(key int64) *sql.Row { return st.QueryRow(key) }
	}
	return func(n int64) error {
		var note string
		return row(1 + n%storedRows).Scan(&note)
	}, p.store()
}

func updateByKey(p *program) (call, error) {
	exec, err := p.exec("UPDATE t_order SET amount = ? WHERE id = ?")
	return func(n int64) error {
		_, err := exec(context.Background(), n+1, 1+n%storedRows)
		return err
	}, cmp.Or(err, p.store())
}

// exec returns a function that executes the query, which is prepared if the workload says so.
func (p *program) exec(query string) (func(ctx context.Context, args ...any) (sql.Result, error), error) {
	if p.prepared {
		st, err := p.db.Prepare(query)
		if err != nil {
			return nil, err
		}
		return st.ExecContext, nil
	}
	return func(ctx context.Context, args ...any) (sql.Result, error) {
		return p.db.ExecContext(ctx, query, args...)
	}, nil
}

// insertQuery returns an INSERT of that many rows, with or without keys.
func insertQuery(rows int, keys bool) string {
	columns, row := "user_id, amount, note", "(?, ?, ?)"
	if keys {
		columns, row = columns+", id", "(?, ?, ?, ?)"
	}
	return "INSERT INTO t_order (" + columns + ") VALUES " + row + strings.Repeat(", "+row, rows-1)
}

// sentQuery returns the query that shardkey sends for an INSERT of that many rows. Its arguments
// are those of a query with keys.
func sentQuery(rows int) (string, error) {
	db, c, err := driver.Open("/?shardkeyRule=bench")
	if err != nil {
		return "", err
	}
	defer db.Close()
	p, err := c.Plan(insertQuery(rows, false))
	if err != nil {
		return "", err
	}
	return p.Query(), nil
}

// schema returns the database of a variant. Each has its own, so that ascending keys of one variant
// aren't inserted between another's.
func schema(i int) string { return fmt.Sprintf("shardkey_bench_%d", i) }

var createTables = func() []string {
	const columns = " (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT, amount BIGINT, note VARCHAR(40))"
	wide := "CREATE TABLE %s.t_nullable (id BIGINT NOT NULL PRIMARY KEY"
	for i := range nullable {
		wide += fmt.Sprintf(", c%d BIGINT", i)
	}
	return []string{"CREATE TABLE %s.t_order" + columns, "CREATE TABLE %s.t_other" + columns, wide + ")"}
}()

// measure measures a workload.
func (o options) measure(s subject, w workload) ([]figure, error) {
	var programs []*program
	defer func() {
		for _, p := range programs {
			p.db.Close()
			_, _ = s.admin.Exec("DROP DATABASE " + schema(p.variant))
		}
	}()
	for _, i := range w.variants {
		p := &program{workload: w, variant: i}
		if err := o.startProgram(s, p); err != nil {
			return nil, fmt.Errorf("%s: %w", variants[i].name, err)
		}
		programs = append(programs, p)
	}
	calls := max(1, o.calls/max(w.goroutines, min(w.rows, 20)))
	const most = 250_000 // rows of a program; with more the tables don't fit into MySQL's buffer pool
	rounds := min(o.rounds, most/(calls*w.goroutines*w.rows))
	took, err := bench.Rounds(rounds, len(programs), func(i int) (bench.Times, error) {
		return programs[i].turn(s.pid, calls)
	})
	if err != nil {
		return nil, err
	}
	return w.figures(s.name, took, calls), nil
}

// startProgram creates a program's table and opens its database.
func (o options) startProgram(s subject, p *program) error {
	name := schema(p.variant)
	for _, query := range append([]string{"DROP DATABASE IF EXISTS %s", "CREATE DATABASE %s"}, createTables...) {
		if _, err := s.admin.Exec(fmt.Sprintf(query, name)); err != nil {
			return err
		}
	}
	cfg := s.cfg.Clone()
	cfg.DBName, cfg.InterpolateParams = name, p.interpolate
	c, err := o.connector(p, cfg)
	if err != nil {
		return err
	}
	p.db = sql.OpenDB(c)
	p.db.SetMaxOpenConns(p.goroutines)
	p.db.SetMaxIdleConns(p.goroutines)
	if p.workload.before != nil {
		p.before, err = p.workload.before(p)
	}
	if err == nil {
		p.call, err = p.open(p)
	}
	if err != nil {
		p.db.Close()
	}
	return err
}

// connector returns the connector of a program's driver.
func (o options) connector(p *program, cfg *mysql.Config) (sqldriver.Connector, error) {
	if p.variant >= shardkey {
		cfg.Params = map[string]string{"shardkeyRule": "bench"}
		return driver.Driver{}.OpenConnector(cfg.FormatDSN() + "&" + o.params)
	}
	c, err := mysql.NewConnector(cfg)
	if err == nil && p.variant == doNothing {
		c = &wrapper{c, p.rows, insertQuery(p.rows, false), insertQuery(p.rows, true)}
	}
	return c, err
}

// turn runs one turn of a program, with that many calls in each goroutine.
func (p *program) turn(server, calls int) (bench.Times, error) {
	m := bench.Meter{PID: server}
	first := p.calls
	p.calls += int64(calls)
	m.Start()
	err := bench.AtOnce(p.goroutines, func(int) error {
		for n := first; n < p.calls; n++ {
			if p.before != nil { // in one goroutine
				m.Stop()
				if err := p.before(n); err != nil {
					return err
				}
				m.Start()
			}
			if err := p.call(n); err != nil {
				return err
			}
		}
		return nil
	})
	m.Stop()
	return m.Times, err
}
