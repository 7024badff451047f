package driver

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"database/sql/driver"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/fakedb"
)

// routerRefusal is the error of MySQL Router with connection_sharing.
var routerRefusal = &mysql.MySQLError{Number: 3566, SQLState: [5]byte([]byte("HY000")),
	Message: "Access to native function is rejected when connection sharing is enabled"}

// sharing is a server behind a MySQL Router that refuses LAST_INSERT_ID() in queries.
func sharing() *fakedb.Server {
	return &fakedb.Server{
		Columns: [][2]string{{"id", "bigint"}, {"a", "int"}},
		Faults:  []fakedb.Fault{{At: "execContext INSERT INTO t (a, `id`) VALUES (1, LAST_INSERT_ID(", Times: -1, Err: routerRefusal}},
		Query: func(query string) (driver.Rows, error) {
			if strings.Contains(query, "LAST_INSERT_ID(") {
				return nil, routerRefusal
			}
			return nil, driver.ErrSkip
		},
	}
}

// If a proxy refuses LAST_INSERT_ID(key), INSERTs don't contain it for a minute.
func TestRouter_sharesConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log jsonLog
		server := sharing()
		connector := must(NewConnector(server, generatorRule(t, counted(), "t.id"), Config{Server: "mysql"}, WithLogger(log.logger())))(t)
		defer connector.Close()
		c := must(connector.Connect(t.Context()))(t).(*conn)
		defer c.Close()
		exec := func(query string) (sent int) {
			server.Forget()
			res, err := c.ExecContext(t.Context(), query, nil)
			noError(t, err, query)
			if strings.HasPrefix(query, "INSERT") {
				equal(t, must(res.LastInsertId())(t) > 1000, true, query)
			}
			return server.Count("execContext INSERT")
		}
		exec("INSERT INTO t (a) VALUES (5)") // the kind of the keys is known
		equal(t, exec("INSERT INTO t (a) VALUES (1)"), 2, "sent at first")
		equal(t, exec("INSERT INTO t (a) VALUES (1)"), 1, "sent afterwards")
		exec("CALL p()") // needs LAST_INSERT_ID(), which nobody can read
		equal(t, exec("INSERT INTO t (a) VALUES (1)"), 1, "sent afterwards")
		equal(t, strings.Count(log.String(), "WARN"), 1, log.String())
		log.take(t)
		time.Sleep(2 * time.Minute)
		equal(t, exec("INSERT INTO t (a) VALUES (1)"), 2, "sent after two minutes")
		server.Faults, server.Query = nil, nil
		time.Sleep(2 * time.Minute)
		equal(t, exec("INSERT INTO t (a) VALUES (1)"), 1, "sent to a router that doesn't share")
		equal(t, strings.Contains(lines(server.Calls), "LAST_INSERT_ID("), true, "reported again")
	})
}

// An INSERT … SELECT of several rows can't get keys without LAST_INSERT_ID().
func TestRouter_refusesInsertSelect(t *testing.T) {
	server := sharing()
	server.Faults[0].At = "execContext INSERT INTO t (a, `id`) SELECT a, CASE LAST_INSERT_ID("
	db, _ := openFake(t, server, generatorRule(t, counted(), "t.id"), Config{Server: "mysql"})
	mustExec(t, db, "INSERT INTO t (a) VALUES (5)")
	server.Forget()
	_, err := db.Exec("INSERT INTO t (a) SELECT a FROM src")
	equal(t, errors.Is(err, ErrUnsupportedStatement), true, err)
	equal(t, errors.Is(err, routerRefusal), true, err)
	equal(t, server.Count("execContext INSERT"), 1)
}

// After the router has refused another INSERT, the refusal still says what to do about the router.
func TestRouter_refusesInsertSelectWhileSilent(t *testing.T) {
	server := sharing()
	db, _ := openFake(t, server, generatorRule(t, counted(), "t.id"), Config{Server: "mysql"}, WithLogger(slog.New(slog.DiscardHandler)))
	mustExec(t, db, "INSERT INTO t (a) VALUES (1)") // without LAST_INSERT_ID(key), in the end
	server.Forget()
	_, err := db.Exec("INSERT INTO t (a) SELECT a FROM src")
	equal(t, errors.Is(err, ErrUnsupportedStatement), true, err)
	equal(t, strings.Contains(err.Error(), "shares connections"), true, err)
	equal(t, server.Count("execContext INSERT"), 0)
}

// A trigger may raise the same error. The statement isn't sent again.
func TestRouter_errorOfTrigger(t *testing.T) {
	server := sharing()
	server.Query = nil
	db, _ := openFake(t, server, generatorRule(t, counted(), "t.id"), Config{Server: "mysql"}, WithLogger(slog.New(slog.DiscardHandler)))
	mustExec(t, db, "INSERT INTO t (a) VALUES (5)")
	server.Forget()
	for range 2 {
		_, err := db.Exec("INSERT INTO t (a) VALUES (1)")
		equal(t, err != nil, true)
	}
	equal(t, server.Count("execContext INSERT"), 2)
}
