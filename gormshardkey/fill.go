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

// primaryOf returns the field that GORM sets, or nil.
func primaryOf(stmt *gorm.Statement) *schema.Field {
	if stmt.Schema == nil {
		return nil
	}
	return stmt.Schema.PrioritizedPrimaryField
}

// fill sets each element's key. Row i belongs to element i, since GORM writes one row for each
// element, except that it writes a single row for elements without columns.
func (in *insert) fill(db *gorm.DB) {
	field := in.field()
	switch {
	case in.maps != nil:
		in.fillMaps(field)
		return
	case in.before != nil && returnsAll(in.stmt):
		return // GORM has created an element for each row
	}
	var set *setter
	if field != nil && field.Readable {
		set = setterOf(in.stmt.Context, field)
	}
	shifted := in.before != nil && in.before.shifted(db.RowsAffected)
	var failed error
	for i, element := range elements(in.stmt.ReflectValue) {
		if element.CanAddr() { // not in an array that was passed by value
			failed = cmp.Or(failed, in.fillOne(set, i, element, shifted))
		}
	}
	db.AddError(failed)
}

// fillOne sets the key of an element, and removes the value that GORM has set if it may be of
// another row.
func (in *insert) fillOne(set *setter, i int, element reflect.Value, shifted bool) (err error) {
	if keys := in.keys.Values(); set != nil && i < len(keys) && keys[i] != nil {
		// GORM may have set a primary field that was zero.
		isPrimary := set.field == primaryOf(in.stmt)
		zero := isPrimary && in.before != nil && in.before.zero[i] || isZero(in.stmt, set.field, element)
		if zero || set.lacksKey(element) {
			err = set.set(element, keys[i])
			shifted = shifted && !isPrimary
		}
		if zero && err != nil {
			set.field.ReflectValueOf(set.ctx, element).SetZero() // Scan may have set a part
		}
	}
	if shifted {
		in.before.restore(i, element)
	}
	return err
}

// unreadable returns a FieldError for the first key that the field can't store as GORM reads it. It
// returns nil if GORM's error has another cause.
func (in *insert) unreadable() *FieldError {
	field := in.field()
	if field == nil || !field.Readable {
		return nil
	}
	set, element := setterOf(in.stmt.Context, field), reflect.New(in.stmt.Schema.ModelType).Elem()
	for _, key := range in.keys.Values() {
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
func (in *insert) missing() (pointers []any) {
	field := in.field()
	if len(in.keys.Values()) < 2 || field == nil || field != primaryOf(in.stmt) || !field.Readable {
		return nil
	}
	if field.DataType != schema.Int && field.DataType != schema.Uint {
		return nil // an upsert doesn't report a string
	}
	for _, element := range elements(in.stmt.ReflectValue) {
		if isZero(in.stmt, field, element) && element.CanAddr() {
			pointers = append(pointers, element.Addr().Interface())
		}
	}
	return pointers
}

// memory is the state of the created structs before GORM reads the rows of RETURNING into them.
type memory struct {
	stmt *gorm.Statement
	// zero reports for each element whether its primary field is zero.
	zero []bool
	// skipped reports whether GORM skips an element when it reads RETURNING, if ON CONFLICT does
	// nothing. It would read that element's row into the next element.
	skipped bool
}

func remember(stmt *gorm.Statement) *memory {
	m := &memory{stmt: stmt}
	primary, returned := primaryOf(stmt), returnedFields(stmt)
	for _, element := range elements(stmt.ReflectValue) {
		for _, field := range returned {
			m.skipped = m.skipped || !isZero(stmt, field, element)
		}
		m.zero = append(m.zero, primary != nil && isZero(stmt, primary, element))
	}
	return m
}

// isZero reports whether an element's field is zero. The field's ValueOf reports that too, but
// allocates a copy of the value.
func isZero(stmt *gorm.Statement, field *schema.Field, element reflect.Value) bool {
	for _, index := range field.StructField.Index {
		if index < 0 { // an embedded pointer; if it is nil, ReflectValueOf would set it
			_, zero := field.ValueOf(stmt.Context, element)
			return zero
		}
	}
	return field.ReflectValueOf(stmt.Context, element).IsZero()
}

// shifted reports whether GORM may have read a row of RETURNING into another element. INSERT IGNORE
// returns fewer rows, and with DoNothing GORM skips elements with a value.
func (m *memory) shifted(returned int64) bool {
	if primary := primaryOf(m.stmt); primary == nil || !primary.Readable {
		return false // GORM has set no value
	}
	if returned != int64(len(m.zero)) && len(m.zero) > 1 {
		return true
	}
	conflict, _ := m.stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	return conflict.DoNothing && m.skipped
}

// forget removes the values that GORM has set before an error.
func (m *memory) forget() {
	if returnsAll(m.stmt) {
		return
	}
	for i, element := range elements(m.stmt.ReflectValue) {
		m.restore(i, element)
	}
}

// restore sets an element's primary field back to zero if it was zero before.
func (m *memory) restore(i int, element reflect.Value) {
	if primary := primaryOf(m.stmt); m.zero[i] && element.CanAddr() && !isZero(m.stmt, primary, element) {
		primary.ReflectValueOf(m.stmt.Context, element).SetZero()
	}
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
