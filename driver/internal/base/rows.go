package base

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"io"
	"reflect"
)

// Rows are rows of the underlying driver. Closing them also closes their statement and reports how
// they ended. They implement all optional interfaces. If the driver's rows lack one, they return
// the defaults of database/sql.
type Rows struct {
	driver.Rows
	after  io.Closer            // nil: no statement to close
	ended  func(Reading, error) // nil: no function, or already called
	failed error
	read   Reading
}

// Reading describes how far rows were read.
type Reading struct {
	Rows int64
	All  bool // to the end
}

var (
	_ driver.RowsNextResultSet              = (*Rows)(nil)
	_ driver.RowsColumnTypeScanType         = (*Rows)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*Rows)(nil)
	_ driver.RowsColumnTypeLength           = (*Rows)(nil)
	_ driver.RowsColumnTypeNullable         = (*Rows)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*Rows)(nil)
)

// OnClose returns rows that call ended once when they are closed, with the error that ended them or
// nil.
func OnClose(rows driver.Rows, ended func(Reading, error)) *Rows {
	return &Rows{Rows: rows, ended: ended}
}

// Next reads the next row.
func (r *Rows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	switch err {
	case nil:
		r.read.Rows++
	case io.EOF:
		r.read.All = true
	default:
		r.failed = err
	}
	return err
}

// Close closes the rows and then their statement. It returns the error of the rows,
// as database/sql does.
func (r *Rows) Close() error {
	err := r.Rows.Close()
	if r.after != nil {
		_ = r.after.Close()
		r.after = nil
	}
	if r.ended != nil {
		r.ended(r.read, cmp.Or(r.failed, err))
		r.ended = nil
	}
	return err
}

// HasNextResultSet implements driver.RowsNextResultSet.
func (r *Rows) HasNextResultSet() bool {
	rows, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && rows.HasNextResultSet()
}

// NextResultSet implements driver.RowsNextResultSet.
func (r *Rows) NextResultSet() error {
	if rows, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return rows.NextResultSet()
	}
	return io.EOF
}

// ColumnTypeScanType implements driver.RowsColumnTypeScanType.
func (r *Rows) ColumnTypeScanType(index int) reflect.Type {
	if rows, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return rows.ColumnTypeScanType(index)
	}
	return reflect.TypeFor[any]()
}

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (r *Rows) ColumnTypeDatabaseTypeName(index int) string {
	if rows, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return rows.ColumnTypeDatabaseTypeName(index)
	}
	return ""
}

// ColumnTypeLength implements driver.RowsColumnTypeLength.
func (r *Rows) ColumnTypeLength(index int) (length int64, ok bool) {
	if rows, ok := r.Rows.(driver.RowsColumnTypeLength); ok {
		return rows.ColumnTypeLength(index)
	}
	return 0, false
}

// ColumnTypeNullable implements driver.RowsColumnTypeNullable.
func (r *Rows) ColumnTypeNullable(index int) (nullable, ok bool) {
	if rows, ok := r.Rows.(driver.RowsColumnTypeNullable); ok {
		return rows.ColumnTypeNullable(index)
	}
	return false, false
}

// ColumnTypePrecisionScale implements driver.RowsColumnTypePrecisionScale.
func (r *Rows) ColumnTypePrecisionScale(index int) (precision, scale int64, ok bool) {
	if rows, ok := r.Rows.(driver.RowsColumnTypePrecisionScale); ok {
		return rows.ColumnTypePrecisionScale(index)
	}
	return 0, 0, false
}

// NoRows are the rows of a statement that returns none.
type NoRows struct{}

// Columns implements driver.Rows.
func (NoRows) Columns() []string { return []string{} }

// Close implements driver.Rows.
func (NoRows) Close() error { return nil }

// Next implements driver.Rows.
func (NoRows) Next([]driver.Value) error { return io.EOF }

// Text returns a value in the format of the text protocol.
func Text(v driver.Value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}
