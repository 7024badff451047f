// Package bun replaces github.com/uptrace/bun.
package bun

import "context"

type DB struct{}

type InsertQuery struct{}

type SelectQuery struct{}

type RawQuery struct{}

type Ident string

func (db *DB) NewInsert() *InsertQuery                                   { return nil }
func (db *DB) NewSelect() *SelectQuery                                   { return nil }
func (db *DB) NewRaw(query string, args ...any) *RawQuery                { return nil }
func (q *RawQuery) Exec(ctx context.Context, dest ...any) (any, error)   { return nil, nil }
func (q *InsertQuery) Model(model any) *InsertQuery                      { return q }
func (q *InsertQuery) ModelTableExpr(s string, args ...any) *InsertQuery { return q }
func (q *InsertQuery) Table(tables ...string) *InsertQuery               { return q }
func (q *InsertQuery) Exec(ctx context.Context, dest ...any) (any, error) {
	return nil, nil
}
func (q *SelectQuery) ModelTableExpr(s string, args ...any) *SelectQuery { return q }
func (q *SelectQuery) Scan(ctx context.Context, dest ...any) error       { return nil }
