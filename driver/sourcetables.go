package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
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

// keysAtOnce is how many keys one statement brings to the server.
const keysAtOnce = 5000

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

// findOffset returns what is added to a row's number to give its key, empty
// when the numbers are not contiguous, as with auto_increment_increment.
func (r *sourceRun) findOffset(ctx context.Context, first int64) (string, error) {
	row, err := r.queryRow(ctx, "SELECT MIN("+rowNumber+"), MAX("+rowNumber+") FROM "+r.qualify(rowsTable))
	if err != nil || len(row) != 2 {
		return "", err
	}
	low, err1 := strconv.ParseInt(text(row[0]), 10, 64)
	high, err2 := strconv.ParseInt(text(row[1]), 10, 64)
	if err1 != nil || err2 != nil || high-low != r.rows-1 || first < low {
		return "", nil
	}
	return strconv.FormatInt(first-low, 10), nil
}

// countMissing counts the rows without key, and returns the condition that
// tells them.
func (r *sourceRun) countMissing(ctx context.Context) (n int, missing string, err error) {
	if r.in.Source.KeyIndex < 0 {
		return int(r.rows), "TRUE", nil
	}
	key := r.keyInRows()
	missing = key + " IS NULL"
	if r.table.kind() == rewrite.UnknownKind {
		if err := r.table.learnKind(ctx); err != nil {
			return 0, "", err
		}
	}
	mode, err := r.sqlMode(ctx)
	switch {
	case err != nil:
		return 0, "", err
	case r.table.kind() == rewrite.Text:
		missing += " OR " + key + " = ''"
	case mode&rewrite.NoAutoValueOnZero == 0:
		missing += " OR " + key + " = 0"
	}
	row, err := r.queryRow(ctx, "SELECT COUNT(*) FROM "+r.qualify(rowsTable)+" WHERE "+missing)
	if err != nil || len(row) != 1 {
		return 0, "", err
	}
	n, err = strconv.Atoi(text(row[0]))
	return n, missing, err
}

// storeKeys puts the keys into a table beside the numbers of their rows.
func (r *sourceRun) storeKeys(ctx context.Context, missing string) error {
	key := "`shardkey_target`." + rewrite.QuoteIdentifier(r.in.Table.KeyColumn) + " AS `shardkey_key`"
	if err := r.create(ctx, keysTable, "`shardkey_row` BIGINT UNSIGNED NOT NULL DEFAULT 0 PRIMARY KEY", key); err != nil {
		return err
	}
	last := "0"
	for done, n := 0, r.keys.Len(); done < n; {
		numbers, err := r.numbers(ctx, missing, last)
		if err != nil {
			return err
		}
		if len(numbers) == 0 || len(numbers) > n-done {
			return fmt.Errorf("shardkey: %d rows of a temporary table need a key, and %d were counted", done+len(numbers), n)
		}
		if err := r.insertKeys(ctx, numbers, done); err != nil {
			return err
		}
		done += len(numbers)
		last = numbers[len(numbers)-1]
	}
	return nil
}

func (r *sourceRun) numbers(ctx context.Context, missing, after string) ([]string, error) {
	var numbers []string
	err := r.queryRows(ctx, "SELECT "+rowNumber+" FROM "+r.qualify(rowsTable)+" WHERE "+rowNumber+" > "+after+" AND ("+missing+
		") ORDER BY "+rowNumber+" LIMIT "+strconv.Itoa(keysAtOnce), func(row []driver.Value) {
		numbers = append(numbers, text(row[0]))
	})
	return numbers, err
}

func (r *sourceRun) insertKeys(ctx context.Context, numbers []string, from int) error {
	query := []byte("INSERT INTO " + r.qualify(keysTable) + " (`shardkey_row`, `shardkey_key`) VALUES ")
	for i, number := range numbers {
		if i > 0 {
			query = append(query, ',')
		}
		query = append(append(append(query, '('), number...), ',')
		var ok bool
		if query, ok = rewrite.AppendLiteral(query, r.keys.At(from+i)); !ok {
			return fmt.Errorf("%w: a key of type %T cannot be given to INSERT … SELECT", ErrUnsupportedStatement, r.keys.At(from+i))
		}
		query = append(query, ')')
	}
	return r.run(ctx, string(query))
}

// columns are the statement's columns, read from the temporary tables.
func (r *sourceRun) columns() string {
	s := r.in.Source
	columns := make([]string, 0, len(s.Columns)+1)
	for i, column := range s.Columns {
		name := rowsTable + "." + rewrite.QuoteIdentifier(column)
		if i == s.KeyIndex && r.keys.Len() > 0 {
			name = "COALESCE(" + r.key() + ", " + name + ")"
		}
		columns = append(columns, name)
	}
	if s.KeyIndex < 0 {
		columns = append(columns, r.key())
	}
	return strings.Join(columns, ", ")
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

// joined are the rows with their keys.
func (r *sourceRun) joined() string {
	from := r.qualify(rowsTable)
	if r.keys.Len() > 0 && r.offset == "" {
		from += " LEFT JOIN " + r.qualify(keysTable) + " ON " + keysTable + ".`shardkey_row` = " + rowNumber
	}
	return from
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
