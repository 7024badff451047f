package gormshardkey

import (
	"cmp"
	"iter"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm/schema"
)

// fill sets the keys of the created elements that GORM hasn't set.
func (in *insert) fill() error {
	field := in.field()
	switch {
	case in.maps != nil:
		in.fillMaps(field)
		return nil
	case in.keys.Values() == nil || field == nil || !field.Readable:
		in.place(nil)
		return nil
	}
	set := setterOf(in.stmt.Context, field)
	err := in.setKnown(set)
	in.place(set)
	return cmp.Or(err, in.findUnknown(set))
}

// field returns the field of the key column, ignoring the case of its name, or nil.
func (in *insert) field() *schema.Field {
	if in.stmt.Schema == nil {
		return nil
	}
	column := in.keys.Column()
	if field := in.stmt.Schema.FieldsByDBName[column]; field != nil {
		return field
	}
	for name, field := range in.stmt.Schema.FieldsByDBName {
		if strings.EqualFold(name, column) {
			return field
		}
	}
	return nil
}

// key returns the key of element i's row, nil if it is unknown. GORM writes one row for each
// element, except that it writes a single row for elements without columns.
func (in *insert) key(i int) any {
	if keys := in.keys.Values(); i < len(keys) {
		return keys[i]
	}
	return nil
}

// setKnown sets the keys that the driver reports.
func (in *insert) setKnown(set *setter) (failed error) {
	_, isUpsert := in.stmt.Clauses["ON CONFLICT"]
	for i, element := range elements(in.stmt.ReflectValue) {
		switch key := in.key(i); {
		case key == nil:
		case set.lacksKey(element):
			failed = cmp.Or(failed, set.set(element, key))
		case isUpsert && in.returned == nil && len(in.keys.Values()) == 1: // the existing row's key, not the explicit one
			row := reflect.New(element.Type()).Elem()
			if set.set(row, key) == nil {
				set.value(element).Set(set.value(row))
			}
		}
	}
	return failed
}

// place copies the returned rows into their elements. set is nil if the keys don't show to which
// element a row belongs. It then is the next one, as in GORM.
func (in *insert) place(set *setter) {
	if !in.rows.IsValid() {
		return
	}
	next, n := 0, in.rows.Len()
	inOrder := set == nil || n == in.stmt.ReflectValue.Len()
	in.placed = make([]bool, in.stmt.ReflectValue.Len())
	for i, element := range elements(in.stmt.ReflectValue) {
		for at := next; at < n && !in.placed[i]; at++ {
			if row := reflect.Indirect(in.rows.Index(at)); inOrder || in.isRow(set, i, element, row) {
				in.copyReturned(element, row)
				in.placed[i], next = true, at+1
			}
		}
	}
}

// isRow reports whether a returned row is element i's.
func (in *insert) isRow(set *setter, i int, element, row reflect.Value) bool {
	if !slices.Contains(in.returned, set.field) {
		return in.key(i) != nil
	}
	return !set.isZero(element) && !set.isZero(row) && reflect.DeepEqual(set.value(element).Interface(), set.value(row).Interface())
}

func (in *insert) copyReturned(element, row reflect.Value) {
	for _, field := range in.returned {
		field.ReflectValueOf(in.stmt.Context, element).Set(field.ReflectValueOf(in.stmt.Context, row))
	}
}

// elements returns the structs for which GORM writes one row each, except those that can't be set,
// in an array that was passed by value. GORM refuses a nil pointer.
func elements(v reflect.Value) iter.Seq2[int, reflect.Value] {
	return func(yield func(int, reflect.Value) bool) {
		switch v.Kind() {
		case reflect.Struct:
			yield(0, v)
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				element := reflect.Indirect(v.Index(i))
				if element.Kind() != reflect.Struct || !element.CanAddr() || !yield(i, element) {
					return
				}
			}
		}
	}
}
