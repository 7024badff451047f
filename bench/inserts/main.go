// Command inserts compares INSERTs through shardkey with the same INSERTs through
// go-sql-driver, and prints a Markdown table:
//
//	go run ./internal/test/server/run -servers mysql,mariadb go run -C bench ./inserts
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
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
)

const ruleText = `
rules:
- !SHARDING
  tables: {t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}}
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}}
`

// options are the options of the command line.
type options struct {
	rounds, calls, cpu, runs int
	scene, note, check       string
	out                      io.Writer
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 100, "number of turns of each variant")
	flag.IntVar(&o.calls, "calls", 40, "INSERTs of a turn; a quarter of it on sixteen connections and for batches")
	flag.IntVar(&o.cpu, "cpu", runtime.NumCPU()-1, "processor for client and server, or -1 for no pinning")
	flag.IntVar(&o.runs, "runs", 5, "number of runs for -note")
	flag.StringVar(&o.scene, "scene", "", "only row of the table to measure")
	flag.StringVar(&o.note, "note", "", "output `file` for ratios and their noise, measured several times")
	flag.StringVar(&o.check, "check", "", "`file` of ratios to compare with; the command fails if a ratio differs")
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

// servers measures all servers that the environment specifies.
func servers(o options) (ratios []ratio, err error) {
	fmt.Fprintf(o.out, "%s, medians of %d rounds; µs an INSERT statement\n", bench.Machine(), o.rounds)
	named, err := testserver.Named()
	if err != nil {
		return nil, err
	}
	for _, s := range named {
		all, err := server(o, string(s.Kind), s.DSN)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Kind, err)
		}
		ratios = append(ratios, all...)
	}
	switch {
	case len(named) == 0:
		return nil, errors.New("no server: set SHARDKEY_TEST_DSN, or run it by internal/test/server/run")
	case len(ratios) == 0:
		return nil, fmt.Errorf("-scene %q: no such row", o.scene)
	}
	return ratios, nil
}

const database = "shardkey_bench"

// server measures one server and prints its table.
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
		for i := range variants {
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
