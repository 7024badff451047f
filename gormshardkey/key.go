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

// FieldError is the error of a Create if a model's field can't store the row's key. The row was
// inserted unless a transaction is rolled back. The message doesn't contain the key.
type FieldError struct {
	Model  string // the model's name
	Field  string // the field's name
	Type   string // the field's type
	Column string
	Key    any
	Err    error // the error of the field's Scan; nil if the key is too large
}

func (e *FieldError) Error() string {
	text := fmt.Sprintf("gormshardkey: field %s.%s of type %s cannot store the key of column %s", e.Model, e.Field, e.Type, e.Column)
	if e.Err != nil {
		return fmt.Sprintf("%s: its Scan failed with a %T", text, e.Err) // whose message may quote the key
	}
	return text + "; use a type that all keys fit in, for example int64 or string"
}

func (e *FieldError) Unwrap() error { return e.Err }

// setKey sets the key in an element's field.
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

// scanned returns the forms of a key to pass to a Scan method. The first is the form that
// go-sql-driver returns for the column, since most Scan methods expect it.
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

// fits reports whether a number fits in a numeric field. GORM would truncate it otherwise.
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

// number is an integer of any type.
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

// isMissing reports whether the driver generates a key for a value: for nil, 0, an empty string, a
// pointer to one, or a driver.Valuer that returns one.
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
