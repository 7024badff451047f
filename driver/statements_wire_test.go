package driver

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
)

// wire is the line to a server, on which executions of prepared statements may
// fail.
type wire struct {
	mu       sync.Mutex
	queries  int    // COM_QUERY
	executed int    // COM_STMT_EXECUTE
	prepared int    // COM_STMT_PREPARE
	next     []byte // what becomes of the next executions: 0, unknownToServer, needsReprepare
}

const (
	unknownToServer = 1 + iota // the server gets a statement that it does not have
	needsReprepare             // the server gets nothing, and the client its error 1615
)

type wireConn struct {
	net.Conn
	*wire
	answer []byte
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &wireConn{Conn: c, wire: w}, err
}

func (c *wireConn) Write(packet []byte) (int, error) {
	const query, prepare, execute = 0x03, 0x16, 0x17
	fate := byte(0)
	c.mu.Lock()
	const first = 0 // packet of a command
	if len(packet) > 4 && packet[3] == first && packet[4] == query {
		c.queries++
	}
	if len(packet) > 4 && packet[4] == prepare {
		c.prepared++
	}
	if len(packet) > 8 && packet[4] == execute {
		c.executed++
		if len(c.next) > 0 {
			fate, c.next = c.next[0], c.next[1:]
		}
	}
	c.mu.Unlock()
	switch fate {
	case unknownToServer:
		packet = append([]byte(nil), packet...)
		binary.LittleEndian.PutUint32(packet[5:], 1<<30)
	case needsReprepare:
		text := "Prepared statement needs to be re-prepared"
		c.answer = append([]byte{byte(9 + len(text)), 0, 0, 1, 0xFF, 1615 & 0xFF, 1615 >> 8, '#', 'H', 'Y', '0', '0', '0'}, text...)
		return len(packet), nil
	}
	return c.Conn.Write(packet)
}

func (c *wireConn) Read(p []byte) (int, error) {
	if len(c.answer) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.answer)
	c.answer = c.answer[n:]
	return n, nil
}

// roundTrips returns the commands with an answer since it was called last.
func (w *wire) roundTrips() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.queries + w.executed + w.prepared
	w.queries, w.executed, w.prepared = 0, 0, 0
	return n
}

// A statement that the server has no longer is prepared anew, once, and its row
// stands once.
func TestStatements_preparedAnewOnServers(t *testing.T) {
	if testserver.Each(t, TestStatements_preparedAnewOnServers) {
		return
	}
	cfg := must(mysql.ParseDSN(testserver.Database(t)))(t)
	w := &wire{}
	cfg.DialFunc = w.dial
	base := must(mysql.NewConnector(cfg))(t)
	r := must(rule.Parse("kept.yaml", []byte(keptRuleText)))(t)
	connector := must(NewConnector(base, r))(t)
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1)
	mustExec(t, db, "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)")
	for i := range 3 {
		mustExec(t, db, "INSERT INTO t (n) VALUES (?)", -1-i)
	}
	for i, of := range []struct {
		name           string
		next           []byte
		failure        uint16
		prepared, rows int
	}{
		{"kept", nil, 0, 0, 1},
		{"unknown to the server", []byte{unknownToServer}, 0, 1, 1},
		{"not fit", []byte{needsReprepare}, 0, 1, 1},
		{"twice", []byte{unknownToServer, needsReprepare}, 1615, 1, 0},
		{"prepared again after that", nil, 0, 1, 1},
		{"first executions are not repeated", []byte{unknownToServer}, 1243, 1, 0},
	} {
		if of.failure == 1243 { // none is kept
			mustExec(t, db, "SET @a = 1")
		}
		w.mu.Lock()
		w.next, w.prepared = of.next, 0
		w.mu.Unlock()
		_, err := db.Exec("INSERT INTO t (n) VALUES (?)", i)
		if have := errorNumber(err); have != of.failure {
			t.Errorf("%s\nhave: %v\nwant: error %d", of.name, err, of.failure)
		}
		if w.prepared != of.prepared {
			t.Errorf("%s: prepared\nhave: %d\nwant: %d", of.name, w.prepared, of.prepared)
		}
		rows := 0
		if err := db.QueryRow(fmt.Sprintf("SELECT COUNT(*) FROM t WHERE n = %d", i)).Scan(&rows); err != nil || rows != of.rows {
			t.Errorf("%s: rows\nhave: %d, %v\nwant: %d", of.name, rows, err, of.rows)
		}
	}
}

const keptRuleText = `
rules:
- !SHARDING
  tables: {t: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}}
  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}}
`

func errorNumber(err error) uint16 {
	if my, ok := err.(*mysql.MySQLError); ok {
		return my.Number
	}
	return 0
}

// No INSERT fails for the statements that others keep, whatever the server has
// room for.
func TestStatements_fewAtTheServer(t *testing.T) {
	if testserver.Each(t, TestStatements_fewAtTheServer) {
		return
	}
	server := testserver.StartSQL(t)
	admin := openFor(t, "mysql", server.DSN())
	exec := func(query string) {
		t.Helper()
		mustExec(t, admin, query)
	}
	exec("CREATE DATABASE few")
	exec("CREATE TABLE few.t (id BIGINT PRIMARY KEY, n INT)")
	const connections, texts = 15, 16
	kept := func() (n int) {
		t.Helper()
		var name string
		noError(t, admin.QueryRow("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'").Scan(&name, &n))
		return n
	}
	for _, limit := range []int{20, 100, 2000} {
		exec(fmt.Sprintf("SET GLOBAL max_prepared_stmt_count = %d", limit))
		db := openFor(t, "shardkey", server.DSN()+"few?shardkeyRule="+keptRule(t))
		var conns []*sql.Conn
		for range connections {
			conn := must(db.Conn(t.Context()))(t)
			defer conn.Close()
			conns = append(conns, conn)
		}
		insert := func() (failed int) {
			t.Helper()
			for i := range texts {
				for _, conn := range conns {
					if _, err := conn.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO t (n) VALUES (? + %d)", i), i); errorNumber(err) == 1461 {
						failed++
					} else if err != nil {
						t.Fatalf("limit %d: %v", limit, err)
					}
				}
			}
			for _, conn := range conns { // what it has closed is closed at the server
				mustExec(t, conn, "DO 1")
			}
			return failed
		}
		equal(t, insert()+insert(), 0, "limit", limit, "INSERTs failed")
		want := min(limit/8, connections*texts)
		equal(t, kept(), want, "limit", limit, "kept")
		if limit == 100 {
			// As if others had the rest: a connection that has nothing to close fails
			// until those that have did something.
			exec("SET GLOBAL max_prepared_stmt_count = 5")
			insert()
			equal(t, insert(), 0, "INSERTs failed where the server had no room")
			equal(t, kept(), 0, "kept where the server had no room")
		}
		for _, conn := range conns {
			conn.Close()
		}
		db.Close()
		for kept() > 0 { // the server ends connections in its own time
		}
	}
}

// What was kept at a server that has restarted is forgotten with its connection.
func TestStatements_afterRestart(t *testing.T) {
	if testserver.Each(t, TestStatements_afterRestart) {
		return
	}
	server := testserver.StartSQL(t)
	admin := openFor(t, "mysql", server.DSN())
	mustExec(t, admin, "CREATE DATABASE again")
	db := openFor(t, "shardkey", server.DSN()+"again?shardkeyRule="+keptRule(t))
	db.SetMaxOpenConns(1)
	mustExec(t, db, "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 6 {
		if i == 3 {
			server.Stop()
			server.Start()
		}
		if _, err := db.ExecContext(ended, "INSERT INTO t (n) VALUES (?)", -1); !errors.Is(err, context.Canceled) {
			t.Fatalf("have: %v\nwant: %v", err, context.Canceled)
		}
		mustExec(t, db, "INSERT INTO t (n) VALUES (?)", i)
	}
	rows := 0
	if err := db.QueryRow("SELECT COUNT(*) FROM t WHERE n >= 0").Scan(&rows); err != nil || rows != 6 {
		t.Errorf("rows\nhave: %d, %v\nwant: 6", rows, err)
	}
}
