// Command kubernetes is the program of manifest.yaml: a service that inserts orders. It has a
// readiness probe, reloads a changed rule, and releases its worker ID when it stops.
// docs/guides/kubernetes.md explains it.
package main

import (
	"context"
	"database/sql"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/shardkey/shardkey/driver"
)

func main() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("orders", "error", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context) (err error) {
	o, err := open(os.Getenv("DATABASE_DSN"), os.Getenv("RULE_FILE"))
	if err != nil {
		return err
	}
	// Close the database last. Close releases the worker ID, so that the next pod can lease it at
	// once.
	defer func() { err = errors.Join(err, o.db.Close()) }()
	expvar.Publish("shardkey", expvar.Func(func() any { return o.connector.Stats() }))
	server := &http.Server{Addr: os.Getenv("LISTEN"), Handler: o.handler(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// The endpoints still contain the pod for a moment after it was told to stop, so requests may
	// still arrive.
	o.stopping.Store(true)
	time.Sleep(3 * time.Second)
	finish, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return server.Shutdown(finish)
}

// orders is the service.
type orders struct {
	db        *sql.DB
	connector *driver.Connector
	stopping  atomic.Bool
}

// open opens the database with a rule file, which shardkey checks for changes.
func open(dsn, ruleFile string) (*orders, error) {
	db, connector, err := driver.Open(withParams(dsn, "shardkeyReload=10s&shardkeyRule="+ruleFile))
	if err != nil {
		return nil, err
	}
	return &orders{db: db, connector: connector}, nil
}

// withParams appends parameters to a DSN, which may have parameters already. A "?" before the
// last slash is part of the password.
func withParams(dsn, params string) string {
	if strings.Contains(dsn[strings.LastIndex(dsn, "/")+1:], "?") {
		return dsn + "&" + params
	}
	return dsn + "?" + params
}

func (o *orders) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", o.ready)
	mux.HandleFunc("POST /orders", o.insert)
	mux.Handle("GET /debug/vars", expvar.Handler())
	return mux
}

// ready reports whether the pod can serve requests. The first call leases the worker ID, before
// there are requests.
func (o *orders) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	err := errors.Join(o.connector.Ready(ctx), o.db.PingContext(ctx))
	if o.stopping.Load() {
		err = errors.New("the pod is stopping")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

func (o *orders) insert(w http.ResponseWriter, r *http.Request) {
	res, err := o.db.ExecContext(r.Context(), "INSERT INTO t_order (item) VALUES (?)", r.FormValue("item"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	id, err := res.LastInsertId()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, id)
}
