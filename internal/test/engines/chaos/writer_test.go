//go:build linux

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// record is a row, as recorded by its writer or as read from a table.
type record struct {
	token int64 // chosen by the writer; the lowest bit is the index of the table
	key   int64 // 0 if it wasn't reported
}

// writtenTables are the tables of writers. The first is sharded by the token, so that it can
// contain a duplicate key. The second is sharded by the key.
var writtenTables = [2]string{"by_token", "by_key"}

// writer contains the instructions for a process that writes rows through shardkey.
type writer struct {
	DSN     string // of go-sql-driver
	Leases  string // database with the worker IDs
	Process int64  // unique number, for tokens
	// Conflicts selects updates of neighboring rows, which conflict between nodes.
	Conflicts bool
}

const writersRule = `
rules:
- !SHARDING
  tables:
    by_token: {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
    by_key:   {keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: leases}}
  workerIdAssigners:
    leases: {type: SQL, props: {dsn: %q, namespace: chaos, lease: 5s, renew: 1s}}
`

const writersEach = 6 // goroutines of a process

// work writes rows until it reads "quit" or the end of standard input. It writes the token and
// key of each acknowledged row to standard output, eight bytes each.
func (w *writer) work() error {
	// Broken connections are expected here, and standard error is for errors.
	_ = mysql.SetLogger(&mysql.NopLogger{})
	slog.SetDefault(slog.New(slog.DiscardHandler))
	r, err := rule.Parse("chaos.yaml", fmt.Appendf(nil, writersRule, w.Leases))
	if err != nil {
		return err
	}
	if err := driver.RegisterRule("chaos", r); err != nil {
		return err
	}
	db, err := sql.Open("shardkey", w.DSN+"?timeout=2s&readTimeout=10s&writeTimeout=10s&rejectReadOnly=true&shardkeyRule=chaos")
	if err != nil {
		return err
	}
	db.SetMaxIdleConns(writersEach)
	ctx, quit := context.WithCancel(context.Background())
	go func() {
		defer quit()
		bufio.NewScanner(os.Stdin).Scan()
	}()
	p := &writing{writer: w, db: db}
	var all sync.WaitGroup
	for range writersEach {
		all.Go(func() { p.loop(ctx) })
	}
	all.Wait()
	return db.Close()
}

// writing is the state of a running writer.
type writing struct {
	*writer
	db     *sql.DB
	tokens atomic.Int64
	known  atomic.Int64 // an acknowledged token of the first table
	out    sync.Mutex
}

func (p *writing) loop(ctx context.Context) {
	for ctx.Err() == nil {
		// Each statement runs to its end, so that only faults interrupt statements.
		if err := p.write(context.Background()); err != nil {
			reportAs(kindOfWrite(err), err)
			_ = spi.SystemClock.Sleep(ctx, 50*time.Millisecond)
		}
	}
}

// token returns a new token for a table.
func (p *writing) token(table int) int64 {
	return p.Process<<32 | p.tokens.Add(1)<<1 | int64(table)
}

// write writes a few rows in one of several ways, and reports them.
func (p *writing) write(ctx context.Context) error {
	table := rand.IntN(len(writtenTables))
	switch n := rand.IntN(10); {
	case n < 2:
		return p.acknowledge(p.insert(ctx, p.db, table, 1))
	case n < 4:
		return p.acknowledge(p.insert(ctx, p.db, table, 2+rand.IntN(10)))
	case n < 5:
		return p.acknowledge(p.literal(ctx, table))
	case n < 6:
		return p.acknowledge(p.prepared(ctx, table))
	case n < 7:
		return p.acknowledge(p.insertWithExisting(ctx, "INSERT IGNORE INTO by_token (token, a) VALUES (?, 1), (?, 2)"))
	case n < 8:
		return p.acknowledge(p.insertWithExisting(ctx, "INSERT INTO by_token (token, a) VALUES (?, 1), (?, 2) ON DUPLICATE KEY UPDATE a = a + 1"))
	case n < 9:
		return p.acknowledge(p.query(ctx, table))
	default:
		return p.acknowledge(p.transaction(ctx))
	}
}

// execer is a sql.DB or a sql.Tx.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (p *writing) insert(ctx context.Context, to execer, table, rows int) ([]record, error) {
	var tokens []int64
	var args []any
	for range rows {
		token := p.token(table)
		tokens, args = append(tokens, token), append(args, token)
	}
	text := "INSERT INTO " + writtenTables[table] + " (token, a) VALUES (?, 1)" + strings.Repeat(", (?, 1)", rows-1)
	return execute(ctx, to, tokens, text, args...)
}

func (p *writing) literal(ctx context.Context, table int) ([]record, error) {
	tokens := []int64{p.token(table), p.token(table)}
	return execute(ctx, p.db, tokens, fmt.Sprintf("INSERT INTO %s (id, token, a) VALUES (NULL, %d, 1), (0, %d, 2)", writtenTables[table], tokens[0], tokens[1]))
}

func (p *writing) prepared(ctx context.Context, table int) ([]record, error) {
	stmt, err := p.db.PrepareContext(ctx, "INSERT INTO "+writtenTables[table]+" (token, a) VALUES (?, ?)")
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	var all []record
	for i := range 3 {
		token := p.token(table)
		rows, err := execute(ctx, prepared{stmt}, []int64{token}, "", token, i)
		if all = append(all, rows...); err != nil {
			return all, err
		}
	}
	return all, nil
}

// prepared executes its statement and ignores the query.
type prepared struct{ *sql.Stmt }

func (p prepared) ExecContext(ctx context.Context, _ string, args ...any) (sql.Result, error) {
	return p.Stmt.ExecContext(ctx, args...)
}

// insertWithExisting inserts a row together with a row that already exists.
func (p *writing) insertWithExisting(ctx context.Context, text string) ([]record, error) {
	known := p.known.Load()
	if known == 0 {
		return p.insert(ctx, p.db, 0, 1)
	}
	token := p.token(0)
	rows, err := execute(ctx, p.db, []int64{known, token}, text, known, token)
	if err != nil {
		return nil, err
	}
	if rows[0].key == 0 {
		rows = rows[1:] // the existing row has its own record
	}
	return rows, nil
}

// query inserts rows with consecutive tokens from a query.
func (p *writing) query(ctx context.Context, table int) ([]record, error) {
	const rows = 3 // rows of table numbers: 0, 1, 2
	tokens := make([]int64, rows)
	tokens[0] = p.Process<<32 | (p.tokens.Add(rows)-rows+1)<<1 | int64(table)
	for i := range tokens {
		tokens[i] = tokens[0] + int64(2*i)
	}
	return execute(ctx, p.db, tokens, "INSERT INTO "+writtenTables[table]+" (token, a) SELECT n * 2 + ?, 1 FROM numbers ORDER BY n", tokens[0])
}

func (p *writing) transaction(ctx context.Context) ([]record, error) {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	if p.Conflicts {
		if _, err := tx.ExecContext(ctx, "UPDATE numbers SET a = a + 1 WHERE n = ?", rand.IntN(3)); err != nil {
			return nil, err
		}
	}
	var all []record
	for table := range writtenTables {
		for _, n := range []int{1, 3} {
			rows, err := p.insert(ctx, tx, table, n)
			if err != nil {
				return nil, err
			}
			all = append(all, rows...)
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, err // the rows may exist, but the database hasn't acknowledged them
	}
	return all, nil
}

// execute executes an INSERT of rows with tokens, and returns the rows with their keys.
func execute(ctx context.Context, to execer, tokens []int64, text string, args ...any) ([]record, error) {
	var keys driver.Keys
	res, err := to.ExecContext(driver.WithKeys(ctx, &keys), text, args...)
	if err != nil {
		return nil, err
	}
	rows := make([]record, len(tokens))
	values := keys.Values()
	for i, token := range tokens {
		rows[i].token = token
		if i < len(values) && values[i] != nil {
			rows[i].key = values[i].(int64)
		}
	}
	if id, err := res.LastInsertId(); err != nil || id != 0 && len(values) > 0 && values[0] != nil && id != values[0] && !strings.Contains(text, "DUPLICATE") {
		return rows, fmt.Errorf("%w: LastInsertId is %d, %v, and the keys %v", errWrong, id, err, values)
	}
	return rows, nil
}

// errWrong is the error for a wrong LastInsertId or key.
var errWrong = errors.New("a wrong report")

// kindOfWrite returns the kind of an INSERT's error. An error is undocumented unless a failing
// database or a documented error of a generator explains it. So is a duplicate key error, because
// tokens are unique.
func kindOfWrite(err error) string {
	if k := kind(err); k != undocumented {
		return k
	}
	var answer *mysql.MySQLError
	switch {
	case errors.Is(err, errWrong) || errors.Is(err, driver.ErrUnsupportedStatement):
	case errors.As(err, &answer) && answer.Number != duplicateEntry:
		return fmt.Sprint(answer.Number)
	case errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, sqldriver.ErrBadConn), errors.As(err, new(net.Error)), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection"
	}
	return undocumented
}

const duplicateEntry = 1062

// acknowledge reports rows that are in the database.
func (p *writing) acknowledge(rows []record, err error) error {
	if err != nil && !errors.Is(err, errWrong) && len(rows) == 0 {
		return err
	}
	buffer := make([]byte, 0, 16*len(rows))
	for _, r := range rows {
		buffer = binary.BigEndian.AppendUint64(buffer, uint64(r.token))
		buffer = binary.BigEndian.AppendUint64(buffer, uint64(r.key))
		if r.token&1 == 0 && r.key != 0 {
			p.known.Store(r.token)
		}
	}
	p.out.Lock()
	defer p.out.Unlock()
	if _, writeErr := os.Stdout.Write(buffer); writeErr != nil {
		os.Exit(1) // the parent has ended
	}
	return err
}

// removers remove all records of a store, as an operator may do by mistake.
var removers = map[string]func(where string) error{
	"FILE": func(dir string) error {
		namespaces, err := os.ReadDir(dir)
		for _, n := range namespaces {
			for os.RemoveAll(path.Join(dir, n.Name())) != nil { // a process has written a file meanwhile
			}
		}
		return err
	},
	"SQL": func(addr string) error {
		db, err := sql.Open("mysql", "root@tcp("+addr+")/chaos")
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.Exec("TRUNCATE TABLE shardkey_worker")
		return err
	},
	"REDIS": func(addr string) error {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		answer := make([]byte, 5)
		if _, err := fmt.Fprint(c, "FLUSHALL\r\n"); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "+OK\r\n" {
			return fmt.Errorf("FLUSHALL: %q, %w", answer, err)
		}
		return nil
	},
	"ETCD": func(addr string) error {
		// "AA==" is a zero byte, which as key and end means all keys.
		res, err := http.Post("http://"+strings.TrimPrefix(addr, "http://")+"/v3/kv/deleterange", "application/json",
			bytes.NewReader([]byte(`{"key": "AA==", "range_end": "AA=="}`)))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("deleterange: %s", res.Status)
		}
		return nil
	},
	"ZOOKEEPER": func(addr string) error {
		c, _, err := zk.Connect([]string{addr}, 5*time.Second, zk.WithLogInfo(false))
		if err != nil {
			return err
		}
		defer c.Close()
		return removeNodes(c, "/shardkey")
	},
}

// removeNodes removes a node and all below it.
func removeNodes(c *zk.Conn, node string) error {
	for {
		names, _, err := c.Children(node)
		if err == zk.ErrNoNode {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := removeNodes(c, path.Join(node, name)); err != nil {
				return err
			}
		}
		if err := c.Delete(node, -1); err != zk.ErrNotEmpty && err != zk.ErrBadVersion {
			return err
		}
	}
}

// All records are removed again and again, also of leases that are a moment old. Processes that
// start then lease the worker IDs of live ones. No key repeats.
func TestRemovedRecords(t *testing.T) {
	for _, s := range subjects {
		remove := removers[s.name]
		if remove == nil || *only != "" && !slices.Contains(strings.Split(*only, ","), s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			r := newRun(t, s)
			a := newAgent(r, *seed, r.slots)
			r.agents = []*agent{a}
			r.try(func() {
				a.recover("start", a.slots...)
				for end := time.Now().Add(*duration / 2); time.Now().Before(end) && a.stuck == nil; {
					wait(rand.N(2 * lease))
					must.Do(t, remove(r.where))
					one := a.slots[a.rng.IntN(len(a.slots))]
					a.restart(one, "records removed", one.kill, 0)
				}
			})
		})
	}
}
