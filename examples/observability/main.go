// Command observability starts all that shows how shardkey is doing, around a small
// program that writes rows, and prints the first spans of otelsql:
//
//	go run -C examples ./observability
//	go run -C examples ./observability -dsn 'user:pass@tcp(127.0.0.1:3306)/app'
//
//	http://127.0.0.1:8080/debug/shardkey/   the page
//	http://127.0.0.1:8080/metrics           for Prometheus: OpenTelemetry's metrics
//	http://127.0.0.1:8080/debug/vars        the same figures as expvar
//	http://127.0.0.1:8080/readyz            200 while keys can be made
//
// Without -dsn it starts a MySQL-compatible server within the process. With one, it
// makes its tables in that database, and leaves them there: stop the server for a
// while, and see what the page, the metrics and /readyz then say.
//
// prometheus.yml, alerts.yml and grafana-dashboard.json next to it are for a Prometheus
// and a Grafana on this machine; docs/reference/metrics.md says how.
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

	"github.com/shardkey/shardkey/examples/internal/embedded"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "the `address` to serve at")
	dsn := flag.String("dsn", "",
		"a MySQL or MariaDB `server`, user:pass@tcp(host:port)/app; default: one within this process")
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
		if dsn, stop, err = embedded.Start(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
		// That server cannot keep worker IDs; a directory can.
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
	defer func() { err = errors.Join(err, shop.close()) }()

	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: shop.routes(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Fprintf(out, "page     http://%[1]s/debug/shardkey/\n"+
		"metrics  http://%[1]s/metrics\n"+
		"expvar   http://%[1]s/debug/vars\n"+
		"ready    http://%[1]s/readyz\n", listener.Addr())

	shop.sell(ctx) // until ctx ends
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = server.Shutdown(closing)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
