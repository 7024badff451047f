package driver

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/rewrite"
)

// The temporary tables of an INSERT … SELECT: the query's rows with their
// numbers, and the keys with the numbers of the rows that they are for.
const (
	rowsTable = "`shardkey_rows`"
	keysTable = "`shardkey_keys`"
	rowNumber = rowsTable + ".`shardkey_row`"
)

// createRows makes the table of rows, whose columns have the target's names, so
// that the server's errors name them, and its types.
func (r *sourceRun) createRows(ctx context.Context) error {
	var columns []string
	for _, column := range r.in.Source.Columns {
		columns = append(columns, "`shardkey_target`."+rewrite.QuoteIdentifier(column))
	}
	err := r.create(ctx, rowsTable, "`shardkey_row` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY", strings.Join(columns, ", "))
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		if own := r.ownWords(ctx, my); own != nil {
			return own
		}
	}
	return err
}

// ownWords runs the statement without rows, for the server's error about its
// columns; nil when there is none.
func (r *sourceRun) ownWords(ctx context.Context, err *mysql.MySQLError) error {
	const (
		unknownColumn   = 1054
		duplicateColumn = 1060
	)
	if err.Number != unknownColumn && err.Number != duplicateColumn || r.in.Source.TailParams > 0 || r.in.Returning {
		return nil
	}
	n := len(r.in.Source.Columns)
	if r.in.Source.KeyIndex < 0 {
		n++
	}
	return r.run(ctx, r.in.Text("SELECT NULL"+strings.Repeat(", NULL", n-1)+" FROM DUAL WHERE FALSE"))
}

// create makes a temporary table of columns of the target. They come from the
// side of an outer join that may be NULL, and therefore may be NULL themselves:
// a NULL that the target does not take is refused by the target.
func (r *sourceRun) create(ctx context.Context, table, number, columns string) error {
	query := "CREATE TEMPORARY TABLE " + r.qualify(table) + " (" + number + ") SELECT " + columns +
		" FROM (SELECT 1) AS `shardkey_one` LEFT JOIN " + rewrite.QuoteTable(r.in.Schema, r.in.Name) + " AS `shardkey_target` ON FALSE LIMIT 0"
	err := r.run(ctx, query)
	const exists = 1050
	var my *mysql.MySQLError
	if errors.As(err, &my) && my.Number == exists {
		// A run before could not drop it, as when its rows were never closed.
		if err = r.run(ctx, "DROP TEMPORARY TABLE IF EXISTS "+r.qualify(table)); err == nil {
			err = r.run(ctx, query)
		}
	}
	if err == nil {
		r.tables = append(r.tables, r.qualify(table))
	}
	return err
}

// readQuery runs the query into the table of rows.
func (r *sourceRun) readQuery(ctx context.Context) error {
	ignore := ""
	if r.in.Ignore {
		ignore = "IGNORE "
	}
	s := r.in.Source
	names := make([]string, len(s.Columns))
	for i, column := range s.Columns {
		names[i] = rewrite.QuoteIdentifier(column)
	}
	res, err := r.base.execOrPrepare(ctx, "INSERT "+ignore+"INTO "+r.qualify(rowsTable)+" ("+strings.Join(names, ", ")+") "+s.Query, r.queryArgs(), 0)
	if err != nil {
		return err
	}
	r.rows, err = res.RowsAffected()
	return err
}

// query is what the statement selects: the rows with their keys. The columns are
// renamed before, so that ON DUPLICATE KEY UPDATE a = a + 1 means the target's.
func (r *sourceRun) query() string {
	s := r.in.Source
	var columns, renamed []string
	for i, column := range s.Columns {
		name := "`shardkey_" + strconv.Itoa(i) + "`"
		renamed = append(renamed, rewrite.QuoteIdentifier(column)+" AS "+name)
		name = rowsTable + "." + name
		if i == s.KeyIndex && r.keys.Len() > 0 {
			name = "COALESCE(" + r.key() + ", " + name + ")"
		}
		columns = append(columns, name)
	}
	if s.KeyIndex < 0 {
		columns = append(columns, r.key())
	}
	rows := "(SELECT `shardkey_row`, " + strings.Join(renamed, ", ") + " FROM " + r.qualify(rowsTable) + ") AS " + rowsTable
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + r.joined(rows) + " ORDER BY " + rowNumber
}

// key is the key of a row, NULL for a row that has none of ours.
func (r *sourceRun) key() string {
	switch {
	case r.keys.Len() == 0:
		return "NULL"
	case r.offset != "":
		return "(" + rowNumber + " + " + r.offset + ")"
	}
	return keysTable + ".`shardkey_key`"
}

// joined are the rows, which are called rowsTable, with their keys.
func (r *sourceRun) joined(rows string) string {
	if r.keys.Len() > 0 && r.offset == "" {
		rows += " LEFT JOIN " + r.qualify(keysTable) + " ON " + keysTable + ".`shardkey_row` = " + rowNumber
	}
	return rows
}

// keyInRows is the key that the query gave a row.
func (r *sourceRun) keyInRows() string {
	return rowsTable + "." + rewrite.QuoteIdentifier(r.in.Source.Columns[r.in.Source.KeyIndex])
}

// qualify puts the temporary tables into the target's schema when it is named:
// a session need not have a current database.
func (r *sourceRun) qualify(table string) string {
	if r.in.Schema == "" {
		return table
	}
	return rewrite.QuoteIdentifier(r.in.Schema) + "." + table
}

func (r *sourceRun) run(ctx context.Context, query string) error {
	_, err := r.base.execOrPrepare(ctx, query, nil, 0)
	return err
}

// Close drops the temporary tables, also when the statement's context has
// ended. When that fails after a success, the statement's success is the truth.
func (r *sourceRun) Close() error {
	if len(r.tables) == 0 {
		return nil
	}
	return r.run(context.Background(), "DROP TEMPORARY TABLE IF EXISTS "+strings.Join(r.tables, ", "))
}
