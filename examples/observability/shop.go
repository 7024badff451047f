package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"expvar"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/XSAM/otelsql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/shardkey/shardkey/debug"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/otelshardkey"
	"github.com/shardkey/shardkey/rule"
)

//go:embed rule.yaml
var ruleText string

// inDirectory returns a rule with its worker IDs in a directory.
func inDirectory(rule, dir string) string {
	return strings.Replace(rule, "{type: SQL}", "{type: FILE, props: {path: "+strconv.Quote(dir)+"}}", 1)
}

// shop is a program that writes rows, with everything that shows its state.
type shop struct {
	db        *sql.DB
	connector *driver.Connector
	registry  *prometheus.Registry // not the global one, so that two shops fit in one process
}

func openShop(ctx context.Context, out io.Writer, dsn, text string) (*shop, error) {
	r, err := rule.Parse("rule.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	traces := trace.NewTracerProvider(trace.WithSyncer(&firstSpans{out, 6}))
	db, connector, err := tracingOverShardkey(dsn, r, otelsql.WithTracerProvider(traces))
	if err != nil {
		return nil, err
	}
	s := &shop{db: db, connector: connector, registry: prometheus.NewRegistry()}
	if err := errors.Join(s.makeTables(ctx), s.measure()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// measure exports the connector's metrics from OpenTelemetry to Prometheus until the process ends.
func (s *shop) measure() error {
	reader, err := exporter.New(exporter.WithRegisterer(s.registry), exporter.WithoutScopeInfo())
	if err != nil {
		return err
	}
	_, err = otelshardkey.Register(s.connector, sdk.NewMeterProvider(sdk.WithReader(reader)))
	return err
}

// routes serves the addresses for operators.
func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	mux.Handle("/debug/shardkey/", debug.Handler(s.connector))
	// Most programs call expvar.Publish("shardkey", …) instead.
	figures := expvar.Func(func() any { return s.connector.Stats() })
	mux.HandleFunc("GET /debug/vars", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, "{\"shardkey\": %s}\n", figures)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := s.connector.Ready(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.Handle("GET /{$}", http.RedirectHandler("/debug/shardkey/", http.StatusSeeOther))
	return mux
}

func (s *shop) makeTables(ctx context.Context) error {
	for _, text := range []string{
		"CREATE TABLE IF NOT EXISTS t_order_0 (order_id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS t_order_1 (order_id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS t_invoice (invoice_id BIGINT PRIMARY KEY, amount BIGINT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS t_token (token VARCHAR(36) PRIMARY KEY, user_id BIGINT NOT NULL)",
		"CREATE TABLE IF NOT EXISTS leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '' PRIMARY KEY, " +
			"max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, description VARCHAR(256) DEFAULT NULL, " +
			"update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)",
		"INSERT IGNORE INTO leaf_alloc (biz_tag, max_id, step) VALUES ('invoice', 1, 1000)",
	} {
		if _, err := s.db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// sell writes rows until ctx ends. It ignores errors, which the debug page and the metrics show.
func (s *shop) sell(ctx context.Context) {
	for tick := time.Tick(50 * time.Millisecond); ctx.Err() == nil; <-tick {
		_ = s.order(ctx, rand.Int64N(1000))
	}
}

func (s *shop) order(ctx context.Context, user int64) error {
	_, err := s.db.ExecContext(ctx, fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", user%2), user)
	if err != nil {
		return err
	}
	if _, err = s.db.ExecContext(ctx, "INSERT INTO t_invoice (amount) VALUES (?), (?)", user, 2*user); err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, "INSERT INTO t_token (user_id) VALUES (?)", user)
	return err
}
