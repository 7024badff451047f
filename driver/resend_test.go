package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testmust "github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// An error that a trigger raises doesn't make shardkey send the INSERT again, whatever its number is,
// and doesn't change what later statements report.
func TestResend_errorsOfTriggers(t *testing.T) { onEach(t, testResend_errorsOfTriggers) }

func testResend_errorsOfTriggers(t *testing.T) {
	numbers := []int{sqlerr.ColumnNotNull, sqlerr.UnknownDatabase, sqlerr.UnknownColumn, sqlerr.ColumnCount, sqlerr.ColumnDenied,
		sqlerr.UnknownTable, sqlerr.NotSupported, sqlerr.UnknownStatement, sqlerr.NotUpdatable, sqlerr.NoDefault, 1390,
		sqlerr.TooManyStatements, sqlerr.NotInsertableTo, sqlerr.NeedReprepare, sqlerr.NotInCharset}
	for _, params := range []string{"", "interpolateParams=true"} {
		ours, plain := openScripted(t, generatorRule(t, counted(), "ruled.id"), params)
		ours.SetMaxOpenConns(1)
		mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT, u INT UNIQUE)")
		mustExec(t, plain, "CREATE TABLE log (u INT) ENGINE = MyISAM")
		var cases strings.Builder
		for _, number := range numbers {
			fmt.Fprintf(&cases, "WHEN %d THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = %[1]d, MESSAGE_TEXT = 'no'; ", number)
		}
		mustExec(t, plain, "CREATE TRIGGER tr BEFORE INSERT ON ruled FOR EACH ROW BEGIN INSERT INTO log VALUES (NEW.u); "+
			"CASE NEW.a "+cases.String()+"ELSE SET @runs = 1; END CASE; END")
		u := 0
		for _, query := range []string{
			"INSERT INTO ruled (a, u) VALUES (?, ?)",
			"INSERT INTO ruled (a, u) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = a + 1",
			"INSERT INTO ruled VALUES (NULL, ?, ?)",
			"INSERT INTO ruled (a, u) VALUES (1, -1), (?, ?) ON DUPLICATE KEY UPDATE a = a",
			"INSERT INTO ruled (a, u) VALUES (%d, %d) ON DUPLICATE KEY UPDATE a = a",
		} {
			for _, number := range numbers {
				for _, d := range []door{doors[0], doors[3]} {
					u++
					args, text := []any{number, u}, query
					if strings.Contains(query, "%") {
						args, text = nil, fmt.Sprintf(query, args...)
					}
					for range 3 { // until the statement is cached
						if args != nil {
							u++
							_, err := d.exec(t.Context(), ours, text, 1, u)
							noError(t, err)
							args[1] = u + 1
						}
					}
					u++
					_, err := d.exec(t.Context(), ours, text, args...)
					if my, ok := errors.AsType[*mysql.MySQLError](err); !ok || int(my.Number) != number {
						t.Errorf("%s, %s, %d\nhave: %v", d.name, query, number, err)
					}
				}
			}
		}
		equal(t, column(t, plain, "SELECT u FROM log WHERE u > 0 GROUP BY u HAVING COUNT(*) > 1"), "", params)
		mustExec(t, ours, "INSERT INTO ruled (id, a, u) VALUES (7, 1, -7)")
		var keys Keys
		_, err := ours.ExecContext(WithKeys(t.Context(), &keys), "INSERT INTO ruled (a, u) VALUES (1, -7) ON DUPLICATE KEY UPDATE a = 2")
		noError(t, err)
		equal(t, fmt.Sprint(keys.Values()), "[7]", params)
	}
}

// A statement of a connection that is lost at any of its steps isn't run twice.
func TestResend_lostConnections(t *testing.T) { onEach(t, testResend_lostConnections) }

func testResend_lostConnections(t *testing.T) {
	dsn := testserver.Database(t)
	root := mustOpen(t, "mysql", dsn)
	mustExec(t, root, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT, n INT) ENGINE = MyISAM")
	mustExec(t, root, "CREATE TABLE log (a INT) ENGINE = MyISAM")
	mustExec(t, root, "CREATE TRIGGER tr BEFORE INSERT ON ruled FOR EACH ROW INSERT INTO log VALUES (NEW.a)")
	const most = 9 // steps
	try, fine := 0, []int(nil)
	for _, params := range []string{"", "interpolateParams=true"} {
		for _, query := range []string{
			"INSERT INTO ruled (a) VALUES (?)",
			"INSERT INTO ruled VALUES (NULL, ?, 1)",
			"INSERT IGNORE INTO ruled (a) VALUES (?)",
			"REPLACE INTO ruled (a) VALUES (?)",
			"INSERT IGNORE INTO ruled (a) SELECT ?",
			"REPLACE INTO ruled (a) SELECT a FROM (SELECT ? AS a UNION ALL SELECT -1) AS x",
			"INSERT INTO ruled (a) VALUES (?) ON DUPLICATE KEY UPDATE n = 1",
			"INSERT INTO ruled (id, a) VALUES (5, -1), (NULL, ?) ON DUPLICATE KEY UPDATE n = 1",
		} {
			for step := range 2 * most {
				try++
				cut := &cutter{at: int64(1 + step/2), before: step%2 == 0}
				cfg := must(mysql.ParseDSN(dsn + "?" + params))(t)
				cfg.DialFunc, cfg.Logger = cut.dial, new(mysql.NopLogger)
				db := sql.OpenDB(mustConnector(t, must(mysql.NewConnector(cfg))(t), generatorRule(t, counted(), "ruled.id")))
				noError(t, db.Ping())
				cut.armed.Store(true)
				var keys Keys
				if _, err := db.ExecContext(WithKeys(t.Context(), &keys), query, try); err == nil {
					fine = append(fine, try)
				}
				db.Close()
				mustExec(t, root, "DELETE FROM ruled WHERE a = ? OR a = -1", try)
			}
		}
	}
	equal(t, column(t, root, "SELECT a FROM log WHERE a > 0 GROUP BY a HAVING COUNT(*) > 1"), "")
	ran := strings.Fields(column(t, root, "SELECT DISTINCT a FROM log WHERE a > 0"))
	for _, try := range fine {
		equal(t, slices.Contains(ran, fmt.Sprint(try)), true, "no error, but not run:", try)
	}
}

// cutter cuts a connection before or after one of its writes.
type cutter struct {
	at     int64
	before bool
	armed  atomic.Bool
	writes atomic.Int64
}

func (c *cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	return &cutConn{conn, c}, err
}

type cutConn struct {
	net.Conn
	by *cutter
}

func (c *cutConn) Write(b []byte) (int, error) {
	cuts := c.by.armed.Load() && c.by.writes.Add(1) == c.by.at
	if cuts && c.by.before {
		_ = c.Close()
	}
	n, err := c.Conn.Write(b)
	if cuts {
		_ = c.Close()
	}
	return n, err
}

// After a statement was sent, a connection that is found closed isn't reported as one that wasn't used.
func TestResend_closedConnection(t *testing.T) {
	refused := &mysql.MySQLError{Number: sqlerr.ColumnDenied, Message: "denied"}
	server := &fakedb.Server{Columns: [][2]string{{"id", "bigint"}}, Faults: []fakedb.Fault{
		{At: "execContext INSERT", Err: refused}, {At: "prepareContext INSERT", Err: refused}, {At: "execContext INSERT", Err: driver.ErrBadConn, Times: -1},
	}}
	db, _ := openFake(t, server, generatorRule(t, counted(), "t.id"), Config{Server: "mysql"})
	_, err := db.Exec("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2")
	isError(t, err, mysql.ErrInvalidConn)
	equal(t, server.Count("execContext INSERT"), 2)
}

// After the server refused the assignment that reports existing keys, upserts of that table are sent
// without it for a minute.
func TestResend_reportsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &mysql.MySQLError{Number: sqlerr.ColumnDenied, Message: "denied"}
		server := &fakedb.Server{Columns: [][2]string{{"id", "bigint"}}}
		var log testmust.Log
		c := openConn(t, server, generatorRule(t, counted(), "t.id", "u.id"), Config{Server: "mysql"}, WithLogger(log.Logger()))
		for _, step := range []struct {
			table   string
			refuse  bool
			wait    time.Duration
			reports bool // the statement that is executed
		}{
			{"t", false, 0, true}, {"t", true, 0, false}, {"t", false, 0, false}, {"u", false, 0, true},
			{"t", false, unreportedFor - 1, false}, {"t", false, 1, true}, {"t", true, 0, false},
		} {
			time.Sleep(step.wait)
			server.Forget()
			if step.refuse {
				server.Faults = []fakedb.Fault{{At: "execContext INSERT", Err: refused}, {At: "prepareContext INSERT", Err: refused}}
			}
			_, err := c.ExecContext(t.Context(), "INSERT INTO "+step.table+" (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2", nil)
			noError(t, err)
			sent := server.Sent[len(server.Sent)-1].Query
			equal(t, strings.Contains(sent, "`id` = IF("), step.reports, sent)
		}
		equal(t, strings.Count(log.String(), "upserts don't report the keys of existing rows"), 2)
	})
}
