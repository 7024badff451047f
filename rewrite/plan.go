package rewrite

import (
	"slices"
	"sort"
	"sync/atomic"
	"unsafe"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Kind is the kind of a generator's keys.
type Kind uint8

const (
	// KindUnknown: neither the generator nor the key column shows the kind.
	KindUnknown Kind = iota
	// KindInteger: integer keys, which NULL, DEFAULT and 0 request.
	KindInteger
	// KindText: strings or bytes, which NULL, DEFAULT and '' request.
	KindText
)

// Table describes a sharded table.
type Table struct {
	// KeyColumn is the column of generated keys.
	KeyColumn string
	Kind      Kind
	// Unguarded: ON DUPLICATE KEY UPDATE must not assign the key, not even to itself; see
	// [Insert.Guarded].
	Unguarded bool
	// KeepExplicit: explicit NULL, DEFAULT, 0 and '' stay unchanged; keys are generated only if the
	// key column is missing.
	KeepExplicit bool
	// Sharding are the columns whose values the plan records; see [Plan.Given].
	Sharding []string
	// Fixed are the columns whose assignments in ON DUPLICATE KEY UPDATE the plan records; see
	// [Update].
	Fixed []string
	// Columns are the table's columns in order, without invisible ones. If Columns is nil, the
	// parser calls [Options.Columns] for a statement without a column list.
	Columns []string
}

// Options configure [Parse]. It calls their functions only if the statement depends on them, and
// returns their errors.
type Options struct {
	Mode    sqltoken.Mode
	Charset sqltoken.Charset
	// Tables returns a sharded table by name, or nil if the table isn't sharded. schema is empty if
	// the name isn't qualified.
	Tables func(schema, name string) *Table
	// KeyColumn reports whether the key column of an insert's table stores strings, so that a string
	// which isn't an integer is a valid key, and whether it is unsigned. Nil means neither.
	KeyColumn func(in *Insert) (strings, unsigned bool, err error)
	// Dialect returns the server's dialect, which a few rare words depend on. Nil means unknown.
	Dialect func() (Dialect, error)
	// NamesBeyondASCII: a sharded table's name has non-ASCII letters, which are supported in UTF-8
	// only. In another Charset, names with such letters are refused.
	NamesBeyondASCII bool
	// Columns returns the columns of an insert's table; see [Table].Columns. If both are nil, a
	// statement that depends on them is refused.
	Columns func(in *Insert) ([]string, error)
}

// Dialect is the SQL dialect of a server.
type Dialect uint8

const (
	// DialectUnknown: the server is either MySQL or MariaDB.
	DialectUnknown Dialect = iota
	// DialectMySQL: RETURNING is a name, and IGNORE isn't a value. Engines compatible with MySQL
	// have it too.
	DialectMySQL
	// DialectMariaDB: RETURNING is reserved, and IGNORE means DEFAULT.
	DialectMariaDB
	// DialectVitess: like MySQL, but a key can't be an added expression.
	DialectVitess
)

// Plan is a parsed string with the places of its keys. It is safe for concurrent use.
type Plan struct {
	// Inserts are the INSERTs and REPLACEs into sharded tables, in order. If there are none, the
	// string is passed through.
	Inserts []Insert
	// Updates are the assignments of ON DUPLICATE KEY UPDATE to fixed columns.
	Updates []Update
	// Statements is the number of statements in the string, without empty ones.
	Statements int
	// Consulted are the sql_mode bits that this plan depends on. A session with other bits needs
	// another plan.
	Consulted sqltoken.Mode
	// ConsultedCharset: the plan depends on the session's character set.
	ConsultedCharset bool

	text    string
	mode    sqltoken.Mode
	charset sqltoken.Charset
	dialect Dialect // DialectUnknown if no statement depended on it
	params  int     // number of placeholders in the string

	elsewhere []int // indexes of the INSERTs into other tables

	first [1]Insert              // a buffer for Inserts, since there is usually one
	bind  atomic.Pointer[string] // a cache for BindText
}

// Insert is one INSERT or REPLACE into a sharded table.
type Insert struct {
	Schema, Name string // the table in the statement, without quotes
	Table        *Table
	Replace      bool
	Ignore       bool
	OnDuplicate  bool
	Returning    bool
	// Source is set for INSERT … SELECT, TABLE and WITH.
	Source *Source
	// TableColumns are the table's columns if the statement has no column list and depends on them.
	TableColumns []string
	// MentionsLastID: the statement reads LAST_INSERT_ID().
	MentionsLastID bool
	// Statement is the index of the insert among the string's statements.
	Statement int
	// ReadLater: a later statement of the same string reads LAST_INSERT_ID().
	ReadLater bool
	// RolledBack: a later statement of the same string is a ROLLBACK, which may undo the insert.
	RolledBack bool
	// InText: the first generated key is written as LAST_INSERT_ID(key); see
	// [Plan.Report].
	InText bool
	// Guarded: ON DUPLICATE KEY UPDATE makes the key of an existing row the statement's insert ID;
	// see [Plan.Report]. LAST_INSERT_ID() then returns that key, and the caller must restore it.
	Guarded bool
	// Refused: the server will refuse the statement, since a row has the wrong number of values. It
	// gets no keys, and is sent for the server's error in a form that every server refuses.
	Refused bool

	start, end  int
	delayedAt   int // position of DELAYED; 0 if it is missing
	delayedEnd  int
	slots       []slot    // one for each row
	others      int       // number of rows that are not SlotFill
	given       [][]given // by row, in the order of Table.Sharding; nil if the statement lists none of them
	headAt      int       // position for headText, −1 for none
	headText    string    // the addition to the column list
	keyPrefix   string    // the prefix of a key that is added to a row
	keyAdded    bool      // the key is added to each row
	aliasAt     int       // position for another column of the row alias, −1 for none
	duplicateAt int       // the end of ON DUPLICATE KEY UPDATE's assignments
	refuseAt    int       // position for refuseText in a refused statement
	refuseText  string
	wrapper     *wrapper // around the expressions of SlotExpression rows
	inTextSlot  int      // the row whose key is written as LAST_INSERT_ID(key), with InText
}

// Source is the query of an INSERT … SELECT.
type Source struct {
	// Columns are the target's columns, listed or from the table.
	Columns []string
	// KeyIndex is the index of the key column in Columns, −1 if it is missing.
	KeyIndex int
	// Head is the statement up to the table's name and partitions, Query is the query, and Tail is
	// the rest (ON DUPLICATE KEY UPDATE, RETURNING).
	Head, Query, Tail string
	// QueryParams and TailParams are the numbers of placeholders in Query and Tail.
	QueryParams, TailParams int
	// Lockable: the query is one SELECT from tables without a locking clause, so LOCK IN SHARE MODE
	// can follow it.
	Lockable bool
	// Unlimited: the query has ORDER BY, and a LIMIT can follow it.
	Unlimited bool

	columns string // Columns, quoted
	guardAt int    // position of the guard in Tail
}

// SlotKind is the way in which a row's key is handled.
type SlotKind uint8

const (
	// SlotFill: a key is generated.
	SlotFill SlotKind = iota
	// SlotParam: the key is an argument, which requests a key if it is nil, zero or "".
	SlotParam
	// SlotKept: the key is a literal.
	SlotKept
	// SlotUnknown: the key is explicit, but only the server knows its value.
	SlotUnknown
	// SlotExpression: the key is an expression. If it evaluates to NULL or 0 (string keys: ''), the
	// server uses a generated key. Only the table shows which of both it used.
	SlotExpression
)

// Rows returns the number of the statement's rows; 0 for a Source.
func (in *Insert) Rows() int { return len(in.slots) }

// Slot returns how row i's key is handled and, for SlotParam, the index of its argument. It returns
// zero values if there is no row i.
func (in *Insert) Slot(i int) (kind SlotKind, param int) {
	if i < 0 || i >= len(in.slots) {
		return
	}
	return in.slots[i].kind, int(in.slots[i].before)
}

// AllFilled reports whether every row's key is generated.
func (in *Insert) AllFilled() bool { return in.others == 0 }

// fills returns the number of rows for which a key is generated, even if it may be unused.
func (in *Insert) fills() int { return countFills(in.slots) }

func countFills(slots []slot) (n int) {
	for _, s := range slots {
		if s.takesKey() {
			n++
		}
	}
	return n
}

// fillsBefore returns the number of rows whose generated key precedes the user's placeholder i.
func (in *Insert) fillsBefore(i int) int {
	rows := sort.Search(len(in.slots), func(row int) bool { return int(in.slots[row].before) > i })
	if in.AllFilled() {
		return rows
	}
	return countFills(in.slots[:rows])
}

// Params returns the number of placeholders in the program's statement.
func (p *Plan) Params() int { return p.params }

// Fills returns the number of placeholders that BindText adds: the keys to generate without
// SlotParam rows.
func (p *Plan) Fills() (n int) {
	for i := range p.Inserts {
		if !p.Inserts[i].Refused {
			n += p.Inserts[i].fills()
		}
	}
	return n
}

// FillsBefore returns the number of added placeholders before the user's placeholder i in BindText.
func (p *Plan) FillsBefore(i int) (n int) {
	for k := range p.Inserts {
		if !p.Inserts[k].Refused {
			n += p.Inserts[k].fillsBefore(i)
		}
	}
	return n
}

// InsertsElsewhere reports whether a statement after from and before to is an INSERT into a table
// that isn't sharded.
func (p *Plan) InsertsElsewhere(from, to int) bool {
	i, _ := slices.BinarySearch(p.elsewhere, from+1)
	return i < len(p.elsewhere) && p.elsewhere[i] < to
}

// Size returns the approximate size of the plan in bytes, without its string but with BindText.
func (p *Plan) Size() int {
	n := 1000 * (1 + len(p.Inserts))
	for i := range p.Inserts {
		in := &p.Inserts[i]
		n += in.Rows() * (int(unsafe.Sizeof(slot{})) + 8*len(in.given))
	}
	if p.params > 0 {
		n += len(p.text)
	}
	return n
}

// Report changes the plan for a server that reports the argument of LAST_INSERT_ID(expr) in an
// INSERT as the statement's insert ID. MySQL and MariaDB do. The argument is the first generated
// key ([Insert.InText]) or the key of an existing row ([Insert.Guarded]). Call Report before the
// plan is used.
func (p *Plan) Report() {
	for i := range p.Inserts {
		p.Inserts[i].report(p.Statements <= 1)
	}
}

// ReportUpserts is Report for a server that reports only LAST_INSERT_ID(expr) in ON DUPLICATE KEY
// UPDATE of one row, such as Vitess.
func (p *Plan) ReportUpserts() {
	for i := range p.Inserts {
		in := &p.Inserts[i]
		in.report(p.Statements <= 1)
		in.InText = false
		in.Guarded = in.Guarded && in.Rows() == 1
	}
}

// add adds an insert.
func (p *Plan) add() *Insert {
	if p.Inserts == nil {
		p.Inserts = p.first[:0]
	}
	p.Inserts = append(p.Inserts, Insert{headAt: -1, aliasAt: -1})
	return &p.Inserts[len(p.Inserts)-1]
}

// drop removes the last insert.
func (p *Plan) drop() {
	if p.Inserts = p.Inserts[:len(p.Inserts)-1]; len(p.Inserts) == 0 {
		p.Inserts = nil
	}
}

// report determines how the server learns the key for LAST_INSERT_ID(). alone reports whether the
// statement is the string's only one.
func (in *Insert) report(alone bool) {
	if in.Table.Kind != KindInteger || in.MentionsLastID || in.Refused {
		return
	}
	in.Guarded = in.OnDuplicate && !in.Returning && !in.Table.Unguarded && alone
	if in.Source != nil {
		return
	}
	in.inTextSlot = in.firstFill()
	in.InText = in.inTextSlot >= 0
	switch {
	case !alone && !in.ReadLater:
		in.InText = false // if it failed, it would hide the LAST_INSERT_ID() of an earlier statement
	case in.Returning && in.Ignore:
		in.InText = false // the row's state is known too late
	case in.OnDuplicate && !(in.Guarded && in.Rows() == 1):
		in.InText = false // it would hide the key of an existing row
	}
}

// Plain returns the same plan without [Insert.InText], for a first key that LAST_INSERT_ID(key)
// would change, such as a negative one.
func (p *Plan) Plain() *Plan {
	r := &Plan{Statements: p.Statements, Consulted: p.Consulted, ConsultedCharset: p.ConsultedCharset,
		text: p.text, mode: p.mode, charset: p.charset, dialect: p.dialect, params: p.params}
	for i := range p.Inserts {
		in := r.add()
		*in = p.Inserts[i]
		in.InText = false
	}
	return r
}

// firstFill returns the first row whose key is certainly generated. It returns −1 if there is none,
// or if an argument or expression before it may request a key.
func (in *Insert) firstFill() int {
	first := -1
	for i, s := range in.slots {
		switch {
		case s.kind == SlotParam, s.kind == SlotExpression && first < 0:
			return -1
		case s.kind == SlotFill && first < 0:
			first = i
		}
	}
	return first
}

// isTold reports whether the server has the right LAST_INSERT_ID() right after the insert.
func (in *Insert) isTold() bool {
	if in.Ignore || in.OnDuplicate {
		return false
	}
	return in.Table.Kind == KindText || in.keepsAll() || !in.MentionsLastID && in.firstFill() >= 0
}

// keepsAll reports whether no row's key is generated.
func (in *Insert) keepsAll() bool {
	return !slices.ContainsFunc(in.slots, func(s slot) bool {
		return s.takesKey() || s.kind == SlotParam && !in.Table.KeepExplicit
	})
}

// isUncertain reports whether only the table shows which rows were inserted with which keys.
func (in *Insert) isUncertain() bool {
	return in.Rows() > 1 && (in.Ignore || in.OnDuplicate) ||
		slices.ContainsFunc(in.slots, func(s slot) bool { return s.kind == SlotExpression })
}
