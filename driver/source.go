package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/rewrite"
)

// An INSERT … SELECT cannot be given its keys in its text: how many rows there
// are is known only when the query has run. So the query runs once, into a
// temporary table beside which the keys are put, and the statement itself runs
// over both. It stays one statement, and what it reads, writes and refuses is
// the server's affair; no row travels to the client. Temporary tables commit
// nothing and are this session's own.
const (
	rowsTable = "`shardkey_rows`"
	keysTable = "`shardkey_keys`"
)

// keysAtOnce is how many keys one statement brings to the server.
const keysAtOnce = 5000

// sourceRun is one execution of an INSERT … SELECT.
type sourceRun struct {
	*conn
	fill  *fill
	in    *rewrite.Insert
	table *table
	args  []driver.NamedValue
	out   *Keys

	rows int64        // rows that the query gave
	keys rewrite.Keys // those generated
	one  [1]int64
}

// execSource executes an INSERT … SELECT.
func (f *fill) execSource(ctx context.Context, c *conn, in *rewrite.Insert, args []driver.NamedValue) (driver.Result, error) {
	if in.Source.KeyIndex >= 0 && in.Table.KeepExplicit {
		keysOf(ctx).reset()
		return c.base.execOrPrepare(ctx, f.key.text, args, 0)
	}
	r, err := f.startSource(ctx, c, in, args)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	base, err := c.base.execOrPrepare(ctx, r.text(), r.tailArgs(), 0)
	if err != nil {
		return nil, r.explain(err)
	}
	return r.settle(ctx, base)
}

// querySource is execSource for RETURNING. The temporary tables are dropped
// when the rows are closed.
func (f *fill) querySource(ctx context.Context, c *conn, in *rewrite.Insert, args []driver.NamedValue) (driver.Rows, error) {
	if in.Source.KeyIndex >= 0 && in.Table.KeepExplicit {
		keysOf(ctx).reset()
		return c.base.queryOrPrepare(ctx, f.key.text, args, 0)
	}
	r, err := f.startSource(ctx, c, in, args)
	if err != nil {
		return nil, err
	}
	rows, err := c.base.queryOrPrepare(ctx, r.text(), r.tailArgs(), 0)
	if err != nil {
		err = r.explain(err)
		_ = r.Close()
		return nil, err
	}
	if r.keys.Len() > 0 && !in.Ignore && !in.OnDuplicate {
		r.session.owe(toInt64(r.keys.At(0)))
		if r.out != nil && int64(r.keys.Len()) == r.rows {
			r.out.values = boxed(&r.keys)
		}
	}
	return &closingRows{Rows: rows, after: r}, nil
}

// startSource runs the query and brings the keys to the server.
func (f *fill) startSource(ctx context.Context, c *conn, in *rewrite.Insert, args []driver.NamedValue) (*sourceRun, error) {
	r := &sourceRun{conn: c, fill: f, in: in, table: in.Table.Rule.(*table), args: args, out: keysOf(ctx)}
	r.out.reset()
	if in.MentionsLastID {
		if err := c.payOwed(ctx); err != nil {
			return nil, err
		}
	}
	for _, step := range []func(context.Context) error{r.saveLastID, r.readQuery, r.makeKeys} {
		if err := step(ctx); err != nil {
			f.noteFailure(c, err)
			_ = r.Close()
			return nil, err
		}
	}
	return r, nil
}

// saveLastID keeps LAST_INSERT_ID() over the numbering of the rows.
func (r *sourceRun) saveLastID(ctx context.Context) error {
	if r.in.Guarded {
		if err := r.prepareSaved(ctx); err != nil {
			return err
		}
	}
	if r.session.owed != "" {
		return nil
	}
	row, err := r.askRow(ctx, "SELECT LAST_INSERT_ID()")
	if err == nil && len(row) == 1 {
		r.session.owed = text(row[0])
	}
	return err
}

// readQuery runs the query into a table of rows with the target's types.
func (r *sourceRun) readQuery(ctx context.Context) error {
	s := r.in.Source
	if err := r.run(ctx, "DROP TEMPORARY TABLE IF EXISTS "+r.qualify(rowsTable)+", "+r.qualify(keysTable)); err != nil {
		return err
	}
	columns := make([]string, len(s.Columns))
	names := make([]string, len(s.Columns))
	for i, column := range s.Columns {
		names[i] = "`shardkey_" + strconv.Itoa(i) + "`"
		columns[i] = rewrite.QuoteIdentifier(column)
		if i == s.KeyIndex {
			columns[i] = "IF(TRUE, " + columns[i] + ", NULL)" // the key may be NULL here
		}
		columns[i] += " AS " + names[i]
	}
	err := r.run(ctx, "CREATE TEMPORARY TABLE "+r.qualify(rowsTable)+" (`shardkey_row` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY) SELECT "+
		strings.Join(columns, ", ")+" FROM "+rewrite.QuoteTable(r.in.Schema, r.in.Name)+" WHERE FALSE")
	if err != nil {
		return err
	}
	ignore := ""
	if r.in.Ignore {
		ignore = "IGNORE "
	}
	res, err := r.base.execOrPrepare(ctx, "INSERT "+ignore+"INTO "+r.qualify(rowsTable)+" ("+strings.Join(names, ", ")+") "+s.Query, r.queryArgs(), 0)
	if err != nil {
		return err
	}
	r.rows, err = res.RowsAffected()
	return err
}

// makeKeys generates a key for each row that needs one.
func (r *sourceRun) makeKeys(ctx context.Context) error {
	n, missing, err := r.countMissing(ctx)
	if err != nil {
		return err
	}
	if n > 0 {
		if r.keys, err = r.table.generate(ctx, n, &r.one); err != nil {
			return err
		}
	}
	key := "IF(TRUE, " + rewrite.QuoteIdentifier(r.in.Table.KeyColumn) + ", NULL) AS `shardkey_key`"
	err = r.run(ctx, "CREATE TEMPORARY TABLE "+r.qualify(keysTable)+" (`shardkey_row` BIGINT UNSIGNED NOT NULL PRIMARY KEY) SELECT 0 AS `shardkey_row`, "+
		key+" FROM "+rewrite.QuoteTable(r.in.Schema, r.in.Name)+" WHERE FALSE")
	last := "0"
	for done := 0; err == nil && done < n; {
		var numbers []string
		if numbers, err = r.numbers(ctx, missing, last); err == nil && len(numbers) == 0 {
			return fmt.Errorf("shardkey: %d of %d rows to fill are gone from the temporary table", n-done, n)
		}
		if err == nil {
			err = r.insertKeys(ctx, numbers, done)
			done += len(numbers)
			last = numbers[len(numbers)-1]
		}
	}
	return err
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

func (r *sourceRun) keyInRows() string {
	return rowsTable + ".`shardkey_" + strconv.Itoa(r.in.Source.KeyIndex) + "`"
}

func (r *sourceRun) numbers(ctx context.Context, missing, after string) ([]string, error) {
	var numbers []string
	err := r.queryRows(ctx, "SELECT `shardkey_row` FROM "+r.qualify(rowsTable)+" WHERE `shardkey_row` > "+after+" AND ("+missing+
		") ORDER BY `shardkey_row` LIMIT "+strconv.Itoa(keysAtOnce), func(row []driver.Value) {
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
			return fmt.Errorf("shardkey: a key of type %T cannot be given to INSERT … SELECT", r.keys.At(from+i))
		}
		query = append(query, ')')
	}
	return r.run(ctx, string(query))
}

// text is the statement over the temporary tables.
func (r *sourceRun) text() string {
	s := r.in.Source
	var columns []string
	for i := range s.Columns {
		column := rowsTable + ".`shardkey_" + strconv.Itoa(i) + "`"
		if i == s.KeyIndex {
			column = "COALESCE(" + keysTable + ".`shardkey_key`, " + column + ")"
		}
		columns = append(columns, column)
	}
	if s.KeyIndex < 0 {
		columns = append(columns, keysTable+".`shardkey_key`")
	}
	return r.in.Text("SELECT " + strings.Join(columns, ", ") + " FROM " + r.joined() + " ORDER BY " + rowsTable + ".`shardkey_row`")
}

func (r *sourceRun) joined() string {
	return r.qualify(rowsTable) + " LEFT JOIN " + r.qualify(keysTable) +
		" ON " + keysTable + ".`shardkey_row` = " + rowsTable + ".`shardkey_row`"
}

// qualify puts the temporary tables into the target's schema when it is named:
// a session need not have a current database.
func (r *sourceRun) qualify(table string) string {
	if r.in.Schema == "" {
		return table
	}
	return rewrite.QuoteIdentifier(r.in.Schema) + "." + table
}

func (r *sourceRun) queryArgs() []driver.NamedValue {
	return renumbered(r.args[:r.in.Source.QueryParams])
}

func (r *sourceRun) tailArgs() []driver.NamedValue {
	return renumbered(r.args[r.in.Source.QueryParams:])
}

func renumbered(args []driver.NamedValue) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Ordinal = i + 1
	}
	return args
}

// explain adds to the server's word about a column that ON DUPLICATE KEY
// UPDATE takes from the query's tables: they are not in the statement any more.
func (r *sourceRun) explain(err error) error {
	var my *mysql.MySQLError
	if r.in.OnDuplicate && errors.As(err, &my) && (my.Number == 1054 || my.Number == 1109) {
		return fmt.Errorf("%w: ON DUPLICATE KEY UPDATE of a filled INSERT … SELECT can use VALUES(column) and the target's columns, not the query's: %w",
			ErrUnsupportedStatement, err)
	}
	return err
}

func (r *sourceRun) run(ctx context.Context, query string) error {
	_, err := r.base.execOrPrepare(ctx, query, nil, 0)
	return err
}

// Close drops the temporary tables, also when the statement's context has
// ended. When that fails after a success, the statement's success is the truth.
func (r *sourceRun) Close() error {
	return r.run(context.Background(), "DROP TEMPORARY TABLE IF EXISTS "+r.qualify(rowsTable)+", "+r.qualify(keysTable))
}

// settle finds out what the statement came to, as settler does for rows of
// values.
func (r *sourceRun) settle(ctx context.Context, base driver.Result) (driver.Result, error) {
	affected, err := base.RowsAffected()
	if err != nil {
		return base, nil
	}
	baseID, _ := base.LastInsertId()
	existed := r.in.Guarded && baseID != 0
	var present map[string]bool // nil: all rows were inserted
	switch {
	case r.in.Ignore && affected == 0:
		present = map[string]bool{}
	case r.in.Ignore && affected != r.rows, r.in.OnDuplicate && (existed || !r.in.Guarded), r.in.Replace && affected != r.rows:
		if present, err = r.present(ctx); err != nil {
			present = map[string]bool{}
		}
	}
	id := r.report(ctx, present)
	if existed {
		r.session.metExisting()
	}
	if id == 0 && affected > 0 && present == nil && !existed && r.in.Source.KeyIndex >= 0 && r.table.kind() == rewrite.Integer {
		id = r.lastGiven(ctx)
	}
	out := &sourceResult{Result: base, id: id, run: r, present: present}
	if r.out != nil {
		r.out.values = r.values(ctx, present)
		out.keys = r.out.values
	} else if r.in.Source.KeyIndex < 0 && present == nil {
		out.keys = nil
	}
	return out, nil
}

// report tells the session the first generated key that was inserted, and
// returns it as the insert id.
func (r *sourceRun) report(_ context.Context, present map[string]bool) int64 {
	if r.table.kind() == rewrite.Text {
		return 0
	}
	for i := range r.keys.Len() {
		if key := r.keys.At(i); present == nil || present[text(key)] {
			id := toInt64(key)
			r.session.owe(id)
			return id
		}
	}
	return 0
}

func (r *sourceRun) present(ctx context.Context) (map[string]bool, error) {
	present := map[string]bool{}
	key := "`shardkey_target`." + rewrite.QuoteIdentifier(r.in.Table.KeyColumn)
	err := r.queryRows(ctx, "SELECT "+key+" FROM "+r.qualify(keysTable)+" JOIN "+rewrite.QuoteTable(r.in.Schema, r.in.Name)+
		" AS `shardkey_target` ON "+key+" = "+keysTable+".`shardkey_key`", func(row []driver.Value) {
		present[text(row[0])] = true
	})
	return present, err
}

func (r *sourceRun) lastGiven(ctx context.Context) int64 {
	row, err := r.queryRow(ctx, "SELECT "+r.keyInRows()+" FROM "+r.qualify(rowsTable)+" ORDER BY `shardkey_row` DESC LIMIT 1")
	if err != nil || len(row) != 1 {
		return 0
	}
	return toInt64(rewrite.ParseInteger(text(row[0])))
}

// values are the keys of all rows of the query, in its order. Keys that the
// query gave are known where all rows were inserted.
func (r *sourceRun) values(ctx context.Context, present map[string]bool) []any {
	values := boxed(&r.keys)
	for i, key := range values {
		if present != nil && !present[text(key)] {
			values[i] = nil
		}
	}
	if int64(len(values)) == r.rows {
		return values
	}
	all, next := make([]any, 0, r.rows), 0
	err := r.queryRows(ctx, "SELECT "+keysTable+".`shardkey_key` IS NULL, "+r.keyInRows()+" FROM "+r.joined()+
		" ORDER BY "+rowsTable+".`shardkey_row`", func(row []driver.Value) {
		switch given := text(row[0]) != "0"; {
		case !given && next < len(values):
			all = append(all, values[next])
			next++
		case present == nil:
			all = append(all, boundKey(r.table.kind(), text(row[1])))
		default:
			all = append(all, nil)
		}
	})
	if err != nil {
		return make([]any, r.rows)
	}
	return all
}

func boxed(keys *rewrite.Keys) []any {
	values := make([]any, keys.Len())
	for i := range values {
		values[i] = keys.At(i)
	}
	return values
}

// sourceResult is the result of an INSERT … SELECT.
type sourceResult struct {
	driver.Result
	id      int64
	run     *sourceRun
	present map[string]bool
	keys    []any
}

var _ KeysResult = (*sourceResult)(nil)

func (r *sourceResult) LastInsertId() (int64, error) { return r.id, nil }
func (r *sourceResult) AllLastInsertIds() []int64    { return []int64{r.id} }

func (r *sourceResult) AllRowsAffected() []int64 {
	n, err := r.RowsAffected()
	if err != nil {
		return nil
	}
	return []int64{n}
}

// Keys are known for rows whose keys were generated; for those that the query
// gave, only an execution with WithKeys asks.
func (r *sourceResult) Keys() []any {
	if r.keys != nil || int64(r.run.keys.Len()) != r.run.rows {
		return r.keys
	}
	keys := boxed(&r.run.keys)
	for i, key := range keys {
		if r.present != nil && !r.present[text(key)] {
			keys[i] = nil
		}
	}
	return keys
}
