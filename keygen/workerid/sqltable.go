package workerid

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/spi"
)

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
