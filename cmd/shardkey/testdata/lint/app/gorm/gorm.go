// Package gorm replaces gorm.io/gorm.
package gorm

type DB struct{}

func (db *DB) Exec(sql string, values ...any) *DB           { return db }
func (db *DB) Raw(sql string, values ...any) *DB            { return db }
func (db *DB) Table(name string, args ...any) *DB           { return db }
func (db *DB) Scopes(funcs ...func(*DB) *DB) *DB            { return db }
func (db *DB) Where(query any, args ...any) *DB             { return db }
func (db *DB) Find(dest any, conds ...any) *DB              { return db }
func (db *DB) Create(value any) *DB                         { return db }
func (db *DB) CreateInBatches(value any, batchSize int) *DB { return db }
func (db *DB) Save(value any) *DB                           { return db }
func (db *DB) Transaction(f func(tx *DB) error) error       { return nil }
