package mysqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
)

// fakeConn is a whole connection of which nothing is used but Close.
type fakeConn struct {
	conn
	closed bool
}

func (c *fakeConn) Close() error {
	c.closed = true
	return nil
}

type fakeConnector struct {
	driver.Connector
	conn *fakeConn
}

func (c fakeConnector) Connect(context.Context) (driver.Conn, error) { return c.conn, nil }

// A connection whose look fails is closed and not used: its server may be the wrong one.
func TestLooking_errorClosesTheConnection(t *testing.T) {
	failed := errors.New("another server")
	for _, want := range []error{nil, failed} {
		c := new(fakeConn)
		looked := 0
		have, err := Looking{fakeConnector{conn: c}, func(context.Context, *sql.DB) error {
			looked++
			return want
		}}.Connect(t.Context())
		if looked != 1 || !errors.Is(err, want) || (have == nil) != (want != nil) || c.closed != (want != nil) {
			t.Errorf("a look returns %v\nhave: %v, %v, closed %v", want, have, err, c.closed)
		}
	}
}
