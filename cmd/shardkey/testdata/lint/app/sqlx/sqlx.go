// Package sqlx replaces github.com/jmoiron/sqlx.
package sqlx

import "database/sql"

type DB struct{ *sql.DB }

func (db *DB) Rebind(query string) string                          { return query }
func (db *DB) NamedExec(query string, arg any) (sql.Result, error) { return nil, nil }
func (db *DB) Get(dest any, query string, args ...any) error       { return nil }
func (db *DB) Select(dest any, query string, args ...any) error    { return nil }
func (db *DB) MustExec(query string, args ...any) sql.Result       { return nil }
func Get(q any, dest any, query string, args ...any) error         { return nil }
