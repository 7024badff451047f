package facts

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Charsets is a session with a character set.
type Charsets interface {
	// ReadsUTF8 reports whether the server reads the session's statements as UTF-8.
	ReadsUTF8(ctx context.Context) bool
}

// Stored appends the values that the column may store for v. It appends one value if it is certain,
// several candidates otherwise, and none if only the server knows.
func (c *Column) Stored(ctx context.Context, s Charsets, to []any, v any) []any {
	switch {
	case c.Triggered, v == nil && c.NotNull:
		return nil
	case v == nil:
		return append(to, nil)
	}
	switch c.Stores {
	case StoresIntegers:
		return storedInteger(to, v, c.Type)
	case StoresText:
		return storedText(ctx, s, to, v, c)
	case StoresTimes:
		return storedTimes(to, v, c.Places, c.Zones)
	case StoresUnknown:
		if c.Assumed {
			return storedAssumed(to, v)
		}
	}
	return nil
}

// storedAssumed appends the values that an integer or a string column may store.
func storedAssumed(to []any, v any) []any {
	if text, ok := decimal(v); ok {
		return append(to, v, text)
	}
	if text, ok := v.(string); ok && !MayBeNumber(text) {
		return append(to, text)
	}
	return nil
}

func storedInteger(to []any, v any, column *columntype.Type) []any {
	if text, ok := v.(string); ok {
		v = sqltoken.ParseInteger(strings.Trim(text, " "), 10)
	}
	switch v.(type) {
	case int64, uint64:
		if column.Holds(v) {
			return append(to, v)
		}
	}
	return nil // such as 7.0, 1e3 or 12abc, or out of range
}

// maxText is the minimum capacity of text types without a length.
const maxText = 255

func storedText(ctx context.Context, s Charsets, to []any, v any, column *Column) []any {
	text, ok := decimal(v)
	if !ok {
		if text, ok = v.(string); !ok {
			return nil // the underlying driver formats a time
		}
	}
	length := maxText
	if column.Form == columntype.Chars {
		length = column.Length
	}
	switch {
	case utf8.RuneCountInString(text) > length || len(text) > length && column.Form != columntype.Chars,
		column.IsPadded() && strings.HasSuffix(text, " "):
		return nil // truncated or refused
	case !sqltoken.IsASCII(text) && !storesAll(ctx, s, text, column.Collation):
		return nil
	}
	return append(to, text)
}

// decimal returns the digits of an integer.
func decimal(v any) (text string, ok bool) {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	}
	return "", false
}

// storesAll reports whether the session sends a string unchanged, to a column whose character set
// has all its characters.
func storesAll(ctx context.Context, s Charsets, text, collation string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	if !s.ReadsUTF8(ctx) {
		return false
	}
	charset, _, _ := strings.Cut(collation, "_")
	isLong := func(r rune) bool { return r > 0xffff }
	return charset == "utf8mb4" || (charset == "utf8" || charset == "utf8mb3") && !strings.ContainsFunc(text, isLong)
}

// storedTimes appends the times that a column may store. Depending on sql_mode, servers round or
// truncate a fraction with too many digits (MySQL manual, "Fractional Seconds in Time Values").
func storedTimes(to []any, v any, places int, zones []*time.Location) []any {
	switch v := v.(type) {
	case time.Time:
		if v.IsZero() {
			return nil // 0000-00-00
		}
		for _, zone := range zones {
			to = appendRounded(to, v.In(zone), places)
		}
		return to
	case string:
		if t, ok := storedTime(v); ok {
			return appendRounded(to, t, places)
		}
	default:
		if digits, ok := decimal(v); ok && (len(digits) == 8 || len(digits) == 14) {
			return storedTimes(to, digits, places, zones)
		}
	}
	return nil
}

// appendRounded appends a time truncated to this number of decimal places and, if different, the
// time rounded up. For a date, places is -1.
func appendRounded(to []any, t time.Time, places int) []any {
	unit := time.Second
	for range places {
		unit /= 10
	}
	y, m, d := t.Date()
	clock := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	below := clock.Truncate(unit)
	above := below
	if below != clock {
		above = below.Add(unit)
	}
	if places < 0 {
		below, above = below.Truncate(24*time.Hour), above.Truncate(24*time.Hour)
	}
	if y < 1000 || above.Year() > 9999 {
		return nil
	}
	to = append(to, below)
	if above != below {
		to = append(to, above)
	}
	return to
}

// MayBeNumber reports whether the server may read a string as a number.
func MayBeNumber(s string) bool {
	s = strings.TrimLeft(s, " \t\n\v\f\r+-.")
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

// storedTime parses a string as MySQL and MariaDB parse it for a DATETIME: digits alone, or numbers
// of one or two digits with the usual separators. ok is false for a form that only one of them
// accepts, and for a string with a time zone.
func storedTime(text string) (t time.Time, ok bool) {
	date, clock, hasClock := strings.Cut(strings.Replace(text, "T", " ", 1), " ")
	_, fraction, _ := strings.Cut(clock, ".")
	clock = strings.TrimSuffix(clock, ".") // MySQL accepts a fraction without digits
	if strings.Trim(date, "0123456789-/")+strings.Trim(clock, "0123456789:.") != "" || len(fraction) > 9 {
		return t, false
	}
	layout, isShort := "20060102", len(date) == 6 || len(date) == 12
	if i := strings.IndexAny(date, "-/"); i >= 0 {
		sign := date[i : i+1]
		layout, isShort = "2006"+sign+"1"+sign+"2", i == 2
	} else if hasClock {
		return t, false
	} else if len(date) > len(layout) {
		layout += "150405"
	}
	switch { // MySQL manual, "2-Digit Years in Dates"
	case isShort && date < "70":
		date = "20" + date
	case isShort:
		date = "19" + date
	}
	if hasClock {
		layout, date = layout+" 15:4", date+" "+clock
	}
	if strings.Count(clock, ":") == 2 {
		layout += ":5"
	}
	t, err := time.Parse(layout, date)
	return t, err == nil
}
