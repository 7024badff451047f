package workerid

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// defaultTable is the default name of the table.
const defaultTable = "shardkey_worker"

// columns are the columns of a record, in the order of recordRow.fields.
const columns = "owner, reserved_until, free_from, holder, since"

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

// tableError is the error if the table can't be created or doesn't have the expected form. It wraps
// [spi.ErrStore].
type tableError struct {
	Table string
	DDL   string // the statement to run manually
	Err   error  // the server's error, or what is wrong
}

func (e *tableError) Error() string {
	return fmt.Sprintf("%v: the worker-ID table %s is missing or wrong: %v; "+
		"run this statement as a user with the privilege:\n%s",
		spi.ErrStore, e.Table, e.Err, e.DDL)
}

func (e *tableError) Unwrap() []error { return []error{spi.ErrStore, e.Err} }

// withTable runs op on a table that has its primary key. If the table is missing, it creates the
// table and runs op again.
func (s *sqlStore) withTable(ctx context.Context, op func() error) error {
	err := s.checkedThen(ctx, op)
	if mysqldb.Number(err) == mysqldb.ErrNoSuchTable {
		s.keyed.Store(false)
		if _, err := s.db.ExecContext(ctx, tableDDL(s.table)); err != nil {
			return s.tableError(err)
		}
		err = s.checkedThen(ctx, op)
	}
	return s.columnError(err)
}

// columnError adds the DDL to an error about a column.
func (s *sqlStore) columnError(err error) error {
	switch mysqldb.Number(err) {
	case mysqldb.ErrUnknownColumn, mysqldb.ErrOutOfRangeColumn, mysqldb.ErrDataTooLong,
		mysqldb.ErrDataTruncated, mysqldb.ErrWrongValue:
		return s.tableError(err)
	}
	return err
}

func (s *sqlStore) checkedThen(ctx context.Context, op func() error) error {
	if !s.keyed.Load() {
		if err := s.checkKey(ctx); err != nil {
			return err
		}
		s.keyed.Store(true)
	}
	return op()
}

// tableError adds the DDL to a server error. A broken connection isn't an error of the table.
func (s *sqlStore) tableError(err error) error {
	if mysqldb.Number(err) == 0 {
		return err
	}
	return &tableError{Table: s.table, DDL: tableDDL(s.table), Err: err}
}

// keyError returns the error for a table that permits several rows for a worker ID.
func (s *sqlStore) keyError(what string) error {
	ddl := "ALTER TABLE " + s.table + " ADD PRIMARY KEY (namespace, worker_id)"
	return &tableError{Table: s.table, DDL: ddl, Err: errors.New(what)}
}

// doubled returns the error for several rows of one worker ID.
func (s *sqlStore) doubled(workerID int64) error {
	s.keyed.Store(false)
	return s.keyError(fmt.Sprintf("worker ID %d of namespace %s has several rows, so several processes use it; "+
		"stop them, delete its rows except the one with the highest reserved_until, and add the key",
		workerID, s.namespace))
}

// checkKey returns an error if the table has no unique key on namespace and worker_id. Without it,
// each process would insert its own row and hold the same worker ID. A unique key on some of these
// columns is enough.
func (s *sqlStore) checkKey(ctx context.Context) error {
	rows, err := s.db.QueryContext(ctx, "SHOW KEYS FROM "+s.table)
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
	return s.keyError("the table has no primary key (namespace, worker_id), " +
		"so each process would have its own row for a worker ID")
}
