// Package gorm stands for gorm.io/gorm.
package gorm

type DB struct{}

func (db *DB) Exec(sql string, values ...any) *DB { return db }
func (db *DB) Raw(sql string, values ...any) *DB  { return db }
