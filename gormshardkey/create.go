package gormshardkey

import (
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
	rules rules
}

// create runs the INSERT with a context that receives its keys, and sets them in the created
// values.
func (c *creator) create(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun {
		c.stock(db)
		return
	}
	run, reads := c.stock, slices.Contains(stmt.BuildClauses, "RETURNING")
	before := remember(stmt)
	if reads && !hasClause(stmt, "RETURNING") && misreads(db, before) && c.rules.fills(stmt) {
		run, reads = c.exec, false
	}
	var keys driver.Keys
	withKeys(stmt, &keys, func() { run(db) })
	switch values := keys.Values(); {
	case db.Error != nil && (values != nil || reads && c.rules.fills(stmt)):
		before.forget() // undo the keys that GORM has set before the error
		if err := before.unreadable(keys.Column(), values); err != nil {
			db.Error = nil // it may quote the key
			db.AddError(err)
		}
	case db.Error == nil && values != nil:
		before.fill(db, filled{column: keys.Column(), keys: values, affected: db.RowsAffected, returned: reads})
		if isAssociation(db) {
			find(db, before.missing(keys.Column()))
		}
	}
}

// withKeys adds keys to the statement's context while run runs. Statements before and after run
// must not see them.
func withKeys(stmt *gorm.Statement, keys *driver.Keys, run func()) {
	ctx := stmt.Context
	defer func() { stmt.Context = ctx }()
	stmt.Context = driver.WithKeys(ctx, keys)
	run()
}

// misreads reports whether GORM would read the rows of RETURNING wrongly. This is the case if they
// don't match the elements one to one, or if the elements aren't structs. It is also the case if
// GORM would report their number as the affected rows, except for an association.
func misreads(db *gorm.DB, before *memory) bool {
	switch stmt := db.Statement; {
	case hasModifier(stmt), before.maps != nil:
		return true
	case hasClause(stmt, "ON CONFLICT"):
		return !isAssociation(db) || before.skipped
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

// rules has the connector of a database. The zero value is for a database of another driver.
type rules struct{ connector *driver.Connector }

// rulesOf returns the rules of the database.
func rulesOf(db *gorm.DB) rules {
	pool, err := db.DB()
	if err != nil {
		return rules{}
	}
	return rules{driver.ConnectorOf(pool)}
}

// fills reports whether the statement's table is sharded. All databases of a resolver are assumed
// to have the same rule.
func (r rules) fills(stmt *gorm.Statement) bool {
	if r.connector == nil {
		return false
	}
	schema, table, found := strings.Cut(strings.ReplaceAll(stmt.Table, "`", ""), ".")
	if !found {
		schema, table = "", schema
	}
	return r.connector.Lookup(schema, table) != nil
}
