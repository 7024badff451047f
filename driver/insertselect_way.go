package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/spi"
)

// InsertSelect says how an INSERT … SELECT into a ruled table gets its keys. It is a
// value of the DSN's parameter shardkeyInsertSelect. The zero value is
// InsertSelectAuto.
type InsertSelect string

const (
	// InsertSelectAuto, the default: through a temporary table, and by copying where the
	// server is known to have none, or refuses it.
	InsertSelectAuto InsertSelect = "auto"
	// InsertSelectTemporary: the query runs into a temporary table, and the
	// statement reads that beside the keys. No row travels to the client.
	InsertSelectTemporary InsertSelect = "temporary"
	// InsertSelectCopy: the rows are read, and inserted as values with their keys.
	InsertSelectCopy InsertSelect = "copy"
)

// WithInsertSelect says how an INSERT … SELECT gets its keys, as the DSN's parameter
// shardkeyInsertSelect does.
func WithInsertSelect(way InsertSelect) Option {
	return func(o *options) { o.insertSelect = way }
}

// checkInsertSelect refuses a value that shardkeyInsertSelect does not have.
func checkInsertSelect(way InsertSelect) error {
	switch way {
	case "", InsertSelectAuto, InsertSelectTemporary, InsertSelectCopy:
		return nil
	}
	return &DSNError{Param: paramInsertSelect, Reason: fmt.Sprintf("%q is none of auto, temporary, copy", way)}
}

// selectRun is one execution of an INSERT … SELECT, in whatever way.
type selectRun struct {
	*session
	plan  *plan
	in    *rewrite.Insert
	table *table
	key   *keyColumn
	args  []driver.NamedValue
	out   *keysRing
	sent  sending

	rows int64        // rows that the query returned
	keys rewrite.Keys // those generated
	one  [1]int64
	// carries: the statement passes the first generated key to LAST_INSERT_ID().
	carries bool
}

// beginSource runs the query of an INSERT … SELECT, and makes ready what inserts its
// rows with their keys.
func (p *plan) beginSource(ctx context.Context, s *session, in *rewrite.Insert, out *keysRing, sent sending) (running, error) {
	sent.stmt = nil // it was prepared for its check and count
	if in.KeepsSource() {
		use, err := s.beforePass(ctx, sent.text, rewrite.ClassMayInsert, p, true)
		return &asIs{sent, func(err error) { s.afterPass(ctx, use, p, nil, nil, err) }}, err
	}
	if rewrite.ReadsCounts(sent.text, s.mode) {
		return nil, errReadsCounts
	}
	s.forInsert = ""
	run := &selectRun{session: s, plan: p, in: in, table: p.tables[0], key: p.keyColumns[0], args: sent.args, out: out}
	way := s.servers.insertSelect
	server, err := s.server(ctx)
	if err != nil {
		return nil, err
	}
	if way != InsertSelectCopy && (way == InsertSelectTemporary || server.temporaryTables && !server.noTemporary.Load()) {
		on, refused, err := beginTemporary(ctx, run)
		if refused == nil || way == InsertSelectTemporary {
			return on, err
		}
		if isServerError(refused, syntaxError, notSupported) {
			server.noTemporary.Store(true)
		}
		return beginCopy(ctx, run, refused)
	}
	return beginCopy(ctx, run, nil)
}

// Numbers of errors with which servers refuse a temporary table.
const (
	databaseDenied = 1044
	tableDenied    = 1142
	columnDenied   = 1143
	syntaxError    = 1064
	notLocked      = 1100 // under LOCK TABLES
	unknownError   = 1105 // of engines without numbers of their own
	notSupported   = 1235
	disabled       = 1289
	insideXA       = 1399
	unsafeForGTID  = 1787
	unsafeDDL      = 1815 // Vitess, in a transaction
	disabledEngine = 3161
	unsafeInTx     = 3748 // under GTIDs
	insideXADetach = 4091
	tidbDDL        = 8200
)

// refusesTemporary reports whether a server's error about making a temporary table says
// that it makes none here.
func refusesTemporary(err error) bool {
	return isServerError(err, databaseDenied, tableDenied, columnDenied, syntaxError, notLocked, unknownError, notSupported, disabled,
		insideXA, unsafeForGTID, unsafeDDL, disabledEngine, unsafeInTx, insideXADetach, tidbDDL)
}

// InsertSelectError is the error for an INSERT … SELECT into a ruled table that cannot
// be filled in the way that is asked for, or in none. Nothing was inserted.
// [ErrUnsupportedStatement] is in its chain.
type InsertSelectError struct {
	Table  string // the target, quoted
	Reason string // why not, and the way out
	Err    error  // the cause, mostly the server's *mysql.MySQLError; may be nil
}

func (e *InsertSelectError) Error() string {
	text := fmt.Sprintf("%v: INSERT … SELECT into %s %s", ErrUnsupportedStatement, e.Table, e.Reason)
	if e.Err != nil {
		text += ": " + strings.TrimPrefix(e.Err.Error(), ErrUnsupportedStatement.Error()+": ")
	}
	return text
}

func (e *InsertSelectError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnsupportedStatement}
	}
	return []error{ErrUnsupportedStatement, e.Err}
}

// PrivilegeError is the error for an INSERT … SELECT into a ruled table whose
// user lacks a privilege that filling it needs: to create a temporary table
// like the target. Nothing was inserted. [ErrUnsupportedStatement] and the
// server's *mysql.MySQLError are in its chain.
type PrivilegeError struct {
	Table string // the target, quoted
	Grant string // how the privileges are granted; it names no user
	Err   error  // the server's error
}

func (e *PrivilegeError) Error() string {
	return fmt.Sprintf("%v: INSERT … SELECT into %s is filled through a temporary table; %s: %v", ErrUnsupportedStatement, e.Table, e.Grant, e.Err)
}

func (e *PrivilegeError) Unwrap() []error { return []error{ErrUnsupportedStatement, e.Err} }

func (r *selectRun) sending() *sending { return &r.sent }

func (r *selectRun) quoted() string { return sqltext.QuoteTable(r.in.Schema, r.in.Name) }

func (r *selectRun) queryArgs() []driver.NamedValue {
	return renumbered(r.args[:r.in.Source.QueryParams])
}

func (r *selectRun) tailArgs() []driver.NamedValue {
	return renumbered(r.args[r.in.Source.QueryParams:])
}

func renumbered(args []driver.NamedValue) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Ordinal = i + 1
	}
	return args
}

// maxSourceRows bounds the rows of one INSERT … SELECT: their keys are made
// before the statement runs, and the server alone says how many there are.
const maxSourceRows = 50_000_000

// checkRows refuses a number of rows that cannot be, or is too large.
func (r *selectRun) checkRows() error {
	switch {
	case r.rows < 0:
		return r.badCount(r.rows)
	case r.rows > maxSourceRows:
		return fmt.Errorf("%w: the query of INSERT … SELECT returns %d rows, and at most %d get keys at once; insert them in parts", ErrUnsupportedStatement, r.rows, maxSourceRows)
	}
	return nil
}

func (r *selectRun) badCount(n int64) error {
	return fmt.Errorf("shardkey: the server counts %d rows of a query", n)
}

// carriesKey reports whether the statement can carry the first key: an
// ignored row, or one that exists, would leave a key that is in no row.
func (r *selectRun) carriesKey(ctx context.Context) (bool, error) {
	if r.in.Ignore || r.in.OnDuplicate || r.in.MentionsLastID || r.keys.Len() == 0 {
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
	server, err := r.server(ctx)
	return err == nil && server.insertIDs, err
}

// targetColumn names a column of the target. The target has no alias: under LOCK
// TABLES it is locked by its name.
func (r *selectRun) targetColumn(column string) string {
	return sqltext.QuoteTable(r.in.Schema, r.in.Name) + "." + sqltext.QuoteIdentifier(column)
}

// generate makes n keys, and refuses those that the column cannot hold, or that are
// not consecutive where they must be.
func (r *selectRun) generate(ctx context.Context, n int, fits []spi.KeyFit) (err error) {
	if fits != nil {
		r.keys.Ints = make([]int64, n)
		err = r.table.generateEach(ctx, r.keys.Ints, fits)
	} else {
		r.keys, err = r.plan.generate(ctx, 0, n, &r.one)
	}
	if err != nil {
		return err
	}
	r.table.counts.filled(n)
	if err := r.key.check(ctx, r.session, r.table, &r.keys); err != nil {
		return err
	}
	if n > 1 && r.out == nil {
		if err := r.plan.rules.checkConsecutive(ctx, r.table, &r.keys); err != nil {
			return err
		}
	}
	return r.plan.rules.tellFilled(ctx, r.table, n, &r.keys)
}

// ownWords runs the statement without rows, of so many columns, for the server's error
// about its columns; nil when there is none.
func (r *selectRun) ownWords(ctx context.Context, columns int) error {
	if r.in.Source.TailParams > 0 || r.in.Returning {
		return nil
	}
	if r.in.Source.KeyIndex < 0 {
		columns++
	}
	_, err := r.base.execOrPrepare(ctx, r.in.Text("SELECT NULL"+strings.Repeat(", NULL", columns-1)+" FROM DUAL WHERE FALSE"), nil, 0)
	return err
}

// keepLastAfter remembers what LAST_INSERT_ID() must return after the statement.
func (r *selectRun) keepLastAfter(baseID, id int64, inserted bool) {
	switch {
	case r.carries:
		r.lastID.told(uint64(toInt64(r.keys.At(0))))
	case inserted:
		r.lastID.set(uint64(id))
	case r.in.MentionsLastID && baseID != 0:
		r.lastID.set(uint64(baseID)) // it called LAST_INSERT_ID(expr)
	case r.in.Guarded, r.in.MentionsLastID:
		r.lastID.moved()
	}
}

// firstInserted is the first generated key that was inserted; inserted is nil where all were.
func (r *selectRun) firstInserted(inserted func(i int) bool) (id int64, ok bool) {
	if r.table.kind() == rewrite.KindText {
		return 0, false
	}
	for i := range r.keys.Len() {
		if inserted == nil || inserted(i) {
			return toInt64(r.keys.At(i)), true
		}
	}
	return 0, false
}

// boxed are the generated keys, those nil that were not inserted.
func (r *selectRun) boxed(inserted func(i int) bool) []any {
	values := make([]any, r.keys.Len())
	for i := range values {
		if inserted == nil || inserted(i) {
			values[i] = r.keys.At(i)
		}
	}
	return values
}

// usesQuery reports whether an error is about ON DUPLICATE KEY UPDATE that uses the
// query's tables: they were in the statement, and no longer are.
func (r *selectRun) usesQuery(err *mysql.MySQLError) bool {
	const (
		unknownColumn = 1054
		unknownTable  = 1109
	)
	isTargets := func(column string) bool { return strings.Contains(err.Message, "'"+column+"'") }
	return r.in.OnDuplicate && (err.Number == unknownColumn || err.Number == unknownTable) && !slices.ContainsFunc(r.in.Source.Columns, isTargets)
}

func (r *selectRun) queryInDuplicate(err error) error {
	return fmt.Errorf("%w: ON DUPLICATE KEY UPDATE of a filled INSERT … SELECT can use VALUES(column) and the target's columns, not the query's: %w",
		ErrUnsupportedStatement, err)
}
