// Command inserts measures INSERTs through shardkey beside the same through
// go-sql-driver with keys made by bwmarrin/snowflake, AUTO_INCREMENT itself and
// gorm/sharding, and prints Markdown tables:
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
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/bench"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
)

const ruleText = `
rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
    t_order_i: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}}
`

// options are the command line's.
type options struct {
	rounds, calls, cpu, runs int
	delay                    time.Duration
	scene, note, check       string
	vitess                   bool
	out                      io.Writer
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 100, "how often every arm takes its turn")
	flag.IntVar(&o.calls, "calls", 40, "INSERTs of a turn; a quarter of it with a delay, and for batches")
	flag.IntVar(&o.cpu, "cpu", runtime.NumCPU()-1, "the processor to pin client and server to; -1: none")
	flag.DurationVar(&o.delay, "delay", 500*time.Microsecond, "what the slow line takes each way")
	flag.IntVar(&o.runs, "runs", 5, "how often -note measures")
	flag.StringVar(&o.scene, "scene", "", "the one scene to measure, as its heading says; all when empty")
	flag.StringVar(&o.note, "note", "", "measure several times, and write ratios and their noise to this file")
	flag.StringVar(&o.check, "check", "", "measure, and fail when a ratio is not as this file has it")
	flag.BoolVar(&o.vitess, "vitess", false, "measure beside Vitess' sequences, with a Vitess of its own in place of those servers")
	flag.Parse()
	o.out = os.Stdout
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
	switch {
	case o.note != "":
		return note(o)
	case o.check != "":
		return check(o)
	case o.vitess:
		return vitess(o)
	}
	_, err = servers(o)
	return err
}

// servers measures on all servers that the environment names.
func servers(o options) (ratios []ratio, err error) {
	fmt.Fprintf(o.out, "%s, medians of %d rounds\n", bench.Machine(), o.rounds)
	found := false
	for _, s := range []struct{ name, env string }{{"MySQL", "SHARDKEY_TEST_MYSQL_DSN"}, {"MariaDB", "SHARDKEY_TEST_MARIADB_DSN"}} {
		dsn := os.Getenv(s.env)
		if dsn == "" {
			continue
		}
		found = true
		all, err := server(o, s.name, dsn)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		ratios = append(ratios, all...)
	}
	if !found {
		return nil, errors.New("no server: set SHARDKEY_TEST_MYSQL_DSN or SHARDKEY_TEST_MARIADB_DSN, or run it by internal/testserver/run")
	}
	return ratios, nil
}

const database = "shardkey_bench"

// server measures on one server.
func server(o options, name, dsn string) (ratios []ratio, err error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	var version string
	if err := admin.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
		return nil, err
	}
	fmt.Fprintf(o.out, "\n## %s, %s\n", version, bench.Pin(o.cpu, admin))
	defer func() {
		for i := range arms {
			_, _ = admin.Exec("DROP DATABASE IF EXISTS " + schema(i))
		}
	}()
	if ratios, err = o.measure(arms, admin, cfg); err != nil {
		return nil, err
	}
	for i := range ratios {
		ratios[i].Server = name
	}
	return ratios, nil
}

// measure measures arms in all scenes, or the one that is asked for.
func (o options) measure(arms []arm, admin *sql.DB, cfg *mysql.Config) (ratios []ratio, err error) {
	slow, err := newDelay(cfg.Addr, o.delay)
	if err != nil {
		return nil, err
	}
	defer slow.Close()
	few := max(1, o.calls/4)
	found := false
	for _, s := range []scene{
		{"One connection", cfg.Addr, 1, 1, o.calls, o.rounds},
		{"Sixteen connections", cfg.Addr, 16, 1, few, o.rounds},
		{"One connection, batches of 100 rows", cfg.Addr, 1, 100, few, o.rounds},
		{fmt.Sprintf("One connection, %v each way", o.delay), slow.Addr(), 1, 1, few, max(1, o.rounds/8)},
		{fmt.Sprintf("Sixteen connections, %v each way", o.delay), slow.Addr(), 16, 1, few, max(1, o.rounds/8)},
	} {
		if o.scene != "" && !strings.EqualFold(s.name, o.scene) {
			continue
		}
		found = true
		all, err := s.measure(o.out, arms, admin, cfg)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		ratios = append(ratios, all...)
	}
	if !found {
		return nil, fmt.Errorf("-scene %q: there is none of this name", o.scene)
	}
	return ratios, nil
}

// scene is what is measured for all arms.
type scene struct {
	name          string
	addr          string
	conns, rows   int
	calls, rounds int
}

func (s scene) measure(out io.Writer, arms []arm, admin *sql.DB, cfg *mysql.Config) ([]ratio, error) {
	var running []*runningArm
	defer func() {
		for _, a := range running {
			a.close()
		}
	}()
	for i, of := range arms {
		if of.detail && (s.conns > 1 || s.rows > 1) {
			continue
		}
		a, err := s.start(admin, cfg, of, i)
		if a != nil {
			running = append(running, a)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.name, err)
		}
	}
	for round := range s.rounds + 1 { // the first warms up
		for i := range running {
			a := running[(i+round)%len(running)]
			start := time.Now()
			if err := s.turn(a); err != nil {
				return nil, fmt.Errorf("%s: %w", a.name, err)
			}
			if round > 0 {
				a.took = append(a.took, time.Since(start))
			}
		}
	}
	fmt.Fprintf(out, "\n### %s\n\n| | µs a statement | rows a second | to the first |\n| --- | --- | --- | --- |\n", s.name)
	var ratios []ratio
	first := bench.Median(running[0].took)
	for _, a := range running {
		took := bench.Median(a.took)
		r := ratio{Scene: s.name, Arm: a.name, Ratio: float64(first) / float64(took)}
		ratios = append(ratios, r)
		fmt.Fprintf(out, "| %s | %.1f | %.0f | %.2f |\n", a.name, took.Seconds()*1e6/float64(s.calls), float64(s.conns*s.calls*s.rows)/took.Seconds(), r.Ratio)
	}
	return ratios, nil
}

// turn is one turn of an arm: all its connections at once.
func (s scene) turn(a *runningArm) error {
	if s.conns == 1 {
		return a.inserts(s, 0)
	}
	errs := make([]error, s.conns)
	var wg sync.WaitGroup
	for i := range s.conns {
		wg.Go(func() { errs[i] = a.inserts(s, i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
