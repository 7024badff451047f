package driver_test

import (
	"context"
	_ "embed"
	"expvar"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
)

//go:embed testdata/embedded.yaml
var embeddedRule []byte

// A rule that is embedded in the program has a name. It is parsed once, so that all
// databases of the process share its generators.
func ExampleOpen() {
	r, err := rule.Parse("embedded.yaml", embeddedRule)
	if err != nil {
		panic(err)
	}
	if err := driver.RegisterRule("embedded", r); err != nil {
		panic(err)
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	db, connector, err := driver.Open("user:pass@tcp(127.0.0.1:3306)/app?shardkeyRule=embedded", driver.WithLogger(logger))
	if err != nil {
		panic(err)
	}
	defer db.Close()
	// No server is asked for any of this.
	fmt.Println(connector.Ready(context.Background()))
	fmt.Println(connector.Lookup("", "t_order_1"))
	fmt.Println(driver.ConnectorOf(db) == connector)
	// Output:
	// <nil>
	// table t_order: column order_id from snowflake (SNOWFLAKE), actual tables: t_order_0, t_order_1
	// true
}

// A readiness probe and the figures of a connector, over HTTP.
func ExampleConnector_Stats() {
	r, err := rule.Parse("embedded.yaml", embeddedRule)
	if err != nil {
		panic(err)
	}
	if err := driver.RegisterRule("embedded", r); err != nil {
		panic(err)
	}
	db, connector, err := driver.Open("user:pass@tcp(127.0.0.1:3306)/app?shardkeyRule=embedded")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	expvar.Publish("shardkey", expvar.Func(func() any { return connector.Stats() }))
	mux := http.NewServeMux()
	mux.Handle("/debug/vars", expvar.Handler())
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := connector.Ready(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})

	if _, err := driver.NextKeys(context.Background(), db, "t_order", 3); err != nil {
		panic(err)
	}
	for _, path := range []string{"/readyz", "/debug/vars"} {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(answer.Code, strings.Contains(answer.Body.String(), `"table":"t_order","column":"order_id","generator":"snowflake","type":"SNOWFLAKE","keys":3,`))
	}
	// Output:
	// 200 false
	// 200 true
}
