// Command inserts compares INSERTs through shardkey with the same INSERTs through
// go-sql-driver, and prints a Markdown table:
//
//	go run ./internal/testserver/run -servers mysql,mariadb go run -C bench ./inserts
//
// ../README.md describes how it measures.
package main

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/bench"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
)

const ruleText = `
rules:
- !SHARDING
  tables: {t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}}
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}}
`

// options are the command line's.
type options struct {
	rounds, calls, cpu, runs int
	scene, note, check       string
	out                      io.Writer
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 100, "number of turns of each arm")
	flag.IntVar(&o.calls, "calls", 40, "INSERTs of a turn; a quarter of it on sixteen connections, and for batches")
	flag.IntVar(&o.cpu, "cpu", runtime.NumCPU()-1, "processor to pin client and server to; -1: none")
	flag.IntVar(&o.runs, "runs", 5, "number of runs for -note")
	flag.StringVar(&o.scene, "scene", "", "measure this row of the table only")
	flag.StringVar(&o.note, "note", "", "measure several times, and write ratios and their noise to this `file`")
	flag.StringVar(&o.check, "check", "", "measure, and fail if a ratio differs from the one in this `file`")
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
	}
	_, err = servers(o)
	return err
}

// servers measures on all servers that the environment names.
func servers(o options) (ratios []ratio, err error) {
	fmt.Fprintf(o.out, "%s, medians of %d rounds; µs an INSERT statement\n", bench.Machine(), o.rounds)
	found := false
	for _, s := range []struct{ name, env string }{
		{"MySQL", "SHARDKEY_TEST_MYSQL_DSN"}, {"MariaDB", "SHARDKEY_TEST_MARIADB_DSN"}} {
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
	switch {
	case !found:
		return nil, errors.New("no server: set SHARDKEY_TEST_MYSQL_DSN or SHARDKEY_TEST_MARIADB_DSN, " +
			"or run it by internal/testserver/run")
	case len(ratios) == 0:
		return nil, fmt.Errorf("-scene %q: no such row", o.scene)
	}
	return ratios, nil
}

const database = "shardkey_bench"

// server measures on one server, and prints a table.
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
	fmt.Fprintf(o.out, "\n## %s, %s\n\n", version, bench.Pin(o.cpu, admin))
	printHead(o.out)
	defer func() {
		for i := range arms {
			_, _ = admin.Exec("DROP DATABASE IF EXISTS " + schema(i))
		}
	}()
	for _, s := range scenes {
		if o.scene != "" && s.name != o.scene {
			continue
		}
		all, err := o.measure(s, admin, cfg)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		for i := range all {
			all[i].Server = name
		}
		ratios = append(ratios, all...)
	}
	return ratios, nil
}
