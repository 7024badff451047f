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
	"github.com/shardkey/shardkey/driver/internal/spool"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// The number of rows of an INSERT … SELECT is known only after its query has run, so keys can't be
// added to the statement. Instead the driver runs the query, generates a key for each row that
// needs one, and inserts the rows as values. Values are read and written in the binary protocol.
//
// The rows that the query reads must stay unchanged until the INSERT has run. So all steps run in
// one transaction, or behind a savepoint of the caller's transaction, even for a single INSERT.

const (
	sourceRowsAtOnce  = 5000    // rows of one INSERT
	sourceBytesAtOnce = 1 << 20 // bytes of one INSERT
	sourceKeysAtOnce  = 1000    // keys in one query for existing keys
)

// Error numbers of the server.
const (
	syntaxError   = 1064
	lockedForRead = 1099
	notLocked     = 1100 // with LOCK TABLES
	tableDenied   = 1142
	columnDenied  = 1143
	notSupported  = 1235
	noFeature     = 1295
	noSavepoint   = 1305
	inTransaction = 1568
)

// insertSelect is one execution of an INSERT … SELECT, and its result.
type insertSelect struct {
	*session.Session
	plan  *plan
	in    *rewrite.Insert
	table *table
	key   *session.Column
	args  []driver.NamedValue
	out   *keysRing

	// query selects the rows. It ends where a locking clause can follow; afterLock is the rest.
	query, afterLock string

	transport *session.Transport
	// commit and rollback are the statements that end the transaction, or return to the savepoint.
	commit, rollback []string

	rows    spool.Rows
	row     []spool.Value // the current row; the key is the last value unless the statement lists it
	n       int           // number of rows of the query
	missing int           // number of rows that need a key
	shard   int           // index of the query's column for shard bits; -1 for none
	drawn   *geneRows     // rows that need a key with shard bits; nil if keys have none
	given   []any         // the query's keys, for WithKeys; spool.Missing for none
	last    any           // the query's key of the last row

	keys rewrite.Keys // the generated keys
	one  [1]int64
	// carries: the first INSERT passes the first generated key to LAST_INSERT_ID().
	carries bool

	from, to int       // the rows of the current INSERT
	made, at int       // the number of generated keys before and after the current INSERT
	stmt     base.Stmt // the prepared INSERT of many rows, which the next INSERT often repeats
	sent     sending

	affected int64
	insertID int64
	existed  bool   // an upsert matched an existing row
	doubt    int    // the first generated key that may be missing in the table
	dropped  []bool // generated keys that are missing in the table; nil: none
	id       int64
}

var _ mysql.Result = (*insertSelect)(nil)

func (r *insertSelect) refuse(reason string, err error) error {
	if err != nil {
		reason += ": " + plainText(err, "")
	}
	return refuseSource(r.in, reason, err)
}

// refuseSource returns the error for an INSERT … SELECT whose rows can't be copied. err may be nil.
func refuseSource(in *rewrite.Insert, message string, err error) error {
	return &StatementError{Reason: reasonUnsupported, Table: nameOf(in), Message: "INSERT … SELECT: " + message, Err: err}
}

// executeSource executes an INSERT … SELECT.
func (p *plan) executeSource(
	ctx context.Context, s *session.Session, out *keysRing, args []driver.NamedValue, want base.Want,
) (base.Reply, error) {
	t := &p.targets[0]
	switch {
	case s.PendingTransaction():
		// The query is sent first, and would use up SET TRANSACTION.
		return base.Reply{}, refuseSource(t.in, "SET TRANSACTION precedes it; begin a transaction first, "+
			"or use SET SESSION TRANSACTION", nil)
	case t.in.KeepsSource():
		return p.executeKeptSource(ctx, s, args, want)
	}
	if err := s.CheckAsk(p.key.text); err != nil {
		return base.Reply{}, err
	}
	r := p.newInsertSelect(s)
	r.args, r.out = args, out
	start := time.Now()
	reply, err := r.run(ctx, want)
	if err != nil {
		err = r.failed(err)
	}
	if p.rules.logger.Enabled(ctx, slog.LevelDebug) {
		logSent(ctx, p, &r.sent, r.keys.Len(), time.Since(start), err)
	}
	return reply, err
}

// executeKeptSource executes an INSERT … SELECT whose rows all have keys. It sends the statement
// unchanged.
func (p *plan) executeKeptSource(
	ctx context.Context, s *session.Session, args []driver.NamedValue, want base.Want,
) (base.Reply, error) {
	s.ForInsert = p.key.text
	use, err := s.BeforePass(ctx, p.key.text, sqltoken.ClassMayInsert, nil, true)
	if s.ForInsert = ""; err != nil {
		return base.Reply{}, err
	}
	r, err := s.Base.Send(ctx, p.key.text, args, 0, want)
	s.AfterPass(ctx, use, nil, nil, err)
	return r, err
}

func (p *plan) newInsertSelect(s *session.Session) *insertSelect {
	t := &p.targets[0]
	return &insertSelect{Session: s, plan: p, in: t.in, table: t.table, key: t.column, query: t.in.Source.Query}
}

// checkSource returns the error with which every execution of an INSERT … SELECT is refused.
func (p *plan) checkSource(ctx context.Context, s *session.Session) error {
	if p.targets[0].in.KeepsSource() {
		return nil
	}
	if err := s.CheckAsk(p.key.text); err != nil {
		return err
	}
	s.ForInsert = ""
	return p.newInsertSelect(s).learn(ctx)
}

// run executes the statement. If it returns an error, the caller calls failed.
func (r *insertSelect) run(ctx context.Context, want base.Want) (base.Reply, error) {
	for _, step := range []func(context.Context) error{
		r.AskCacheLimit, r.KnowLastID, r.SyncLastID, r.learn, r.askTransport, r.startTransaction, r.readRows, r.makeKeys,
		r.SyncLastID,
	} {
		if err := step(ctx); err != nil {
			return base.Reply{}, err
		}
	}
	if !r.in.Returning {
		want = base.WantResult
	}
	reply, err := r.insertRows(ctx, want)
	switch {
	case err != nil:
		return base.Reply{}, err
	case want == base.WantRows:
		reply.Rows = base.OnClose(reply.Rows, r.endRows)
		return reply, nil
	}
	if err := r.end(ctx); err != nil {
		return base.Reply{}, err
	}
	return base.Reply{Result: r, Rows: base.NoRows{}}, nil
}

// learn queries the facts that depend on the rows' values. The connection can't run other queries
// while rows are read.
func (r *insertSelect) learn(ctx context.Context) (err error) {
	if r.in.Source.KeyIndex >= 0 {
		if _, _, err := r.Mode(ctx); err != nil {
			return err
		}
		if _, err := r.key.Learn(ctx, r.Session); err != nil {
			return err
		}
	}
	if r.shard = -1; r.table.gene != nil {
		r.drawn = r.table.newGeneRows(nameOf(r.in), 2)
		r.shard, err = r.geneColumn(ctx)
	}
	return err
}

func (r *insertSelect) askTransport(ctx context.Context) (err error) {
	r.transport, err = r.Transport(ctx)
	return err
}

// limit returns the maximum size of an INSERT's rows, in bytes.
func (r *insertSelect) limit() int {
	const rest = 4 << 10 // for the rest of the statement
	return max(min(r.transport.Packet-rest, sourceBytesAtOnce), 1)
}

// send executes a statement. It does nothing for an empty string.
func (r *insertSelect) send(ctx context.Context, query string) error {
	if query == "" {
		return nil
	}
	_, err := r.Base.Send(ctx, query, nil, 0, base.WantResult)
	return err
}

const savepoint = "shardkey_rows"

// begins are statements that begin a transaction, and fail inside one. (START TRANSACTION would end
// the caller's transaction and LOCK TABLES.)
//
// They set the next transaction's isolation level to the session's. That is the same level, since
// executeSource refuses a pending SET TRANSACTION.
var begins = map[string]string{
	session.ServerMySQL:   "SET autocommit = 0, @@transaction_isolation = @@session.transaction_isolation",
	session.ServerMariaDB: "SET autocommit = 0, @@tx_isolation = @@session.tx_isolation",
}

// startTransaction sets a savepoint if there is a transaction, and begins a transaction otherwise.
// A transaction shows by the savepoint, which exists afterwards. With RETURNING, it does nothing,
// since one INSERT returns all rows.
func (r *insertSelect) startTransaction(ctx context.Context) error {
	if r.in.Returning {
		return nil
	}
	server, err := r.Server(ctx)
	if err != nil {
		return err
	}
	begin := begins[server.Kind]
	if server.IsBeforeMySQL8() {
		begin = begins[session.ServerMariaDB]
	}
	if begin != "" && r.transport.Autocommit {
		if err = r.send(ctx, begin); err == nil {
			r.commit, r.rollback = []string{"SET autocommit = 1"}, []string{"ROLLBACK", "SET autocommit = 1"}
			return nil
		}
	}
	isInside := base.IsServerError(err, inTransaction)
	if err = r.send(ctx, "SAVEPOINT "+savepoint); err == nil && !isInside {
		err = r.send(ctx, "ROLLBACK TO SAVEPOINT "+savepoint)
	}
	switch {
	case err == nil:
		r.rollback = []string{"ROLLBACK TO SAVEPOINT " + savepoint}
	case session.IsFatal(ctx, err):
		return err
	case base.IsServerError(err, noSavepoint):
		r.commit, r.rollback = []string{"COMMIT", "SET autocommit = 1"}, []string{"ROLLBACK", "SET autocommit = 1"}
		return r.send(ctx, "SET autocommit = 0")
	default:
		return r.refuse("cannot set a savepoint to detect a transaction", err)
	}
	return nil
}

// undo removes the inserted rows, even if the statement's context has ended. If the server has
// ended the transaction, for example after a deadlock, the savepoint doesn't exist.
func (r *insertSelect) undo() {
	for _, query := range r.rollback {
		if err := r.send(context.Background(), query); err != nil && !base.IsServerError(err, noSavepoint) {
			r.Base.Retire()
		}
	}
	r.rollback = nil
}

// readRows runs the query and stores its rows.
func (r *insertSelect) readRows(ctx context.Context) error {
	if r.transport.ParsesTime {
		if err := r.readDatesAsText(ctx); err != nil {
			return err
		}
	}
	if err := r.send(ctx, r.transport.Set); err != nil {
		return err
	}
	columns, err := r.keepRows(ctx)
	if again := r.send(context.Background(), r.transport.Restore); again != nil {
		r.Base.Retire()
		err = cmp.Or(err, again)
	}
	if want := len(r.in.Source.Columns); err == nil && columns != want {
		_, err = r.insert(ctx, r.noSource(columns), nil, base.WantResult) // the server reports its error
		err = cmp.Or(err, r.refuse(fmt.Sprintf("expected %d columns of the query, found %d", want, columns), nil))
	}
	if err != nil || r.n == 0 {
		return err
	}
	if r.in.MentionsLastID {
		r.LastID.Moved() // the query may have called LAST_INSERT_ID(expr)
	}
	return cmp.Or(r.rows.Rewind(), r.rows.Next(r.row))
}

// readDatesAsText makes the query convert dates to strings. Otherwise the underlying driver
// converts them to time.Time, which can't represent 2024-00-00, or an hour that daylight saving
// time skips. It reads the columns' types without running the query.
func (r *insertSelect) readDatesAsText(ctx context.Context) error {
	server, err := r.Server(ctx)
	if err != nil {
		return err
	}
	// Vitess can't name the columns of WITH, and MySQL before 8.0 has no WITH.
	ownNames := r.IsVitess() || server.IsBeforeMySQL8()
	names := make([]string, len(r.in.Source.Columns))
	for i := range names {
		names[i] = "c" + strconv.Itoa(i)
	}
	around := func(columns string) (before, after string) {
		if ownNames {
			return "SELECT " + columns + " FROM (", ") AS shardkey_rows"
		}
		return "WITH shardkey_rows (" + strings.Join(names, ", ") + ") AS (", ") SELECT " + columns + " FROM shardkey_rows"
	}
	before, after := "(", ")"
	if startsWith.MatchString(r.query) || r.IsVitess() {
		before, after = around("*")
	}
	found, err := r.openQuery(ctx, before+r.query+after+" LIMIT 0")
	switch {
	case err != nil && session.IsFatal(ctx, err):
		return err
	case err != nil:
		return nil // the query itself returns the error
	}
	types := columnTypes(found)
	if ownNames {
		for i, name := range found.Columns() {
			names[i] = sqltoken.QuoteIdentifier(name)
		}
	}
	if err := found.Close(); err != nil || len(types) != len(names) || !slices.ContainsFunc(types, isDate) || haveDuplicate(names) {
		return err // keepRows refuses the remaining dates
	}
	columns := slices.Clone(names)
	for i, typ := range types {
		if isDate(typ) {
			columns[i] = "CAST(" + columns[i] + " AS CHAR)"
		}
	}
	before, r.afterLock = around(strings.Join(columns, ", "))
	if r.query = before + r.query; r.in.Source.Unlimited { // without a LIMIT its order may be lost
		r.query += session.AllRows
	}
	return nil
}

// haveDuplicate reports whether two column names are equal for the server.
func haveDuplicate(names []string) bool {
	known := map[string]bool{}
	for _, name := range names {
		known[strings.ToLower(name)] = true
	}
	return len(known) < len(names)
}

var startsWith = regexp.MustCompile(`(?i)^with\b`)

// columnTypes returns the underlying driver's names of a query's column types; empty strings if it
// doesn't provide them.
func columnTypes(rows driver.Rows) []string {
	types := make([]string, len(rows.Columns()))
	if named, ok := rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		for i := range types {
			types[i] = named.ColumnTypeDatabaseTypeName(i)
		}
	}
	return types
}

// isDate reports whether the underlying driver converts a type's values to time.Time with
// parseTime.
func isDate(typ string) bool { return typ == "DATE" || typ == "DATETIME" || typ == "TIMESTAMP" }

// openLocking runs the query with the locks of INSERT … SELECT on the rows that it reads, if the
// query and the server support that.
func (r *insertSelect) openLocking(ctx context.Context) (driver.Rows, error) {
	server, err := r.Server(ctx)
	if err != nil {
		return nil, err
	}
	if server.ShareLocks && r.in.Source.Lockable {
		rows, err := r.openQuery(ctx, r.query+" LOCK IN SHARE MODE"+r.afterLock)
		if !base.IsServerError(err, syntaxError, notSupported, tableDenied, columnDenied, notLocked, lockedForRead, noFeature) {
			return rows, err
		}
	}
	return r.openQuery(ctx, r.query+r.afterLock)
}

func (r *insertSelect) openQuery(ctx context.Context, query string) (driver.Rows, error) {
	reply, err := r.Base.SendBinary(ctx, query, renumbered(r.args[:r.in.Source.QueryParams], 0), base.WantRows)
	return reply.Rows, err
}

// renumbered returns a copy of arguments that follow n others.
func renumbered(args []driver.NamedValue, n int) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Ordinal = n + i + 1
	}
	return args
}

// keepRows reads and stores all rows of the query, and returns its number of columns.
func (r *insertSelect) keepRows(ctx context.Context) (columns int, err error) {
	rows, err := r.openLocking(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = cmp.Or(err, rows.Close()) }()
	types := columnTypes(rows)
	switch {
	case len(types) != len(r.in.Source.Columns):
		return len(types), nil
	case r.transport.ParsesTime && slices.ContainsFunc(types, isDate):
		return 0, r.refuse("the server cannot convert the query's dates to strings, and parseTime=true would change them; "+
			"select them as CAST(… AS CHAR)", nil)
	}
	values := make([]driver.Value, len(types))
	r.row = make([]spool.Value, len(types), len(types)+1)
	if r.in.Source.KeyIndex < 0 {
		r.row = append(r.row, spool.Value{})
	}
	for ; ; r.n++ {
		switch err := rows.Next(values); {
		case err == io.EOF:
			return len(types), nil
		case err != nil:
			return 0, err
		case r.n == spool.MaxRows:
			return 0, r.refuse(fmt.Sprintf("the query returns more than %d rows; insert them in parts", spool.MaxRows), nil)
		}
		if err := r.keepRow(ctx, values, types); err != nil {
			return 0, err
		}
	}
}

func (r *insertSelect) keepRow(ctx context.Context, values []driver.Value, types []string) (err error) {
	for i, v := range values {
		if r.row[i], err = spool.ValueOf(v, types[i]); err != nil {
			return r.refuse("column "+sqltoken.QuoteIdentifier(r.in.Source.Columns[i]), err)
		}
	}
	missing, key := true, len(values)
	if r.in.Source.KeyIndex >= 0 {
		key = r.in.Source.KeyIndex
		if missing, err = r.keepKey(ctx, values[key]); err != nil {
			return err
		}
	}
	if missing {
		r.row[key] = spool.Value{Kind: spool.Missing}
		r.missing++
	}
	if missing && r.shard >= 0 {
		if err := r.addRow(ctx, values[r.shard]); err != nil {
			return err
		}
	}
	if err := r.rows.Add(r.row); err != nil {
		return r.refuse("cannot store its rows", err)
	}
	return nil
}

// keepKey reports whether a row's key in the query requests a generated key. Otherwise it stores
// the key.
func (r *insertSelect) keepKey(ctx context.Context, v driver.Value) (missing bool, err error) {
	if missing, err = r.table.isMissing(ctx, r.Session, v, r.in, r.n); err != nil {
		return missing, err
	}
	given := any(spool.Missing)
	if r.last = nil; !missing {
		r.last = boundKey(r.table.kind(), v)
		given = r.last
	}
	if r.out != nil {
		r.given = append(r.given, given)
	}
	return missing, nil
}

// makeKeys generates a key for each row that needs one.
func (r *insertSelect) makeKeys(ctx context.Context) (err error) {
	switch {
	case r.missing == 0:
		_, err = r.key.Learn(ctx, r.Session)
		return err
	case r.drawn != nil:
		r.keys, err = r.drawn.make(ctx, r.table, &r.one)
	default:
		r.keys, err = r.plan.targets[0].generate(ctx, r.missing, &r.one)
	}
	if err != nil {
		return err
	}
	if r.doubt = r.missing; r.in.Returning {
		r.doubt = 0
	}
	if err := r.plan.targets[0].accept(ctx, r.plan.rules, r.Session, &r.keys, r.out == nil); err != nil {
		return err
	}
	r.carries, err = r.carriesKey(ctx)
	return err
}

// carriesKey reports whether the first INSERT can pass the first key to LAST_INSERT_ID(). It can't
// if the INSERT may skip the row, since the key would then be in no row.
func (r *insertSelect) carriesKey(ctx context.Context) (bool, error) {
	key, _ := r.keys.At(0).(int64)
	if key < 0 || r.table.kind() == rewrite.KindText || r.in.Ignore || r.in.OnDuplicate || r.in.MentionsLastID {
		return false, nil
	}
	server, err := r.Server(ctx)
	return err == nil && server.InsertIDs, err
}

// insertRows sends all INSERTs and returns the last reply.
func (r *insertSelect) insertRows(ctx context.Context, want base.Want) (base.Reply, error) {
	for {
		values, args, err := r.nextValues()
		if err == nil && r.to < r.n && r.in.Returning {
			err = r.refuse(fmt.Sprintf("with RETURNING its rows must fit in one INSERT of %d bytes and %d rows; "+
				"insert them in parts", r.limit(), sourceRowsAtOnce), nil)
		}
		if err != nil {
			return base.Reply{}, err
		}
		reply, err := r.insert(ctx, values, args, want)
		if err != nil || r.to == r.n {
			return reply, err
		}
	}
}

// insert sends one INSERT whose source is values or another query.
func (r *insertSelect) insert(
	ctx context.Context, source string, args []driver.NamedValue, want base.Want,
) (reply base.Reply, err error) {
	query, former := r.in.Text(source), r.sent.text
	r.sent.text, r.sent.args = query, append(args, renumbered(r.args[r.in.Source.QueryParams:], len(args))...)
	if r.to-r.from <= 1 {
		reply, err = r.Base.SendBinary(ctx, query, r.sent.args, want)
	} else {
		if query != former {
			r.closeStmt()
			r.stmt, err = r.Base.Prepare(ctx, query)
		}
		if err == nil {
			err = r.stmt.CheckArgs(r.sent.args, 0)
		}
		if err == nil {
			reply, err = r.stmt.Send(ctx, r.sent.args, want)
		}
	}
	switch {
	case err != nil || want == base.WantRows:
		return reply, err
	case reply.Result == nil:
		return reply, base.ErrNoAnswer
	}
	r.count(reply.Result)
	return reply, nil
}

// close frees the statement and the rows.
func (r *insertSelect) close() {
	r.closeStmt()
	r.rows.Close()
}

func (r *insertSelect) closeStmt() {
	if r.stmt.Stmt != nil {
		_ = r.stmt.Close()
		r.stmt = base.Stmt{}
	}
}

// nextValues returns the values of the next INSERT. If there are no rows, it returns a query
// without rows.
func (r *insertSelect) nextValues() (string, []driver.NamedValue, error) {
	if r.n == 0 {
		return r.noSource(len(r.in.Source.Columns)), nil, nil
	}
	r.from, r.made = r.to, r.at
	most := min(sourceRowsAtOnce, max((base.MaxPlaceholders-r.in.Source.TailParams)/len(r.row), 1))
	query, null := []byte("VALUES "), false
	args := r.sent.args[:0]
	for size := spool.Size(r.row); ; {
		query = append(query, '(')
		for i := range r.row {
			null = null || r.row[i].Kind == spool.Null
			query, args = r.appendValue(query, args, &r.row[i])
			query = append(query, ',')
		}
		query[len(query)-1] = ')'
		if r.to++; r.to == r.n {
			break
		}
		if err := r.rows.Next(r.row); err != nil {
			return "", nil, err
		}
		if size += spool.Size(r.row); size > r.limit() || r.to-r.from >= most {
			break
		}
		query = append(query, ',')
	}
	if r.to-r.from == 1 && null && !r.IsVitess() { // for Vitess, VALUES shows the shards of the row
		// Without strict mode, INSERT … SELECT and VALUES of many rows convert a NULL for a NOT
		// NULL column to its default value. VALUES of one row refuses it.
		return "SELECT " + string(query[len("VALUES ("):len(query)-len(")")]) + " FROM DUAL", args, nil
	}
	return string(query), args, nil
}

// noSource returns a query without rows that has these columns, and one for the key unless it is
// listed.
func (r *insertSelect) noSource(columns int) string {
	if r.in.Source.KeyIndex < 0 {
		columns++
	}
	return "SELECT NULL" + strings.Repeat(", NULL", max(columns-1, 0)) + " FROM DUAL WHERE FALSE"
}

// appendValue appends a value of a row, or the next generated key.
func (r *insertSelect) appendValue(query []byte, args []driver.NamedValue, v *spool.Value) ([]byte, []driver.NamedValue) {
	if v.Kind != spool.Missing {
		return v.AppendTo(query, args, r.transport.UTF8)
	}
	key := spool.KeyValue(r.keys.At(r.at))
	if r.at++; r.at > 1 || !r.carries {
		return key.AppendTo(query, args, r.transport.UTF8)
	}
	query, args = key.AppendTo(append(query, "LAST_INSERT_ID("...), args, r.transport.UTF8)
	return append(query, ')'), args
}

// count records the result of an INSERT.
func (r *insertSelect) count(res driver.Result) {
	rows := int64(r.to - r.from)
	affected, err := res.RowsAffected()
	if err == nil {
		r.affected += affected
	}
	id, _ := res.LastInsertId()
	if id != 0 {
		r.insertID = id
	}
	existed := r.in.Guarded && id != 0
	r.existed = r.existed || existed || r.in.OnDuplicate && err == nil && affected != rows
	switch {
	case r.in.Replace && affected != rows: // this INSERT may have replaced rows of earlier ones
		r.doubt = 0
	case r.in.Ignore && affected != rows, r.in.OnDuplicate && (r.existed || !r.in.Guarded || r.key.Facts().HasTriggers),
		r.key.Facts().Triggered:
		r.doubt = min(r.doubt, r.made)
	}
}

// look queries which of the doubtful generated keys are in the table. If the query fails, it treats
// them as missing.
func (r *insertSelect) look(ctx context.Context) {
	n := r.keys.Len()
	if r.doubt < n {
		r.dropped = make([]bool, n)
	}
	for from := r.doubt; from < n; from += sourceKeysAtOnce {
		keys := make([]any, min(sourceKeysAtOnce, n-from))
		for i := range keys {
			keys[i] = r.keys.At(from + i)
		}
		present, err := r.PresentKeys(ctx, r.in, keys, false)
		for i, key := range keys {
			r.dropped[from+i] = err != nil || !present[session.Text(key)]
		}
	}
}

// endRows is end for the rows of RETURNING, which come from a single INSERT. It is called when the
// rows are closed, with the error that ended them.
func (r *insertSelect) endRows(err error) {
	if err == nil {
		err = r.end(context.Background()) // the execution's context may have ended
	}
	if err != nil {
		_ = r.failed(err)
	}
}

// end commits the rows and determines the statement's result.
func (r *insertSelect) end(ctx context.Context) error {
	r.look(ctx)
	for _, query := range r.commit {
		if err := r.send(ctx, query); err != nil {
			return err
		}
	}
	r.rollback = nil
	r.close()
	first := r.firstInserted()
	r.keepLastID(first)
	_ = r.SyncLastID(ctx) // otherwise it is synchronized before a statement that reads it
	if r.id = toInt64(first); first == nil && r.affected > 0 && r.dropped == nil && !r.existed {
		r.id = toInt64(r.last)
	}
	if r.out != nil {
		r.out.set(r.plan, r.Keys())
	}
	return nil
}

// failed undoes the statement and returns the error for the caller.
func (r *insertSelect) failed(err error) error {
	r.close()
	r.undo()
	if r.carries || r.in.Guarded || r.in.MentionsLastID {
		r.LastID.Moved()
	}
	_ = r.SyncLastID(context.Background())
	return r.explain(err)
}

// explain converts the server's error about an INSERT of values to an error about the statement.
func (r *insertSelect) explain(err error) error {
	var my *mysql.MySQLError
	switch {
	case !errors.As(err, &my):
		return err
	case r.to > 0 && r.usesQuery(my):
		return r.refuse("ON DUPLICATE KEY UPDATE can use VALUES(column) and the target's columns, not the query's", err)
	}
	const atRow = " at row " // counts from the first row of one INSERT
	if at := strings.LastIndex(my.Message, atRow); at >= 0 && err == error(my) {
		if n, bad := strconv.Atoi(my.Message[at+len(atRow):]); bad == nil {
			counted := *my
			counted.Message = my.Message[:at] + atRow + strconv.Itoa(r.from+n)
			err = &counted
		}
	}
	return r.plan.failed(err)
}

// usesQuery reports whether an error is about an ON DUPLICATE KEY UPDATE that uses the query's
// tables. The INSERT of values doesn't have these tables.
func (r *insertSelect) usesQuery(err *mysql.MySQLError) bool {
	const unknownColumn, unknownTable = 1054, 1109
	isTargets := func(column string) bool { return strings.Contains(err.Message, "'"+column+"'") }
	return r.in.OnDuplicate && (err.Number == unknownColumn || err.Number == unknownTable) &&
		!slices.ContainsFunc(r.in.Source.Columns, isTargets)
}

// generated returns generated key i, nil if it was not inserted.
func (r *insertSelect) generated(i int) any {
	if r.dropped != nil && r.dropped[i] {
		return nil
	}
	return r.keys.At(i)
}

// firstInserted returns the first generated key that was inserted. It returns nil if there is none,
// or if keys aren't numbers.
func (r *insertSelect) firstInserted() any {
	if r.table.kind() == rewrite.KindText {
		return nil
	}
	for i := range r.keys.Len() {
		if key := r.generated(i); key != nil {
			return key
		}
	}
	return nil
}

// keepLastID records the value that LAST_INSERT_ID() must return after the statement.
func (r *insertSelect) keepLastID(first any) {
	switch {
	case r.carries:
		r.LastID.Told(uint64(toInt64(r.keys.At(0))))
	case first != nil:
		r.LastID.Set(uint64(toInt64(first)))
	case r.in.MentionsLastID && r.insertID != 0:
		r.LastID.Set(uint64(r.insertID)) // it called LAST_INSERT_ID(expr)
	case r.in.Guarded, r.in.MentionsLastID:
		r.LastID.Moved()
	}
}

func (r *insertSelect) LastInsertId() (int64, error) { return r.id, nil }
func (r *insertSelect) RowsAffected() (int64, error) { return r.affected, nil }
func (r *insertSelect) AllLastInsertIds() []int64    { return []int64{r.id} }
func (r *insertSelect) AllRowsAffected() []int64     { return []int64{r.affected} }

// Keys returns the keys of all rows of the query, in order. The query's keys are stored only for an
// execution with WithKeys, and are known only if all rows were inserted.
func (r *insertSelect) Keys() []any {
	if r.given == nil && r.keys.Len() != r.n {
		return nil
	}
	all, next := make([]any, r.n), 0
	for i := range all {
		switch {
		case r.given == nil || r.given[i] == any(spool.Missing):
			all[i] = r.generated(next)
			next++
		case r.dropped == nil:
			all[i] = r.given[i]
		}
	}
	return all
}
