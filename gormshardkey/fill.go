package gormshardkey

import (
	"cmp"
	"iter"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// filled is the result of a statement.
type filled struct {
	column   string
	keys     []any // one for each row; nil if unknown
	affected int64 // affected rows, or returned ones
	returned bool  // GORM has read the rows of RETURNING
}

func (f *filled) key(row int) any {
	if row < len(f.keys) {
		return f.keys[row]
	}
	return nil
}

// memory is the state of a statement's destination before it ran.
type memory struct {
	stmt    *gorm.Statement
	primary *schema.Field // the field that GORM sets; nil if none
	// zero reports for each element whether GORM considers its primary field missing.
	zero []bool
	// skipped reports whether GORM skips an element when it reads RETURNING, if ON CONFLICT does
	// nothing. It would read that element's row into the next element.
	skipped bool
	maps    *mapMemory // nil for structs
}

func remember(stmt *gorm.Statement) *memory {
	m := &memory{stmt: stmt}
	if stmt.Schema != nil {
		m.primary = stmt.Schema.PrioritizedPrimaryField
	}
	if maps := mapsOf(stmt.Dest); maps != nil {
		m.maps = rememberMaps(maps, m.primary)
		return m
	}
	returned := returnedFields(stmt)
	for _, element := range elements(stmt.ReflectValue) {
		for _, field := range returned {
			m.skipped = m.skipped || !m.isZero(field, element)
		}
		m.zero = append(m.zero, m.primary != nil && m.isZero(m.primary, element))
	}
	return m
}

// isZero reports whether an element's field is zero. The field's ValueOf reports that too, but
// allocates a copy of the value.
func (m *memory) isZero(field *schema.Field, element reflect.Value) bool {
	for _, index := range field.StructField.Index {
		if index < 0 { // an embedded pointer; if it is nil, ReflectValueOf would set it
			_, zero := field.ValueOf(m.stmt.Context, element)
			return zero
		}
	}
	return field.ReflectValueOf(m.stmt.Context, element).IsZero()
}

// fill sets each element's key. Row i belongs to element i, since GORM writes one row for each
// element, except that it writes a single row for elements without columns.
func (m *memory) fill(db *gorm.DB, f filled) {
	field := m.field(f.column)
	if m.maps != nil {
		m.maps.fill(m.stmt, field, f)
		return
	}
	if f.returned && returnsAll(m.stmt) {
		return // GORM has created an element for each row
	}
	wrong := m.wrong(field, f)
	var set *setter
	if field != nil && field.Readable {
		set = setterOf(m.stmt.Context, field)
	}
	var failed error
	for i, element := range elements(m.stmt.ReflectValue) {
		if element.CanAddr() { // not in an array that was passed by value
			failed = cmp.Or(failed, m.fillOne(set, i, element, f.key(i), wrong))
		}
	}
	db.AddError(failed)
}

// fillOne sets the key of an element, and removes the value that GORM has set if it is wrong.
func (m *memory) fillOne(set *setter, i int, element reflect.Value, key any, wrong bool) (err error) {
	if set != nil && key != nil && m.lacksKey(set.field, i, element) {
		err = set.set(element, key)
		if set.field == m.primary {
			wrong = err != nil // the key has replaced GORM's value
		}
	}
	if wrong {
		m.restore(i, element)
	}
	return err
}

// lacksKey reports whether the key of an element has to be set. GORM may have set a primary field
// that was zero.
func (m *memory) lacksKey(field *schema.Field, i int, element reflect.Value) bool {
	if field == m.primary && m.zero[i] {
		return true
	}
	value, zero := field.ValueOf(m.stmt.Context, element)
	return zero || isMissing(value)
}

// forget removes the values that GORM has set before an error.
func (m *memory) forget() {
	if m.maps != nil || returnsAll(m.stmt) {
		return
	}
	for i, element := range elements(m.stmt.ReflectValue) {
		m.restore(i, element)
	}
}

// unreadable returns a FieldError for the first key that the field can't store as GORM reads it. It
// returns nil if GORM's error has another cause.
func (m *memory) unreadable(column string, keys []any) *FieldError {
	field := m.field(column)
	if field == nil || !field.Readable {
		return nil
	}
	set, element := setterOf(m.stmt.Context, field), reflect.New(m.stmt.Schema.ModelType).Elem()
	for _, key := range keys {
		if key != nil {
			if err := set.read(element, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// missing returns pointers to the elements whose primary field is the integer key column and still
// zero. It returns nil for a single element.
func (m *memory) missing(column string) (pointers []any) {
	if len(m.zero) < 2 || m.primary == nil || m.field(column) != m.primary || !m.primary.Readable {
		return nil
	}
	if kind := m.primary.DataType; kind != schema.Int && kind != schema.Uint {
		return nil // an upsert doesn't report a string
	}
	for _, element := range elements(m.stmt.ReflectValue) {
		if m.isZero(m.primary, element) && element.CanAddr() {
			pointers = append(pointers, element.Addr().Interface())
		}
	}
	return pointers
}

// field returns the field of a column, ignoring the case of its name.
func (m *memory) field(column string) *schema.Field {
	if m.stmt.Schema == nil {
		return nil
	}
	if field := m.stmt.Schema.FieldsByDBName[column]; field != nil {
		return field
	}
	for name, field := range m.stmt.Schema.FieldsByDBName {
		if strings.EqualFold(name, column) {
			return field
		}
	}
	return nil
}

// wrong reports whether the values that GORM has set in the primary fields may be wrong.
func (m *memory) wrong(field *schema.Field, f filled) bool {
	switch {
	case m.primary == nil || !m.primary.Readable:
		return false // GORM has set no value
	case f.returned:
		return m.shifted(f)
	case field == m.primary:
		return true // GORM has counted
	}
	// GORM has counted here too. If the primary column has AUTO_INCREMENT, it has counted from the
	// server's value.
	for i, element := range elements(m.stmt.ReflectValue) {
		if value, zero := m.primary.ValueOf(m.stmt.Context, element); m.zero[i] && !zero {
			return isKey(value, f.keys)
		}
	}
	return false
}

// shifted reports whether GORM may have read a row of RETURNING into another element. INSERT IGNORE
// returns fewer rows, and with DoNothing GORM skips elements with a value.
func (m *memory) shifted(f filled) bool {
	if f.affected != int64(len(m.zero)) && len(m.zero) > 1 {
		return true
	}
	conflict, _ := m.stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	return conflict.DoNothing && m.skipped
}

// returnedFields returns the fields that an upsert reads by RETURNING.
func returnedFields(stmt *gorm.Statement) []*schema.Field {
	if stmt.Schema == nil || !hasClause(stmt, "ON CONFLICT") {
		return nil
	}
	returning, ok := stmt.Clauses["RETURNING"].Expression.(clause.Returning)
	if !ok {
		return stmt.Schema.FieldsWithDefaultDBValue
	}
	var fields []*schema.Field
	for _, column := range returning.Columns {
		if field := stmt.Schema.LookUpField(column.Name); field != nil {
			fields = append(fields, field)
		}
	}
	return fields
}

// returnsAll reports whether the caller requests whole rows.
func returnsAll(stmt *gorm.Statement) bool {
	returning, ok := stmt.Clauses["RETURNING"].Expression.(clause.Returning)
	return ok && (len(returning.Columns) == 0 || len(returning.Columns) == 1 && returning.Columns[0].Name == "*")
}

// restore sets an element's primary field back to zero if it was zero before.
func (m *memory) restore(i int, element reflect.Value) {
	if m.zero[i] && element.CanAddr() && !m.isZero(m.primary, element) {
		m.primary.ReflectValueOf(m.stmt.Context, element).SetZero()
	}
}

// elements returns the structs for which GORM writes one row each. GORM refuses a nil pointer.
func elements(v reflect.Value) iter.Seq2[int, reflect.Value] {
	return func(yield func(int, reflect.Value) bool) {
		switch v.Kind() {
		case reflect.Struct:
			yield(0, v)
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				element := reflect.Indirect(v.Index(i))
				if element.Kind() != reflect.Struct || !yield(i, element) {
					return
				}
			}
		}
	}
}
