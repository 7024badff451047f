// Command inserts compares shardkey with go-sql-driver on MySQL and MariaDB servers, which it
// starts, and prints a Markdown table:
//
//	go run -C bench ./inserts -only '^INSERT, '
//
// ../README.md describes how it measures.
package main

import (
	"cmp"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/bench"
	"github.com/shardkey/shardkey/driver"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
)

const ruleText = `
rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
    t_nullable: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}}
`

func registerRule() error {
	r, err := rule.Parse("bench.yaml", []byte(ruleText))
	if err != nil {
		return err
	}
	return driver.RegisterRule("bench", r)
}

// options are the options of the command line.
type options struct {
	rounds, calls, cpu           int
	only                         *regexp.Regexp
	servers, params, note, check string
	out                          io.Writer
}

func main() {
	o := options{out: os.Stdout, only: regexp.MustCompile("")}
	flag.IntVar(&o.rounds, "rounds", 60, "number of turns of each variant")
	flag.IntVar(&o.calls, "calls", 20, "calls of a turn in all goroutines; less for batches")
	flag.IntVar(&o.cpu, "cpu", runtime.NumCPU()-1, "processor for client and server, or -1 for no pinning")
	flag.Func("only", "`regexp` of the workloads to measure", func(s string) (err error) {
		o.only, err = regexp.Compile(s)
		return err
	})
	flag.StringVar(&o.servers, "servers", "", "servers to start, separated by commas; "+
		"without it those of SHARDKEY_TEST_DSN, or if that isn't set mysql,mariadb")
	flag.StringVar(&o.params, "params", "", "more DSN parameters for shardkey, such as shardkeyStatements=off")
	flag.StringVar(&o.note, "note", "", "output `file` for the figures")
	flag.StringVar(&o.check, "check", "", "`file` of figures to compare with; the command fails if a ratio differs twice")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "inserts:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	var recorded record
	if o.check != "" {
		var err error
		if recorded, err = readRecord(o.check); err != nil {
			return err
		}
	}
	if err := registerRule(); err != nil {
		return err
	}
	servers, stop, err := o.start()
	if err != nil {
		return err
	}
	defer stop()
	heading := fmt.Sprintf("%s; medians of %d rounds of %d calls", bench.Machine(), o.rounds, o.calls)
	measure := func() (all []figure, err error) {
		fmt.Fprintln(o.out, heading)
		for _, s := range servers {
			if all, err = o.server(all, s); err != nil {
				return nil, fmt.Errorf("%s: %w", s.Kind, err)
			}
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("-only %q: no such workload", o.only)
		}
		return all, nil
	}
	if o.check != "" {
		return recorded.compare(o.out, measure)
	}
	all, err := measure()
	if err == nil && o.note != "" {
		err = record{heading, all}.write(o.note)
	}
	return err
}

// start starts the servers, unless the environment names them.
func (o options) start() (servers []testserver.NamedServer, stop func(), err error) {
	if o.servers == "" && os.Getenv("SHARDKEY_TEST_DSN") != "" {
		servers, err = testserver.Named()
		return servers, func() {}, err
	}
	s, err := testserver.Supervise("")
	if err != nil {
		return nil, nil, err
	}
	if servers, err = s.SQL(strings.Split(cmp.Or(o.servers, "mysql,mariadb"), ",")...); err != nil {
		s.Close()
	}
	return servers, s.Close, err
}

// subject is a server that is measured.
type subject struct {
	name  string
	admin *sql.DB
	cfg   *mysql.Config
	pid   int // 0 if its processor time can't be read
}

// server measures one server, prints its table and adds its figures.
func (o options) server(all []figure, named testserver.NamedServer) ([]figure, error) {
	s := subject{name: string(named.Kind)}
	var err error
	if s.cfg, err = mysql.ParseDSN(named.DSN); err != nil {
		return nil, err
	}
	if s.admin, err = sql.Open("mysql", named.DSN); err != nil {
		return nil, err
	}
	defer s.admin.Close()
	var version string
	if err := s.admin.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
		return nil, err
	}
	fmt.Fprintf(o.out, "\n## %s, %s\n\n%s", version, o.pin(&s), figuresHead)
	for _, w := range workloads() {
		if !o.only.MatchString(w.name) {
			continue
		}
		figures, err := o.measure(s, w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		for _, f := range figures {
			fmt.Fprint(o.out, f)
		}
		all = append(all, figures...)
	}
	return all, nil
}

// pin pins client and server to one processor, and reports whether that was possible.
func (o options) pin(s *subject) string {
	var err error
	if s.pid, err = bench.ServerPID(s.admin); err == nil && o.cpu >= 0 {
		err = bench.Pin(o.cpu, s.pid)
	}
	switch {
	case err != nil:
		return fmt.Sprintf("client and server not pinned: %v", err)
	case o.cpu < 0:
		return "client and server not pinned"
	}
	return fmt.Sprintf("client and server pinned to processor %d", o.cpu)
}
