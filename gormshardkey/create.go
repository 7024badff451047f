package gormshardkey

import (
	"context"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/driver"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// creator is what "gorm:create" becomes.
type creator struct {
	stock func(*gorm.DB) // the callback that was there
	exec  func(*gorm.DB) // the same as on a server without RETURNING
	rules rules
}

// create runs the INSERT with a context that receives its keys, and gives them
// to what is created.
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
	case db.Error != nil && reads && c.rules.fills(stmt):
		before.forget() // rows that came before the error
	case db.Error == nil && values != nil:
		before.fill(db, filled{column: keys.Column(), keys: values, affected: db.RowsAffected, returned: reads})
		if isAssociation(db) {
			find(db, before.missing(keys.Column()))
		}
	}
}

// withKeys has the statement's context receive keys while run runs: what is saved
// before and after must not see them.
func withKeys(stmt *gorm.Statement, keys *driver.Keys, run func()) {
	ctx := stmt.Context
	defer func() { stmt.Context = ctx }()
	stmt.Context = driver.WithKeys(ctx, keys)
	run()
}

// misreads reports whether GORM would read the rows of RETURNING wrongly: they
// are not the elements one for one, or are no structs, or their number would be
// taken for that of the rows affected, which of an association nobody sees.
func misreads(db *gorm.DB, before *memory) bool {
	switch stmt := db.Statement; {
	case hasModifier(stmt), before.maps != nil:
		return true
	case hasClause(stmt, "ON CONFLICT"):
		return !isAssociation(db) || before.skipped
	}
	return false
}

// isAssociation reports whether a statement is one by which GORM saves
// associations: an upsert, and without a transaction of its own.
func isAssociation(db *gorm.DB) bool {
	return db.DisableNestedTransaction && hasClause(db.Statement, "ON CONFLICT")
}

// find gives the keys of rows that exist to associations of which several were
// upserted at once: the foreign key of what belongs to them would be 0. An upsert
// of one row that does nothing tells its key.
func find(db *gorm.DB, elements []any) {
	for _, element := range elements {
		tx := db.Session(&gorm.Session{NewDB: true, SkipHooks: true})
		tx = tx.Omit(clause.Associations).Clauses(clause.OnConflict{DoNothing: true})
		if db.AddError(tx.Create(element).Error) != nil {
			return
		}
	}
}

// hasModifier reports whether the INSERT is one with a word of its own: IGNORE.
func hasModifier(stmt *gorm.Statement) bool {
	insert, ok := stmt.Clauses["INSERT"].Expression.(clause.Insert)
	return ok && insert.Modifier != ""
}

func hasClause(stmt *gorm.Statement, name string) bool {
	_, ok := stmt.Clauses[name]
	return ok
}

// rules is the rule of a database; the zero value of one that is not shardkey's,
// or that something between GORM and the driver hides.
type rules struct{ connector *driver.Connector }

// rulesOf asks a connection of the database's pool.
func rulesOf(db *gorm.DB) rules {
	pool, err := db.DB()
	if err != nil {
		return rules{}
	}
	conn, err := pool.Conn(context.Background())
	if err != nil {
		return rules{} // what is wrong with the database shows elsewhere
	}
	defer conn.Close()
	var r rules
	_ = conn.Raw(func(c any) error {
		r.connector = driver.ConnectorOf(c)
		return nil
	})
	return r
}

// fills reports whether the statement's table is one of the rule's. (The databases
// of a resolver are taken to have one rule.)
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
