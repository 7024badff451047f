package session

import (
	"context"
	"database/sql/driver"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// Column is a column of a table as statements name it. Its type is queried once per connector,
// before the first INSERT. With IGNORE or a lax sql_mode, the server truncates keys that don't fit,
// without an error.
type Column struct {
	schema, table, name string
	known               atomic.Pointer[ColumnFacts] // nil: not queried yet
}

// ColumnFacts are a column's type and other facts about its table.
type ColumnFacts struct {
	*columntype.Type
	Stores    Storage
	Places    int // decimal places of a time's seconds; -1 for a date
	NotNull   bool
	Collation string
	// Zones are the possible time zones of the times in arguments.
	Zones []*time.Location
	// OtherHasAutoIncrement: another column of the table has AUTO_INCREMENT, and the server reports
	// its values as insert IDs.
	OtherHasAutoIncrement bool
	// AutoIncrement: the column itself has it, so the server reports the keys of new rows.
	AutoIncrement bool
	// HasTriggers: the table has triggers.
	HasTriggers bool
	// Triggered: a trigger may change a row's value of the column.
	Triggered bool
	// MaySkip: a trigger may make the server skip a new row; see [Session.TriggersSkipRows].
	MaySkip bool
	// ReadsLastID: a trigger of the table reads LAST_INSERT_ID(), which must not return the new key
	// yet.
	ReadsLastID bool
	// Plain: no other column has AUTO_INCREMENT, no trigger changes the column or reads LAST_INSERT_ID(), and the column can store all non-negative keys.
	Plain bool
	// Assumed: the facts don't come from a server; see [Cache.Assume].
	Assumed bool
}

// Storage is the way in which a column stores values.
type Storage uint8

// The ways to store values.
const (
	StoresUnknown Storage = iota // the type is unknown
	StoresOther                  // another type, whose stored values only the server knows
	StoresIntegers
	StoresText
	StoresTimes
)

// KeyColumn returns the key column of an insert's table.
func (s *Session) KeyColumn(in *rewrite.Insert) *Column {
	return s.tables.column(in.Schema, in.Name, in.Table.Key)
}

// Column returns a column of a table as statements name it.
func (s *Session) Column(schema, table, name string) *Column {
	return s.tables.column(schema, table, name)
}

// Known returns the known facts, nil before the column was queried.
func (c *Column) Known() *ColumnFacts { return c.known.Load() }

// Learn queries the column unless it is known. If the server doesn't show the type, Learn assumes
// that every key fits, and doesn't query again.
func (c *Column) Learn(ctx context.Context, s *Session) (*ColumnFacts, error) {
	if known := c.known.Load(); known != nil {
		return known, nil
	}
	return c.Refresh(ctx, s)
}

// Refresh queries the column again, since the table may have been altered.
func (c *Column) Refresh(ctx context.Context, s *Session) (*ColumnFacts, error) {
	facts := &ColumnFacts{Type: columntype.Parse(""), Zones: s.Client().Zones, Assumed: s.IsAssumed()}
	literal, _ := sqltoken.AppendLiteral(nil, c.name)
	query := "SHOW FULL COLUMNS FROM " + c.Table() +
		" WHERE Field = " + string(literal) + " OR Extra LIKE '%auto_increment%'"
	err := s.queryRows(ctx, query, func(row []driver.Value) {
		const field, typ, collation, null, extra = 0, 1, 2, 3, 6
		switch {
		case len(row) <= collation:
		case !strings.EqualFold(Text(row[field]), c.name):
			facts.OtherHasAutoIncrement = true
		default:
			facts.setType(Text(row[typ]))
			facts.Collation, facts.NotNull = Text(row[collation]), len(row) > null && Text(row[null]) == "NO"
			facts.AutoIncrement = len(row) > extra && strings.Contains(strings.ToLower(Text(row[extra])), "auto_increment")
		}
	})
	if err != nil && IsFatal(ctx, err) {
		return nil, err
	}
	if err := c.askTriggers(ctx, s, facts); err != nil {
		return nil, err
	}
	facts.Plain = !facts.OtherHasAutoIncrement && !facts.Triggered && !facts.ReadsLastID && facts.HoldsAll()
	c.known.Store(facts)
	return facts, nil
}

// setType parses a type as the server shows it.
func (f *ColumnFacts) setType(shown string) {
	f.Type, f.Stores = columntype.Parse(shown), StoresOther
	switch f.Name {
	case "":
		f.Stores = StoresUnknown
	case "tinyint", "smallint", "mediumint", "int", "integer", "bigint":
		f.Stores = StoresIntegers
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		f.Stores = StoresText
	case "date":
		f.Stores, f.Places = StoresTimes, -1
	case "datetime", "timestamp":
		f.Stores = StoresTimes
		f.Places, _ = strconv.Atoi(f.Size)
	}
}

// askTriggers queries whether the table has triggers, whether a trigger before INSERT may change the
// column, which it names, and whether a trigger reads LAST_INSERT_ID(). Triggers that the user can't
// see are missed: the server shows them to users with the TRIGGER privilege (MySQL manual, "The
// INFORMATION_SCHEMA TRIGGERS Table").
func (c *Column) askTriggers(ctx context.Context, s *Session, facts *ColumnFacts) error {
	const event, body, timing = 1, 3, 4
	from := ""
	if c.schema != "" {
		from = " FROM " + sqltoken.QuoteIdentifier(c.schema)
	}
	table, _ := sqltoken.AppendLiteral(nil, c.table)
	err := s.queryRows(ctx, "SHOW TRIGGERS"+from+" WHERE `Table` = "+string(table), func(row []driver.Value) {
		if len(row) <= timing {
			return
		}
		facts.HasTriggers = true
		statement := Text(row[body])
		if Text(row[timing]) == "BEFORE" && strings.Contains(Text(row[event]), "INSERT") {
			facts.Triggered = facts.Triggered || ContainsName(statement, c.name)
			facts.MaySkip = facts.MaySkip || maySkip.MatchString(statement) || sqltoken.MayCallFunctions(statement)
		}
		facts.ReadsLastID = facts.ReadsLastID || sqltoken.MentionsLastInsertID(statement)
	})
	if err != nil && !IsFatal(ctx, err) {
		err = nil // a server without triggers, or a mock
	}
	return err
}

// maySkip matches a trigger that skips a row, or that calls a procedure, which may do so.
var maySkip = regexp.MustCompile(`(?i)02TRG|\bCALL\b`)

// ContainsName reports whether a statement contains a name, not as a part of another.
func ContainsName(statement, name string) bool {
	const other = `[^\pL\pN_$]`
	return regexp.MustCompile(`(?i)(^|` + other + `)` + regexp.QuoteMeta(name) + `($|` + other + `)`).MatchString(statement)
}

// Unfit returns the index of the first key that the column can't store, -1 if it can store all, and
// the column's facts. It queries an altered column again.
func (c *Column) Unfit(ctx context.Context, s *Session, keys *rewrite.Keys) (int, *ColumnFacts, error) {
	known, err := c.Learn(ctx, s)
	if err != nil || known.unfit(keys) < 0 {
		return -1, known, err
	}
	if known, err = c.Refresh(ctx, s); err != nil {
		return -1, nil, err
	}
	return known.unfit(keys), known, nil
}

// unfit returns the index of the first key that the column can't store, -1 if it can store all.
func (f *ColumnFacts) unfit(keys *rewrite.Keys) int {
	if f.Form == columntype.Integer {
		for i, key := range keys.Ints {
			if key < f.Low || key > 0 && uint64(key) > f.High {
				return i
			}
		}
	} else if f.Form != columntype.Any {
		for i, key := range keys.Ints {
			if !f.Holds(key) {
				return i
			}
		}
	}
	for i, key := range keys.Values {
		// An integer column stores the string "0" as 0, which is no key.
		if !f.Holds(key) || f.Form == columntype.Integer && sqltoken.ParseInteger(Text(key), 10) == any(int64(0)) {
			return i
		}
	}
	return -1
}

// Kind reports whether the column stores strings, and whether it stores no negative numbers, as far
// as known.
func (c *Column) Kind(ctx context.Context, s *Session) (strings, unsigned bool, err error) {
	known, err := c.Learn(ctx, s)
	if err != nil {
		return false, false, err
	}
	return known.Form == columntype.Chars || known.Form == columntype.Bytes, known.IsUnsigned(), nil
}

// unasked are the facts of a column that wasn't queried.
var unasked = &ColumnFacts{Type: columntype.Parse("")}

// Facts returns the known facts. Before the column was queried, it returns the assumption that every
// key fits.
func (c *Column) Facts() *ColumnFacts {
	if known := c.known.Load(); known != nil { // cmp.Or would not be inlined
		return known
	}
	return unasked
}

// Holds reports whether the column can store an explicit key unchanged, as far as known. CHAR removes
// blanks at the end, and BINARY adds zeros (MySQL manual, "String Data Type Syntax").
func (c *Column) Holds(key any) bool {
	t := c.Facts().Type
	if key == nil || !t.IsPadded() {
		return key == nil || t.Holds(key)
	}
	text := Text(key)
	return t.Holds(key) && !strings.HasSuffix(text, " ") && (t.Form == columntype.Chars || len(text) == t.Length)
}

// Table returns the column's table, quoted, as statements name it.
func (c *Column) Table() string { return sqltoken.QuoteTable(c.schema, c.table) }

// Name returns the column's name.
func (c *Column) Name() string { return c.name }
