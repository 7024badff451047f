// Command quickstart shows unique keys across two tables of one logical table. The program's
// INSERTs are the same as with AUTO_INCREMENT, whose keys repeat.
//
//	go run -C examples ./quickstart
//	go run -C examples ./quickstart -dsn 'user:pass@tcp(127.0.0.1:3306)/app'
//
// The first command starts a MySQL-compatible server in the process, go-mysql-server, on a
// free port of 127.0.0.1. The second uses a real server. It creates four tables in the
// database app, and drops them at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/go-sql-driver/mysql"
)

func main() {
	dsn := flag.String("dsn", "",
		"`DSN` of a MySQL or MariaDB database (default: a server in this process)")
	only := flag.Bool("serve", false,
		"only start that server, print its DSN, and stop it when standard input ends")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *only {
		signal.Ignore(os.Interrupt) // an example that this serves may still need it
		err = serve(os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Stdout, *dsn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, dsn string) (err error) {
	if dsn == "" {
		var stop func() error
		if dsn, stop, err = startServer(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	if cfg.DBName == "" {
		return errors.New("-dsn: expected a database after the last slash, such as /app")
	}
	if cfg.Passwd != "" {
		cfg.Passwd = "..."
	}
	shown := cfg.FormatDSN()
	fmt.Fprintf(out, "before  sql.Open(\"mysql\",    %q)\n", shown)
	fmt.Fprintf(out, "after   sql.Open(\"shardkey\", %q)\n", withRule(shown))

	orders, err := sell(ctx, "shardkey", withRule(dsn), "BIGINT PRIMARY KEY", "t_order_0", "t_order_1")
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\nWith shardkey: one generator for the logical table t_order, whichever shard a row is in\n\n")
	if err := printOrders(out, orders); err != nil {
		return err
	}
	counters, err := sell(ctx, "mysql", dsn, "BIGINT AUTO_INCREMENT PRIMARY KEY", "t_plain_0", "t_plain_1")
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\nThe same statements with AUTO_INCREMENT: each shard has its own counter\n\n")
	printShards(out, counters)
	return printRepeats(out, orders, counters)
}

// withRule adds the rule next to this program, which may run in examples or in
// examples/quickstart, to a DSN.
func withRule(dsn string) string {
	param := "shardkeyRule=quickstart%2Frule.yaml"
	if _, err := os.Stat("rule.yaml"); err == nil {
		param = "shardkeyRule=rule.yaml"
	}
	if strings.Contains(dsn[strings.LastIndex(dsn, "/"):], "?") {
		return dsn + "&" + param
	}
	return dsn + "?" + param
}
