package copyrows

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// column is a column of the query.
type column struct {
	name        string // of the target's column
	typ         string // the underlying driver's name of the query's type; empty if unknown
	hasValue    bool   // a value isn't NULL
	beyondASCII bool   // a value has bytes above 0x7F
	// bits: the values of a BIT column are certainly bits. The servers send an expression of type
	// BIT, such as COALESCE(bit, bit), as decimal digits, and a column as bits.
	bits, digits bool
	// MySQL sends IF(c, bit, NULL) as latin1 text in UTF-8, which raw bits seldom are.
	raw, latin1 bool
}

// read checks a value, and returns it as the target's column gets it.
func (c *column) read(v driver.Value) (driver.Value, error) {
	text, isBytes := v.([]byte)
	if v == nil || isBytes && text == nil {
		return nil, nil
	}
	c.hasValue = true
	switch {
	case !isBytes:
		return v, nil
	case c.typ == "BIT":
		return c.readBits(text)
	case c.typ == "DECIMAL" && !isDecimal(string(text)): // MySQL's IF(c, bit, 0)
		return nil, errors.New("expected digits of type DECIMAL, found other bytes; select CAST(… AS DECIMAL(65, 30))")
	case !c.isText():
		return v, nil
	case !utf8.Valid(text):
		return nil, fmt.Errorf("a value of type %s isn't UTF-8; select CAST(… AS BINARY)", c.typ)
	}
	c.beyondASCII = c.beyondASCII || !sqltoken.IsASCII(string(text))
	return v, nil
}

// isText reports whether the values have a character set.
func (c *column) isText() bool {
	return c.typ == "CHAR" || c.typ == "VARCHAR" || strings.HasSuffix(c.typ, "TEXT") || c.typ == "ENUM" || c.typ == "SET"
}

func (c *column) readBits(bits []byte) (driver.Value, error) {
	const size = 8
	number, digits := uint64(0), isDecimal(string(bits))
	for _, b := range bits {
		number = number<<size | uint64(b)
	}
	c.digits, c.bits = c.digits || digits, c.bits || !digits
	c.raw = c.raw || !utf8.Valid(bits)
	c.latin1 = c.latin1 || !sqltoken.IsASCII(string(bits))
	if len(bits) > size && !digits {
		return nil, fmt.Errorf("expected at most %d bytes of type BIT, found %d", size, len(bits))
	}
	return number, nil
}

// kinds are kinds of column types, as far as the servers convert a value differently for them.
type kinds uint16

const (
	numeric kinds = 1 << iota // integers, DECIMAL, FLOAT and DOUBLE
	bit
	year
	date // also DATETIME and TIMESTAMP
	clock
	char // also VARCHAR
	text // TEXT types
	bytes
	blob
	list // ENUM and SET
	json
	other
	strs  = char | text | bytes | blob | list
	every = 1<<iota - 1
)

// copied has the types of a query's columns that some targets get another value of than from
// INSERT … SELECT in the server, where an expression has a number, a string and a time, of which the
// client sees one. The other targets get the same value. Types that aren't listed suit all.
// TestInsertSelect_eachTypeIntoEach compares all pairs.
var copied = map[string]kinds{
	"DECIMAL":   every &^ (char | text | bytes | blob), // a function's value may have more or fewer digits than its type
	"FLOAT":     every &^ (text | blob),
	"BIT":       numeric | bit | year | char | bytes,
	"YEAR":      every &^ (bit | text | blob),
	"DATE":      date | strs,
	"DATETIME":  date | clock | strs,
	"TIMESTAMP": date | clock | strs,
	"TIME":      clock | strs,
	"ENUM":      strs | date | clock | json | other,
	"SET":       strs | date | clock | json | other,
	"JSON":      strs | json | other,
	// A literal such as 0x41 is a number in a numeric column.
	"BINARY": every &^ (numeric | year), "VARBINARY": every &^ (numeric | year),
	"TINYBLOB": every &^ (numeric | year), "BLOB": every &^ (numeric | year),
	"MEDIUMBLOB": every &^ (numeric | year), "LONGBLOB": every &^ (numeric | year),
}

// target is the kind of a target's type, and the type to cast to.
type target struct {
	kind kinds
	cast string
}

var targets = map[string]target{
	"bit": {bit, "UNSIGNED"}, "year": {year, "UNSIGNED"},
	"date": {date, "DATE"}, "datetime": {date, "DATETIME(6)"}, "timestamp": {date, "DATETIME(6)"},
	"time": {clock, "TIME(6)"},
	"char": {char, "CHAR"}, "varchar": {char, "CHAR"},
	"tinytext": {text, "CHAR"}, "text": {text, "CHAR"}, "mediumtext": {text, "CHAR"}, "longtext": {text, "CHAR"},
	"binary": {bytes, "BINARY"}, "varbinary": {bytes, "BINARY"},
	"tinyblob": {blob, "BINARY"}, "blob": {blob, "BINARY"}, "mediumblob": {blob, "BINARY"}, "longblob": {blob, "BINARY"},
	"enum": {list, "CHAR"}, "set": {list, "CHAR"}, "json": {json, "JSON"},
}

// targetOf returns the target for a type that the server shows, such as "bigint(20) unsigned".
func targetOf(shown string) target {
	name, _, _ := strings.Cut(strings.ToLower(shown), "(")
	name, _, _ = strings.Cut(name, " ")
	switch name {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double":
		return target{numeric, "DECIMAL(65, 30)"}
	}
	if known, ok := targets[name]; ok {
		return known
	}
	return target{other, "CHAR"}
}

// suits returns the kinds of targets that get the same values as from INSERT … SELECT.
func (c *column) suits() kinds {
	suited, listed := copied[c.typ]
	if !listed {
		suited = every
	}
	if c.beyondASCII { // the bytes depend on the character set, which the client doesn't see
		suited &^= bit | bytes | blob
	}
	return suited
}

// castable returns the kinds of targets to which MariaDB certainly converts the type. It sends UUID,
// INET4 and INET6 as CHAR.
func (c *column) castable() kinds {
	if c.typ == "CHAR" || c.typ == "GEOMETRY" {
		return strs
	}
	return every
}

// checkTypes returns an error if a column would get another value than from INSERT … SELECT. It
// queries the target's types if they matter.
func (s *Statement) checkTypes(ctx context.Context, columns []column) error {
	server, err := s.Session.Server(ctx)
	if err != nil {
		return err
	}
	var types map[string]string
	doubtful := false
	for i := range columns {
		c := &columns[i]
		if c.digits && !c.bits || c.latin1 && !c.raw && server.Kind == session.ServerMySQL {
			return refuseColumn(c, "the server may have sent a number or its bits; select CAST(… AS UNSIGNED)")
		}
		suited, castable := kinds(every), kinds(every)
		if c.hasValue {
			suited = c.suits()
		}
		if server.Kind == session.ServerMariaDB {
			castable = c.castable()
		}
		if suited&castable == every {
			continue
		}
		if types == nil {
			if types, err = s.Session.ColumnTypes(ctx, s.Insert.Schema, s.Insert.Name); err != nil {
				return err
			}
		}
		shown, known := types[strings.ToLower(c.name)]
		to := targetOf(shown)
		if known && suited&to.kind == 0 {
			return refuseColumn(c, fmt.Sprintf("the server may convert it to type %s in another way; select CAST(… AS %s)",
				shown, to.cast))
		}
		doubtful = doubtful || known && castable&to.kind == 0
	}
	if doubtful {
		return s.checkCasts(ctx)
	}
	return nil
}

// checkCasts returns the server's error if INSERT … SELECT can't convert a type to that of its
// target. MariaDB doesn't check that in PREPARE, and does in EXPLAIN.
func (s *Statement) checkCasts(ctx context.Context) error {
	reply, err := s.Session.Base.SendBinary(ctx, "EXPLAIN "+s.Text, renumbered(s.Args, 0), base.WantRows)
	switch {
	case err == nil:
		return s.Session.Base.ReadRows(reply.Rows, func([]driver.Value) {})
	case base.IsServerError(err, cannotCast), session.IsFatal(ctx, err):
		return err
	}
	return nil // the INSERT itself returns the error
}

func refuseColumn(c *column, reason string) error {
	return &Refusal{fmt.Sprintf("column %s of type %s: %s", sqltoken.QuoteIdentifier(c.name), c.typ, reason), nil}
}
