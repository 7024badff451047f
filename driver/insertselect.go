package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// An INSERT … SELECT can't get its keys in its text: how many rows there are is known only after
// the query has run. So the query is read to its end, a key is generated for each row that needs
// one, and the rows are inserted as values. All of it is one transaction, or stands behind a
// savepoint of the caller's transaction. Values are read and written in the binary protocol.

const (
	sourceRowsAtOnce  = 5000    // rows of one INSERT
	sourceBytesAtOnce = 1 << 20 // and bytes
)

// Numbers of the server's errors.
const (
	syntaxError   = 1064
	lockedForRead = 1099
	notLocked     = 1100 // under LOCK TABLES
	tableDenied   = 1142
	columnDenied  = 1143
	notSupported  = 1235
	noFeature     = 1295
	noSavepoint   = 1305
)

// insertSelect is one execution of an INSERT … SELECT.
type insertSelect struct {
	*session.Session
	plan  *plan
	in    *rewrite.Insert
	table *table
	key   *session.Column
	args  []driver.NamedValue
	out   *keysRing
	sent  sending // of the INSERT at hand

	inside   bool  // behind a savepoint in the caller's transaction
	outside  bool  // in a transaction of our own
	noBounds error // why neither could be had

	rows    sourceRows
	n       int  // rows that the query returned
	missing int  // rows that need a key
	utf8    bool // arguments are read as UTF-8
	limit   int  // bytes of an INSERT
	// parsesTime: the base returns dates as time.Time.
	parsesTime bool
	shard      int          // the query's column whose shard the keys carry; -1 for none
	fits       []spi.KeyFit // the keys with the shard bits of each row that needs one
	given      []any        // the keys that the query returned, for WithKeys
	last       any          // the key that the query returned with the last row

	keys rewrite.Keys // the generated ones
	one  [1]int64
	// carries: the first INSERT passes the first generated key to LAST_INSERT_ID().
	carries bool

	row      []sourceValue // the next row to insert
	from, to int           // the rows of the INSERT at hand
	made, at int           // the generated keys before it, and after it
	more     bool
	affected int64
	insertID int64
	existed  bool   // an upsert matched a row that existed
	dropped  []bool // generated keys that are not in the table; nil: all are
}

// InsertSelectError is the error for an INSERT … SELECT into a sharded table whose rows cannot be
// copied. No row was inserted. [ErrUnsupportedStatement] is in its chain.
type InsertSelectError struct {
	Table  string // the target, quoted
	Reason string // why not, and the remedy
	Err    error  // the cause; may be nil
}

func (e *InsertSelectError) Error() string {
	text := fmt.Sprintf("%v: INSERT … SELECT into %s: %s", ErrUnsupportedStatement, e.Table, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *InsertSelectError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnsupportedStatement}
	}
	return []error{ErrUnsupportedStatement, e.Err}
}

func (r *insertSelect) refuse(reason string, err error) error {
	return &InsertSelectError{Table: sqltext.QuoteTable(r.in.Schema, r.in.Name), Reason: reason, Err: err}
}

// errTransactionSet is the error for an INSERT … SELECT that SET TRANSACTION precedes: its
// query, which is sent first, would take what is set for the INSERT.
var errTransactionSet = fmt.Errorf("%w: INSERT … SELECT after SET TRANSACTION; begin a transaction before it, or use SET SESSION TRANSACTION", ErrUnsupportedStatement)

// executeSource executes an INSERT … SELECT.
func (p *plan) executeSource(ctx context.Context, s *session.Session, out *keysRing, args []driver.NamedValue, want base.Want) (base.Reply, error) {
	t := &p.targets[0]
	switch {
	case s.PendingTransaction():
		return base.Reply{}, errTransactionSet
	case t.in.KeepsSource():
		return p.executeKeptSource(ctx, s, args, want)
	}
	if err := s.CheckAsk(p.key.text); err != nil {
		return base.Reply{}, err
	}
	r := &insertSelect{Session: s, plan: p, in: t.in, table: t.table, key: t.column, args: args, out: out}
	for _, step := range []func(context.Context) error{r.KnowLastID, r.SyncLastID, r.readRows, r.makeKeys, r.SyncLastID, r.insertRows} {
		if err := step(ctx); err != nil {
			return base.Reply{}, r.failed(ctx, err)
		}
	}
	start := time.Now()
	reply, err := r.sent.to(ctx, r.Base, want)
	switch {
	case err != nil:
		err = r.failed(ctx, err)
	case want == base.WantRows:
		reply.Rows, err = r.settleRows(ctx, reply.Rows)
	default:
		reply.Result, err = r.settle(ctx, reply.Result)
	}
	if p.rules.logger.Enabled(ctx, slog.LevelDebug) {
		logSent(ctx, p, &r.sent, r.keys.Len(), time.Since(start), err)
	}
	return reply, err
}

// executeKeptSource executes an INSERT … SELECT whose rows all have keys: it is sent as it is.
func (p *plan) executeKeptSource(ctx context.Context, s *session.Session, args []driver.NamedValue, want base.Want) (base.Reply, error) {
	s.ForInsert = p.key.text
	use, err := s.BeforePass(ctx, p.key.text, rewrite.ClassMayInsert, nil, true)
	s.ForInsert = ""
	if err != nil {
		return base.Reply{}, err
	}
	r, err := s.Base.Send(ctx, p.key.text, args, 0, want)
	s.AfterPass(ctx, use, nil, nil, err)
	return r, err
}

// readRows runs the query and keeps its rows.
func (r *insertSelect) readRows(ctx context.Context) error {
	if err := r.learn(ctx); err != nil {
		return err
	}
	set, restore, err := r.askSession(ctx)
	if err != nil {
		return err
	}
	if err := r.startTransaction(ctx); err != nil {
		return err
	}
	query := func(lock string) string { return r.in.Source.Query + lock }
	if r.parsesTime {
		if query, err = r.withDatesAsText(ctx, query); err != nil {
			return err
		}
	}
	if err := r.send(ctx, set); err != nil {
		return err
	}
	columns, err := r.keepRows(ctx, query)
	if again := r.send(context.Background(), restore); again != nil {
		r.Base.Retire()
		err = cmp.Or(err, again)
	}
	if columns != len(r.in.Source.Columns) && err == nil {
		return cmp.Or(r.columnCountError(ctx, columns), r.refuse(fmt.Sprintf("expected %d columns of the query, found %d", len(r.in.Source.Columns), columns), nil))
	}
	if r.in.MentionsLastID && r.n > 0 {
		r.LastID.Moved() // the query may have called LAST_INSERT_ID(expr)
	}
	return cmp.Or(err, r.rows.rewind())
}

// learn asks for what depends on the rows' values: nothing can be asked while they are read.
func (r *insertSelect) learn(ctx context.Context) (err error) {
	if r.in.Source.KeyIndex >= 0 {
		if r.table.kind() == rewrite.KindUnknown {
			if err := r.table.learnKind(ctx); err != nil {
				return err
			}
		}
		if _, _, err := r.Mode(ctx); err != nil {
			return err
		}
		if _, err := r.KeyColumn(r.in).KeepsStrings(ctx, r.Session); err != nil {
			return err
		}
	}
	if r.shard = -1; r.table.genes != nil {
		r.shard, err = r.geneColumn(ctx)
	}
	return err
}

// askSession asks how text travels, whether the base returns dates as time.Time, and for the
// limits of rows and bytes. It returns the statements that change variables for the query, and
// restore them; both may be empty.
func (r *insertSelect) askSession(ctx context.Context) (set, restore string, err error) {
	row, err := r.QueryRow(ctx, "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, "+
		"@@sql_select_limit, @@max_allowed_packet, CAST('2000-01-02' AS DATE) LIMIT 1")
	if err != nil {
		return "", "", err
	}
	if len(row) != 6 {
		return "", "", r.refuse(fmt.Sprintf("expected 6 columns about the session, found %d", len(row)), nil)
	}
	_, r.parsesTime = row[5].(time.Time)
	isUTF8 := func(v driver.Value) bool { return strings.EqualFold(session.Text(v), "utf8mb4") }
	r.utf8 = isUTF8(row[0]) && isUTF8(row[1])
	const rest = 4 << 10 // for what stands around the rows
	packet, _ := strconv.Atoi(session.Text(row[4]))
	if most := r.Client().MaxAllowedPacket; most > 0 {
		packet = min(packet, most)
	}
	r.limit = max(min(packet-rest, sourceBytesAtOnce), 1)
	change := func(variable, value, former string) {
		if set == "" {
			set, restore = "SET ", "SET "
		} else {
			set, restore = set+", ", restore+", "
		}
		set, restore = set+variable+" = "+value, restore+variable+" = "+former
	}
	if charset := cmp.Or(session.Text(row[2]), "NULL"); !isUTF8(row[2]) {
		if !plainName.MatchString(charset) {
			return "", "", r.refuse(fmt.Sprintf("unknown character set %q of results", charset), nil)
		}
		change("character_set_results", "utf8mb4", charset)
	}
	const none, noneInVitess = 1<<63 - 1, "0"
	limit := session.Text(row[3])
	if n, err := strconv.ParseUint(limit, 10, 64); err == nil && n < none && !(limit == noneInVitess && r.IsVitess()) {
		change("sql_select_limit", strconv.FormatInt(none, 10), limit)
	}
	return set, restore, nil
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// send executes a statement, if there is one.
func (r *insertSelect) send(ctx context.Context, query string) error {
	if query == "" {
		return nil
	}
	_, err := r.Base.Send(ctx, query, nil, 0, base.WantResult)
	return err
}

// withDatesAsText looks which columns of the query are dates. The base makes a time.Time of them,
// which has no 2024-00-00, nor an hour that its location left out. It returns a query that
// converts them to text. Looking doesn't run the query.
func (r *insertSelect) withDatesAsText(ctx context.Context, query func(lock string) string) (func(lock string) string, error) {
	names, nulls := make([]string, len(r.in.Source.Columns)), make([]string, len(r.in.Source.Columns))
	for i := range names {
		names[i] = "c" + strconv.Itoa(i)
		nulls[i] = "NULL AS " + names[i]
	}
	const rows = "shardkey_rows"
	from := func(columns, query string) string {
		if r.IsVitess() { // which doesn't name the columns of WITH
			return "SELECT " + columns + " FROM (" + query + ") AS " + rows
		}
		return "WITH " + rows + " (" + strings.Join(names, ", ") + ") AS (" + query + ") SELECT " + columns + " FROM " + rows
	}
	look := "SELECT * FROM (SELECT " + strings.Join(nulls, ", ") + " UNION ALL (" + query("") + ")) AS " + rows
	if startsWith.MatchString(query("")) || r.IsVitess() {
		look = from("*", query(""))
	}
	found, err := r.openPrepared(ctx, look+" LIMIT 0")
	switch {
	case err != nil && session.IsFatal(ctx, err):
		return nil, err
	case err != nil:
		return query, nil // the query itself shows what is wrong
	}
	columns, dates := slices.Clone(found.Columns()), false
	for i, typ := range columnTypes(found) {
		if columns[i] = sqltext.QuoteIdentifier(columns[i]); isDate(typ) {
			columns[i], dates = "CAST("+columns[i]+" AS CHAR)", true
		}
	}
	if err := found.Close(); err != nil || !dates {
		return query, err
	}
	return func(lock string) string {
		if r.in.Source.Unlimited { // else its order may be dropped
			lock = session.AllRows + lock
		}
		return from(strings.Join(columns, ", "), query(lock))
	}, nil
}

var startsWith = regexp.MustCompile(`(?i)^with\b`)

// columnTypes returns the types of a query's columns, as the base names them; empty where it
// doesn't.
func columnTypes(rows driver.Rows) []string {
	types := make([]string, len(rows.Columns()))
	if named, ok := rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		for i := range types {
			types[i] = named.ColumnTypeDatabaseTypeName(i)
		}
	}
	return types
}

// isDate reports whether the base makes a time.Time of a type's values with parseTime.
func isDate(typ string) bool { return typ == "DATE" || typ == "DATETIME" || typ == "TIMESTAMP" }

// openQuery runs the query as a prepared statement. What it reads is locked as INSERT … SELECT
// locks it, where the query and the server let it.
func (r *insertSelect) openQuery(ctx context.Context, query func(lock string) string) (driver.Rows, error) {
	server, err := r.Server(ctx)
	if err != nil {
		return nil, err
	}
	if server.ShareLocks && r.in.Source.Lockable {
		rows, err := r.openPrepared(ctx, query(" LOCK IN SHARE MODE"))
		if !base.IsServerError(err, syntaxError, notSupported, tableDenied, columnDenied, notLocked, lockedForRead, noFeature) {
			return rows, err
		}
	}
	return r.openPrepared(ctx, query(""))
}

func (r *insertSelect) openPrepared(ctx context.Context, query string) (driver.Rows, error) {
	reply, err := r.Base.SendPrepared(ctx, query, renumbered(r.args[:r.in.Source.QueryParams], 0), 0, base.WantRows)
	return reply.Rows, err
}

// renumbered returns arguments as those that follow n others.
func renumbered(args []driver.NamedValue, n int) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Ordinal = n + i + 1
	}
	return args
}

// keepRows reads all rows of the query, and returns how many columns it has.
func (r *insertSelect) keepRows(ctx context.Context, query func(lock string) string) (columns int, err error) {
	rows, err := r.openQuery(ctx, query)
	if err != nil {
		return 0, err
	}
	defer func() { err = cmp.Or(err, rows.Close()) }()
	types := columnTypes(rows)
	switch {
	case len(types) != len(r.in.Source.Columns):
		return len(types), nil
	case r.parsesTime && slices.ContainsFunc(types, isDate):
		return 0, r.refuse("the server can't convert the dates of the query, which parseTime=true would change; select them as CAST(… AS CHAR)", nil)
	}
	values, row := make([]driver.Value, len(types)), make([]sourceValue, len(types))
	for {
		switch err := rows.Next(values); {
		case err == io.EOF:
			return len(types), nil
		case err != nil:
			return 0, err
		}
		if r.n++; r.n > maxSourceRows {
			return 0, r.refuse(fmt.Sprintf("the query returns more than %d rows; insert them in parts", maxSourceRows), nil)
		}
		if err := r.keepRow(ctx, row, values, types); err != nil {
			return 0, err
		}
	}
}

func (r *insertSelect) keepRow(ctx context.Context, row []sourceValue, values []driver.Value, types []string) (err error) {
	missing := r.in.Source.KeyIndex < 0
	for i, v := range values {
		if row[i], err = sourceValueOf(v, types[i]); err != nil {
			return r.refuse("column "+sqltext.QuoteIdentifier(r.in.Source.Columns[i]), err)
		}
		if i != r.in.Source.KeyIndex {
			continue
		}
		if missing, err = r.keepKey(ctx, v); err != nil {
			return err
		}
		if missing {
			row[i] = sourceValue{kind: valueMissing}
		}
	}
	if missing {
		r.missing++
	}
	if missing && r.shard >= 0 {
		fit, err := r.fitOfRow(ctx, len(r.fits), values[r.shard])
		if err != nil {
			return err
		}
		r.fits = append(r.fits, fit)
	}
	if err := r.rows.add(row); err != nil {
		return r.refuse("its rows cannot be kept", err)
	}
	return nil
}

// keepKey reports whether the key that the query returned for a row asks for one.
func (r *insertSelect) keepKey(ctx context.Context, v driver.Value) (missing bool, err error) {
	if missing, err = r.table.isMissing(ctx, r.Session, v, r.in, int(r.n-1)); err != nil {
		return missing, err
	}
	if r.last = nil; !missing {
		r.last = boundKey(r.table.kind(), v)
	}
	switch {
	case r.out == nil:
	case missing:
		r.given = append(r.given, toGenerate{})
	default:
		r.given = append(r.given, r.last)
	}
	return missing, nil
}

// toGenerate stands for a key that is to be generated.
type toGenerate struct{}

// columnCountError inserts no rows of so many columns, and returns the server's error; nil when
// there is none.
func (r *insertSelect) columnCountError(ctx context.Context, columns int) error {
	if r.in.Source.TailParams > 0 || r.in.Returning {
		return nil
	}
	return r.send(ctx, r.in.Text(r.noRows(columns)))
}

// noRows is a query of no rows, with the key after so many columns unless it is among them.
func (r *insertSelect) noRows(columns int) string {
	if r.in.Source.KeyIndex < 0 {
		columns++
	}
	return "SELECT NULL" + strings.Repeat(", NULL", max(columns-1, 0)) + " FROM DUAL WHERE FALSE"
}

// makeKeys generates a key for each row that needs one.
func (r *insertSelect) makeKeys(ctx context.Context) error {
	n := r.missing
	if n == 0 {
		_, err := r.key.Learn(ctx, r.Session)
		return err
	}
	var err error
	if r.fits != nil {
		r.keys.Ints = make([]int64, n)
		err = r.table.generateEach(ctx, r.keys.Ints, r.fits)
	} else {
		r.keys, err = r.plan.targets[0].generate(ctx, n, &r.one)
	}
	if err != nil {
		return err
	}
	r.table.counts.filled(n)
	if err := r.table.checkKeys(ctx, r.Session, r.key, &r.keys); err != nil {
		return err
	}
	if n > 1 && r.out == nil {
		if err := r.plan.rules.checkConsecutive(ctx, r.table, &r.keys); err != nil {
			return err
		}
	}
	if err := r.plan.rules.tellFilled(ctx, r.table, n, &r.keys); err != nil {
		return err
	}
	r.carries, err = r.carriesKey(ctx)
	return err
}

// carriesKey reports whether the first INSERT can pass the first key to LAST_INSERT_ID(): an
// ignored row, or one that exists, would leave a key that is in no row.
func (r *insertSelect) carriesKey(ctx context.Context) (bool, error) {
	if r.in.Ignore || r.in.OnDuplicate || r.in.MentionsLastID {
		return false, nil
	}
	switch key := r.keys.At(0).(type) {
	case uint64:
	case int64:
		if key < 0 {
			return false, nil
		}
	default:
		return false, nil
	}
	server, err := r.Server(ctx)
	return err == nil && server.InsertIDs, err
}

// insertRows sends all INSERTs but the last.
func (r *insertSelect) insertRows(ctx context.Context) error {
	tail := r.args[r.in.Source.QueryParams:]
	if r.n == 0 {
		r.sent = sending{text: r.in.Text(r.noRows(len(r.in.Source.Columns))), args: renumbered(tail, 0)}
		return nil
	}
	r.row = make([]sourceValue, len(r.in.Source.Columns))
	if err := r.rows.next(r.row); err != nil {
		return err
	}
	for {
		values, args, err := r.nextValues(len(tail))
		if err != nil {
			return err
		}
		if err := r.prepare(ctx, r.in.Text(values), append(args, renumbered(tail, len(args))...)); err != nil {
			return err
		}
		switch {
		case !r.more:
			return nil
		case r.in.Returning:
			return r.refuse(fmt.Sprintf("with RETURNING its rows must fit into one INSERT of %d bytes and %d rows; insert them in parts", r.limit, sourceRowsAtOnce), nil)
		case r.noBounds != nil:
			return r.refuse("more than one INSERT is needed, and the server has no savepoint to find out whether there is a transaction", r.noBounds)
		}
		reply, err := r.sent.to(ctx, r.Base, base.WantResult)
		if err != nil {
			return err
		}
		r.inserted(ctx, reply.Result)
	}
}

// prepare makes the statement ready that is sent next: often it is the former one.
func (r *insertSelect) prepare(ctx context.Context, query string, args []driver.NamedValue) error {
	if r.sent.stmt != nil && r.sent.text == query {
		r.sent.args = args
		return r.sent.stmt.CheckArgs(args, 0)
	}
	r.closeStmt()
	r.sent = sending{text: query, args: args}
	stmt, err := r.Base.PrepareFor(ctx, query, args, 0)
	if err == nil {
		r.sent.stmt = &stmt
	}
	return err
}

func (r *insertSelect) closeStmt() {
	if r.sent.stmt != nil {
		_ = r.sent.stmt.Close()
		r.sent.stmt = nil
	}
}

// nextValues returns the values of the next INSERT, which has so many arguments behind them.
func (r *insertSelect) nextValues(tail int) (string, []driver.NamedValue, error) {
	r.from, r.made = r.to, r.at
	most := min(sourceRowsAtOnce, max((base.MaxPlaceholders-tail)/(len(r.row)+1), 1))
	query, null := []byte("VALUES "), false
	args := r.sent.args[:0]
	for size := sizeOf(r.row); ; {
		if r.to > r.from {
			query = append(query, ',')
		}
		query = append(query, '(')
		for i := range r.row {
			if i > 0 {
				query = append(query, ',')
			}
			if r.row[i].kind == valueMissing {
				query, args = r.appendKey(query, args)
				continue
			}
			null = null || r.row[i].kind == valueNull
			query, args = r.row[i].appendTo(query, args, r.utf8)
		}
		if r.in.Source.KeyIndex < 0 {
			query, args = r.appendKey(append(query, ','), args)
		}
		query = append(query, ')')
		r.to++
		err := r.rows.next(r.row)
		if r.more = err == nil; err != nil && err != io.EOF {
			return "", nil, err
		}
		if size += sizeOf(r.row); !r.more || size > r.limit || r.to-r.from >= most {
			return r.asSource(query, null), args, nil
		}
	}
}

// asSource makes a query of one row of values: without strict mode the server takes a NULL for a
// column that has none in INSERT … SELECT and in VALUES of many rows, and refuses it in VALUES of
// one. (Vitess gets values: it need not look which shards.)
func (r *insertSelect) asSource(values []byte, null bool) string {
	if r.to-r.from > 1 || r.IsVitess() || !null {
		return string(values)
	}
	return "SELECT " + string(values[len("VALUES ("):len(values)-len(")")]) + " FROM DUAL"
}

// appendKey appends the next generated key.
func (r *insertSelect) appendKey(query []byte, args []driver.NamedValue) ([]byte, []driver.NamedValue) {
	tells := r.carries && r.at == 0
	if tells {
		query = append(query, "LAST_INSERT_ID("...)
	}
	v := keyValue(r.keys.At(r.at))
	if query, args = v.appendTo(query, args, r.utf8); tells {
		query = append(query, ')')
	}
	r.at++
	return query, args
}

const savepoint = "shardkey_rows"

// startTransaction puts what follows behind a savepoint where there is a transaction, which shows
// by the savepoint being there afterwards, and into a transaction of our own otherwise. (START
// TRANSACTION would end LOCK TABLES.) Rows that are returned come from one INSERT.
func (r *insertSelect) startTransaction(ctx context.Context) error {
	if r.in.Returning {
		return nil
	}
	err := r.send(ctx, "SAVEPOINT "+savepoint)
	if err == nil {
		err = r.send(ctx, "ROLLBACK TO SAVEPOINT "+savepoint)
	}
	switch {
	case err == nil:
		r.inside = true
	case session.IsFatal(ctx, err):
		return err
	case base.IsServerError(err, noSavepoint):
		r.outside = true
		return r.send(ctx, "SET autocommit = 0")
	default:
		r.noBounds = err
	}
	return nil
}

// endTransaction makes the rows permanent.
func (r *insertSelect) endTransaction(ctx context.Context) error {
	switch {
	case r.inside:
		r.inside = false
		return r.send(ctx, "RELEASE SAVEPOINT "+savepoint)
	case r.outside:
		if err := r.send(ctx, "COMMIT"); err != nil {
			return err
		}
		r.leave()
	}
	return nil
}

// undo removes what was inserted, also when the statement's context has ended. Where the server
// has ended the transaction itself, for example after a deadlock, the savepoint is gone.
func (r *insertSelect) undo() {
	ctx := context.Background()
	switch {
	case r.inside:
		err := r.send(ctx, "ROLLBACK TO SAVEPOINT "+savepoint)
		if err == nil {
			err = r.send(ctx, "RELEASE SAVEPOINT "+savepoint)
		}
		if err != nil && !base.IsServerError(err, noSavepoint) {
			r.Base.Retire()
		}
	case r.outside:
		if err := r.send(ctx, "ROLLBACK"); err != nil {
			r.Base.Retire()
		}
		r.leave()
	}
	r.inside = false
}

// leave makes the session's statements transactions of their own again.
func (r *insertSelect) leave() {
	if err := r.send(context.Background(), "SET autocommit = 1"); err != nil {
		r.Base.Retire()
	}
	r.outside = false
}

func (r *insertSelect) failed(_ context.Context, err error) error {
	r.closeStmt()
	r.undo()
	_ = r.rows.close()
	if r.carries || r.in.Guarded || r.in.MentionsLastID {
		r.LastID.Moved()
	}
	_ = r.SyncLastID(context.Background())
	return r.explain(err)
}

// atRow is the end of a server's message that counts the rows of one INSERT.
var atRow = regexp.MustCompile(` at row ([0-9]+)$`)

// explain turns the server's error about an INSERT of values into one about the statement.
func (r *insertSelect) explain(err error) error {
	var my *mysql.MySQLError
	switch {
	case !errors.As(err, &my):
		return err
	case r.to > 0 && r.usesQuery(my):
		return fmt.Errorf("%w: ON DUPLICATE KEY UPDATE of an INSERT … SELECT into a sharded table can use VALUES(column) and the target's columns, not the query's: %w",
			ErrUnsupportedStatement, err)
	}
	if at := atRow.FindStringSubmatchIndex(my.Message); at != nil && r.from > 0 && err == error(my) {
		if n, bad := strconv.Atoi(my.Message[at[2]:at[3]]); bad == nil {
			counted := *my
			counted.Message = my.Message[:at[2]] + strconv.Itoa(r.from+n) + my.Message[at[3]:]
			err = &counted
		}
	}
	return r.plan.failed(err)
}

// usesQuery reports whether an error is about ON DUPLICATE KEY UPDATE that uses the query's
// tables, which the INSERT of values doesn't have.
func (r *insertSelect) usesQuery(err *mysql.MySQLError) bool {
	const unknownColumn, unknownTable = 1054, 1109
	isTargets := func(column string) bool { return strings.Contains(err.Message, "'"+column+"'") }
	return r.in.OnDuplicate && (err.Number == unknownColumn || err.Number == unknownTable) && !slices.ContainsFunc(r.in.Source.Columns, isTargets)
}

// inserted notes the result of an INSERT; nil where it was sent for rows.
func (r *insertSelect) inserted(ctx context.Context, res driver.Result) {
	affected, id, rows := int64(unknownCount), int64(0), int64(r.to-r.from)
	if res != nil {
		id, _ = res.LastInsertId()
		if n, err := res.RowsAffected(); err == nil {
			affected = n
		}
	}
	existed := r.in.Guarded && id != 0
	r.existed = r.existed || existed || r.in.OnDuplicate && affected != unknownCount && affected != rows
	if id != 0 {
		r.insertID = id
	}
	if affected != unknownCount {
		r.affected += affected
	}
	switch {
	case rows == 0:
	case r.in.Ignore && affected == 0:
		r.drop(r.made, func(int) bool { return false })
	case r.in.Ignore && affected != rows, r.in.OnDuplicate && (existed || !r.in.Guarded), r.in.Replace && affected != rows, r.key.IsTriggered():
		from := r.made
		if r.in.Replace {
			from = 0 // rows of the INSERTs before may have been replaced
		}
		r.look(ctx, from)
	}
}

// drop notes which of the generated keys, from one on, are in the table.
func (r *insertSelect) drop(from int, present func(i int) bool) {
	if r.dropped == nil {
		r.dropped = make([]bool, r.keys.Len())
	}
	for i := from; i < r.at; i++ {
		r.dropped[i] = !present(i)
	}
}

// look asks which of the generated keys are in the table. If that fails, none is reported.
func (r *insertSelect) look(ctx context.Context, from int) {
	keys := make([]any, 0, r.at-from)
	for i := from; i < r.at; i++ {
		keys = append(keys, r.keys.At(i))
	}
	present, err := r.PresentKeys(ctx, r.in, keys)
	r.drop(from, func(i int) bool { return err == nil && present[session.Text(r.keys.At(i))] })
}

// settle finds the statement's result, as execution.settle does for rows of values.
func (r *insertSelect) settle(ctx context.Context, base driver.Result) (driver.Result, error) {
	r.inserted(ctx, base)
	return r.end(ctx)
}

// settleRows is settle for a statement that was sent for rows. Those of RETURNING come from the
// only INSERT that there is, and its result is known once they are closed.
func (r *insertSelect) settleRows(ctx context.Context, sent driver.Rows) (driver.Rows, error) {
	if !r.in.Returning {
		if err := sent.Close(); err != nil {
			return nil, r.failed(ctx, err)
		}
		r.inserted(ctx, nil)
		if _, err := r.end(ctx); err != nil {
			return nil, err
		}
		return sent, nil
	}
	return base.OnClose(sent, func(err error) {
		ctx := context.Background() // the execution's own may have ended
		if err != nil {
			_ = r.failed(ctx, err)
			return
		}
		r.look(ctx, 0)
		_, _ = r.end(ctx)
	}), nil
}

func (r *insertSelect) end(ctx context.Context) (driver.Result, error) {
	r.closeStmt()
	if err := r.endTransaction(ctx); err != nil {
		return nil, r.failed(ctx, err)
	}
	_ = r.rows.close()
	id, ok := r.firstInserted()
	r.keepLastID(id, ok)
	_ = r.SyncLastID(ctx) // else it is made right before a statement that mentions it
	if !ok && r.affected > 0 && r.dropped == nil && !r.existed {
		id = toInt64(r.last)
	}
	res := &insertSelectResult{Result: driver.RowsAffected(r.affected), id: id, run: r}
	if r.out != nil {
		res.keys = r.allKeys()
		r.out.set(r.plan, res.keys)
	}
	return res, nil
}

// firstInserted is the first generated key that was inserted.
func (r *insertSelect) firstInserted() (id int64, ok bool) {
	if r.table.kind() == rewrite.KindText {
		return 0, false
	}
	for i := range r.keys.Len() {
		if r.dropped == nil || !r.dropped[i] {
			return toInt64(r.keys.At(i)), true
		}
	}
	return 0, false
}

// keepLastID remembers what LAST_INSERT_ID() must return after the statement.
func (r *insertSelect) keepLastID(id int64, inserted bool) {
	switch {
	case r.carries:
		r.LastID.Told(uint64(toInt64(r.keys.At(0))))
	case inserted:
		r.LastID.Set(uint64(id))
	case r.in.MentionsLastID && r.insertID != 0:
		r.LastID.Set(uint64(r.insertID)) // it called LAST_INSERT_ID(expr)
	case r.in.Guarded, r.in.MentionsLastID:
		r.LastID.Moved()
	}
}

// madeKeys are the generated keys; nil stands for one that was not inserted.
func (r *insertSelect) madeKeys() []any {
	keys := make([]any, r.keys.Len())
	for i := range keys {
		if r.dropped == nil || !r.dropped[i] {
			keys[i] = r.keys.At(i)
		}
	}
	return keys
}

// allKeys are the keys of all rows of the query, in its order. Keys that the query returned are
// known where all rows were inserted.
func (r *insertSelect) allKeys() []any {
	made := r.madeKeys()
	if r.in.Source.KeyIndex < 0 {
		return made
	}
	all, next := make([]any, len(r.given)), 0
	for i, given := range r.given {
		switch {
		case given == toGenerate{}:
			all[i] = made[next]
			next++
		case r.dropped == nil:
			all[i] = given
		}
	}
	return all
}

// insertSelectResult is the result of an INSERT … SELECT.
type insertSelectResult struct {
	driver.Result
	id   int64
	run  *insertSelect
	keys []any
}

var _ KeysResult = (*insertSelectResult)(nil)

func (r *insertSelectResult) LastInsertId() (int64, error) { return r.id, nil }
func (r *insertSelectResult) AllLastInsertIds() []int64    { return []int64{r.id} }
func (r *insertSelectResult) AllRowsAffected() []int64     { return []int64{r.run.affected} }

// Keys are known for rows whose keys were generated; keys that the query returned are kept only
// for an execution with WithKeys.
func (r *insertSelectResult) Keys() []any {
	if r.keys != nil || r.run.keys.Len() != r.run.n {
		return r.keys
	}
	return r.run.madeKeys()
}
