package segment

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/sqlstate"
	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// maxIncrement is MySQL's maximum of auto_increment_increment.
const maxIncrement = 65535

// newTicket returns a generator with these properties. Without dsns it uses the connector's own
// database. If there is no connector, the first key returns an error. newTicket itself doesn't,
// because a rule is also checked without a connector.
func newTicket(p spi.Props) (spi.KeyGenerator, error) {
	table := p.String("table", "Tickets64") // Flickr's name
	quoted, ok := mysqldb.QuoteTable(table)
	if !ok {
		return nil, p.Wrong("table", "table or schema.table")
	}
	dsns := p.Secrets("dsns")
	if dsns == nil && p.HostDSN().Reveal() != "" {
		dsns = []spi.Secret{p.HostDSN()}
	}
	least := max(1, int64(len(dsns)))
	increment, err := p.Int("increment", least, least, maxIncrement)
	if err != nil {
		return nil, err
	}
	offsets, err := ticketOffsets(p, len(dsns), increment)
	if err != nil {
		return nil, err
	}
	batch, err := p.Int("batch", 1, 1, maxKeys)
	if err != nil {
		return nil, err
	}
	s := settings{
		words:   ticketWords(table, quoted),
		state:   sqlstate.Table{Kind: sqlstate.Tickets, Name: table},
		maxStep: batch, limit: maxKeys, clock: p.Clock(), logger: p.Logger(),
		sizes: fmt.Sprintf("increment %d, batch %d", increment, batch),
	}
	if s.timeout, err = p.Duration("timeout", 2*time.Second, time.Millisecond, math.MaxInt64); err != nil {
		return nil, err
	}
	var all []*server
	peers := &[]*ticketTable{}
	for i, dsn := range dsns {
		t := &ticketTable{table: quoted, increment: increment, batch: batch, want: offsets[i], peers: peers}
		if err := t.open(dsn, s); err != nil {
			return nil, err
		}
		*peers = append(*peers, t)
		all = append(all, t.server)
	}
	return newGenerator(s, all), nil
}

func ticketWords(table, quoted string) words {
	return words{
		title:   "TICKET " + table,
		address: "dsns",
		grant:   "SELECT, INSERT, DELETE, LOCK TABLES ON the database of " + quoted,
		end:     "the AUTO_INCREMENT column has no numbers left; make it bigint unsigned, or use another table",
		ddl: "CREATE TABLE " + quoted +
			" (id bigint unsigned NOT NULL AUTO_INCREMENT, stub char(1) NOT NULL DEFAULT '', " +
			"PRIMARY KEY (id), UNIQUE KEY stub (stub)) ENGINE=InnoDB",
	}
}

// open sets the table's server, without connecting to it.
func (t *ticketTable) open(dsn spi.Secret, s settings) error {
	cfg, err := parseTicketDSN(dsn.Reveal(), s.timeout)
	if err != nil {
		return err
	}
	if t.server, err = newServer("dsns", cfg, s); err != nil {
		return err
	}
	t.server.claim = t
	return nil
}

// ticketOffsets returns the auto_increment_offset that each server must have, or 0 for any.
func ticketOffsets(p spi.Props, servers int, increment int64) ([]int64, error) {
	offsets := make([]int64, servers)
	items := p.List("offsets")
	if len(items) > 0 && len(items) != servers {
		return nil, p.Wrong("offsets", fmt.Sprintf("one offset for each of the %d dsns", servers))
	}
	seen := map[int64]bool{}
	for i, item := range items {
		o, err := strconv.ParseInt(item, 10, 64)
		if err != nil || o < 1 || o > increment || seen[o] {
			return nil, p.Wrong("offsets", fmt.Sprintf("different integers in 1..%d", increment))
		}
		offsets[i], seen[o] = o, true
	}
	return offsets, nil
}

// parseTicketDSN returns the configuration of the connection to a server. It limits lock waits to
// the timeout. Otherwise a statement that is no longer needed would still wait for its lock, and
// other statements would wait behind it.
func parseTicketDSN(dsn string, timeout time.Duration) (*mysql.Config, error) {
	if dsn == "" {
		// go-sql-driver would connect as root to 127.0.0.1.
		return nil, &spi.PropError{Name: "dsns", Want: "no empty item"}
	}
	cfg, err := mysqldb.ParseDSN("dsns", dsn, "user:pass@tcp(127.0.0.1:3306)/tickets")
	if err != nil {
		return nil, err
	}
	cfg.MultiStatements = true // for a fixed statement without input
	wait := fmt.Sprint(lockWait(timeout))
	mysqldb.SetSession(cfg, map[string]string{"lock_wait_timeout": wait, "innodb_lock_wait_timeout": wait})
	return cfg, nil
}

// lockWait returns a timeout in whole seconds, within the server's limits:
// https://dev.mysql.com/doc/refman/en/server-system-variables.html#sysvar_lock_wait_timeout
func lockWait(timeout time.Duration) int64 {
	const most = 31536000
	return max(1, min(int64((timeout-1)/time.Second)+1, most))
}

// ticketTable claims numbers from the AUTO_INCREMENT column of a ticket table.
type ticketTable struct {
	*server
	table     string // quoted
	increment int64
	batch     int64
	want      int64           // the offset that the server must have; 0 for any
	peers     *[]*ticketTable // ticket tables of all servers

	// Set by the checks of the connection.
	offset int64  // 0 until it is known and valid
	column string // quoted name of the AUTO_INCREMENT column
	limit  int64  // the first number that must not be used
	noLock bool   // the server doesn't lock tables for this user

	last int64 // the highest number handed out
}

func (t *ticketTable) step() int64 { return t.batch }

func (t *ticketTable) claim(ctx context.Context, conn *sql.Conn, n int64) (run, error) {
	r, err := t.replace(ctx, conn, n)
	if err == nil {
		err = t.accept(r)
	}
	return r, err
}

// accept checks numbers before they become keys.
func (t *ticketTable) accept(r run) error {
	last := r.first + (r.count-1)*r.stride
	switch {
	case r.first == 0:
		return t.storeError(nil, "REPLACE returned no LAST_INSERT_ID; add an AUTO_INCREMENT column to the table")
	case r.first < 0 || last < r.first || last >= t.limit:
		return t.storeError(errExhausted, "%s", t.end)
	case (r.first-t.offset)%t.increment != 0:
		return t.storeError(errSettings, "the server returned %d, which doesn't fit its auto_increment_increment %d and auto_increment_offset %d; "+
			"set both on the server", r.first, t.increment, t.offset)
	case r.first <= t.last:
		// If the server were used further, it would repeat numbers that others have.
		t.refused = t.storeError(errRepeated, "the server returned %d after %d; set AUTO_INCREMENT of the table above all keys in use "+
			"and restart the program", r.first, t.last)
		return t.refused
	}
	t.last = last
	return nil
}

// connected checks the settings of a connection. A connection keeps its settings even if the
// server's change.
func (t *ticketTable) connected(ctx context.Context, conn *sql.Conn) error {
	t.offset = 0
	offset, err := t.readSettings(ctx, conn)
	if err != nil {
		return err
	}
	if err := t.readColumns(ctx, conn); err != nil {
		return err
	}
	t.offset = offset
	for _, other := range *t.peers {
		if other != t && other.offset == offset {
			t.offset, other.offset = 0, 0
			other.disconnect() // so that a repair is noticed
			return t.storeError(errSettings, "auto_increment_offset is %d, as on %s; set a different offset on each server",
				offset, other.name)
		}
	}
	return nil
}

func (t *ticketTable) readSettings(ctx context.Context, conn *sql.Conn) (offset int64, err error) {
	var increment int64
	var version string
	const query = "SELECT @@auto_increment_increment, @@auto_increment_offset, VERSION()"
	err = conn.QueryRowContext(ctx, query).Scan(&increment, &offset, &version)
	if err != nil {
		return 0, err
	}
	// TiDB ignores LOCK TABLES unless it is enabled:
	// https://docs.pingcap.com/tidb/stable/sql-statement-lock-tables-and-unlock-tables/
	t.noLock = strings.Contains(strings.ToLower(version), "tidb")
	switch {
	case increment != t.increment:
		return 0, t.storeError(errSettings, "auto_increment_increment: expected %[2]d, found %[1]d; set it, or the property increment",
			increment, t.increment)
	case offset > increment:
		// The server would ignore such an offset and count from 1.
		return 0, t.storeError(errSettings, "auto_increment_offset: expected at most auto_increment_increment %[2]d, found %[1]d; "+
			"set it to a value in 1..%[2]d", offset, increment)
	case t.want != 0 && offset != t.want:
		return 0, t.storeError(errSettings, "auto_increment_offset: expected %[2]d, found %[1]d; set it, or the property offsets",
			offset, t.want)
	}
	return offset, nil
}

// readColumns finds the AUTO_INCREMENT column and the end of its type.
func (t *ticketTable) readColumns(ctx context.Context, conn *sql.Conn) error {
	rows, err := conn.QueryContext(ctx, "SHOW COLUMNS FROM "+t.table)
	if err != nil {
		return err
	}
	defer rows.Close()
	t.column = ""
	for rows.Next() {
		var field, typ, extra string
		var null, key, def sql.NullString
		if err := rows.Scan(&field, &typ, &null, &key, &def, &extra); err != nil {
			return err
		}
		if strings.Contains(strings.ToLower(extra), "auto_increment") {
			t.column, t.limit = mysqldb.QuoteName(field), columnEnd(typ)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if t.column == "" {
		return t.storeError(nil, "the table has no AUTO_INCREMENT column; create the table with %s", t.ddl)
	}
	return nil
}

// noEnd is the limit of a 64-bit column, because keys are int64.
const noEnd = math.MaxInt64

// columnEnd returns the largest value of an integer type, at which AUTO_INCREMENT stays.
func columnEnd(typ string) int64 {
	typ = strings.ToLower(typ)
	name := strings.FieldsFunc(typ+" ", func(r rune) bool { return r == '(' || r == ' ' })[0]
	bits := map[string]uint{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32}[name]
	switch {
	case bits == 0:
		return noEnd
	case strings.Contains(typ, "unsigned"):
		return 1<<bits - 1
	}
	return 1<<(bits-1) - 1
}

// replace claims n numbers with REPLACE statements.
func (t *ticketTable) replace(ctx context.Context, conn *sql.Conn, n int64) (run, error) {
	switch {
	case n > 1 && t.noLock:
		return t.replaceRows(ctx, conn, n)
	case n > 1:
		return t.replaceBlock(ctx, conn, n)
	}
	first, err := insertID(conn.ExecContext(ctx, "REPLACE INTO "+t.table+" (stub) VALUES ('a')"))
	return run{first, 1, t.increment}, err
}

func insertID(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// replaceBlock claims n numbers, n > 1, while the table is locked. It takes the first number. Then
// it sets the row to the last number but one, which advances AUTO_INCREMENT, and takes the last
// number. The three statements are one transaction, which is committed before the table is
// unlocked. All statements are sent in one packet, so a process that is stopped in between leaves
// no lock. After an error the connection is closed, which rolls back and unlocks.
func (t *ticketTable) replaceBlock(ctx context.Context, conn *sql.Conn, n int64) (run, error) {
	_, err := conn.ExecContext(ctx, strings.NewReplacer(
		"{table}", t.table, "{id}", t.column, "{jump}", fmt.Sprint((n-2)*t.increment),
	).Replace("LOCK TABLES {table} WRITE; SET autocommit = 0; "+
		"REPLACE INTO {table} (stub) VALUES ('a'); SET @shardkey_first = LAST_INSERT_ID(); "+
		"REPLACE INTO {table} ({id}, stub) VALUES (@shardkey_first + {jump}, 'a'); "+
		"REPLACE INTO {table} (stub) VALUES ('a'); COMMIT; UNLOCK TABLES; SET autocommit = 1"))
	switch mysqldb.Number(err) {
	case sqlerr.DatabaseDenied, sqlerr.TableDenied, sqlerr.NotSupported:
		// LOCK TABLES, the first statement, isn't permitted, so nothing has been changed.
		t.noLock = true
		return t.replaceRows(ctx, conn, n)
	}
	if err != nil {
		return run{}, err
	}
	var first, last uint64
	if err := conn.QueryRowContext(ctx, "SELECT @shardkey_first, LAST_INSERT_ID()").Scan(&first, &last); err != nil {
		return run{}, err
	}
	if last != first+uint64((n-1)*t.increment) {
		return run{}, t.storeError(nil, "AUTO_INCREMENT didn't continue after an explicit id: expected the next number after %d, found %d; "+
			"set batch to 1, and insert one row per statement", first, last)
	}
	return run{int64(first), n, t.increment}, nil
}

// maxRows limits the rows of a REPLACE, because its time grows with their square.
const maxRows = 1000

// errScattered is the error if the numbers of one statement may not be consecutive.
var errScattered = errors.New("the ids of one REPLACE are not consecutive; GRANT LOCK TABLES")

// replaceRows claims n numbers with one REPLACE of n rows, each of which replaces the previous one.
// MySQL's manual guarantees consecutive ids, and the id of the remaining row proves it. The
// transaction locks that row. Without transactions (MyISAM), another process's REPLACE may come
// before the check, which then fails although the numbers are correct.
func (t *ticketTable) replaceRows(ctx context.Context, conn *sql.Conn, n int64) (run, error) {
	if n > maxRows {
		return run{}, t.storeError(nil, "%d numbers in one call need LOCK TABLES, which the server refused; "+
			"GRANT LOCK TABLES, or request at most %d", n, maxRows)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return run{}, err
	}
	defer tx.Rollback()
	rows := strings.Repeat("('a'),", int(n))
	first, err := insertID(tx.ExecContext(ctx, "REPLACE INTO "+t.table+" (stub) VALUES "+rows[:len(rows)-1]))
	if err != nil {
		return run{}, err
	}
	var last uint64
	if err := tx.QueryRowContext(ctx, "SELECT "+t.column+" FROM "+t.table+" WHERE stub = 'a'").Scan(&last); err != nil {
		return run{}, err
	}
	if err := tx.Commit(); err != nil {
		return run{}, err
	}
	if last != uint64(first)+uint64((n-1)*t.increment) {
		return run{}, errScattered
	}
	return run{first, n, t.increment}, nil
}
