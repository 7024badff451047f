// Package xorm replaces xorm.io/xorm.
package xorm

type Engine struct{}

type Session struct{}

func (e *Engine) Table(nameOrBean any) *Session       { return nil }
func (s *Session) Insert(beans ...any) (int64, error) { return 0, nil }
func (s *Session) Find(rows any) error                { return nil }
