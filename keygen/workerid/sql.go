package workerid

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/internal/sqlstate"
	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// sqlStore keeps records in the rows of a table of MySQL, MariaDB, TiDB or another server with
// their protocol.
type sqlStore struct {
	db        *sql.DB
	connector driver.Connector // connector of db
	server    string           // its address and database
	namespace string
	name      string      // name of the table
	table     string      // quoted name
	where     string      // for Info.Name
	keyed     atomic.Bool // the table is known to have its primary key
}

// maxConns limits the store's own pool. A lease needs a connection only while it is being renewed.
const maxConns = 4

// maxIdle is longer than the default renew, so that renewals reuse a connection. With a longer
// renew, thousands of processes hold no idle connections.
const maxIdle = 15 * time.Second

// NewSQLStore returns a [Store] that keeps records in a table of the database that dsn names, in
// the form of go-sql-driver/mysql. The table may be qualified with a schema, and is created if it
// is missing. The store has its own small connection pool, so its writes are never part of the
// application's transactions. The error is a [*spi.PropError].
func NewSQLStore(dsn, table, namespace string) (Store, Info, error) {
	config, err := mysqldb.ParseDSN("dsn", dsn, "user:pass@tcp(127.0.0.1:3306)/app")
	if err != nil {
		return nil, Info{}, err
	}
	config.RejectReadOnly = true // after a failover, look for the new primary
	quoted, ok := mysqldb.QuoteTable(table)
	wrongTable := func(want string) error { return &spi.PropError{Name: "table", Value: table, Want: want} }
	switch {
	case !ok:
		return nil, Info{}, wrongTable("table or schema.table")
	case config.DBName == "" && !strings.Contains(table, "."):
		return nil, Info{}, wrongTable("schema." + table + ", because the DSN has no database")
	}
	connector, err := mysqldb.NewConnector("dsn", config)
	if err != nil {
		return nil, Info{}, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(maxConns)
	db.SetConnMaxLifetime(10 * time.Minute)
	db.SetConnMaxIdleTime(maxIdle)
	s := &sqlStore{
		db: db, connector: connector, server: mysqldb.Name(config),
		namespace: namespace, name: table, table: quoted,
		where: fmt.Sprintf("SQL %s/%s table %s", config.Addr, config.DBName, table),
	}
	return s, s.info(), nil
}

func (s *sqlStore) info() Info {
	return Info{Name: s.where, Now: s.now, serverID: s.ServerID, notes: s.notes()}
}

func (s *sqlStore) Close() error { return s.db.Close() }

func (s *sqlStore) List(ctx context.Context) ([]Entry, error) {
	return s.read(ctx, "")
}

func (s *sqlStore) Get(ctx context.Context, workerID int64) (Record, error) {
	entries, err := s.read(ctx, " AND worker_id = ?", workerID)
	if err != nil || len(entries) == 0 {
		return Record{}, err
	}
	return entries[0].Record, entries[0].Err
}

// read reads the rows of the namespace that match the condition more. A missing table has no rows.
func (s *sqlStore) read(ctx context.Context, more string, args ...any) ([]Entry, error) {
	entries, err := s.query(ctx, more, args...)
	if mysqldb.Number(err) == mysqldb.ErrNoSuchTable {
		return nil, nil
	}
	return entries, s.columnError(err)
}

func (s *sqlStore) query(ctx context.Context, more string, args ...any) ([]Entry, error) {
	query := "SELECT worker_id, " + columns + " FROM " + s.table + " WHERE namespace = ?" + more
	rows, err := s.db.QueryContext(ctx, query, append([]any{s.namespace}, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var entries []Entry
	seen := map[int64]bool{}
	for rows.Next() {
		var id int64
		var row recordRow
		if err := rows.Scan(append([]any{&id}, row.fields()...)...); err != nil {
			return nil, err
		}
		if seen[id] {
			return nil, s.doubled(id)
		}
		seen[id] = true
		record, err := row.record(id)
		entries = append(entries, Entry{id, record, err})
	}
	return entries, rows.Err()
}

func (s *sqlStore) CompareAndSet(ctx context.Context, workerID int64, prev, next Record) (swapped bool, err error) {
	err = s.withTable(ctx, func() error {
		if prev.IsZero() {
			swapped, err = s.create(ctx, workerID, next)
		} else {
			swapped, err = s.update(ctx, workerID, prev, next)
		}
		return err
	})
	return swapped, err
}

// create inserts a row. It returns false for a duplicate key, which is another owner's row.
func (s *sqlStore) create(ctx context.Context, workerID int64, r Record) (bool, error) {
	_, err := s.db.ExecContext(ctx,
		"INSERT INTO "+s.table+" (namespace, worker_id, "+columns+") VALUES (?, ?, ?, ?, ?, ?, ?)",
		s.namespace, workerID, r.Owner, r.ReservedUntil, r.FreeFrom, r.Holder, r.Since)
	if mysqldb.Number(err) == mysqldb.ErrDuplicateKey {
		return false, nil
	}
	return err == nil, err
}

// update replaces a row and returns whether it changed. The owner's token always changes, so the
// result is the same with and without clientFoundRows.
func (s *sqlStore) update(ctx context.Context, workerID int64, prev, next Record) (bool, error) {
	res, err := s.db.ExecContext(ctx, "UPDATE "+s.table+
		" SET owner = ?, reserved_until = ?, free_from = ?, holder = ?, since = ?"+
		" WHERE namespace = ? AND worker_id = ? AND owner = ? AND reserved_until = ?",
		next.Owner, next.ReservedUntil, next.FreeFrom, next.Holder, next.Since,
		s.namespace, workerID, prev.Owner, prev.ReservedUntil)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	if n > 1 {
		return false, s.doubled(workerID)
	}
	return n == 1 && err == nil, err
}

// now returns the server's time, or the zero time if it isn't known.
func (s *sqlStore) now(ctx context.Context) (time.Time, error) {
	var ms sql.NullInt64
	err := s.db.QueryRowContext(ctx, "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)").Scan(&ms)
	if err != nil || ms.Int64 <= 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(ms.Int64), nil
}

// ServerID returns the name of the server that answers.
func (s *sqlStore) ServerID(ctx context.Context) (string, error) { return mysqldb.ServerID(ctx, s.db) }

// notes returns a store in the same table. The namespace of a rule can't begin with '#'.
func (s *sqlStore) notes() Store {
	name := "#" + s.namespace
	if len(name) > maxNamespace {
		sum := sha256.Sum256([]byte(s.namespace))
		name = "#" + hex.EncodeToString(sum[:16])
	}
	return &sqlStore{db: s.db, namespace: name, table: s.table, where: s.where}
}

// recordRow is a row of the table. Columns may be NULL if the row was edited manually.
type recordRow struct {
	owner, holder                  sql.NullString
	reservedUntil, freeFrom, since sql.NullInt64
}

func (r *recordRow) fields() []any {
	return []any{&r.owner, &r.reservedUntil, &r.freeFrom, &r.holder, &r.since}
}

func (r *recordRow) record(workerID int64) (Record, error) {
	record := Record{
		Owner: r.owner.String, ReservedUntil: r.reservedUntil.Int64, FreeFrom: r.freeFrom.Int64,
		Holder: r.holder.String, Since: r.since.Int64,
	}
	if err := record.check(); err != nil {
		return Record{}, &ForeignRecordError{WorkerID: workerID, Value: fmt.Sprintf("%+v", record), Err: err}
	}
	return record, nil
}

var _ sqlstate.Keeper = (*assigner)(nil)

// SQLState returns the table of a SQL store.
func (a *assigner) SQLState() []sqlstate.Table {
	s, ok := a.store.(*sqlStore)
	if !ok {
		return nil
	}
	return []sqlstate.Table{{
		Kind: sqlstate.Leases, Connector: s.connector, Server: s.server, Name: s.name,
		Key: s.namespace, DDL: tableDDL(s.table),
	}}
}
