package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// An INSERT … SELECT cannot be given its keys in its text: how many rows there
// are is known only after the query has run. So the query runs once, into a
// temporary table, the keys are put beside its rows, and the statement itself
// reads both. It stays one statement, and what it reads, writes and refuses
// is decided by the server; no row is sent to the client. Temporary tables commit
// nothing and are this session's own.
//
// Round trips: the table, the query, how its rows are numbered, the statement,
// and dropping the table. Keys that are not contiguous, and those for some of the
// rows only, take a second table. The numbering changes LAST_INSERT_ID(); the
// query for the numbers restores it, and the statement carries the first key.

// sourceRun is one execution of an INSERT … SELECT in this way.
type sourceRun struct {
	selectRun

	tables []string // the temporary tables that exist
	// offset is a row's key minus its number, for contiguous keys; where
	// it is empty they are in a table.
	offset string
	first  string // the number of the first row that gets a key
}

// beginTemporary runs the query into a temporary table and brings the keys to the
// server. refused is the server's error where it takes no temporary table, before
// anything was executed.
func beginTemporary(ctx context.Context, run *selectRun) (on running, refused, err error) {
	r := &sourceRun{selectRun: *run}
	for _, step := range []func(context.Context) error{r.knowLastID, r.syncLastID, r.createRows, r.readQuery, r.makeKeys, r.syncLastID} {
		if err := step(ctx); err != nil {
			if len(r.tables) == 0 && refusesTemporary(err) {
				refused = err
			}
			return nil, refused, r.failed(ctx, err)
		}
	}
	if r.carries, err = r.carriesKey(ctx); err != nil {
		return nil, nil, r.failed(ctx, err)
	}
	r.sent = sending{base: &r.base, text: r.in.Text(r.query()), args: r.tailArgs()}
	return r, nil, nil
}

func (r *sourceRun) failed(ctx context.Context, err error) error {
	if r.carries {
		r.lastID.moved()
	}
	defer r.Close()
	return r.explain(err)
}

// keysAtOnce is how many keys one statement brings to the server.
const keysAtOnce = 5000

// makeKeys generates a key for each row that needs one.
func (r *sourceRun) makeKeys(ctx context.Context) error {
	n, missing, err := r.countMissing(ctx)
	if err != nil || n == 0 {
		return err
	}
	var fits []spi.KeyFit
	if r.table.genes != nil {
		if fits, err = r.geneFits(ctx, n, missing); err != nil {
			return err
		}
	}
	if err := r.generate(ctx, n, fits); err != nil {
		return err
	}
	if first, ok := r.contiguous(); ok {
		if r.offset, err = r.findOffset(ctx, first); err != nil || r.offset != "" {
			return err
		}
	}
	return r.storeKeys(ctx, missing)
}

// geneFits returns for each of n rows the keys that have its gene, which is read from the rows
// that the query returned. Their values go as UTF-8 whatever the connection's character
// set is.
func (r *sourceRun) geneFits(ctx context.Context, n int, missing string) (fits []spi.KeyFit, err error) {
	at, err := r.geneColumn(ctx)
	if err != nil {
		return nil, err
	}
	fits = make([]spi.KeyFit, 0, n)
	value := "HEX(CONVERT(" + rowsTable + "." + sqltext.QuoteIdentifier(r.in.Source.Columns[at]) + " USING utf8mb4))"
	for last := "0"; len(fits) < n; {
		before := len(fits)
		var bad error
		err := r.askRows(ctx, 2, rowNumber+", "+value, "WHERE "+rowNumber+" > "+last+" AND ("+missing+
			") ORDER BY "+rowNumber+" LIMIT "+strconv.Itoa(keysAtOnce), func(row []driver.Value) {
			if bad != nil || len(fits) == n {
				return
			}
			var shown driver.Value
			if row[1] != nil {
				decoded, _ := hex.DecodeString(text(row[1]))
				shown = string(decoded)
			}
			var fit spi.KeyFit
			if fit, bad = r.fitOfRow(ctx, len(fits), shown); bad == nil {
				fits = append(fits, fit)
			}
			number, err := strconv.ParseUint(text(row[0]), 10, 64)
			if err != nil {
				bad = cmp.Or(bad, r.badNumber(row[0]))
			}
			last = strconv.FormatUint(number, 10)
		})
		if err := cmp.Or(err, bad); err != nil {
			return nil, err
		}
		if len(fits) == before {
			return nil, r.badCount(int64(n))
		}
	}
	return fits, nil
}

func (r *sourceRun) badNumber(number driver.Value) error {
	return fmt.Errorf("shardkey: the server numbers a row of a temporary table %.20q", text(number))
}

// contiguous reports whether the keys are first, first+1, … for all rows.
func (r *sourceRun) contiguous() (first int64, ok bool) {
	ints := r.keys.Ints
	if r.in.Source.KeyIndex >= 0 || len(ints) == 0 || ints[0] < 0 {
		return 0, false
	}
	return ints[0], areConsecutive(&r.keys)
}

// findOffset returns what is added to a row's number for its key, empty
// when the numbers are not contiguous, as with auto_increment_increment.
func (r *sourceRun) findOffset(ctx context.Context, first int64) (string, error) {
	var low, high int64
	var err1, err2 error
	err := r.askRows(ctx, 2, "MIN("+rowNumber+"), MAX("+rowNumber+")", "LIMIT 1", func(row []driver.Value) {
		low, err1 = strconv.ParseInt(text(row[0]), 10, 64)
		high, err2 = strconv.ParseInt(text(row[1]), 10, 64)
	})
	if err != nil || err1 != nil || err2 != nil || high-low != r.rows-1 || first < low {
		return "", err
	}
	r.first = strconv.FormatInt(low, 10)
	return strconv.FormatInt(first-low, 10), nil
}

// askRows asks for n columns about the rows. With the answer LAST_INSERT_ID() is right again,
// which the rows' numbers have changed.
func (r *sourceRun) askRows(ctx context.Context, n int, columns, rest string, each func([]driver.Value)) error {
	if !r.lastID.synced {
		columns += ", LAST_INSERT_ID(" + strconv.FormatUint(r.lastID.must, 10) + ")"
	}
	return r.queryColumns(ctx, n, "SELECT "+columns+" FROM "+r.qualify(rowsTable)+" "+rest, func(row []driver.Value) {
		r.lastID.synced = true
		each(row)
	})
}

// countMissing counts the rows without key, and returns the condition for
// them.
func (r *sourceRun) countMissing(ctx context.Context) (n int, missing string, err error) {
	if r.in.Source.KeyIndex < 0 {
		return int(r.rows), "TRUE", nil
	}
	key := r.keyInRows()
	missing = key + " IS NULL"
	mode, err := r.sqlMode(ctx)
	switch {
	case err != nil:
		return 0, "", err
	case r.table.kind() == rewrite.KindText:
		missing += " OR LENGTH(" + key + ") = 0"
	case mode&rewrite.NoAutoValueOnZero == 0:
		missing += " OR " + isZeroSQL(key)
	}
	var bad error
	err = r.askRows(ctx, 1, "COUNT(*)", "WHERE "+missing+" LIMIT 1", func(row []driver.Value) {
		n, bad = strconv.Atoi(text(row[0]))
	})
	if n < 0 || int64(n) > r.rows {
		bad = r.badCount(int64(n))
	}
	return n, missing, cmp.Or(err, bad)
}

// isZeroSQL is what [rewrite.IsZero] is for values. That a key equals 0 is not
// enough in a column of strings: to the servers 'abc' does.
func isZeroSQL(key string) string {
	return key + " > -0.5 AND " + key + " < 0.5 AND CONVERT(" + key + " USING ascii) REGEXP " +
		"'^[[:space:]]*[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?[[:space:]]*$'"
}

// storeKeys puts the keys into a table beside the numbers of their rows.
func (r *sourceRun) storeKeys(ctx context.Context, missing string) error {
	key := r.targetColumn(r.in.Table.KeyColumn) + " AS `shardkey_key`"
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
		if done == 0 {
			r.first = numbers[0]
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
	var bad error
	err := r.askRows(ctx, 1, rowNumber, "WHERE "+rowNumber+" > "+after+" AND ("+missing+
		") ORDER BY "+rowNumber+" LIMIT "+strconv.Itoa(keysAtOnce), func(row []driver.Value) {
		// It becomes text of a statement: an integer, and nothing else.
		number, err := strconv.ParseUint(text(row[0]), 10, 64)
		if err != nil {
			bad = r.badNumber(row[0])
			return
		}
		numbers = append(numbers, strconv.FormatUint(number, 10))
	})
	return numbers, cmp.Or(err, bad)
}

func (r *sourceRun) insertKeys(ctx context.Context, numbers []string, from int) error {
	query := []byte("INSERT INTO " + r.qualify(keysTable) + " (`shardkey_row`, `shardkey_key`) VALUES ")
	for i, number := range numbers {
		if i > 0 {
			query = append(query, ',')
		}
		query = append(append(append(query, '('), number...), ',')
		var ok bool
		if query, ok = sqltext.AppendLiteral(query, r.keys.At(from+i)); !ok {
			return fmt.Errorf("%w: INSERT … SELECT cannot be filled with a key of type %T", ErrUnsupportedStatement, r.keys.At(from+i))
		}
		query = append(query, ')')
	}
	return r.run(ctx, string(query))
}

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
	const (
		unknownColumn   = 1054
		duplicateColumn = 1060
		invalidDefault  = 1067
	)
	declared, err := r.declareKey(ctx)
	if err != nil {
		return err
	}
	err = r.createDeclared(ctx, declared)
	if isServerError(err, invalidDefault) {
		if declared, err = r.declareDates(ctx, declared); err == nil {
			err = r.createDeclared(ctx, declared)
		}
	}
	if isServerError(err, unknownColumn, duplicateColumn) {
		if own := r.ownWords(ctx, len(r.in.Source.Columns)); own != nil {
			return own
		}
	}
	return err
}

// createDeclared makes the table of rows with the target's types, but for columns
// that are declared.
func (r *sourceRun) createDeclared(ctx context.Context, declared string) error {
	columns := make([]string, len(r.in.Source.Columns))
	for i, column := range r.in.Source.Columns {
		columns[i] = r.targetColumn(column)
	}
	return r.create(ctx, rowsTable, "`shardkey_row` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY"+declared, strings.Join(columns, ", "))
}

// declareKey declares the column for keys that the query returns, where its own
// type would not distinguish what INSERT … VALUES does: blanks are no key in a
// CHAR, and bytes added to the empty one in a BINARY.
func (r *sourceRun) declareKey(ctx context.Context) (string, error) {
	if r.in.Source.KeyIndex < 0 {
		return "", nil
	}
	if r.table.kind() == rewrite.KindUnknown {
		if err := r.table.learnKind(ctx); err != nil {
			return "", err
		}
	}
	if err := r.key.learn(ctx, r.session); err != nil || r.table.kind() != rewrite.KindText {
		return "", err
	}
	known := r.key.known.Load()
	if !known.IsPadded() {
		return "", nil
	}
	typ := plainText.FindString(known.Text)
	if typ == "" {
		return "", nil
	}
	return declaration(shownColumn{r.key.name, "var" + typ, known.collation}), nil
}

// declareDates declares the columns of dates: the server refuses the default of
// one that is zero where it is copied under NO_ZERO_DATE.
func (r *sourceRun) declareDates(ctx context.Context, declared string) (string, error) {
	err := r.showColumns(ctx, sqltext.QuoteTable(r.in.Schema, r.in.Name), "", func(column shownColumn) {
		isColumn := func(name string) bool { return strings.EqualFold(name, column.name) }
		if typ := plainDate.FindString(column.typ); typ != "" && slices.ContainsFunc(r.in.Source.Columns, isColumn) {
			column.typ = typ
			declared += declaration(column)
		}
	})
	return declared, err
}

// What of the server's words for types and collations is written in a statement.
var (
	plainText      = regexp.MustCompile(`^(char|binary)\([0-9]+\)`)
	plainDate      = regexp.MustCompile(`^(datetime|date|timestamp)(\([0-9]\))?`)
	plainCollation = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	plainTexts     = regexp.MustCompile(`^((var)?char|(tiny|medium|long)?text|enum)\b`)
)

func declaration(column shownColumn) string {
	d := ", " + sqltext.QuoteIdentifier(column.name) + " " + column.typ
	if column.collation != "NULL" && plainCollation.MatchString(column.collation) {
		d += " COLLATE " + column.collation
	}
	return d + " NULL DEFAULT NULL"
}

// create makes a temporary table of columns of the target. They come from the
// side of an outer join that may be NULL, and therefore may be NULL themselves:
// a NULL that the target does not take is refused by the target.
func (r *sourceRun) create(ctx context.Context, table, number, columns string) error {
	query := "CREATE TEMPORARY TABLE " + r.qualify(table) + " (" + number + ") SELECT " + columns +
		" FROM (SELECT 1) AS `shardkey_one` LEFT JOIN " + sqltext.QuoteTable(r.in.Schema, r.in.Name) + " ON FALSE LIMIT 0"
	err := r.run(ctx, query)
	const exists = 1050
	if isServerError(err, exists) {
		// An earlier run could not drop it, for example because its rows were
		// never closed.
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
		names[i] = sqltext.QuoteIdentifier(column)
	}
	res, err := r.base.execOrPrepare(ctx, "INSERT "+ignore+"INTO "+r.qualify(rowsTable)+" ("+strings.Join(names, ", ")+") "+s.Query, r.queryArgs(), 0)
	if err != nil {
		r.lastID.moved()
		return err
	}
	if res == nil {
		return errNoAnswer
	}
	if r.rows, err = res.RowsAffected(); r.rows != 0 {
		r.lastID.moved()
	}
	return cmp.Or(err, r.checkRows())
}

// query is what the statement selects: the rows with their keys. The columns are
// renamed before, so that ON DUPLICATE KEY UPDATE a = a + 1 means the target's.
func (r *sourceRun) query() string {
	s := r.in.Source
	var columns, renamed []string
	for i, column := range s.Columns {
		name := "`shardkey_" + strconv.Itoa(i) + "`"
		renamed = append(renamed, sqltext.QuoteIdentifier(column)+" AS "+name)
		name = rowsTable + "." + name
		if i == s.KeyIndex && r.keys.Len() > 0 {
			name = "COALESCE(" + r.sentKey() + ", " + name + ")"
		}
		columns = append(columns, name)
	}
	if s.KeyIndex < 0 {
		columns = append(columns, r.sentKey())
	}
	rows := "(SELECT `shardkey_row`, " + strings.Join(renamed, ", ") + " FROM " + r.qualify(rowsTable) + ") AS " + rowsTable
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + r.joined(rows) + " ORDER BY " + rowNumber
}

// sentKey is the key of a row as the statement has it.
func (r *sourceRun) sentKey() string {
	key := r.keyOf()
	if r.carries {
		key = "IF(" + rowNumber + " = " + r.first + ", LAST_INSERT_ID(" + key + "), " + key + ")"
	}
	return key
}

// keyOf is the key of a row, NULL for a row that has none of ours.
func (r *sourceRun) keyOf() string {
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

// keyInRows is the key that the query returned for a row.
func (r *sourceRun) keyInRows() string {
	return rowsTable + "." + sqltext.QuoteIdentifier(r.in.Source.Columns[r.in.Source.KeyIndex])
}

// qualify puts the temporary tables into the target's schema when it is named:
// a session need not have a current database.
func (r *sourceRun) qualify(table string) string {
	if r.in.Schema == "" {
		return table
	}
	return sqltext.QuoteIdentifier(r.in.Schema) + "." + table
}

func (r *sourceRun) run(ctx context.Context, query string) error {
	_, err := r.base.execOrPrepare(ctx, query, nil, 0)
	return err
}

// Close drops the temporary tables, also when the statement's context has ended,
// and makes LAST_INSERT_ID() right, which the rows' numbers have changed. When
// that fails after a success, the statement still succeeds.
func (r *sourceRun) Close() error {
	if len(r.tables) == 0 {
		return nil
	}
	ctx := context.Background()
	err := r.run(ctx, "DROP TEMPORARY TABLE IF EXISTS "+strings.Join(r.tables, ", "))
	r.tables = nil
	return cmp.Or(err, r.syncLastID(ctx))
}
