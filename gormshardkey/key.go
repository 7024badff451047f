package gormshardkey

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
	"slices"
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

type setter struct {
	ctx   context.Context
	field *schema.Field
	scans bool   // the field has a Scan method
	low   int64  // the least integer that the field stores unchanged
	high  uint64 // the greatest one
}

func setterOf(ctx context.Context, field *schema.Field) *setter {
	low, high := bounds(field.IndirectFieldType)
	return &setter{ctx, field, isScanner(field.FieldType), low, high}
}

// set sets the key in an element's field. A Scan method that refuses the key as read passes it gets
// the other form of the key.
func (s *setter) set(element reflect.Value, key any) error {
	err := s.read(element, key)
	if err == nil || s.scans && err.Err != nil && s.field.Set(s.ctx, element, converted(key)) == nil {
		return nil
	}
	return err
}

// read sets the key in an element's field as go-sql-driver returns it from the column. Most Scan
// methods expect this form.
func (s *setter) read(element reflect.Value, key any) *FieldError {
	if !s.fits(key) {
		return s.failed(key, nil)
	}
	form := own(key)
	if text, ok := key.(string); ok && s.scans {
		form = []byte(text)
	}
	if err := s.field.Set(s.ctx, element, form); err != nil {
		return s.failed(key, err)
	}
	return nil
}

// lacksKey reports whether an element's field asks for a key, although it may not be zero.
func (s *setter) lacksKey(element reflect.Value) bool {
	value, _ := s.field.ValueOf(s.ctx, element)
	return isMissing(value)
}

// fits reports whether the field stores the key unchanged, if the key is a number.
func (s *setter) fits(key any) bool {
	n, ok := integer(reflect.ValueOf(key))
	if n.negative {
		return int64(n.magnitude) >= s.low
	}
	return !ok || n.magnitude <= s.high
}

func (s *setter) failed(key any, err error) *FieldError {
	f := s.field
	return &FieldError{Model: f.Schema.Name, Field: f.Name, Type: f.FieldType.String(), Column: f.DBName, Key: key, Err: err}
}

var scanner = reflect.TypeFor[sql.Scanner]()

func isScanner(t reflect.Type) bool {
	return t.Implements(scanner) || reflect.PointerTo(t).Implements(scanner)
}

// converted returns the other form of the key.
func converted(key any) any {
	switch key := key.(type) {
	case []byte:
		return string(key)
	case int64:
		return strconv.AppendInt(nil, key, 10)
	case uint64:
		return strconv.AppendUint(nil, key, 10)
	}
	return key
}

// bounds returns the least and the greatest integer that a type stores unchanged. GORM would
// truncate others.
func bounds(t reflect.Type) (low int64, high uint64) {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		high = math.MaxUint64 >> (65 - t.Bits())
		return -int64(high) - 1, high
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return 0, math.MaxUint64 >> (64 - t.Bits())
	case reflect.Float32:
		return -1 << 24, 1 << 24
	case reflect.Float64:
		return -1 << 53, 1 << 53
	}
	return math.MinInt64, math.MaxUint64
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

// isKey reports whether an integer is one of the keys.
func isKey(id int64, keys []any) bool {
	n := number{uint64(id), id < 0}
	return slices.ContainsFunc(keys, func(key any) bool {
		k, ok := integer(reflect.ValueOf(key))
		return ok && k == n
	})
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
