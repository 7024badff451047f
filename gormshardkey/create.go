package gormshardkey

import (
	"context"
	"database/sql"
	"reflect"
	"slices"

	"github.com/shardkey/shardkey/driver"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// creator replaces the callback "gorm:create".
type creator struct{ stock func(*gorm.DB) } // the replaced callback

// create runs the INSERT with a context that receives its keys, and sets the keys that GORM doesn't
// know in the created values.
func (c *creator) create(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun {
		c.stock(db)
		return
	}
	in := &insert{ConnPool: stmt.ConnPool, stmt: stmt, maps: mapsOf(stmt.Dest), referred: isReferred(db)}
	in.run(func() { c.stock(db) })
	if db.Error == nil {
		db.AddError(in.fill())
	}
}

// insert is the statement's connection pool while its INSERT runs, and the INSERT's keys.
type insert struct {
	gorm.ConnPool
	stmt *gorm.Statement
	keys driver.Keys
	maps []map[string]any // the created maps; nil for structs
	// referred reports whether the rows are saved because other rows refer to them.
	referred bool
	// returned are the fields that GORM reads by RETURNING.
	returned []*schema.Field
	// rows are the returned rows if GORM would read them into wrong elements: a slice of structs or
	// of maps. Otherwise it is invalid.
	rows reflect.Value
	// placed reports for each element whether one of rows is its row.
	placed []bool
}

// run calls f with the insert as the statement's pool, and with its keys in the statement's context.
// Statements before and after f must not see them.
func (in *insert) run(f func()) {
	stmt := in.stmt
	ctx, dest, value := stmt.Context, stmt.Dest, stmt.ReflectValue
	defer func() {
		stmt.Context, stmt.ConnPool, stmt.Dest, stmt.ReflectValue = ctx, in.ConnPool, dest, value
	}()
	stmt.Context, stmt.ConnPool = driver.WithKeys(ctx, &in.keys), in
	f()
	if of := stmt.Result; of != nil {
		if hidden, ok := of.Result.(result); ok {
			of.Result = hidden.Result
		}
	}
}

// QueryContext runs an INSERT with RETURNING. GORM reads row i into element i. It gets another
// destination if row i may belong to another element, because IGNORE skips rows, and for maps, to
// which GORM would append the rows.
func (in *insert) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	in.returned = returnedFields(in.stmt)
	value := in.stmt.ReflectValue
	switch several := value.Kind() == reflect.Slice || value.Kind() == reflect.Array; {
	case several && in.maps != nil:
		rows := new([]map[string]any)
		in.stmt.Dest, in.rows = rows, reflect.ValueOf(rows).Elem()
	case several && in.returned != nil && hasModifier(in.stmt):
		in.rows = reflect.New(reflect.SliceOf(value.Type().Elem())).Elem()
		in.stmt.ReflectValue = in.rows
	}
	return in.ConnPool.QueryContext(ctx, query, args...)
}

// returnedFields returns the fields of the clause RETURNING. It returns nil if the caller requests
// whole rows, for which GORM creates the elements.
func returnedFields(stmt *gorm.Statement) (fields []*schema.Field) {
	returning, _ := stmt.Clauses["RETURNING"].Expression.(clause.Returning)
	if stmt.Schema == nil {
		return nil
	}
	for _, column := range returning.Columns {
		if field := stmt.Schema.LookUpField(column.Name); field != nil && field.Readable {
			fields = append(fields, field)
		}
	}
	return fields
}

// hasModifier reports whether the INSERT has a modifier such as IGNORE.
func hasModifier(stmt *gorm.Statement) bool {
	insert, ok := stmt.Clauses["INSERT"].Expression.(clause.Insert)
	return ok && insert.Modifier != ""
}

// ExecContext returns a result whose LastInsertId isn't a key. GORM would count from it.
func (in *insert) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	r, err := in.ConnPool.ExecContext(ctx, query, args...)
	return result{r, in}, err
}

type result struct {
	sql.Result
	in *insert
}

// LastInsertId returns 0 instead of a key. If another column has AUTO_INCREMENT, it returns that
// column's value, from which GORM has to count.
func (r result) LastInsertId() (int64, error) {
	id, err := r.Result.LastInsertId()
	if keys := r.in.keys.Values(); keys != nil {
		field := r.in.field()
		isKey := slices.Contains(keys, any(id)) || slices.Contains(keys, any(uint64(id)))
		if isKey || field != nil && field == r.in.stmt.Schema.PrioritizedPrimaryField {
			return 0, nil
		}
	}
	return id, err
}

// isReferred reports whether GORM saves rows for others that refer to them: of a belongs to or many
// to many association. For a has one or has many association, GORM updates columns.
func isReferred(db *gorm.DB) bool {
	_, isAssociation := db.Get("gorm:saved_association_map")
	conflict, _ := db.Statement.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	return isAssociation && db.DisableNestedTransaction && (conflict.DoNothing || conflict.UpdateAll)
}
