package debug_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/shardkey/shardkey/debug"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rule"
)

// The page is served next to net/http/pprof, and answers without asking the database.
func ExampleHandler() {
	r, err := rule.Parse("rule.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: uuid}}
  keyGenerators:
    uuid: {type: UUID}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := driver.RegisterRule("shop", r); err != nil {
		fmt.Println(err)
		return
	}
	db, connector, err := driver.Open("user:pass@tcp(127.0.0.1:3306)/shop?shardkeyRule=shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	mux := http.NewServeMux()
	mux.Handle("/debug/shardkey/", debug.Handler(connector))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/debug/shardkey/", nil))
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "keys can be generated"))
	// Output:
	// 200 true
}
