package driver

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqltext"
)

// wrong returns the error for values with which a row does not belong into the
// table, nil for others. Values that the server stores as others are looked at as
// such before a row is refused, and a row of which only the server knows what it
// stores is not.
func (x *shard) wrong(ctx context.Context, s *session, values []any) *WrongShardError {
	place, here, err := x.Place(values)
	if here {
		return nil
	}
	for _, zone := range s.zones() {
		stored, known := x.stored(ctx, s, values, err != nil, zone)
		if !known {
			return nil
		}
		if stored == nil {
			break
		}
		if place, here, err = x.Place(stored); here {
			return nil
		}
	}
	return &WrongShardError{Columns: slices.Clone(x.Columns), Values: slices.Clone(values), Table: x.name, Meant: place, Err: err}
}

// stored returns values as the server stores them, nil when they are the same as
// far as that is known; known is false when that matters and only the server knows
// it. nowhere says that as they are they have no place.
func (x *shard) stored(ctx context.Context, s *session, values []any, nowhere bool, zone *time.Location) (stored []any, known bool) {
	for i, v := range values {
		var as any
		switch v := v.(type) {
		case time.Time:
			as = v.In(zone)
		case int64:
			if t, ok, _ := storedTime(strconv.FormatInt(v, 10)); ok && nowhere {
				as = t
			}
		case string:
			t, isTime, hasZone := storedTime(v)
			switch {
			case hasZone:
				return nil, false // it is the session's time zone that decides
			case isTime && nowhere:
				as = t
			case isTime && strings.Trim(v, "0123456789") != "":
			case mayBeNumber(v) && x.isNumber(ctx, s, i):
				n := sqltext.ParseInteger(strings.Trim(v, " \t\n\v\f\r"), 10)
				if n == nil {
					return nil, false // 7.0, 1e3, 12abc
				}
				as = n
			}
		}
		if as != nil && as != v {
			if stored == nil {
				stored = slices.Clone(values)
			}
			stored[i] = as
		}
	}
	return stored, true
}

// mayBeNumber reports whether a text may be one to the server.
func mayBeNumber(s string) bool {
	s = strings.TrimLeft(s, " \t\n\v\f\r+-.")
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

// isNumber reports whether a column is one of numbers. The server is asked, once
// where it is.
func (x *shard) isNumber(ctx context.Context, s *session, column int) (is bool) {
	if x.numbers[column].Load() {
		return true
	}
	schema, table, ok := strings.Cut(x.name, ".")
	if !ok {
		schema, table = "", x.name
	}
	name, _ := sqltext.AppendLiteral(nil, x.Columns[column])
	_ = s.showColumns(ctx, sqltext.QuoteTable(schema, table), " WHERE Field = "+string(name), func(c shownColumn) {
		word := strings.ToLower(c.typ)
		word = word[:len(word)-len(strings.TrimLeft(word, "abcdefghijklmnopqrstuvwxyz"))]
		is = strings.HasSuffix(word, "int") || word == "decimal" || word == "float" || word == "double"
	})
	if is {
		x.numbers[column].Store(true)
	}
	return is
}

// zones are the time zones in which the base may write times: that of the DSN's
// loc, or the likely ones.
func (s *session) zones() []*time.Location {
	if dsn := s.servers.dsn.Reveal(); dsn != "" {
		if cfg, err := mysql.ParseDSN(dsn); err == nil && cfg.Loc != nil {
			return []*time.Location{cfg.Loc}
		}
	}
	return []*time.Location{time.UTC, time.Local}
}

// storedTime reads a text as MySQL and MariaDB read one for a DATETIME: with any
// signs between the numbers, with one digit for two, or with digits alone. hasZone
// says that the text has a time zone.
func storedTime(text string) (t time.Time, ok, hasZone bool) {
	text = strings.Trim(text, " \t\n\v\f\r")
	if n := len(text); n > 6 && text[n-3] == ':' && (text[n-6] == '+' || text[n-6] == '-') && strings.Count(text, ":") > 2 {
		return t, false, true
	}
	var numbers [7]int // year to second, and the fraction
	whole, fraction, _ := strings.Cut(text, ".")
	if len(text) > len("2006-01-02 15:04:05.999999999") || strings.Trim(fraction, "0123456789") != "" {
		return t, false, false
	}
	parts := strings.FieldsFunc(whole, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) == 1 {
		parts = digitParts(whole)
	}
	if len(parts) != 3 && len(parts) != 5 && len(parts) != 6 || strings.Trim(whole, "0123456789-/:.@^ T") != "" {
		return t, false, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || len(part) > 2 && (i > 0 || len(part) != 4) {
			return t, false, false
		}
		if i == 0 && len(part) <= 2 { // 70 to 99 are of the last century
			n += 1900
			if n < 1970 {
				n += 100
			}
		}
		numbers[i] = n
	}
	nanos, _ := strconv.Atoi((fraction + "000000000")[:9])
	t = time.Date(numbers[0], time.Month(numbers[1]), numbers[2], numbers[3], numbers[4], numbers[5], nanos, time.UTC)
	return t, t.Month() == time.Month(numbers[1]) && t.Day() == numbers[2] && t.Hour() == numbers[3] && t.Minute() == numbers[4], false
}

// digitParts cuts a time of digits alone.
func digitParts(digits string) (parts []string) {
	year := 2
	switch len(digits) {
	case 8, 14:
		year = 4
	case 6, 12:
	default:
		return nil
	}
	parts = append(parts, digits[:year])
	for i := year; i < len(digits); i += 2 {
		parts = append(parts, digits[i:i+2])
	}
	return parts
}
