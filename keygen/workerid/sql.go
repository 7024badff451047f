package workerid

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/spi"
)

var _ Clocked = (*sqlStore)(nil)

// sqlStore keeps records in the rows of a table of MySQL, MariaDB, TiDB or what
// else speaks their protocol.
type sqlStore struct {
	db        *sql.DB
	namespace string
	table     string // quoted
	where     string // for Describe
}

// maxConns bounds the store's own pool. It takes one connection a lease that is
// renewed at the very moment.
const maxConns = 4

// NewSQLStore keeps records in a table of the database that dsn names, in
// go-sql-driver/mysql's form. The table may be qualified by a schema; it is made
// when it is missing. The store has a small connection pool of its own, so that
// its writes are never part of the application's transactions. The error is a
// [*spi.PropError].
func NewSQLStore(dsn, table, namespace string) (Store, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, errDSN // the driver's words may quote parts of a password
	}
	quoted, err := quoteTable(table, config.DBName)
	if err != nil {
		return nil, err
	}
	ownSession(config)
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, errDSN
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(maxConns)
	db.SetConnMaxLifetime(10 * time.Minute)
	return &sqlStore{
		db: db, namespace: namespace, table: quoted,
		where: fmt.Sprintf("SQL %s/%s table %s", config.Addr, config.DBName, table),
	}, nil
}

var errDSN = &spi.PropError{Name: "dsn", Want: "a DSN of go-sql-driver/mysql, as user:pass@tcp(127.0.0.1:3306)/app"}

// ownSession takes from the application's settings what would harm here.
func ownSession(c *mysql.Config) {
	params := maps.Clone(c.Params)
	maps.DeleteFunc(params, func(name, _ string) bool { return strings.EqualFold(name, "autocommit") })
	if params == nil {
		params = map[string]string{}
	}
	params["autocommit"] = "1" // a lease that is never committed is none
	c.Params = params
	c.RejectReadOnly = true // after a failover, look for the new primary
	c.MultiStatements = false
	c.Logger = &mysql.NopLogger{} // what it would print is in our errors and health
}

// quoteTable quotes "table" or "schema.table".
func quoteTable(table, database string) (string, error) {
	parts := strings.Split(table, ".")
	wrong := &spi.PropError{Name: "table", Value: table, Want: "a table's name, with or without its schema"}
	if len(parts) > 2 || strings.Contains(table, "\x00") {
		return "", wrong
	}
	for i, p := range parts {
		if p == "" || len(p) > 64 {
			return "", wrong
		}
		parts[i] = "`" + strings.ReplaceAll(p, "`", "``") + "`"
	}
	if len(parts) == 1 && database == "" {
		return "", &spi.PropError{Name: "table", Value: table, Want: "schema." + table + ", as the DSN names no database"}
	}
	return strings.Join(parts, "."), nil
}

func (s *sqlStore) Describe() string { return s.where }

func (s *sqlStore) Close() error { return s.db.Close() }

func (s *sqlStore) List(ctx context.Context) (entries []Entry, err error) {
	err = s.withTable(ctx, func() error {
		entries, err = s.list(ctx)
		return err
	})
	return entries, err
}

func (s *sqlStore) list(ctx context.Context) ([]Entry, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT worker_id, "+columns+" FROM "+s.table+" WHERE namespace = ?", s.namespace)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var entries []Entry
	for rows.Next() {
		var e Entry
		var row recordRow
		if err := rows.Scan(append([]any{&e.WorkerID}, row.fields()...)...); err != nil {
			return nil, err
		}
		e.Record, e.Err = row.record(e.WorkerID)
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

func (s *sqlStore) Get(ctx context.Context, workerID int64) (r Record, err error) {
	err = s.withTable(ctx, func() error {
		var row recordRow
		err := s.db.QueryRowContext(ctx, "SELECT "+columns+" FROM "+s.table+" WHERE namespace = ? AND worker_id = ?",
			s.namespace, workerID).Scan(row.fields()...)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			r, err = row.record(workerID)
		}
		return err
	})
	return r, err
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

// create makes a row; a duplicate key is another owner's row.
func (s *sqlStore) create(ctx context.Context, workerID int64, r Record) (bool, error) {
	_, err := s.db.ExecContext(ctx, "INSERT INTO "+s.table+" (namespace, worker_id, "+columns+") VALUES (?, ?, ?, ?, ?, ?, ?)",
		s.namespace, workerID, r.Owner, r.ReservedUntil, r.FreeFrom, r.Holder, r.Since)
	if isError(err, errDuplicateKey) {
		return false, nil
	}
	return err == nil, err
}

// update counts changed rows: the owner's token always changes, so it is the
// same with and without clientFoundRows.
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
	return n == 1 && err == nil, err
}

// Now is the server's time; zero when it cannot tell.
func (s *sqlStore) Now(ctx context.Context) (time.Time, error) {
	var ms sql.NullInt64
	err := s.db.QueryRowContext(ctx, "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)").Scan(&ms)
	if err != nil || ms.Int64 <= 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(ms.Int64), nil
}

// DefaultTable is the table of SQL worker ids.
const DefaultTable = "shardkey_worker"

// columns of a record, in the order of recordRow.fields.
const columns = "owner, reserved_until, free_from, holder, since"

// TableDDL is the statement that makes the table; name is used as it is.
func TableDDL(name string) string {
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

// TableError says that the table is missing and could not be made, or is not
// as it should be. It is [spi.ErrStore].
type TableError struct {
	Table string
	DDL   string // the statement to run by hand
	Err   error  // the server's error
}

func (e *TableError) Error() string {
	return fmt.Sprintf("%v: worker-id table %s is missing or not as it should be: %v; let somebody who may run:\n%s", spi.ErrStore, e.Table, e.Err, e.DDL)
}

func (e *TableError) Unwrap() []error { return []error{spi.ErrStore, e.Err} }

// Error numbers of the server.
const (
	errDuplicateKey  = 1062
	errUnknownColumn = 1054
	errNoSuchTable   = 1146
)

func isError(err error, number uint16) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == number
}

// withTable runs op, and once more after making the table if it was missing.
func (s *sqlStore) withTable(ctx context.Context, op func() error) error {
	err := op()
	if isError(err, errNoSuchTable) {
		if _, err := s.db.ExecContext(ctx, TableDDL(s.table)); err != nil {
			return s.tableError(err)
		}
		err = op()
	}
	if isError(err, errUnknownColumn) {
		return s.tableError(err)
	}
	return err
}

// tableError shows the DDL for what the server has refused; a connection that
// broke is not the table's fault.
func (s *sqlStore) tableError(err error) error {
	var refused *mysql.MySQLError
	if !errors.As(err, &refused) {
		return err
	}
	return &TableError{Table: s.table, DDL: TableDDL(s.table), Err: err}
}

// recordRow is a row as it may be: a hand may have put NULL anywhere.
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
	if err := record.Check(); err != nil {
		return Record{}, &ForeignRecordError{WorkerID: workerID, Value: fmt.Sprintf("%+v", record), Err: err}
	}
	return record, nil
}
