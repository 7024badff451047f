package gormshardkey

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// ErrUnknownKey is the error of a Create whose associations need the key of a row that the plugin
// can't find. Without the error, GORM would store the foreign key 0.
var ErrUnknownKey = errors.New("gormshardkey: associations need the key of a row that isn't found by its unique columns;" +
	" query the row and set the key, or create the associations separately")

// findUnknown sets the keys of existing rows that the server doesn't report, if associations need
// them.
func (in *insert) findUnknown(set *setter) error {
	var f *finder
	for i, element := range elements(in.stmt.ReflectValue) {
		if in.isKnown(i, set) {
			continue
		}
		if f == nil {
			f = in.finder(set.field)
		}
		if !in.referred && !f.isNeeded(element) {
			continue
		}
		key, err := f.find(i)
		if err == nil {
			err = set.set(element, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isKnown reports whether element i has the key of its row, from the driver or by RETURNING.
func (in *insert) isKnown(i int, set *setter) bool {
	switch {
	case in.key(i) != nil:
		return true
	case !slices.Contains(in.returned, set.field):
		return false
	case in.rows.IsValid():
		return in.placed[i]
	case in.stmt.ReflectValue.Kind() == reflect.Struct:
		return in.stmt.RowsAffected == 1
	}
	return in.stmt.RowsAffected == int64(in.stmt.ReflectValue.Len())
}

// finder finds the keys of rows by their unique columns.
type finder struct {
	*insert
	field     *schema.Field
	values    clause.Values
	relations []*schema.Relationship // those that are saved after the rows, and need their keys
	indexes   [][]string             // the columns of the table's unique indexes
}

func (in *insert) finder(field *schema.Field) *finder {
	f := &finder{insert: in, field: field}
	f.values, _ = in.stmt.Clauses["VALUES"].Expression.(clause.Values)
	selected, restricted := in.stmt.SelectAndOmitColumns(true, false)
	all := &in.stmt.Schema.Relationships
	for _, relation := range slices.Concat(all.HasOne, all.HasMany, all.Many2Many) {
		is := func(r *schema.Reference) bool { return r.OwnPrimaryKey && r.PrimaryKey == field }
		saved, ok := selected[relation.Name]
		if (saved || !ok && !restricted) && slices.ContainsFunc(relation.References, is) {
			f.relations = append(f.relations, relation)
		}
	}
	return f
}

// isNeeded reports whether an element has associations that are saved with its key.
func (f *finder) isNeeded(element reflect.Value) bool {
	return slices.ContainsFunc(f.relations, func(r *schema.Relationship) bool {
		if _, zero := r.Field.ValueOf(f.stmt.Context, element); zero {
			return false
		}
		value := reflect.Indirect(r.Field.ReflectValueOf(f.stmt.Context, element))
		return value.Kind() != reflect.Slice || value.Len() > 0
	})
}

// find returns the key of the only row that has the values of element i in a unique index.
func (f *finder) find(i int) (key any, err error) {
	query, err := f.query(i)
	if err != nil {
		return nil, err
	}
	n := 0
	err = f.read(query.SQL.String(), query.Vars, func(rows *sql.Rows) error {
		n++
		return rows.Scan(&key)
	})
	if err == nil && n != 1 {
		err = fmt.Errorf("%w (%s, element %d: %d rows)", ErrUnknownKey, f.stmt.Table, i, n)
	}
	return key, err
}

// query returns the query of element i's row by its unique columns. It locks the row, since the
// transaction's snapshot may be older than the row.
func (f *finder) query(i int) (*gorm.Statement, error) {
	if err := f.readIndexes(); err != nil {
		return nil, err
	}
	query := f.statement("SELECT ")
	query.WriteQuoted(f.field.DBName)
	query.WriteString(" FROM ")
	query.WriteQuoted(clause.Table{Name: clause.CurrentTable})
	before := " WHERE "
	for _, index := range f.indexes {
		if values := f.valuesOf(i, index); values != nil {
			query.WriteString(before)
			clause.And(values...).Build(query)
			before = " OR "
		}
	}
	if before == " WHERE " {
		return nil, fmt.Errorf("%w (%s, element %d: no unique index)", ErrUnknownKey, f.stmt.Table, i)
	}
	query.WriteString(" LIMIT 2 LOCK IN SHARE MODE") // an explicit limit, which overrides sql_select_limit
	return query, nil
}

// valuesOf returns the conditions that an index's columns have the values of element i. It returns
// nil if a value is unknown, or NULL, which collides with no other.
func (f *finder) valuesOf(i int, index []string) (conditions []clause.Expression) {
	for _, name := range index {
		at := slices.IndexFunc(f.values.Columns, func(c clause.Column) bool { return strings.EqualFold(c.Name, name) })
		if at < 0 || i >= len(f.values.Values) {
			return nil
		}
		value := f.values.Values[i][at]
		switch value.(type) {
		case nil, clause.Expression, gorm.Valuer:
			return nil
		}
		if strings.EqualFold(name, f.field.DBName) && isMissing(value) {
			return nil
		}
		// Unlike clause.Eq, this is no IS NULL for a Valuer that returns nil.
		conditions = append(conditions, clause.Expr{SQL: "? = ?", Vars: []any{clause.Column{Name: name}, value}})
	}
	return conditions
}

// readIndexes reads the columns of the table's unique indexes, once for a Create.
func (f *finder) readIndexes() error {
	if f.indexes != nil {
		return nil
	}
	name := f.statement("")
	name.WriteQuoted(clause.Table{Name: clause.CurrentTable})
	database, table, found := strings.Cut(strings.ReplaceAll(name.SQL.String(), "`", ""), ".")
	if !found {
		database, table = "", database
	}
	f.indexes = [][]string{}
	last := ""
	return f.read("SELECT INDEX_NAME, COALESCE(COLUMN_NAME, '') FROM information_schema.STATISTICS WHERE NON_UNIQUE = 0"+
		" AND TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND TABLE_NAME = ? ORDER BY INDEX_NAME, SEQ_IN_INDEX LIMIT 10000",
		[]any{database, table}, func(rows *sql.Rows) error {
			var index, column string
			if err := rows.Scan(&index, &column); err != nil {
				return err
			}
			if index != last {
				f.indexes, last = append(f.indexes, nil), index
			}
			columns := &f.indexes[len(f.indexes)-1]
			*columns = append(*columns, column)
			return nil
		})
}

// statement returns a statement for the created rows' table.
func (f *finder) statement(begin string) *gorm.Statement {
	s := &gorm.Statement{DB: f.stmt.DB, Table: f.stmt.Table, TableExpr: f.stmt.TableExpr, Context: f.stmt.Context}
	s.WriteString(begin)
	return s
}

// read calls each for each row of a query on the connection of the INSERT, since a replica may lack
// its rows.
func (f *finder) read(query string, args []any, each func(*sql.Rows) error) error {
	rows, err := f.ConnPool.QueryContext(f.stmt.Context, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
