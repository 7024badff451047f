package gormshardkey

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/driver"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// creator replaces the callback "gorm:create".
type creator struct {
	stock func(*gorm.DB) // the replaced callback
	exec  func(*gorm.DB) // the callback for a server without RETURNING
	// connector is set if the server has RETURNING. It is nil for another driver.
	connector *driver.Connector
}

// create runs the INSERT with a context that receives its keys, and sets them in the created
// values.
func (c *creator) create(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun {
		c.stock(db)
		return
	}
	run, in := c.stock, insert{ConnPool: stmt.ConnPool, stmt: stmt, maps: mapsOf(stmt.Dest)}
	if slices.Contains(stmt.BuildClauses, "RETURNING") {
		in.before = remember(stmt)
		if !hasClause(stmt, "RETURNING") && in.misread(db) && c.fills(stmt) {
			run, in.before = c.exec, nil
		}
	}
	in.run(func() { run(db) })
	switch filled := in.keys.Values() != nil; {
	case db.Error == nil && filled:
		in.fill(db)
		if isAssociation(db) {
			find(db, in.missing())
		}
	case db.Error != nil && in.before != nil && (filled || c.fills(stmt)):
		in.before.forget() // undo the keys that GORM has set before the error
		if err := in.unreadable(); err != nil {
			db.Error = nil // it may quote the key
			db.AddError(err)
		}
	}
}

// insert is the statement's connection pool while its INSERT runs, and the INSERT's keys.
type insert struct {
	gorm.ConnPool
	stmt   *gorm.Statement
	keys   driver.Keys
	maps   []map[string]any // the created maps; nil for structs
	before *memory          // nil unless GORM reads the rows of RETURNING
}

// run calls f with the insert as the statement's pool, and with its keys in the statement's context.
// Statements before and after f must not see them.
func (in *insert) run(f func()) {
	ctx := in.stmt.Context
	defer func() { in.stmt.Context, in.stmt.ConnPool = ctx, in.ConnPool }()
	in.stmt.Context, in.stmt.ConnPool = driver.WithKeys(ctx, &in.keys), in
	f()
	if of := in.stmt.Result; of != nil {
		if hidden, ok := of.Result.(result); ok {
			of.Result = hidden.Result
		}
	}
}

// ExecContext returns a result whose LastInsertId isn't a key. GORM would count from it.
func (in *insert) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	in.before = nil
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
		if field := r.in.field(); field != nil && field == primaryOf(r.in.stmt) || isKey(id, keys) {
			return 0, nil
		}
	}
	return id, err
}

// misread reports whether GORM would read the rows of RETURNING wrongly. This is the case if they
// don't match the elements one to one, or if the elements aren't structs. It is also the case if
// GORM would report their number as the affected rows, except for an association.
func (in *insert) misread(db *gorm.DB) bool {
	switch {
	case hasModifier(in.stmt), in.maps != nil:
		return true
	case hasClause(in.stmt, "ON CONFLICT"):
		return !isAssociation(db) || in.before.skipped
	}
	return false
}

// isAssociation reports whether GORM runs the statement to save associations. Such a statement is
// an upsert without a transaction for itself.
func isAssociation(db *gorm.DB) bool {
	return db.DisableNestedTransaction && hasClause(db.Statement, "ON CONFLICT")
}

// find queries the keys of existing rows for associations that were upserted together. Otherwise
// their children would get the foreign key 0. The upsert of a single row that changes nothing
// returns its key.
func find(db *gorm.DB, elements []any) {
	for _, element := range elements {
		tx := db.Session(&gorm.Session{NewDB: true, SkipHooks: true})
		tx = tx.Omit(clause.Associations).Clauses(clause.OnConflict{DoNothing: true})
		if db.AddError(tx.Create(element).Error) != nil {
			return
		}
	}
}

// hasModifier reports whether the INSERT has a modifier such as IGNORE.
func hasModifier(stmt *gorm.Statement) bool {
	insert, ok := stmt.Clauses["INSERT"].Expression.(clause.Insert)
	return ok && insert.Modifier != ""
}

func hasClause(stmt *gorm.Statement, name string) bool {
	_, ok := stmt.Clauses[name]
	return ok
}

// fills reports whether the statement's table is sharded. All databases of a resolver are assumed
// to have the same rule.
func (c *creator) fills(stmt *gorm.Statement) bool {
	if c.connector == nil {
		return false
	}
	schema, table, found := strings.Cut(strings.ReplaceAll(stmt.Table, "`", ""), ".")
	if !found {
		schema, table = "", schema
	}
	return c.connector.Lookup(schema, table) != nil
}
