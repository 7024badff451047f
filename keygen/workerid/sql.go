package workerid

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/internal/sqlerr"
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
	database  string      // of the DSN
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

// newSQLStore returns a [Store] that keeps records in a table of the database that dsn names, in
// the form of go-sql-driver/mysql. The table may be qualified with a schema, and is created if it
// is missing. The store has its own small connection pool, so its writes are never part of the
// application's transactions. The error is a [*spi.PropError].
func newSQLStore(dsn, table, namespace string) (Store, Info, error) {
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
		return nil, Info{}, &spi.PropError{Name: "dsn", Want: "a DSN with a database: add it after the last slash, " +
			"user:password@tcp(host:3306)/database; or write the table as schema." + table}
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
		namespace: namespace, database: config.DBName, name: table, table: quoted,
		where: fmt.Sprintf("SQL %s/%s table %s", config.Addr, config.DBName, table),
	}
	return s, s.info(), nil
}

func (ss *sqlStore) info() Info {
	return Info{Name: ss.where, Now: ss.now, Warnings: ss.warnings, serverID: ss.ServerID, notes: ss.notes()}
}

func (ss *sqlStore) Close() error { return ss.db.Close() }

func (ss *sqlStore) List(ctx context.Context) ([]Entry, error) {
	return ss.read(ctx, "")
}

func (ss *sqlStore) Get(ctx context.Context, workerID int64) (Record, error) {
	entries, err := ss.read(ctx, " AND worker_id = ?", workerID)
	if err != nil || len(entries) == 0 {
		return Record{}, err
	}
	return entries[0].Record, entries[0].Err
}

// read reads the rows of the namespace that match the condition more. A missing table has no rows.
func (ss *sqlStore) read(ctx context.Context, more string, args ...any) ([]Entry, error) {
	entries, err := ss.query(ctx, more, args...)
	if mysqldb.Number(err) == sqlerr.UnknownTable {
		return nil, nil
	}
	return entries, ss.columnError(err)
}

func (ss *sqlStore) query(ctx context.Context, more string, args ...any) ([]Entry, error) {
	query := "SELECT worker_id, " + notNull + " FROM " + ss.table + " WHERE namespace = ?" + more
	rows, err := ss.db.QueryContext(ctx, query, append([]any{ss.namespace}, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var entries []Entry
	seen := map[int64]bool{}
	for rows.Next() {
		var id int64
		var r Record
		if err := rows.Scan(&id, &r.Owner, &r.ReservedUntil, &r.FreeFrom, &r.Holder, &r.Since); err != nil {
			return nil, err
		}
		if seen[id] {
			return nil, ss.doubled(id)
		}
		seen[id] = true
		e := Entry{WorkerID: id, Record: r}
		if err := r.check(); err != nil {
			e = Entry{id, Record{}, &ForeignRecordError{WorkerID: id, Value: fmt.Sprintf("%+v", r), Err: err}}
		}
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

func (ss *sqlStore) CompareAndSet(ctx context.Context, workerID int64, prev, next Record) (swapped bool, err error) {
	err = ss.withTable(ctx, func() error {
		if prev.IsZero() {
			swapped, err = ss.create(ctx, workerID, next)
		} else {
			swapped, err = ss.update(ctx, workerID, prev, next)
		}
		return err
	})
	return swapped, err
}

// create inserts a row. It returns false for a duplicate key, which is another owner's row.
func (ss *sqlStore) create(ctx context.Context, workerID int64, r Record) (bool, error) {
	_, err := ss.db.ExecContext(ctx,
		"INSERT INTO "+ss.table+" (namespace, worker_id, "+columns+") VALUES (?, ?, ?, ?, ?, ?, ?)",
		ss.namespace, workerID, r.Owner, r.ReservedUntil, r.FreeFrom, r.Holder, r.Since)
	if mysqldb.Number(err) == sqlerr.DuplicateKey {
		return false, nil
	}
	return err == nil, err
}

// update replaces a row and returns whether it changed. The owner's token always changes, so the
// result is the same with and without clientFoundRows.
func (ss *sqlStore) update(ctx context.Context, workerID int64, prev, next Record) (bool, error) {
	res, err := ss.db.ExecContext(ctx, "UPDATE "+ss.table+
		" SET owner = ?, reserved_until = ?, free_from = ?, holder = ?, since = ?"+
		" WHERE namespace = ? AND worker_id = ? AND owner = ? AND reserved_until = ?",
		next.Owner, next.ReservedUntil, next.FreeFrom, next.Holder, next.Since,
		ss.namespace, workerID, prev.Owner, prev.ReservedUntil)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	if n > 1 {
		return false, ss.doubled(workerID)
	}
	return n == 1 && err == nil, err
}

// now returns the server's time, or the zero time if it isn't known. It doesn't use the session's
// time zone: UNIX_TIMESTAMP(NOW()) is an hour off when summer time ends, because the local time is
// ambiguous (https://dev.mysql.com/doc/refman/en/date-and-time-functions.html#function_unix-timestamp).
func (ss *sqlStore) now(ctx context.Context) (time.Time, error) {
	var ms sql.NullInt64
	err := ss.db.QueryRowContext(ctx,
		"SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000").Scan(&ms)
	if err != nil || ms.Int64 <= 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(ms.Int64), nil
}

// warnings returns the settings with which the server may lose acknowledged writes.
func (ss *sqlStore) warnings(ctx context.Context) ([]string, error) {
	risks, err := mysqldb.Risks(ctx, ss.db, ss.database, ss.name)
	for i := range risks {
		risks[i] = ss.where + ": " + risks[i]
	}
	return risks, err
}

// ServerID returns the name of the server that answers.
func (ss *sqlStore) ServerID(ctx context.Context) (string, error) {
	return mysqldb.ServerID(ctx, ss.db)
}

// notes returns a store in the same table. The namespace of a rule can't begin with '#'.
func (ss *sqlStore) notes() Store {
	return &sqlStore{db: ss.db, namespace: ss.noteKey(), table: ss.table, where: ss.where}
}

// noteKey returns the namespace of the notes.
func (ss *sqlStore) noteKey() string {
	name := "#" + ss.namespace
	if len(name) > maxNamespace {
		sum := sha256.Sum256([]byte(ss.namespace))
		name = "#" + hex.EncodeToString(sum[:16])
	}
	return name
}

// SQLState returns the table of a SQL store.
func (a *assigner) SQLState() []sqlstate.Table {
	s, ok := a.store.(*sqlStore)
	if !ok {
		return nil
	}
	return []sqlstate.Table{{
		Kind: sqlstate.Leases, Connector: s.connector, Server: s.server, Name: s.name,
		Key: s.namespace, DDL: tableDDL(s.table),
		NoteKey: s.noteKey(), NoteID: layoutNote, OtherLayouts: a.warnOfLayouts,
	}}
}

const defaultTable = "shardkey_worker"

// columns are the columns of a record, and notNull their values in the order in which query scans
// them. A table that was made manually may permit NULL.
const (
	columns = "owner, reserved_until, free_from, holder, since"
	notNull = "COALESCE(owner, ''), COALESCE(reserved_until, 0), COALESCE(free_from, 0), " +
		"COALESCE(holder, ''), COALESCE(since, 0)"
)

// tableDDL returns the statement that creates the table. It doesn't quote the name.
func tableDDL(name string) string {
	return "CREATE TABLE IF NOT EXISTS " + name + ` (
  namespace      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  worker_id      INT NOT NULL,
  owner          VARBINARY(64) NOT NULL,
  reserved_until BIGINT NOT NULL COMMENT 'milliseconds since 1970, in id time; only ever raised',
  free_from      BIGINT NOT NULL COMMENT '0 while held, else where the next owner begins',
  holder         VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
  since          BIGINT NOT NULL,
  PRIMARY KEY (namespace, worker_id)
) ENGINE=InnoDB`
}

// tableError is the error if the table can't be created or used, or doesn't have the expected form.
// It wraps [spi.ErrStore].
type tableError struct {
	Table string
	DDL   string // the statement to run manually; "" if the table exists
	Grant bool   // whether the application's user may lack privileges
	Err   error  // the server's error, or what is wrong
}

func (te *tableError) Error() string {
	var statements []string
	if te.DDL != "" {
		statements = append(statements, strings.Join(strings.Fields(te.DDL), " ")) // logs escape line breaks
	}
	if te.Grant {
		statements = append(statements, fmt.Sprintf("GRANT SELECT, INSERT, UPDATE ON %s TO the application's user", te.Table))
	}
	return fmt.Sprintf("%v: the worker-ID table %s is missing or wrong: %v; run as a user with the privilege: %s",
		spi.ErrStore, te.Table, te.Err, strings.Join(statements, "; "))
}

func (te *tableError) Unwrap() []error { return []error{spi.ErrStore, te.Err} }

// withTable runs op on a table that has its primary key. If the table is missing, it creates the
// table and runs op again.
func (ss *sqlStore) withTable(ctx context.Context, op func() error) error {
	err := ss.checkedThen(ctx, op)
	if mysqldb.Number(err) == sqlerr.UnknownTable {
		ss.keyed.Store(false)
		if _, err := ss.db.ExecContext(ctx, tableDDL(ss.table)); err != nil {
			return ss.tableError(err)
		}
		err = ss.checkedThen(ctx, op)
	}
	return ss.columnError(err)
}

// columnError adds the DDL to an error about a column, and the privileges to an error about one.
func (ss *sqlStore) columnError(err error) error {
	switch mysqldb.Number(err) {
	case sqlerr.UnknownColumn, sqlerr.OutOfRangeColumn, sqlerr.DataTooLong,
		sqlerr.DataTruncated, sqlerr.WrongValue:
		return ss.tableError(err)
	case sqlerr.TableDenied, sqlerr.ColumnDenied:
		if _, known := errors.AsType[*tableError](err); !known {
			return &tableError{Table: ss.table, Grant: true, Err: err}
		}
	}
	return err
}

func (ss *sqlStore) checkedThen(ctx context.Context, op func() error) error {
	if !ss.keyed.Load() {
		if err := ss.checkKey(ctx); err != nil {
			return err
		}
		ss.keyed.Store(true)
	}
	return op()
}

// tableError adds the DDL to a server error. A broken connection isn't an error of the table.
func (ss *sqlStore) tableError(err error) error {
	if mysqldb.Number(err) == 0 {
		return err
	}
	return &tableError{Table: ss.table, DDL: tableDDL(ss.table), Grant: true, Err: err}
}

// keyError returns the error for a table that permits several rows for a worker ID.
func (ss *sqlStore) keyError(what string) error {
	ddl := "ALTER TABLE " + ss.table + " ADD PRIMARY KEY (namespace, worker_id)"
	return &tableError{Table: ss.table, DDL: ddl, Err: errors.New(what)}
}

func (ss *sqlStore) doubled(workerID int64) error {
	ss.keyed.Store(false)
	return ss.keyError(fmt.Sprintf("worker ID %d of namespace %s has several rows, so several processes use it; "+
		"stop them, delete its rows except the one with the highest reserved_until, and add the key",
		workerID, ss.namespace))
}

// checkKey returns an error if the table has no unique key on namespace and worker_id. Without it,
// each process would insert its own row and hold the same worker ID. A unique key on some of these
// columns is enough.
func (ss *sqlStore) checkKey(ctx context.Context) error {
	rows, err := ss.db.QueryContext(ctx, "SHOW KEYS FROM "+ss.table)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values, fields := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		fields[i] = &values[i]
	}
	fits := map[string]bool{} // by the name of the unique key
	for rows.Next() {
		if err := rows.Scan(fields...); err != nil {
			return err
		}
		row := map[string]string{}
		for i, name := range names {
			row[strings.ToLower(name)] = values[i].String
		}
		if row["non_unique"] != "0" {
			continue
		}
		key, column := row["key_name"], strings.ToLower(row["column_name"])
		others, known := fits[key]
		fits[key] = (others || !known) && (column == "namespace" || column == "worker_id")
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if slices.Contains(slices.Collect(maps.Values(fits)), true) {
		return nil
	}
	return ss.keyError("the table has no primary key (namespace, worker_id), " +
		"so each process would have its own row for a worker ID")
}
