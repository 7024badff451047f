package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"reflect"
)

// execOrPrepare executes a text as database/sql would: directly, and when the
// base skips that, by preparing, executing and closing a statement. Of its
// placeholders, added are ours; the user's count is the one that errors tell.
func (b *baseConn) execOrPrepare(ctx context.Context, query string, args []driver.NamedValue, added int) (driver.Result, error) {
	if res, err := b.execContext(ctx, query, args); err != driver.ErrSkip {
		return res, err
	}
	return b.execOnce(ctx, query, args, added)
}

// execOnce executes a text by a statement that is prepared for it and closed.
func (b *baseConn) execOnce(ctx context.Context, query string, args []driver.NamedValue, added int) (driver.Result, error) {
	s, err := b.prepareFor(ctx, query, args, added)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.execContext(ctx, args)
}

// queryOrPrepare is execOrPrepare for rows. A statement that it prepares is
// closed with the rows.
func (b *baseConn) queryOrPrepare(ctx context.Context, query string, args []driver.NamedValue, added int) (driver.Rows, error) {
	if rows, err := b.queryContext(ctx, query, args); err != driver.ErrSkip {
		return rows, err
	}
	return b.queryOnce(ctx, query, args, added)
}

// queryOnce is execOnce for rows.
func (b *baseConn) queryOnce(ctx context.Context, query string, args []driver.NamedValue, added int) (driver.Rows, error) {
	s, err := b.prepareFor(ctx, query, args, added)
	if err != nil {
		return nil, err
	}
	rows, err := s.queryContext(ctx, args)
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return &closingRows{Rows: rows, after: s.Stmt}, nil
}

// prepareFor prepares a text and checks its arguments.
func (b *baseConn) prepareFor(ctx context.Context, query string, args []driver.NamedValue, added int) (*baseStmt, error) {
	if len(args) > maxPlaceholders {
		return nil, errTooManyPlaceholders(len(args)-added, added)
	}
	stmt, err := b.prepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s := newBaseStmt(b, stmt)
	if err := s.checkArgs(b, args, added); err != nil {
		_ = s.Close()
		return nil, err
	}
	return &s, nil
}

// checkArgs does what database/sql does before it executes a statement. The
// conversion was done by the connection already, unless the base prepares all.
func (s *baseStmt) checkArgs(conn *baseConn, args []driver.NamedValue, added int) error {
	if want := s.NumInput(); want >= 0 && want != len(args) {
		return argCountError(want-added, len(args)-added)
	}
	if !conn.preparesAll {
		return nil
	}
	for i := range args {
		if err := s.convert(conn, &args[i]); err != nil {
			return fmt.Errorf("sql: converting argument %s type: %w", argName(args[i]), err)
		}
	}
	return nil
}

// convert is checkNamedValue with the last step that database/sql does itself.
func (s *baseStmt) convert(conn *baseConn, nv *driver.NamedValue) (err error) {
	if err = s.checkNamedValue(conn, nv); err != driver.ErrSkip {
		return err
	}
	nv.Value, err = s.columnConverter(nv.Ordinal - 1).ConvertValue(nv.Value)
	return err
}

func argName(nv driver.NamedValue) string {
	if nv.Name != "" {
		return fmt.Sprintf("with name %q", nv.Name)
	}
	return fmt.Sprintf("$%d", nv.Ordinal)
}

// argCountError is database/sql's own, in its words.
func argCountError(want, got int) error {
	return fmt.Errorf("sql: expected %d arguments, got %d", want, got)
}

// closingRows are rows that close what they come from, a statement prepared for
// them or temporary tables. They have every
// optional interface; where the base's rows lack one, they answer what
// database/sql takes for its absence.
type closingRows struct {
	driver.Rows
	after io.Closer
}

var (
	_ driver.RowsNextResultSet              = (*closingRows)(nil)
	_ driver.RowsColumnTypeScanType         = (*closingRows)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*closingRows)(nil)
	_ driver.RowsColumnTypeLength           = (*closingRows)(nil)
	_ driver.RowsColumnTypeNullable         = (*closingRows)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*closingRows)(nil)
)

// Close closes the rows and then the rest; the rows' error is the one to
// see, as in database/sql.
func (r *closingRows) Close() error {
	err := r.Rows.Close()
	if r.after != nil {
		_ = r.after.Close()
		r.after = nil
	}
	return err
}

func (r *closingRows) HasNextResultSet() bool {
	rows, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && rows.HasNextResultSet()
}

func (r *closingRows) NextResultSet() error {
	if rows, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return rows.NextResultSet()
	}
	return io.EOF
}

func (r *closingRows) ColumnTypeScanType(index int) reflect.Type {
	if rows, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return rows.ColumnTypeScanType(index)
	}
	return reflect.TypeFor[any]()
}

func (r *closingRows) ColumnTypeDatabaseTypeName(index int) string {
	if rows, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return rows.ColumnTypeDatabaseTypeName(index)
	}
	return ""
}

func (r *closingRows) ColumnTypeLength(index int) (length int64, ok bool) {
	if rows, ok := r.Rows.(driver.RowsColumnTypeLength); ok {
		return rows.ColumnTypeLength(index)
	}
	return 0, false
}

func (r *closingRows) ColumnTypeNullable(index int) (nullable, ok bool) {
	if rows, ok := r.Rows.(driver.RowsColumnTypeNullable); ok {
		return rows.ColumnTypeNullable(index)
	}
	return false, false
}

func (r *closingRows) ColumnTypePrecisionScale(index int) (precision, scale int64, ok bool) {
	if rows, ok := r.Rows.(driver.RowsColumnTypePrecisionScale); ok {
		return rows.ColumnTypePrecisionScale(index)
	}
	return 0, 0, false
}

// settledRows are rows of a filled statement. What came of it is found out once
// they are closed, with the error that ended them, if one did.
type settledRows struct {
	closingRows
	failed error
	settle func(error) // nil once it was called
}

func (r *settledRows) Next(dest []driver.Value) error {
	err := r.closingRows.Next(dest)
	if err != nil && err != io.EOF {
		r.failed = err
	}
	return err
}

func (r *settledRows) Close() error {
	err := r.closingRows.Close()
	if r.settle != nil {
		r.settle(cmp.Or(r.failed, err))
		r.settle = nil
	}
	return err
}
