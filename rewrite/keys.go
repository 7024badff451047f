package rewrite

import (
	"reflect"
	"strconv"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Keys are the generated keys of one execution, in the order of their rows. int64 keys are in Ints,
// and others in Values.
type Keys struct {
	Ints   []int64
	Values []any
	// Asked is set for each row whose argument requests a key; see [Insert.Asks].
	Asked []bool
	// Unreported: the first key isn't written as LAST_INSERT_ID(key), which would change it, such as a
	// negative one; see [Insert].ReportsFirstKey.
	Unreported bool
	// Counted is for an INSERT … SELECT: the number of rows that [Plan.Count] returned, or 1 for none.
	// Further keys are for rows that the query returns in addition. LastInsertID is the session's
	// LAST_INSERT_ID(); see [Plan.RewriteSelect].
	Counted      int
	LastInsertID uint64
}

// Len returns the number of keys.
func (k *Keys) Len() int { return len(k.Ints) + len(k.Values) }

// At returns key i.
func (k *Keys) At(i int) any {
	if k.Ints != nil {
		return k.Ints[i]
	}
	return k.Values[i]
}

// asks reports whether a row's argument requests a key.
func (k *Keys) asks(row int) bool { return row < len(k.Asked) && k.Asked[row] }

// Generates reports whether a row's key is one of the generated keys.
func (in *Insert) Generates(row int, keys *Keys) bool {
	return in.AllGenerated || in.Rows[row].Key == Generated || keys.asks(row)
}

// haveLiterals reports whether all keys can be written as literals.
func (k *Keys) haveLiterals() bool {
	for _, v := range k.Values {
		switch v.(type) {
		case int64, uint64, string, []byte:
		default:
			return false
		}
	}
	return true
}

func (k *Keys) appendLiteral(dst []byte, i int) []byte {
	if k.Ints != nil {
		return strconv.AppendInt(dst, k.Ints[i], 10)
	}
	dst, _ = sqltoken.AppendLiteral(dst, k.Values[i])
	return dst
}

// boxedKeys converts int64 keys to interface values, with one allocation for many keys. The elements of
// an array in an interface value can't change, so package reflect doesn't copy them. The zero value is
// ready to use.
type boxedKeys struct {
	array reflect.Value
	first int // the index of the array's first key
}

// at returns key i of keys, which must be the same ones in each call.
func (boxed *boxedKeys) at(keys *Keys, i int) any {
	const most = 64
	if len(keys.Ints) < 2 {
		return keys.At(i)
	}
	if !boxed.array.IsValid() || i < boxed.first || i >= boxed.first+most {
		var array [most]int64
		copy(array[:], keys.Ints[i:])
		boxed.array, boxed.first = reflect.ValueOf(array), i
	}
	return boxed.array.Index(i - boxed.first).Interface()
}
