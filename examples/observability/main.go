// Command observability is a small program that writes rows, with everything that shows the
// state of shardkey. It also prints its first spans:
//
//	go run -C examples ./observability
//	go run -C examples ./observability -dsn 'user:pass@tcp(127.0.0.1:3306)/app'
//
//	http://127.0.0.1:8080/debug/shardkey/   the debug page
//	http://127.0.0.1:8080/metrics           OpenTelemetry's metrics, for Prometheus
//	http://127.0.0.1:8080/debug/vars        the same figures as expvar
//	http://127.0.0.1:8080/readyz            200 while keys can be generated
//
// Without -dsn it starts the MySQL-compatible server of the quickstart. With -dsn it creates its
// tables in that database, and doesn't drop them. Stop the server for a while to see an
// outage on the debug page, in the metrics and at /readyz.
//
// prometheus.yml, alerts.yml and grafana-dashboard.json configure Prometheus and Grafana on
// this machine. See docs/reference/metrics.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/shardkey/shardkey/examples/internal/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "listen `address`")
	dsn := flag.String("dsn", "",
		"`DSN` of a MySQL or MariaDB database (default: the server of the quickstart)")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *addr, *dsn)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "observability:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, addr, dsn string) (err error) {
	rule := ruleText
	if dsn == "" {
		var stop func() error
		if dsn, stop, err = server.Start(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
		// That server can't store worker IDs, so they are in a directory.
		dir, err := os.MkdirTemp("", "shardkey-workers-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		rule = inDirectory(rule, dir)
	}
	shop, err := openShop(ctx, out, dsn, rule)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.db.Close()) }()

	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: shop.routes(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // until Close
	defer server.Close()
	fmt.Fprintf(out, "page     http://%[1]s/debug/shardkey/\n"+
		"metrics  http://%[1]s/metrics\n"+
		"expvar   http://%[1]s/debug/vars\n"+
		"ready    http://%[1]s/readyz\n", listener.Addr())

	shop.sell(ctx) // until ctx ends
	return nil
}
