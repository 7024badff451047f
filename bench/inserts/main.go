// Command inserts measures INSERTs through shardkey beside the same through
// go-sql-driver with keys made by bwmarrin/snowflake, and AUTO_INCREMENT itself,
// and prints Markdown tables:
//
//	go run ./internal/testserver/run -- go run -C bench ./inserts
//
// The servers are those that the environment names (SHARDKEY_TEST_MYSQL_DSN,
// SHARDKEY_TEST_MARIADB_DSN). In each round every arm inserts so many rows into a
// table of its own, in turns, so that a busy neighbour slows all or none; a figure is
// the median of the rounds, a ratio that of two medians.
//
// On a virtual machine one INSERT takes two or three times as long when client and
// server are on two processors that have to wake each other. Both are pinned to one
// processor where taskset is there and the server's process is this machine's; the
// output says whether they are.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
)

const ruleText = `
rules:
- !SHARDING
  tables: {t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}}}
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}}
`

// options are the command line's.
type options struct {
	rounds, calls, cpu int
	delay              time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 200, "how often every arm takes its turn")
	flag.IntVar(&o.calls, "calls", 40, "INSERTs of a turn; a quarter of it with a delay, and for batches")
	flag.IntVar(&o.cpu, "cpu", runtime.NumCPU()-1, "the processor to pin client and server to; -1: none")
	flag.DurationVar(&o.delay, "delay", 500*time.Microsecond, "what the slow line takes each way")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "inserts:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	r, err := rule.Parse("bench.yaml", []byte(ruleText))
	if err == nil {
		err = driver.RegisterRule("bench", r)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s, %s/%s, %d processors, %s, medians of %d rounds\n", time.Now().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), o.rounds)
	servers := 0
	for _, env := range []string{"SHARDKEY_TEST_MYSQL_DSN", "SHARDKEY_TEST_MARIADB_DSN"} {
		if dsn := os.Getenv(env); dsn != "" {
			servers++
			if err := server(o, dsn); err != nil {
				return fmt.Errorf("%s: %w", env, err)
			}
		}
	}
	if servers == 0 {
		return errors.New("no server: set SHARDKEY_TEST_MYSQL_DSN or SHARDKEY_TEST_MARIADB_DSN, or run it by internal/testserver/run")
	}
	return nil
}

const database = "shardkey_bench"

// server measures on one server.
func server(o options, dsn string) error {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer admin.Close()
	var version, pidFile, dataDir string
	if err := admin.QueryRow("SELECT VERSION(), @@pid_file, @@datadir").Scan(&version, &pidFile, &dataDir); err != nil {
		return err
	}
	if !filepath.IsAbs(pidFile) {
		pidFile = filepath.Join(dataDir, pidFile)
	}
	fmt.Printf("\n## %s, %s\n", version, pin(o.cpu, pidFile))
	for _, query := range []string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database} {
		if _, err := admin.Exec(query); err != nil {
			return err
		}
	}
	defer func() {
		_, _ = admin.Exec("DROP DATABASE IF EXISTS " + database)
		for i := range arms {
			_, _ = admin.Exec(fmt.Sprintf("DROP DATABASE IF EXISTS %s_%d", database, i))
		}
	}()
	slow, err := newDelay(cfg.Addr, o.delay)
	if err != nil {
		return err
	}
	defer slow.Close()
	few := max(1, o.calls/4)
	for _, s := range []scene{
		{"One connection", cfg.Addr, 1, 1, o.calls, o.rounds},
		{"Sixteen connections", cfg.Addr, 16, 1, few, o.rounds},
		{"One connection, batches of 100 rows", cfg.Addr, 1, 100, few, o.rounds},
		{fmt.Sprintf("One connection, %v each way", o.delay), slow.Addr(), 1, 1, few, max(1, o.rounds/8)},
		{fmt.Sprintf("Sixteen connections, %v each way", o.delay), slow.Addr(), 16, 1, few, max(1, o.rounds/8)},
	} {
		if err := s.measure(admin, cfg); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// pin puts client and server on one processor, and says whether it could.
func pin(cpu int, pidFile string) string {
	if cpu < 0 {
		return "client and server not pinned"
	}
	text, err := os.ReadFile(pidFile)
	pids := []string{strconv.Itoa(os.Getpid()), strings.TrimSpace(string(text))}
	for _, pid := range pids {
		if err == nil {
			err = exec.Command("taskset", "-apc", strconv.Itoa(cpu), pid).Run()
		}
	}
	if err != nil {
		return fmt.Sprintf("client and server not pinned to one processor (%v): the figures depend on where they run", err)
	}
	return fmt.Sprintf("client and server pinned to processor %d", cpu)
}

// scene is what is measured for all arms.
type scene struct {
	name          string
	addr          string
	conns, rows   int
	calls, rounds int
}

// arm is one way to insert.
type arm struct {
	name, driver, params string
	prepared, auto       bool // AUTO_INCREMENT: nobody gives a key
}

// arms are all; the first is the one that others are held against.
var arms = []arm{
	{name: "go-sql-driver, keys of bwmarrin/snowflake", driver: "mysql"},
	{name: "the same, AUTO_INCREMENT", driver: "mysql", auto: true},
	{name: "the same, interpolateParams", driver: "mysql", params: "interpolateParams=true"},
	{name: "the same, prepared once", driver: "mysql", prepared: true},
	{name: "shardkey", driver: "shardkey"},
	{name: "shardkey, shardkeyStatements=off", driver: "shardkey", params: "shardkeyStatements=off"},
	{name: "shardkey, interpolateParams", driver: "shardkey", params: "interpolateParams=true"},
	{name: "shardkey, interpolateParams and shardkeyStatements=always", driver: "shardkey", params: "interpolateParams=true&shardkeyStatements=always"},
	{name: "shardkey, prepared once", driver: "shardkey", prepared: true},
}

// runningArm is an arm with its table and connections.
type runningArm struct {
	arm
	db    *sql.DB
	query string
	node  *snowflake.Node
	conns []*sql.Conn
	stmts []*sql.Stmt
	took  []time.Duration // of the rounds
}

func (s scene) measure(admin *sql.DB, cfg *mysql.Config) error {
	var running []*runningArm
	defer func() {
		for _, a := range running {
			a.db.Close()
		}
	}()
	for i, of := range arms {
		a, err := s.start(admin, cfg, of, i)
		if a != nil {
			running = append(running, a)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", of.name, err)
		}
	}
	for round := range s.rounds + 1 { // the first warms up
		for i := range running {
			a := running[(i+round)%len(running)]
			start := time.Now()
			if err := s.turn(a); err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			if round > 0 {
				a.took = append(a.took, time.Since(start))
			}
		}
	}
	fmt.Printf("\n### %s\n\n| | µs a statement | rows a second | to the first |\n| --- | --- | --- | --- |\n", s.name)
	first := median(running[0].took)
	for _, a := range running {
		took := median(a.took)
		statements := float64(s.conns * s.calls)
		fmt.Printf("| %s | %.1f | %.0f | %.2f |\n", a.name, took.Seconds()*1e6/float64(s.calls), statements*float64(s.rows)/took.Seconds(), float64(first)/float64(took))
	}
	return nil
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// start makes an arm's table and opens its connections.
func (s scene) start(admin *sql.DB, cfg *mysql.Config, of arm, i int) (*runningArm, error) {
	schema := fmt.Sprintf("%s.t_order", database)
	if of.driver == "mysql" {
		schema = fmt.Sprintf("%s.t_plain_%d", database, i)
	}
	// A table for each arm: ascending keys of one would be in the middle of another's.
	if of.driver == "shardkey" {
		schema = fmt.Sprintf("%s_%d.t_order", database, i)
		for _, query := range []string{fmt.Sprintf("DROP DATABASE IF EXISTS %s_%d", database, i), fmt.Sprintf("CREATE DATABASE %s_%d", database, i)} {
			if _, err := admin.Exec(query); err != nil {
				return nil, err
			}
		}
	}
	auto := ""
	if of.auto {
		auto = " AUTO_INCREMENT"
	}
	for _, query := range []string{"DROP TABLE IF EXISTS " + schema,
		"CREATE TABLE " + schema + " (order_id BIGINT NOT NULL" + auto + " PRIMARY KEY, user_id BIGINT, amount BIGINT, note VARCHAR(40))"} {
		if _, err := admin.Exec(query); err != nil {
			return nil, err
		}
	}
	own := cfg.Clone()
	own.Addr = s.addr
	own.DBName, _, _ = strings.Cut(schema, ".")
	dsn := own.FormatDSN()
	join := "?"
	if strings.Contains(dsn, "?") {
		join = "&"
	}
	params := of.params
	if of.driver == "shardkey" {
		params = strings.Trim(params+"&shardkeyRule=bench", "&")
	}
	if params != "" {
		dsn += join + params
	}
	db, err := sql.Open(of.driver, dsn)
	if err != nil {
		return nil, err
	}
	a := &runningArm{arm: of, db: db}
	if a.node, err = snowflake.NewNode(int64(i)); err != nil {
		return a, err
	}
	_, table, _ := strings.Cut(schema, ".")
	row, columns := "(?, ?, ?)", "(user_id, amount, note)"
	if a.givesKeys() {
		row, columns = "(?, ?, ?, ?)", "(user_id, amount, note, order_id)"
	}
	a.query = "INSERT INTO " + table + " " + columns + " VALUES " + row + strings.Repeat(", "+row, s.rows-1)
	for range s.conns {
		c, err := db.Conn(context.Background())
		if err != nil {
			return a, err
		}
		a.conns = append(a.conns, c)
		if of.prepared {
			st, err := c.PrepareContext(context.Background(), a.query)
			if err != nil {
				return a, err
			}
			a.stmts = append(a.stmts, st)
		}
	}
	return a, nil
}

func (a *runningArm) givesKeys() bool { return a.driver == "mysql" && !a.auto }

// turn is one turn of an arm: all its connections at once.
func (s scene) turn(a *runningArm) error {
	if s.conns == 1 {
		return s.inserts(a, 0)
	}
	errs := make([]error, s.conns)
	var wg sync.WaitGroup
	for i := range s.conns {
		wg.Go(func() { errs[i] = s.inserts(a, i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s scene) inserts(a *runningArm, conn int) error {
	ctx := context.Background()
	for n := range s.calls {
		args := make([]any, 0, 4*s.rows)
		for row := range s.rows {
			args = append(args, int64(n), int64(row), "a note")
			if a.givesKeys() {
				args = append(args, a.node.Generate().Int64())
			}
		}
		var err error
		if a.prepared {
			_, err = a.stmts[conn].ExecContext(ctx, args...)
		} else {
			_, err = a.conns[conn].ExecContext(ctx, a.query, args...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
