package facts

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// Column is what is known of a column, and of its table as far as that affects the column.
type Column struct {
	*columntype.Type
	Field     string // the column's name
	Stores    Storage
	Places    int // decimal places of a time's seconds; -1 for a date
	NotNull   bool
	Collation string
	// Zones are the possible time zones of the times in arguments.
	Zones []*time.Location
	// OtherHasAutoIncrement: another column of the table has AUTO_INCREMENT, and the server reports
	// its values as insert IDs.
	OtherHasAutoIncrement bool
	// MayHaveOther: perhaps OtherHasAutoIncrement; only the insert ID of a statement shows it.
	MayHaveOther bool
	// AutoIncrement: the column itself has it, so the server reports the keys of new rows.
	AutoIncrement bool
	// HasTriggers: the table has triggers, or they are unknown.
	HasTriggers bool
	// Triggered: a trigger may change a row's value of the column.
	Triggered bool
	// MaySkip: a trigger may make the server skip a new row; see session.TriggersSkipRows.
	MaySkip bool
	// Versioned: see [Table].
	Versioned bool
	// ReadsLastID: a trigger of the table reads LAST_INSERT_ID(), which must not return the new key
	// yet.
	ReadsLastID bool
	// Plain: no other column has AUTO_INCREMENT, no trigger changes the column or reads
	// LAST_INSERT_ID(), and the column can store all non-negative keys.
	Plain bool
	// Unanswered: the server didn't answer, so the type is unknown too.
	Unanswered bool
	// Assumed: there is no server.
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

// setType parses a type as the server shows it.
func (c *Column) setType(shown string) {
	c.Type, c.Stores = columntype.Parse(shown), StoresOther
	switch c.Type.Name {
	case "":
		c.Stores = StoresUnknown
	case "tinyint", "smallint", "mediumint", "int", "integer", "bigint":
		c.Stores = StoresIntegers
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		c.Stores = StoresText
	case "date":
		c.Stores, c.Places = StoresTimes, -1
	case "datetime", "timestamp":
		c.Stores = StoresTimes
		c.Places, _ = strconv.Atoi(c.Size)
	}
}

// maySkip matches a trigger that skips a row, or that calls a procedure, which may do so.
var maySkip = regexp.MustCompile(`(?i)02TRG|\bCALL\b`)

// ContainsName reports whether a statement contains a name, not as a part of another.
func ContainsName(statement, name string) bool {
	const other = `[^\pL\pN_$]`
	return regexp.MustCompile(`(?i)(^|` + other + `)` + regexp.QuoteMeta(name) + `($|` + other + `)`).MatchString(statement)
}

// Unfit returns the index of the first key that the column can't store, -1 if it can store all.
func (c *Column) Unfit(keys *rewrite.Keys) int {
	if c.Form == columntype.Integer {
		for i, key := range keys.Ints {
			if key < c.Low || key > 0 && uint64(key) > c.High {
				return i
			}
		}
	} else if c.Form != columntype.Any {
		for i, key := range keys.Ints {
			if !c.Holds(key) {
				return i
			}
		}
	}
	for i, key := range keys.Values {
		// An integer column stores the string "0" as 0, which is no key.
		if !c.Holds(key) || c.Form == columntype.Integer && sqltoken.ParseInteger(base.Text(key), 10) == any(int64(0)) {
			return i
		}
	}
	return -1
}

// Kind reports whether the column stores strings, and whether it stores no negative numbers, as far
// as known.
func (c *Column) Kind() (strings, unsigned bool) {
	return c.Form == columntype.Chars || c.Form == columntype.Bytes, c.IsUnsigned()
}

// Keeps reports whether the column can store an explicit key unchanged, as far as known. CHAR removes
// blanks at the end, and BINARY adds zeros (MySQL manual, "String Data Type Syntax").
func (c *Column) Keeps(key any) bool {
	if key == nil || !c.IsPadded() {
		return key == nil || c.Holds(key)
	}
	text := base.Text(key)
	return c.Holds(key) && !strings.HasSuffix(text, " ") && (c.Form == columntype.Chars || len(text) == c.Length)
}
