package main

import (
	"context"
	"database/sql/driver"
)

// wrapper wraps go-sql-driver's connector and does as little as possible: it adds keys to one
// INSERT and returns a result with the first key. Everything else is passed through.
type wrapper struct {
	driver.Connector
	rows            int
	query, withKeys string // the program's INSERT, and the one to send
}

func (wp *wrapper) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := wp.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &wrapperConn{c.(baseConn), wp}, nil
}

type wrapperConn struct {
	baseConn
	*wrapper
}

// baseConn has the interfaces of go-sql-driver's connections.
type baseConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

func (c *wrapperConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if query != c.query {
		return c.baseConn.ExecContext(ctx, query, args)
	}
	args, id := c.addKeys(args)
	r, err := c.baseConn.ExecContext(ctx, c.withKeys, args)
	return &wrapperResult{r, id}, err
}

func (c *wrapperConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if query != c.query {
		return c.baseConn.PrepareContext(ctx, query)
	}
	st, err := c.baseConn.PrepareContext(ctx, c.withKeys)
	if err != nil {
		return nil, err
	}
	return &wrapperStmt{st.(baseStmt), c.wrapper}, nil
}

type wrapperStmt struct {
	baseStmt
	*wrapper
}

type baseStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.NamedValueChecker
}

func (s *wrapperStmt) NumInput() int { return s.baseStmt.NumInput() - s.rows }

func (s *wrapperStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	args, id := s.addKeys(args)
	r, err := s.baseStmt.ExecContext(ctx, args)
	return &wrapperResult{r, id}, err
}

type wrapperResult struct {
	driver.Result
	id int64
}

func (wr *wrapperResult) LastInsertId() (int64, error) { return wr.id, nil }

// addKeys returns the arguments with a key after those of each row, and the first key.
func (wp *wrapper) addKeys(args []driver.NamedValue) (all []driver.NamedValue, first int64) {
	all = make([]driver.NamedValue, 0, len(args)+wp.rows)
	n := len(args) / wp.rows
	for ; len(args) > 0; args = args[n:] {
		all = append(append(all, args[:n]...), driver.NamedValue{Value: node.Generate().Int64()})
	}
	for i := range all {
		all[i].Ordinal = i + 1
	}
	return all, all[n].Value.(int64)
}
