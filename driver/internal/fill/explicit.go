package fill

import (
	"database/sql/driver"
	"math"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// Explicit returns the explicit keys of the rows as the column stores them, nil for a key that only the
// server knows or that was generated. It returns nil if all keys are generated.
func (f *Filler) Explicit(column *facts.Column, args []driver.NamedValue, keys *rewrite.Keys) []any {
	if f.Insert.AllGenerated || f.Insert.Invalid {
		return nil
	}
	explicit, r := make([]any, len(f.Insert.Rows)), rows{Filler: f, column: column, args: args}
	for row := range explicit {
		if f.Insert.Generates(row, keys) {
			continue
		}
		if key := r.explicit(row); column.Keeps(key) {
			explicit[row] = key
		}
	}
	return explicit
}

// explicit returns the explicit key of a row, nil if only the server knows it.
func (r *rows) explicit(row int) any {
	switch of := r.Insert.Rows[row]; of.Key {
	case rewrite.Argument:
		return boundKey(r.Table.ints != nil, r.column, sqltoken.PlainValue(r.args[of.Arg].Value))
	case rewrite.Literal:
		if r.Table.ints == nil || storesIntegers(r.column) {
			return r.plan.LiteralKey(row)
		}
	}
	return nil
}

// storesIntegers reports whether the key column stores integers, as far as known. A DECIMAL or a
// string column may store another value for '5.5', ' 5' or 0x41.
func storesIntegers(c *facts.Column) bool {
	return c.Stores == facts.StoresIntegers || c.Stores == facts.StoresUnknown
}

// boundKey returns a bound explicit key as the column stores it, nil if only the server knows it.
func boundKey(integers bool, column *facts.Column, bound driver.Value) any {
	const exact = 1 << 53
	inIntegers := integers && column.Stores == facts.StoresIntegers
	switch v := bound.(type) {
	case int64, uint64:
		return v
	case bool:
		if v && inIntegers {
			return int64(1)
		}
	case float64:
		if inIntegers && v == math.Trunc(v) && math.Abs(v) < exact {
			return int64(v)
		}
	case []byte:
		if !integers {
			return append([]byte(nil), v...)
		}
	}
	text, ok := sqltoken.TextOf(bound)
	switch {
	case !ok:
		return nil
	case !integers:
		return text
	case inIntegers:
		return storedInteger(text)
	case !storesIntegers(column):
		return nil
	}
	return sqltoken.ParseInteger(text, 10)
}

// storedInteger returns the integer that an integer column stores for a string, nil if only the server
// knows it.
func storedInteger(text string) any {
	whole, fraction, _ := strings.Cut(strings.Trim(text, " \t\n\v\f\r"), ".")
	if strings.Trim(fraction, "0") != "" {
		return nil
	}
	return sqltoken.ParseInteger(whole, 10)
}
