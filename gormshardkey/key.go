package gormshardkey

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"strconv"

	"gorm.io/gorm/schema"
)

// FieldError is the error of a Create whose row has a key that the model's field
// cannot hold.
type FieldError struct {
	Model  string // the model's name
	Field  string // the field's
	Type   string // the field's type
	Column string
	Key    any
	Err    error // what the field's Scan returned; nil if the key is too large
}

func (e *FieldError) Error() string {
	text := fmt.Sprintf("gormshardkey: %s.%s, a %s, cannot hold the key %v of column %s", e.Model, e.Field, e.Type, e.Key, e.Column)
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text + ": give the field a type that its keys fit into, as int64 or string"
}

func (e *FieldError) Unwrap() error { return e.Err }

// setKey gives an element's field a key.
func setKey(ctx context.Context, field *schema.Field, element reflect.Value, key any) error {
	fail := &FieldError{Model: field.Schema.Name, Field: field.Name, Type: field.FieldType.String(), Column: field.DBName, Key: key}
	if !fits(field.IndirectFieldType, key) {
		return fail
	}
	forms := []any{own(key)}
	if isScanner(field.FieldType) {
		forms = scanned(key)
	}
	for _, form := range forms {
		if fail.Err = field.Set(ctx, element, form); fail.Err == nil {
			return nil
		}
	}
	return fail
}

var scanner = reflect.TypeFor[sql.Scanner]()

func isScanner(t reflect.Type) bool {
	return t.Implements(scanner) || reflect.PointerTo(t).Implements(scanner)
}

// scanned are the forms in which a Scan may want a key: first that in which
// go-sql-driver reads the column, for which Scan was written.
func scanned(key any) []any {
	switch key := key.(type) {
	case string:
		return []any{[]byte(key), key}
	case []byte:
		return []any{own(key), string(key)}
	case int64:
		return []any{key, strconv.AppendInt(nil, key, 10)}
	case uint64:
		return []any{key, strconv.AppendUint(nil, key, 10)}
	}
	return []any{key}
}

// fits reports whether a number fits into a field of a number's type: what does
// not, GORM would cut off.
func fits(t reflect.Type, key any) bool {
	n, ok := integer(reflect.ValueOf(key))
	if !ok {
		return true
	}
	v := reflect.New(t).Elem()
	switch {
	case v.CanInt():
		return (n.negative || n.magnitude <= 1<<63-1) && !v.OverflowInt(int64(n.magnitude))
	case v.CanUint():
		return !n.negative && !v.OverflowUint(n.magnitude)
	case v.CanFloat():
		return n.magnitude <= 1<<24 || t.Kind() == reflect.Float64 && n.magnitude <= 1<<53
	}
	return true
}

// number is an integer of any type: the value as int64 or, if it is not negative,
// as uint64.
type number struct {
	magnitude uint64 // two's complement if negative
	negative  bool
}

func integer(v reflect.Value) (number, bool) {
	v = indirect(v)
	switch {
	case !v.IsValid():
		return number{}, false
	case v.CanInt():
		return number{uint64(v.Int()), v.Int() < 0}, true
	case v.CanUint():
		return number{v.Uint(), false}, true
	}
	return number{}, false
}

func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// isMissing reports whether a value asks for a key as the driver sees it: nil, 0,
// or an empty text, also as a pointer to one or as what a driver.Valuer returns.
func isMissing(value any) bool {
	v := reflect.ValueOf(value)
	if valuer, ok := value.(driver.Valuer); ok && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		value, err := valuer.Value()
		if err != nil {
			return false
		}
		v = reflect.ValueOf(value)
	}
	v = indirect(v)
	switch {
	case !v.IsValid():
		return true
	case v.CanInt(), v.CanUint(), v.CanFloat(), v.Kind() == reflect.String:
		return v.IsZero()
	case v.Kind() == reflect.Slice:
		return v.Len() == 0
	}
	return false
}
