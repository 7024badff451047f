package rewrite

import (
	"sync/atomic"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Table describes a sharded table.
type Table struct {
	// Key is the column of generated keys.
	Key string
	// Strings: keys are strings or bytes, which NULL, DEFAULT and '' request. Otherwise keys are
	// integers, which NULL, DEFAULT and 0 request.
	Strings bool
	// Unsigned: the key column is unsigned, so that servers without a strict sql_mode store 0 for
	// negative keys. InStrings: keys are integers, but the column stores strings, so that a string that
	// isn't an integer is a valid key. If KeyColumnUnknown is set, neither is known, and [Parse] returns
	// [*Needs] if the plan depends on them.
	Unsigned, InStrings, KeyColumnUnknown bool
	// KeepExplicit: explicit NULL, DEFAULT, 0 and '' stay unchanged; keys are generated only if the
	// key column is missing.
	KeepExplicit bool
	// Columns are the table's columns in order, without invisible ones. If they are nil, a statement that
	// depends on them, since it has no column list, is refused with [*Needs].
	Columns []string
	// Recorded are the columns whose values the plan records; see [Plan.Value].
	Recorded []string
	// Fixed are the columns whose assignments in ON DUPLICATE KEY UPDATE the plan records; see
	// [Plan.Assigned].
	Fixed []string
	// NoReport: ON DUPLICATE KEY UPDATE must not assign the key, not even to itself; see
	// [Insert].ReportsExistingKey.
	NoReport bool
}

// Options are facts that the meaning of a statement depends on. Only Table is required.
type Options struct {
	// Table returns a sharded table by name, or nil if the table isn't sharded. schema is empty if
	// the name isn't qualified.
	Table func(schema, name string) *Table
	// SQLMode is the session's sql_mode, as SELECT @@sql_mode returns it. Empty is no mode. If the
	// mode is unknown, use that of a new server.
	SQLMode string
	// Charset is the session's @@character_set_client. Empty is utf8mb4.
	Charset string
	// Server is "mysql", "mariadb" or "vitess". If it is empty, the server is either MySQL or MariaDB,
	// and what differs is refused or left to the server.
	Server string
	// ReportKeys: write the first generated key of a statement as LAST_INSERT_ID(key), so that the
	// server reports it as it reports a value of AUTO_INCREMENT. MySQL and MariaDB do, and Vitess in
	// an upsert of one row; see [Insert].ReportsFirstKey. Keys for an INSERT … SELECT of several rows
	// need it.
	ReportKeys bool
	// Old: the server is older than MySQL 8.0 or MariaDB 10.6, so that an INSERT … SELECT of several
	// rows can't get keys.
	Old bool
	// ServerUnknown: Server, ReportKeys and Old aren't known yet. Parse returns [*Needs] if the plan
	// depends on them.
	ServerUnknown bool
	// NamesBeyondASCII: a sharded table's name has non-ASCII letters, which are supported in UTF-8
	// only. In another Charset, names with such letters are refused.
	NamesBeyondASCII bool
}

// Plan is a parsed statement with the places of its keys. It is safe for concurrent use.
type Plan struct {
	// Insert is the INSERT or REPLACE into a sharded table. It is nil for another statement, which is
	// passed through.
	Insert *Insert
	// NumArgs is the number of placeholders in the statement, and NumKeys the number that
	// [Plan.Query] adds.
	NumArgs, NumKeys int

	text      string
	mode      sqltoken.Mode
	charset   sqltoken.Charset
	consulted sqltoken.Mode // the bits of sql_mode that the plan depends on
	anyText   bool          // the plan depends on the character set
	dialect   string        // the server's name; empty if it wasn't asked

	bind atomic.Pointer[string] // a cache for Query
}

// Insert is one INSERT or REPLACE into a sharded table.
type Insert struct {
	Schema, Name string // the table in the statement, without quotes
	Table        *Table
	Replace      bool
	Ignore       bool
	OnDuplicate  bool
	// UpdatesFixed: ON DUPLICATE KEY UPDATE assigns another value than its own or the INSERT's to a
	// column of [Table].Fixed; see [Plan.Assigned].
	UpdatesFixed bool
	Returning    bool
	// ReturnsKey: RETURNING has only the key column.
	ReturnsKey bool
	// Rows has an element for each row of values. A query that returns at most one row is one row. It
	// is nil for another INSERT … SELECT.
	Rows []Row
	// AllGenerated: the key of every row is [Generated].
	AllGenerated bool
	// Select is the query of an INSERT … SELECT, TABLE or WITH, and SelectArgs the number of its
	// placeholders. SelectKey is the source of its rows' keys, empty if Rows has it.
	Select     string
	SelectArgs int
	SelectKey  KeySource
	// Invalid: the server will refuse the statement, since a row has the wrong number of values. It
	// gets no keys, and is sent for the server's error in a form that every server refuses.
	Invalid bool

	// ReadsLastID: the statement reads LAST_INSERT_ID().
	ReadsLastID bool
	// ReportsFirstKey: the first generated key is written as LAST_INSERT_ID(key).
	ReportsFirstKey bool
	// ReportsExistingKey: ON DUPLICATE KEY UPDATE makes the key of an existing row the statement's
	// insert ID. LAST_INSERT_ID() then returns that key, and the caller must restore it.
	ReportsExistingKey bool

	start, end int
	places     []place // of the rows' keys
	given      []given // of each row, in the order of Table.Recorded; nil if the statement lists none of them
	assigned   []given // by ON DUPLICATE KEY UPDATE, in the order of Table.Fixed
	// head are the additions in front of the rows' keys: columns, or values that the server refuses. tail
	// are those behind them: a name in the row alias, or an assignment that reports an existing row's key.
	head, tail  []Splice
	keyPrefix   string  // the prefix of a key that is added to a row
	keyAdded    bool    // the key is added to each row
	returningAt int     // position of RETURNING, with ReturnsKey
	checked     *around // around the expressions of Expression rows
	query       *query  // of an INSERT … SELECT that gets or checks keys; nil with Rows
	reportRow   int     // the row whose key is written as LAST_INSERT_ID(key), with ReportsFirstKey
}

// Row is the source of one row's key.
type Row struct {
	Key KeySource
	// Arg is the index of the argument that is the key, or before which a generated key is added;
	// −1 for the others.
	Arg int
}

// KeySource is where a row's key comes from.
type KeySource string

const (
	// Generated: a key is generated.
	Generated KeySource = "generated"
	// Argument: the key is an argument, for which a key is generated if it is nil, zero or "".
	Argument KeySource = "argument"
	// Literal: the key is written in the statement, or the query's, and kept.
	Literal KeySource = "literal"
	// Expression: the key is an expression, or a column of the query, whose value only the server
	// knows. If it is NULL or 0, the server returns error 1690.
	Expression KeySource = "expression"
	// Unknown: the key is explicit, and only the server knows its value.
	Unknown KeySource = "unknown"
)

// SameIn reports whether the statement has the same plan in a session with another sql_mode and
// character set; see [Options].
func (plan *Plan) SameIn(sqlMode, charset string) bool {
	other := sqltoken.ParseMode(sqlMode)
	return (other^plan.mode)&plan.consulted == 0 && (!plan.anyText || sqltoken.ParseCharset(charset) == plan.charset)
}

// InAnySession reports whether the statement has the same plan in all sessions.
func (plan *Plan) InAnySession() bool { return plan.consulted == 0 && !plan.anyText }

// report determines how the server learns the key for LAST_INSERT_ID().
func (in *Insert) report(onVitess bool) {
	if !in.hasIntegerKeys() || in.ReadsLastID {
		return
	}
	// With a query, AUTO_INCREMENT reports no existing row's key either.
	in.ReportsExistingKey = in.OnDuplicate && !in.Returning && !in.Table.NoReport && in.Select == ""
	in.reportRow = in.firstGenerated()
	in.ReportsFirstKey = in.reportRow >= 0
	switch {
	case in.Returning && in.Ignore:
		in.ReportsFirstKey = false // the row's state is known too late
	case in.OnDuplicate && !(in.ReportsExistingKey && len(in.Rows) == 1):
		in.ReportsFirstKey = false // it would hide the key of an existing row
	}
	if onVitess { // only in upserts of one row
		in.ReportsFirstKey = false
		in.ReportsExistingKey = in.ReportsExistingKey && len(in.Rows) == 1
	}
}

// hasIntegerKeys reports whether the insert gets keys that LAST_INSERT_ID() can return.
func (in *Insert) hasIntegerKeys() bool {
	return !in.Table.Strings && !in.Invalid
}

// withoutReport returns the same plan without [Insert].ReportsFirstKey, for a first key that
// LAST_INSERT_ID(key) would change, such as a negative one.
func (plan *Plan) withoutReport() *Plan {
	r := &Plan{NumArgs: plan.NumArgs, NumKeys: plan.NumKeys,
		text: plan.text, mode: plan.mode, charset: plan.charset, consulted: plan.consulted, anyText: plan.anyText, dialect: plan.dialect}
	in := *plan.Insert
	in.ReportsFirstKey = false
	r.Insert = &in
	return r
}

// countKeys returns the number of placeholders that [Plan.Query] adds.
func (in *Insert) countKeys() (n int) {
	switch {
	case in.query != nil:
		for _, c := range in.query.changes {
			n += c.made.placeholders()
		}
	case in.Invalid:
	case in.AllGenerated:
		n = len(in.Rows)
	default:
		for _, r := range in.Rows {
			if r.Key == Generated {
				n++
			}
		}
	}
	return n
}

// firstGenerated returns the first row whose key is certainly generated. It returns −1 if there is
// none, or if an argument before it may request a key.
func (in *Insert) firstGenerated() int {
	if in.AllGenerated {
		return min(0, len(in.Rows)-1)
	}
	first := -1
	for i, r := range in.Rows {
		switch {
		case r.Key == Argument:
			return -1
		case r.Key == Generated && first < 0:
			first = i
		}
	}
	return first
}
