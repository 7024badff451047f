package rewrite

import (
	"slices"
	"sort"
	"sync/atomic"
	"unsafe"
)

// Kind is the kind of keys that a generator makes.
type Kind uint8

const (
	// KindUnknown: not known before the first key is made.
	KindUnknown Kind = iota
	// KindInteger: keys: NULL, DEFAULT and 0 ask for one.
	KindInteger
	// KindText: keys, strings or bytes: NULL, DEFAULT and '' ask for one.
	KindText
)

// Table is what a plan must know of a sharded table.
type Table struct {
	// KeyColumn is the generate-key column.
	KeyColumn string
	// Kind of the table's keys. KindUnknown lets the reading ask [Options.Kind]
	// when it needs to know.
	Kind Kind
	// Unguarded: ON DUPLICATE KEY UPDATE may not assign the key, be it to itself;
	// see [Insert.Guarded].
	Unguarded bool
	// KeepExplicit leaves given NULL, DEFAULT, 0 and '' alone: only an absent
	// key column is filled.
	KeepExplicit bool
	// Sharding are columns whose values the plan shall know; see [Plan.Given].
	Sharding []string
	// Fixed are the columns for which the plan records what an ON DUPLICATE KEY UPDATE
	// assigns; see [Update].
	Fixed []string
	// Columns are the table's columns in order, without invisible ones. Nil lets
	// the reading of a statement without column list ask [Options.Columns].
	Columns []string
}

// Options say how a text is read. What a [Table] does not tell is asked for in
// the moment when the text turns out to need it; an error of the answer is the
// error of [Parse].
type Options struct {
	Mode    Mode
	Charset Charset
	// Tables finds a sharded table by its name, schema empty when the name is
	// not qualified; nil means that no rule covers it.
	Tables func(schema, name string) *Table
	// Kind returns the kind of a table's keys, which 0 and '' in place of a key
	// need. Nil: they are left to the server where Table does not tell.
	Kind func(*Table) (Kind, error)
	// KeepsStrings reports whether the key column of an insert's table holds strings,
	// so that one that is no integer is a key. Nil: it does not.
	KeepsStrings func(in *Insert) (bool, error)
	// Dialect returns what the server is, which some rare words need. Nil: it is
	// not known.
	Dialect func() (Dialect, error)
	// NamesBeyondASCII: some sharded table's name has letters beyond ASCII, which
	// are read in UTF-8 only. In another Charset a name with such letters is
	// refused.
	NamesBeyondASCII bool
	// Columns returns the columns of the table that an insert names, as
	// [Table] has them. Nil: a statement that needs them is refused where Table
	// does not tell.
	Columns func(in *Insert) ([]string, error)
}

// Dialect is the kind of server that reads a text.
type Dialect uint8

const (
	// DialectUnknown: a text is read as either server may read it.
	DialectUnknown Dialect = iota
	// DialectMySQL: RETURNING is a name, IGNORE no value; the same goes for the
	// engines that speak MySQL's language.
	DialectMySQL
	// DialectMariaDB: RETURNING is reserved, and IGNORE stands for DEFAULT.
	DialectMariaDB
	// DialectVitess: as MySQL, but a key may be no expression of ours.
	DialectVitess
)

// Plan is a text understood: what is filled, and where. Many goroutines may use
// it.
type Plan struct {
	// Inserts are the INSERTs and REPLACEs into sharded tables, in the order of
	// the text. When there are none the text passes through.
	Inserts []Insert
	// Updates are what ON DUPLICATE KEY UPDATE assigns to columns that are fixed.
	Updates []Update
	// Statements counts the statements of the text, empty ones apart.
	Statements int
	// Consulted are the sql_mode bits on which this plan depends. A session
	// that differs in one of them needs a plan of its own.
	Consulted Mode
	// ConsultedCharset: the plan depends on the session's character set.
	ConsultedCharset bool

	text    string
	mode    Mode
	charset Charset
	dialect Dialect // DialectUnknown too where it was not asked for
	params  int     // placeholders in the text

	elsewhere []int // the statements that are INSERTs into other tables

	first [1]Insert              // room for Inserts, as nearly always there is one
	bind  atomic.Pointer[string] // BindText, once it was asked for
}

// Insert is one INSERT or REPLACE into a sharded table.
type Insert struct {
	Schema, Name string // the table as the text names it, without quotes
	Table        *Table
	Replace      bool
	Ignore       bool
	OnDuplicate  bool
	Returning    bool
	// Source is set for INSERT … SELECT, TABLE and WITH.
	Source *Source
	// TableColumns are the table's columns, for a statement that lists none and
	// so depends on them.
	TableColumns []string
	// MentionsLastID: the statement itself reads LAST_INSERT_ID().
	MentionsLastID bool
	// Statement is the insert's place among the text's statements, from 0.
	Statement int
	// ReadLater: a later statement of the same string reads LAST_INSERT_ID().
	ReadLater bool
	// RolledBack: a later statement of the same string is a ROLLBACK, which may undo it.
	RolledBack bool
	// InText: the first generated key is written as LAST_INSERT_ID(key); see
	// [Plan.Report].
	InText bool
	// Guarded, by [Plan.Report] too: ON DUPLICATE KEY UPDATE makes the key of a row
	// that exists the statement's insert id. LAST_INSERT_ID() then is that key,
	// until the caller makes it again what it was.
	Guarded bool
	// Refused: the server will refuse the statement (a row has the wrong number
	// of values). It is sent for the server's words, in a form that no server
	// takes, since it is not filled.
	Refused bool

	start, end  int
	slots       []slot    // one a row
	others      int       // the rows that are not SlotFill
	given       [][]given // as Table.Sharding; nil where none of them is named
	headAt      int       // where headText goes, −1 for nowhere
	headText    string    // the addition to the column list
	keyPrefix   string    // what stands before a key that is added to a row
	keyAdded    bool      // the rows have no place for the key of their own
	aliasAt     int       // where the row alias' column list takes one more, −1
	duplicateAt int       // the end of ON DUPLICATE KEY UPDATE's assignments
	refuseAt    int       // where a refused statement takes refuseText
	refuseText  string
	wrapper     *wrapper // around the expressions of SlotExpression rows
	inTextSlot  int      // the row whose key is written as LAST_INSERT_ID(key)
}

// Source is the query of an INSERT … SELECT.
type Source struct {
	// Columns are the target's columns, as listed or as the table has them.
	Columns []string
	// KeyIndex is the key column's place in Columns, −1 when it is absent.
	KeyIndex int
	// Head is the text up to the table's name and partitions; Query the
	// query; Tail what follows it (ON DUPLICATE KEY UPDATE, RETURNING).
	Head, Query, Tail string
	// QueryParams and TailParams count the placeholders of both.
	QueryParams, TailParams int
	// Lockable: the query is one SELECT of tables that takes LOCK IN SHARE MODE after
	// it, and has no such clause yet.
	Lockable bool
	// Unlimited: the query is ordered, and takes a LIMIT after it.
	Unlimited bool

	columns string // Columns, quoted
	guardAt int    // where Tail takes the guard
}

// SlotKind says what happens to the key of one row.
type SlotKind uint8

const (
	// SlotFill: a key is generated.
	SlotFill SlotKind = iota
	// SlotParam: the argument decides: nil, zero or "" asks for a key.
	SlotParam
	// SlotKept: the text gives the key.
	SlotKept
	// SlotUnknown: the text gives the key; what it is only the server knows.
	SlotUnknown
	// SlotExpression: an expression gives the key; where it comes to NULL or 0 (for
	// text keys ''), the server takes a generated one. Which of both it took only
	// the table can tell: it has the generated key, or not.
	SlotExpression
)

// Rows is the number of rows that the statement gives; 0 for a Source.
func (in *Insert) Rows() int { return len(in.slots) }

// Slot tells what happens to row i's key and, for a SlotParam, which argument
// decides, from 0. It is the zero value for a row that there is not.
func (in *Insert) Slot(i int) (kind SlotKind, param int) {
	if i < 0 || i >= len(in.slots) {
		return
	}
	return in.slots[i].kind, int(in.slots[i].before)
}

// AllFilled reports whether every row's key is generated.
func (in *Insert) AllFilled() bool { return in.others == 0 }

// fills counts the rows for which a key is generated, even if it may go unused.
func (in *Insert) fills() int { return countFills(in.slots) }

func countFills(slots []slot) (n int) {
	for _, s := range slots {
		if s.takesKey() {
			n++
		}
	}
	return n
}

// fillsBefore counts the rows whose key of ours stands before the user's placeholder i.
func (in *Insert) fillsBefore(i int) int {
	rows := sort.Search(len(in.slots), func(row int) bool { return int(in.slots[row].before) > i })
	if in.AllFilled() {
		return rows
	}
	return countFills(in.slots[:rows])
}

// Params counts the placeholders of the user's text.
func (p *Plan) Params() int { return p.params }

// Fills counts the keys that the text itself asks for, or may ask for, SlotParam
// rows apart: so many placeholders the bind text has more than the user's.
func (p *Plan) Fills() (n int) {
	for i := range p.Inserts {
		if !p.Inserts[i].Refused {
			n += p.Inserts[i].fills()
		}
	}
	return n
}

// FillsBefore counts the placeholders of ours that stand before the user's
// placeholder i in the bind text.
func (p *Plan) FillsBefore(i int) (n int) {
	for k := range p.Inserts {
		if !p.Inserts[k].Refused {
			n += p.Inserts[k].fillsBefore(i)
		}
	}
	return n
}

// InsertsElsewhere reports whether one of the statements after from and before to is an
// INSERT into a table that is not sharded.
func (p *Plan) InsertsElsewhere(from, to int) bool {
	return slices.ContainsFunc(p.elsewhere, func(at int) bool { return from < at && at < to })
}

// Size estimates the bytes that the plan occupies besides its text, the bind
// text included, which may not have been made yet.
func (p *Plan) Size() int {
	n := 200 + 100*len(p.Updates) + 8*len(p.elsewhere)
	for i := range p.Inserts {
		in := &p.Inserts[i]
		row := int(unsafe.Sizeof(slot{})) + len(in.keyPrefix) + 8*len(in.given)
		n += 1000 + len(in.headText) + in.Rows()*row
	}
	if p.params > 0 {
		n += len(p.text)
	}
	return n
}

// Report lets the plan be written for a server that makes the argument of
// LAST_INSERT_ID(expr) in an INSERT the statement's insert id, as MySQL and
// MariaDB do: with the first generated key ([Insert.InText]), or the key of a row
// that exists ([Insert.Guarded]), written so where that cannot lie. It is called
// before the plan is used.
func (p *Plan) Report() {
	for i := range p.Inserts {
		p.Inserts[i].report(p.Statements <= 1)
	}
}

// ReportUpserts is Report for a server that does so only where ON DUPLICATE KEY
// UPDATE of one row has LAST_INSERT_ID(expr), as Vitess does.
func (p *Plan) ReportUpserts() {
	for i := range p.Inserts {
		in := &p.Inserts[i]
		in.report(p.Statements <= 1)
		in.InText, in.inTextSlot = false, -1
		in.Guarded = in.Guarded && in.Rows() == 1
	}
}

// add begins another insert.
func (p *Plan) add() *Insert {
	if p.Inserts == nil {
		p.Inserts = p.first[:0]
	}
	p.Inserts = append(p.Inserts, Insert{headAt: -1, aliasAt: -1, inTextSlot: -1})
	return &p.Inserts[len(p.Inserts)-1]
}

// drop takes the insert away that was added last.
func (p *Plan) drop() {
	if p.Inserts = p.Inserts[:len(p.Inserts)-1]; len(p.Inserts) == 0 {
		p.Inserts = nil
	}
}

// report chooses how the server comes to know the key that LAST_INSERT_ID()
// shall return; alone says that the statement is the text's only one.
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
		in.InText = false // should it fail, it would hide what a statement before it left in LAST_INSERT_ID()
	case in.Returning && in.Ignore:
		in.InText = false // what became of the row shows too late
	case in.OnDuplicate && !(in.Guarded && in.Rows() == 1):
		in.InText = false // it would hide the key of a row that exists
	}
}

// Plain returns the same plan without [Insert.InText]: for a first key that
// LAST_INSERT_ID(key) does not return as it is, such as a negative one.
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

// firstFill is the first row whose key is generated for certain, −1 when an
// argument may ask for one, or an expression before it, or none is.
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

// isTold reports whether the server knows, right after the insert, what LAST_INSERT_ID()
// must return: it can be told the first generated key, or none is generated.
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

// isUncertain reports whether only the table can show which rows were inserted with
// which keys.
func (in *Insert) isUncertain() bool {
	return in.Rows() > 1 && (in.Ignore || in.OnDuplicate) ||
		slices.ContainsFunc(in.slots, func(s slot) bool { return s.kind == SlotExpression })
}
