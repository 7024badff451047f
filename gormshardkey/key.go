package gormshardkey

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
	"slices"

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

// setter reads and sets the field of the key column.
type setter struct {
	ctx   context.Context
	field *schema.Field
	scans bool   // the field has a Scan method or a serializer, which refuses keys by itself
	low   int64  // the least integer that the field stores unchanged
	high  uint64 // the greatest one
}

func setterOf(ctx context.Context, field *schema.Field) *setter {
	s := &setter{ctx: ctx, field: field, scans: field.Serializer != nil || isScanner(field.FieldType)}
	s.low, s.high = bounds(field.IndirectFieldType)
	return s
}

// set sets the key in an element's field, as GORM sets a value that it reads from the column.
func (s *setter) set(element reflect.Value, key any) error {
	if !s.fits(key) {
		return s.failed(key, nil)
	}
	value := own(key)
	if text, ok := key.(string); ok && s.scans {
		value = []byte(text) // go-sql-driver's form
	}
	if s.field.Serializer != nil {
		pooled := s.field.NewValuePool.Get()
		defer s.field.NewValuePool.Put(pooled)
		_ = pooled.(sql.Scanner).Scan(value) // which keeps the value for Set
		value = pooled
	}
	if err := s.field.Set(s.ctx, element, value); err != nil {
		s.value(element).SetZero() // Scan may have set a part
		return s.failed(key, err)
	}
	return nil
}

// value returns an element's field. If the field is in an embedded pointer that is nil, value sets
// the pointer.
func (s *setter) value(element reflect.Value) reflect.Value {
	return s.field.ReflectValueOf(s.ctx, element)
}

// isZero reports whether an element's field is zero. The field's ValueOf reports that too, but
// allocates a copy of the value.
func (s *setter) isZero(element reflect.Value) bool {
	isPointer := func(index int) bool { return index < 0 } // an embedded one
	if slices.ContainsFunc(s.field.StructField.Index, isPointer) {
		_, zero := s.field.ValueOf(s.ctx, element)
		return zero
	}
	return s.value(element).IsZero()
}

// lacksKey reports whether an element's field asks for a key, although it may not be zero.
func (s *setter) lacksKey(element reflect.Value) bool {
	if s.isZero(element) {
		return true
	}
	value, _ := s.field.ValueOf(s.ctx, element)
	return isMissing(value)
}

// fits reports whether the field stores the key unchanged, if the key is a number.
func (s *setter) fits(key any) bool {
	switch key := key.(type) {
	case int64:
		return s.scans || key < 0 && key >= s.low || key >= 0 && uint64(key) <= s.high
	case uint64:
		return s.scans || key <= s.high
	}
	return true
}

func (s *setter) failed(key any, err error) *FieldError {
	f := s.field
	return &FieldError{Model: f.Schema.Name, Field: f.Name, Type: f.FieldType.String(), Column: f.DBName, Key: key, Err: err}
}

var scanner = reflect.TypeFor[sql.Scanner]()

func isScanner(t reflect.Type) bool {
	return t.Implements(scanner) || reflect.PointerTo(t).Implements(scanner)
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
