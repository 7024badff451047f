package debug_test

import (
	"database/sql"
	"database/sql/driver"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/debug"
	shardkey "github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
)

// The page warns of generated keys that were in their table already, and shows the rule's hash.
func TestHandler_duplicatesAndHash(t *testing.T) {
	r := must.Get(rule.Parse("rule.yaml", []byte("rules:\n- !SHARDING\n  tables:\n"+
		"    t: {keyGenerateStrategy: {column: id, keyGeneratorName: g}}\n  keyGenerators:\n    g: {type: SNOWFLAKE}\n")))(t)
	server := &fakedb.Server{
		Exec: func(query string) (driver.Result, error) {
			_, values, _ := strings.Cut(query, "VALUES (1, ")
			key, _, _ := strings.Cut(values, ")")
			return nil, &mysql.MySQLError{Number: 1062, Message: "Duplicate entry '" + key + "' for key 't.PRIMARY'"}
		},
		Query: func(query string) (driver.Rows, error) {
			if strings.HasPrefix(query, "SHOW INDEX") {
				return fakedb.Row("t", "0", "PRIMARY", "1", "id"), nil
			}
			return nil, driver.ErrSkip
		},
	}
	c := must.Get(shardkey.NewConnector(server, r, shardkey.Config{Server: "other"}, shardkey.WithLogger(slog.New(slog.DiscardHandler))))(t)
	db := sql.OpenDB(c)
	defer db.Close()
	_, err := db.Exec("INSERT INTO t (a) VALUES (1)")
	must.Fail(t, err, "a duplicate")
	body := get(t, debug.Handler(c)).Body.String()
	must.Contain(t, body, `<p class="warning"><b>warning</b> t: 1 generated key existed already`)
	must.Contain(t, body, `title="Duplicates">1<`)
	must.Contain(t, body, "hash "+r.Hash())
}
