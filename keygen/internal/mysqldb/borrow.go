package mysqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// conn is what go-sql-driver's connections can.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

// Looking is a connector whose connections are looked at before they are used.
type Looking struct {
	driver.Connector
	// Look asks a new connection what it must know of its server. An error closes
	// the connection, and is Connect's.
	Look func(ctx context.Context, db *sql.DB) error
}

// Connect opens a connection and has it looked at.
func (l Looking) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := l.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if whole, ok := c.(conn); ok {
		db := sql.OpenDB(lent{l.Connector, whole})
		db.SetMaxOpenConns(1)
		err = l.Look(ctx, db)
		_ = db.Close()
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// lent is a connector of one connection, which stays open.
type lent struct {
	driver.Connector
	conn conn
}

func (l lent) Connect(context.Context) (driver.Conn, error) { return lentConn{l.conn}, nil }

type lentConn struct{ conn }

func (lentConn) Close() error { return nil }
