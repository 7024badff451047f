package driver

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	testcases "github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/differential"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// keeping is a connector with a connection to a server that counts its prepared statements.
type keeping struct {
	*testing.T
	base      *fakedb.Server
	connector *Connector
	conn      *conn
}

func newKeeping(t *testing.T, base *fakedb.Server, mode string) *keeping {
	t.Helper()
	connector := must(NewConnector(base, benchRule(t), Config{Server: "mysql", Statements: mode}))(t)
	t.Cleanup(func() { connector.Close() })
	k := &keeping{T: t, base: base, connector: connector}
	k.conn = k.connect()
	return k
}

func (k *keeping) connect() *conn {
	k.Helper()
	return must(k.connector.Connect(context.Background()))(k).(*conn)
}

// warm executes statements until the limit is known.
func (k *keeping) warm() *keeping {
	k.Helper()
	for range 4 { // a connection that interpolates caches the third one
		k.exec("INSERT INTO t_order (warm) VALUES (?)", 1)
	}
	k.conn.base.ClearCache()
	k.base.Forget()
	return k
}

func (k *keeping) exec(query string, args ...any) {
	k.Helper()
	noError(k, k.try(k.conn, query, args...), query, args)
}

func (k *keeping) try(c *conn, query string, args ...any) error {
	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		if n, ok := arg.(int); ok {
			arg = int64(n)
		}
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	_, err := c.ExecContext(context.Background(), query, named)
	if err == driver.ErrSkip { // as database/sql does
		var st driver.Stmt
		if st, err = c.PrepareContext(context.Background(), query); err == nil {
			_, err = st.(driver.StmtExecContext).ExecContext(context.Background(), named)
			st.Close()
		}
	}
	return err
}

func (k *keeping) check(what string, have, want int) {
	k.Helper()
	equal(k, have, want, what)
}

func TestStatements_cachedOnTheirConnection(t *testing.T) {
	for _, of := range []struct {
		mode                     string
		direct                   bool
		inserts, selects, update int // statements prepared by ten executions
	}{
		{"", false, 1, 10, 10},
		{"auto", false, 1, 10, 10},
		{"auto", true, 1, 0, 0}, // from the third execution
		{"always", true, 1, 0, 0},
		{"always", false, 1, 10, 10},
		{"off", false, 10, 10, 10},
	} {
		t.Run(fmt.Sprintf("%s/direct=%v", of.mode, of.direct), func(t *testing.T) {
			k := newKeeping(t, &fakedb.Server{Statements: 1000, Kind: map[bool]fakedb.Kind{false: fakedb.Skipping}[of.direct]}, of.mode).warm()
			for _, step := range []struct {
				query string
				want  int
			}{
				{"INSERT INTO t_order (a) VALUES (?)", of.inserts},
				{"SELECT ? FROM t_order", of.selects},
				{"UPDATE t_order SET a = ?", of.update},
				{"INSERT INTO t_plain (a) VALUES (?)", of.update},
			} {
				k.base.Forget()
				for range 10 {
					k.exec(step.query, 1)
				}
				k.check("prepared of "+step.query, k.base.Prepared, step.want)
				k.check("executed of "+step.query, len(k.base.Sent), 10)
			}
			noError(t, k.conn.Close())
			k.check("open statements of a closed connection", k.base.Stmts, 0)
			k.check("statements of the connector", int(k.connector.cache.Stats().Open), 0)
		})
	}
}

func TestStatements_questionComesOnce(t *testing.T) {
	k := newKeeping(t, &fakedb.Server{Statements: 1000, Kind: fakedb.Skipping}, "auto")
	for range 5 {
		k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
	}
	k.check("questions", k.base.Count("queryContext SELECT @@max_prepared_stmt_count"), 1)
	k.check("prepared", k.base.Prepared, 2)
	if text := fmt.Sprint(k.connector); !strings.Contains(text, "prepared statements: auto, 1 cached of 125") {
		t.Errorf("have: %s\nwant: what is kept", text)
	}
}

func TestStatements_notCached(t *testing.T) {
	k := newKeeping(t, &fakedb.Server{Statements: 1000, Kind: fakedb.Skipping}, "auto").warm()
	for _, query := range []string{
		"INSERT INTO t_order (a) VALUES (? + @u)",
		"INSERT INTO t_order (a) VALUES (?) /* " + strings.Repeat("x", 16<<10) + " */",
	} {
		k.base.Prepared = 0
		for range 3 {
			k.exec(query, 1)
		}
		k.check("prepared of "+query[:30], k.base.Prepared, 3)
		k.check("open", k.base.Stmts, 0)
	}
}

func TestStatements_byTypesOfArguments(t *testing.T) {
	k := newKeeping(t, &fakedb.Server{Statements: 1000, Kind: fakedb.Skipping}, "auto").warm()
	values := []any{int64(1), uint64(1), 1.5, true, "text", []byte("bytes"), nil, time.Now()}
	for _, v := range values {
		k.base.Prepared = 0
		k.exec("INSERT INTO t_order (a, b) VALUES (?, ?)", v, v)
		want := 1
		if v == nil {
			want = 0
		}
		k.check(fmt.Sprintf("prepared for the first %T", v), k.base.Prepared, want)
		k.exec("INSERT INTO t_order (a, b) VALUES (?, ?)", v, v)
		k.check(fmt.Sprintf("prepared for the second %T", v), k.base.Prepared, want)
	}
	k.check("kept for one text", int(k.connector.cache.Stats().Open), 4)
	for _, of := range []struct {
		query    string
		args     []any // of one execution after the other
		prepared int
	}{
		{"INSERT INTO t_order (a) VALUES (?)", []any{"text", []byte("bytes")}, 2},
		{"INSERT INTO t_order (a) VALUES (?)", []any{1, nil, []byte(nil), 2, nil}, 1},
		{"INSERT INTO t_order (a) VALUES (?)", []any{nil, "text", nil, "text", 1}, 2},
		{"INSERT INTO t_order SET a = ?", []any{1, nil}, 1},
		{"INSERT INTO t_order (a) VALUES (1) ON DUPLICATE KEY UPDATE a = ?", []any{1, nil}, 1},
		{"INSERT INTO t_order (a) VALUES (COALESCE(?, 1))", []any{1, nil, 2, nil}, 2},
		{"INSERT INTO t_order SET a = b = ?", []any{1, nil}, 2},
		{"INSERT INTO t_order (a) VALUES (COALESCE(?, 1))", []any{json.RawMessage(nil), json.RawMessage("1"), []byte(nil)}, 2},
		// Statements for a type that go-sql-driver doesn't send aren't cached.
		{"INSERT INTO t_order (a) VALUES (?)", []any{struct{}{}, 1, struct{}{}, struct{}{}, struct{}{}, struct{}{}, 1}, 6},
	} {
		k.conn.base.ClearCache()
		k.base.Prepared = 0
		for _, arg := range of.args {
			k.exec(of.query, arg)
		}
		k.check(fmt.Sprint("prepared: ", of.query, of.args), k.base.Prepared, of.prepared)
	}
}

func TestStatements_ended(t *testing.T) {
	for _, c := range testcases.Read(t, "testdata/ended.txt", 2) {
		ends, query := c[0] == "true", c[1]
		k := newKeeping(t, &fakedb.Server{Statements: 1000, Kind: fakedb.Skipping}, "auto").warm()
		k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
		var args []any
		if strings.Contains(query, "?") {
			args = []any{""}
		}
		k.exec(query, args...)
		want := 1
		if ends {
			want = 0
		}
		k.check("kept after "+query, int(k.connector.cache.Stats().Open), want)
		k.check("open after "+query, k.base.Stmts, want)
	}
}

func TestStatements_bounded(t *testing.T) {
	k := newKeeping(t, &fakedb.Server{Statements: 800, Kind: fakedb.Skipping}, "auto").warm()
	text := func(i int) string { return fmt.Sprintf("INSERT INTO t_order (c%d) VALUES (?)", i) }
	for i := range 3 * 16 {
		k.exec(text(i), 1)
	}
	k.check("kept by a connection", int(k.connector.cache.Stats().Open), 16)
	k.check("open", k.base.Stmts, 16)
	k.base.Prepared = 0
	k.exec(text(3*16-16), 1)
	k.check("prepared for the oldest of the kept", k.base.Prepared, 0)
	k.exec(text(3*16), 1)
	k.exec(text(3*16-16), 1)
	k.check("prepared for one that was used since", k.base.Prepared, 1)

	// The connector may keep an eighth of 800. It prepares and closes the others.
	for range 20 {
		c := k.connect()
		for i := range 16 {
			noError(t, k.try(c, text(i), 1))
		}
	}
	k.check("open of the connector", k.base.Stmts, 100)
	k.check("counted of the connector", int(k.connector.cache.Stats().Open), 100)
}

func TestStatements_noRoomAtTheServer(t *testing.T) {
	k := newKeeping(t, &fakedb.Server{Statements: 80, Kind: fakedb.Skipping}, "auto").warm()
	other := k.connect()
	text := func(i int) string { return fmt.Sprintf("INSERT INTO t_order (c%d) VALUES (?)", i) }
	for i := range 5 {
		k.exec(text(i), 1)
		noError(t, k.try(other, text(i), 1))
	}
	k.check("kept", k.base.Stmts, 10)
	k.base.Statements = 9 // other clients used the rest
	k.exec(text(9), 1)
	k.check("open after the connection had no room", k.base.Stmts, 5)
	noError(t, k.try(other, text(9), 1))
	k.check("open after the other connection did something", k.base.Stmts, 0)
	k.base.Prepared = 0
	k.exec(text(9), 1)
	k.exec(text(9), 1)
	k.check("prepared from then on", k.base.Prepared, 2)
	k.check("open from then on", k.base.Stmts, 0)

	// A statement of the program also makes room.
	k = newKeeping(t, &fakedb.Server{Statements: 80, Kind: fakedb.Skipping}, "auto").warm()
	for i := range 5 {
		k.exec(text(i), 1)
	}
	k.base.Statements = 5
	st := must(k.conn.PrepareContext(context.Background(), "SELECT ?"))(t)
	st.Close()
	k.check("open", k.base.Stmts, 0)
}

func TestStatements_preparedAgainOnce(t *testing.T) {
	gone, other := &mysql.MySQLError{Number: 1243}, &mysql.MySQLError{Number: 1062}
	changed := &mysql.MySQLError{Number: 1615}
	for _, of := range []struct {
		name     string
		fail     []fakedb.Fault
		err      error
		prepared int
		kept     int // -1: the statement is not cached before
	}{
		{"unknown to the server", []fakedb.Fault{{At: "stmt exec", Err: gone}}, nil, 1, 1},
		{"not fit for what has changed", []fakedb.Fault{{At: "stmt exec", Err: changed}}, nil, 1, 1},
		{"twice", []fakedb.Fault{{At: "stmt exec", Err: gone}, {At: "stmt exec", Err: changed}}, changed, 1, 0},
		{"another error", []fakedb.Fault{{At: "stmt exec", Err: other}}, other, 0, 0},
		{"bad connection", []fakedb.Fault{{At: "stmt exec", Err: driver.ErrBadConn}}, driver.ErrBadConn, 0, 0},
		{"ended context", []fakedb.Fault{{At: "stmt exec", Err: context.Canceled}}, context.Canceled, 0, 0},
		{"at first", []fakedb.Fault{{At: "stmt exec", Err: gone}}, nil, 2, -1},
		{"cannot be prepared", []fakedb.Fault{{At: "prepare", Err: fakedb.Err}}, fakedb.Err, 0, -1},
	} {
		t.Run(of.name, func(t *testing.T) {
			k := newKeeping(t, &fakedb.Server{Statements: 1000, Kind: fakedb.Skipping}, "auto").warm()
			if of.kept >= 0 {
				k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
			}
			k.base.Forget()
			k.base.Faults = of.fail
			equal(t, k.try(k.conn, "INSERT INTO t_order (a) VALUES (?)", 1), of.err)
			k.check("prepared", k.base.Prepared, of.prepared)
			executed := 0
			if of.err == nil {
				executed = 1
			}
			k.check("kept", int(k.connector.cache.Stats().Open), executed)
			k.check("open", k.base.Stmts, executed)
			k.check("executed", len(k.base.Sent), executed)
		})
	}
	t.Run("not in the protocol", func(t *testing.T) {
		k := newKeeping(t, &fakedb.Server{Statements: 1000}, "always").warm()
		k.base.Faults = []fakedb.Fault{{At: "prepare", Times: -1, Err: &mysql.MySQLError{Number: 1295}}}
		k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
		k.check("executed", len(k.base.Sent), 1)
	})
}

func TestStatements_limit(t *testing.T) {
	for server, want := range map[string]int64{
		"16382": 2047, "100": 12, "7": 0, "0": 0, "4194304": 2048, "-1": 2048, "": 256, "1\x006\x00": 256,
	} {
		cache := base.NewCache(false)
		if cache.SetLimit(server); cache.Stats().Limit != want {
			t.Errorf("%q\nhave: %d\nwant: %d", server, cache.Stats().Limit, want)
		}
	}
	untold := func(err error) *keeping {
		asked := fakedb.Fault{At: "SELECT @@max_prepared_stmt_count", Times: -1, Err: err}
		return newKeeping(t, &fakedb.Server{Kind: fakedb.Skipping, Faults: []fakedb.Fault{asked}}, "auto")
	}
	wide := newKeeping(t, &fakedb.Server{Kind: fakedb.Skipping, Query: func(query string) (driver.Rows, error) {
		if strings.Contains(query, "max_prepared_stmt_count") {
			return fakedb.Row("1\x000\x00"), nil
		}
		return nil, driver.ErrSkip
	}}, "auto")
	// An INSERT works even if the server doesn't support the metadata query, or its result can't
	// be read.
	for _, k := range []*keeping{untold(fakedb.Err), wide} {
		for range 3 {
			k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
		}
		k.check("prepared", k.base.Prepared, 2)
		k.check("limit", int(k.connector.cache.Stats().Limit), 256)
	}
	// A bad connection returns an error.
	k := untold(driver.ErrBadConn)
	k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
	equal(t, k.try(k.conn, "INSERT INTO t_order (a) VALUES (?)", 1), driver.ErrBadConn)
}

// keptTable has a column of each kind.
const keptTable = ` (id BIGINT NOT NULL PRIMARY KEY%s, n INT, u BIGINT UNSIGNED, d DOUBLE, x DECIMAL(20,4), s VARCHAR(200), b BIT(8), y VARBINARY(50), ts DATETIME(6), j JSON, UNIQUE (u))`

// keptTexts are statements that depend on the types of their arguments in many ways.
var keptTexts = []string{
	"INSERT INTO t (n) VALUES (?)", "INSERT INTO t (d, n) VALUES (?, ?)", "INSERT INTO t (x) VALUES (?)", "INSERT INTO t (s) VALUES (?)",
	"INSERT INTO t (b) VALUES (?)", "INSERT INTO t (y) VALUES (?)", "INSERT INTO t (ts) VALUES (?)", "INSERT INTO t (j) VALUES (?)",
	"INSERT INTO t (j) VALUES (JSON_ARRAY(?, ?))", "INSERT INTO t (j) VALUES (JSON_OBJECT('k', ?))", "INSERT INTO t (s) VALUES (HEX(?))",
	"INSERT INTO t (s) VALUES (CASE WHEN ? = '5' THEN 'five' ELSE 'other' END)", "INSERT INTO t (s) VALUES (CONCAT(?, '-', ?))",
	"INSERT INTO t (n) VALUES (? + 1)", "INSERT INTO t (n) VALUES (COALESCE(?, 1))", "INSERT INTO t (s) VALUES (IF(? IS NULL, 'null', 'some'))",
	"INSERT IGNORE INTO t (n, s, d) VALUES (?, ?, ?), (?, ?, ?)", "INSERT INTO t (u, s) VALUES (?, 'a') ON DUPLICATE KEY UPDATE s = CONCAT('b', ?)",
	"REPLACE INTO t (u, n) VALUES (?, 1)", "INSERT INTO t SET s = LEFT(?, 3), n = 5", "INSERT INTO t (s) VALUES (? COLLATE utf8mb4_bin)",
	"INSERT INTO t (j) VALUES (JSON_ARRAY(COALESCE(?, ?)))", "INSERT INTO t (s) VALUES (HEX(IFNULL(?, ?)))", "INSERT INTO t (x) VALUES (? / 3)", "INSERT INTO t (s) VALUES (? || ?)", "INSERT INTO t (s) VALUES (\"?\"), (?)",
}

// keptBetween are statements between them. Some change how statements are parsed.
var keptBetween = []string{
	"SET sql_mode = ''", "SET sql_mode = DEFAULT", "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'", "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
	"SET div_precision_increment = 8", "SET time_zone = '+03:00'", "SET NAMES utf8mb4", "SET collation_connection = utf8mb4_bin",
	"ALTER TABLE t MODIFY n BIGINT", "ALTER TABLE t MODIFY n INT", "ALTER TABLE t MODIFY s VARCHAR(5)", "ALTER TABLE t MODIFY s VARCHAR(200)",
	"DELETE FROM t WHERE n = 3", "INSERT INTO plain_t VALUES (1)", "ANALYZE TABLE t", "FLUSH TABLES t", "START TRANSACTION", "COMMIT", "ROLLBACK",
	"CREATE TEMPORARY TABLE IF NOT EXISTS other_t (a INT)", "DROP TEMPORARY TABLE IF EXISTS other_t", "UNLOCK TABLES", "LOCK TABLES t WRITE, plain_t WRITE",
}

var cachedModes = []string{"auto", "always&interpolateParams=true"}

// cachedStatements is the number of statements per mode and server.
const cachedStatements = 1000

// TestStatements_sameAsPreparedEachTime runs the same statements twice: through go-sql-driver,
// which prepares each for one execution, on a table with AUTO_INCREMENT, and through shardkey,
// which caches them.
func TestStatements_sameAsPreparedEachTime(t *testing.T) {
	onEach(t, testStatements_sameAsPreparedEachTime)
}

func testStatements_sameAsPreparedEachTime(t *testing.T) {
	for i, mode := range cachedModes {
		t.Run(mode, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(i), 41))
			noError(t, RegisterRule("kept", snowflakeRule(t, "t")))
			dsns := [2]string{testserver.Database(t), testserver.Database(t)}
			var conns [2]*sql.Conn
			for side, dsn := range dsns {
				name, auto, params := "mysql", " AUTO_INCREMENT", "?parseTime=true&time_zone=%27%2B00:00%27"
				if side == 1 {
					name, auto = "shardkey", ""
					params += "&shardkeyRule=kept&shardkeyStatements=" + mode
				}
				conn := must(mustOpen(t, name, dsn+params).Conn(t.Context()))(t)
				t.Cleanup(func() { conn.Close() })
				conns[side] = conn
				for _, query := range []string{"CREATE TABLE t" + fmt.Sprintf(keptTable, auto), "CREATE TABLE plain_t (a INT)"} {
					mustExec(t, conn, query)
				}
			}
			texts := slices.Clone(keptTexts)
			for n := range cachedStatements {
				if n%200 == 0 { // few different statements, so that they are cached
					rnd.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
				}
				query := texts[rnd.IntN(8)]
				switch rnd.IntN(12) {
				case 0:
					query = keptBetween[rnd.IntN(len(keptBetween))]
				case 1:
					// With interpolateParams, the statement is different, and the server may
					// parse it in another way than one with placeholders.
					if i != 1 {
						query = []string{"SELECT COUNT(*), HEX(?) FROM t WHERE n = ?", "UPDATE t SET s = ? WHERE n = ?", "INSERT INTO plain_t VALUES (?)"}[rnd.IntN(3)]
					}
				}
				args := make([]any, strings.Count(strings.ReplaceAll(query, `"?"`, ""), "?"))
				for i := range args {
					args[i] = keptValue(rnd)
				}
				prepare := rnd.IntN(3) == 0 && strings.Contains(query, " INTO t")
				var seen [2]string
				for side, conn := range conns {
					seen[side] = keptOutcome(t, conn, prepare, query, args)
				}
				if seen[0] != seen[1] {
					t.Fatalf("statement %d: %s %v\nhave: %s\nwant: %s", n, query, args, seen[1], seen[0])
				}
			}
		})
	}
}

func keptValue(rnd *rand.Rand) any {
	switch rnd.IntN(11) {
	case 0:
		return nil
	case 1:
		return int64(rnd.IntN(7))
	case 2:
		return uint64(rnd.IntN(7)) + 1<<63
	case 3:
		return float64(rnd.IntN(70)) / 8
	case 4:
		return rnd.IntN(2) == 0
	case 5, 6:
		return []string{"5", "text", "", "ü", `{"a": 1}`, "2024-01-02 03:04:05"}[rnd.IntN(6)]
	case 7:
		return [][]byte{[]byte("5"), []byte("b\x01"), {}, nil}[rnd.IntN(4)]
	case 8:
		return time.Date(2024, 2, 3, 4, 5, 6, 7000, time.UTC)
	default:
		return int64(5)
	}
}

// keptOutcome returns everything that a client sees of a statement, and the table's last row. If
// prepare is set, the program prepares the statement itself.
func keptOutcome(t *testing.T, conn *sql.Conn, prepare bool, query string, args []any) string {
	t.Helper()
	exec := func() (sql.Result, error) { return conn.ExecContext(t.Context(), query, args...) }
	if prepare {
		exec = func() (sql.Result, error) {
			s, err := conn.PrepareContext(t.Context(), query)
			if err != nil {
				return nil, err
			}
			defer s.Close()
			return s.ExecContext(t.Context(), args...)
		}
	}
	var out string
	if strings.HasPrefix(query, "SELECT") {
		out = differential.ReadAll(t, conn, query, args...)
	} else if res, err := exec(); err != nil {
		// The error may contain the type that was guessed at first.
		out, _, _ = strings.Cut(differential.PlainError(err)[len("error "):], " ")
	} else {
		n, _ := res.RowsAffected()
		out = fmt.Sprint(n, " rows")
	}
	return out + "; " + differential.ReadAll(t, conn, "SELECT n, u, d, x, s, b + 0, HEX(y), ts, j FROM t ORDER BY id DESC LIMIT 2")
}

// wire counts the commands that connections send to a server.
type wire struct{ commands atomic.Int64 }

type wireConn struct {
	net.Conn
	*wire
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &wireConn{c, w}, err
}

func (c *wireConn) Write(packet []byte) (int, error) {
	const query, prepare, execute = 0x03, 0x16, 0x17
	if len(packet) > 4 && (packet[3] == 0 && packet[4] == query || packet[4] == prepare || packet[4] == execute) {
		c.commands.Add(1)
	}
	return c.Conn.Write(packet)
}

// roundTrips returns the number of commands with an answer since its last call.
func (w *wire) roundTrips() int { return int(w.commands.Swap(0)) }

// On a connection that interpolates, a text is prepared for its third execution, if its arguments have
// the same meaning in both protocols.
func TestStatements_interpolated(t *testing.T) {
	const insert = "INSERT INTO t_order (a) VALUES (?)"
	refused, notInCharset := &mysql.MySQLError{Number: 1295}, &mysql.MySQLError{Number: 3988}
	for _, of := range []struct {
		name, query string
		arg         any
		fail        []fakedb.Fault
		statements  int // max_prepared_stmt_count
		prepared    int // of 6 executions
		inText      int
	}{
		{name: "integer", query: insert, arg: 1, prepared: 1, inText: 2},
		{name: "string", query: insert, arg: "text", prepared: 1, inText: 2},
		{name: "calls without arguments", query: "INSERT INTO t_order (a, b) VALUES (?, NOW()), (DEFAULT, 1)", arg: nil, prepared: 1, inText: 2},
		{name: "float", query: insert, arg: 1.5, inText: 6},
		{name: "bytes", query: insert, arg: []byte("x"), inText: 6},
		{name: "string with an exponent", query: insert, arg: "1e5", inText: 6},
		{name: "invalid UTF-8", query: insert, arg: "\xff", inText: 6},
		{name: "large integer", query: insert, arg: uint64(1 << 63), inText: 6},
		{name: "expression", query: "INSERT INTO t_order (a) VALUES (? + 1)", arg: 1, inText: 6},
		{name: "key returned to Exec", query: "INSERT INTO t_order (a) VALUES (?) RETURNING `order_id`", arg: 1, inText: 6},
		{name: "placeholder in an upsert", query: "INSERT INTO t_order (a) VALUES (1) ON DUPLICATE KEY UPDATE a = ?", arg: 1, inText: 6},
		{name: "refused when prepared", query: insert, arg: 1, fail: []fakedb.Fault{{At: "prepare", Err: refused, Times: -1}}, inText: 6},
		{name: "no room", query: insert, arg: 1, statements: 8, fail: []fakedb.Fault{{At: "prepare", Err: &mysql.MySQLError{Number: 1461}, Times: -1}}, inText: 6},
		{name: "refused when executed", query: insert, arg: "x", fail: []fakedb.Fault{{At: "stmt exec", Err: notInCharset}}, prepared: 1, inText: 6},
		// A driver that interpolates may leave one query to a prepared statement, for example a long one.
		{name: "one left to a prepared statement", query: insert, arg: 1.5, fail: []fakedb.Fault{{At: "execContext INSERT", Err: driver.ErrSkip, Skip: 3}}, prepared: 1, inText: 6},
		{name: "forgotten by the server", query: insert, arg: 1, fail: []fakedb.Fault{{At: "stmt exec", Err: &mysql.MySQLError{Number: 1243}, Skip: 1}}, prepared: 2, inText: 2},
	} {
		t.Run(of.name, func(t *testing.T) {
			k := newKeeping(t, &fakedb.Server{Statements: max(of.statements, 1000)}, "auto").warm()
			k.base.Faults = of.fail
			for range 6 {
				k.exec(of.query, of.arg)
			}
			k.check("prepared", k.base.Prepared, of.prepared)
			k.check("sent as text", k.base.Count("execContext INSERT"), of.inText)
			k.check("executed", len(k.base.Sent), 6)
		})
	}
}

// A proxy that closes the connection when it gets a prepared statement costs no INSERT, and the
// connector soon prepares no more of them.
func TestStatements_proxyWithoutPreparedStatements(t *testing.T) {
	server := &fakedb.Server{Statements: 1000, Faults: []fakedb.Fault{{At: "prepareContext", Err: mysql.ErrInvalidConn, Times: -1}}}
	db, _ := openFake(t, server, benchRule(t), Config{Server: "mysql"})
	for i := range 100 {
		mustExec(t, db, "INSERT INTO t_order (a) VALUES (?)", i)
	}
	equal(t, len(server.Sent), 100)
	equal(t, server.Count("prepareContext"), 2)
}

// GORM reads the keys of MariaDB by RETURNING. Such a query is prepared too, unless it returns other
// columns, which may have other types then.
func TestStatements_interpolatedReturning(t *testing.T) {
	for returning, prepared := range map[string]int{"`order_id`": 1, "ORDER_ID /* c */": 1, "order_id, a": 0, "a": 0, "*": 0, "order_id + 1": 0} {
		k := newKeeping(t, &fakedb.Server{Statements: 1000}, "auto").warm()
		for range 6 {
			args := []driver.NamedValue{{Ordinal: 1, Value: int64(1)}}
			rows := must(k.conn.QueryContext(t.Context(), "INSERT INTO t_order (a) VALUES (?) RETURNING "+returning, args))(t)
			noError(t, rows.Close())
		}
		k.check("prepared with RETURNING "+returning, k.base.Prepared, prepared)
	}
}

// A statement that a program prepares and closes is cached for its next Prepare, in the same session
// and after success.
func TestStatements_preparedByThePrograms(t *testing.T) {
	onEach(t, testStatements_preparedByThePrograms)
}

func testStatements_preparedByThePrograms(t *testing.T) {
	ctx := t.Context()
	db, _ := openScripted(t, generatorRule(t, counted(), "t.id"))
	conn := must(db.Conn(ctx))(t)
	defer conn.Close()
	mustExec(t, conn, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE)")
	prepares := func() (n int) {
		noError(t, conn.QueryRowContext(ctx, "SHOW SESSION STATUS LIKE 'Com_stmt_prepare'").Scan(new(string), &n))
		return n
	}
	a := 0
	mustExec(t, conn, "INSERT INTO t (a) VALUES (?)", -1)
	mustExec(t, conn, "INSERT INTO t (a) VALUES (?)", -2) // reads the server's limit
	last := fmt.Sprint(number(t, db, "SELECT MAX(id) FROM t"))
	for _, c := range []struct {
		query   string
		between string
		arg     any // nil: a new number
		want    int // prepares of four transactions
	}{
		{query: "INSERT INTO t (a) VALUES (?)"},
		{query: "INSERT INTO t (a) VALUES (?), (NULL)", want: 1},
		{query: "INSERT INTO t (a) VALUES (? + 1)", want: 1},
		{query: "INSERT INTO t (a) VALUES (@a + ?)", want: 4},
		{query: "INSERT /* mode */ INTO t (a) VALUES (?)", between: "SET sql_mode = ''", want: 4},
		{query: "INSERT /* names */ INTO t (a) VALUES (?)", between: "SET NAMES latin1", want: 4},
		{query: "INSERT /* failing */ INTO t (a) VALUES (?)", arg: -1, want: 4},
	} {
		before := prepares()
		for range 4 {
			a++
			tx := must(conn.BeginTx(ctx, nil))(t)
			st := must(tx.PrepareContext(ctx, c.query))(t)
			if c.between != "" {
				mustExec(t, tx, c.between)
			}
			res, err := st.ExecContext(ctx, cmp.Or(c.arg, any(a)))
			noError(t, tx.Commit())
			if equal(t, err != nil, c.arg != nil, c.query); err == nil {
				equal(t, must(res.LastInsertId())(t), number(t, db, "SELECT MIN(id) FROM t WHERE id > "+last), c.query)
				last = fmt.Sprint(number(t, db, "SELECT MAX(id) FROM t"))
			}
		}
		equal(t, prepares()-before, c.want, c.query)
	}
}
