package gormshardkey

import (
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
			if _, zero := field.ValueOf(stmt.Context, element); !zero {
				m.skipped = true
			}
		}
		zero := false
		if m.primary != nil {
			_, zero = m.primary.ValueOf(stmt.Context, element)
		}
		m.zero = append(m.zero, zero)
	}
	return m
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
	elements := elements(m.stmt.ReflectValue)
	if m.wrong(elements, field, f) {
		m.restore(elements)
	}
	if field == nil || !field.Readable {
		return
	}
	for i, element := range elements {
		if i >= len(f.keys) || f.keys[i] == nil || !settable(element) {
			continue
		}
		primary := field == m.primary && m.zero[i]
		if value, zero := field.ValueOf(m.stmt.Context, element); primary || zero || isMissing(value) {
			db.AddError(setKey(m.stmt.Context, field, element, f.keys[i]))
		}
	}
}

// forget removes the values that GORM has read from a failed statement.
func (m *memory) forget() {
	if m.maps == nil && m.primary != nil && !returnsAll(m.stmt) {
		m.restore(elements(m.stmt.ReflectValue))
	}
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
		if _, zero := m.primary.ValueOf(m.stmt.Context, element); zero && settable(element) {
			pointers = append(pointers, reflect.Indirect(element).Addr().Interface())
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
func (m *memory) wrong(elements []reflect.Value, field *schema.Field, f filled) bool {
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
	for i, element := range elements {
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

// restore sets the primary fields back to zero if they were zero before.
func (m *memory) restore(elements []reflect.Value) {
	for i, element := range elements {
		if !m.zero[i] || !settable(element) {
			continue
		}
		if _, zero := m.primary.ValueOf(m.stmt.Context, element); !zero {
			m.primary.ReflectValueOf(m.stmt.Context, element).SetZero()
		}
	}
}

// elements returns the structs for which GORM writes one row each.
func elements(v reflect.Value) []reflect.Value {
	switch v.Kind() {
	case reflect.Struct:
		return []reflect.Value{v}
	case reflect.Slice, reflect.Array:
		all := make([]reflect.Value, 0, v.Len())
		for i := range v.Len() {
			element := v.Index(i)
			if reflect.Indirect(element).Kind() != reflect.Struct {
				return nil
			}
			all = append(all, element)
		}
		return all
	}
	return nil
}

// settable reports whether an element can be changed. An element of an array that was passed by
// value can't.
func settable(element reflect.Value) bool { return reflect.Indirect(element).CanAddr() }
