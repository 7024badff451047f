package driver

import (
	"context"
	"database/sql/driver"
)

// SessionResetter and Validator change what database/sql does by being there,
// so a connection shows them only when the base's does: there are four kinds.
type (
	resetConn      struct{ *conn }
	validConn      struct{ *conn }
	resetValidConn struct{ *conn }
)

var (
	_ driver.SessionResetter = resetConn{}
	_ driver.Validator       = validConn{}
	_ driver.SessionResetter = resetValidConn{}
	_ driver.Validator       = resetValidConn{}
)

func (c resetConn) ResetSession(ctx context.Context) error {
	return c.base.resetter.ResetSession(ctx)
}

func (c resetValidConn) ResetSession(ctx context.Context) error {
	return c.base.resetter.ResetSession(ctx)
}

func (c validConn) IsValid() bool      { return c.base.valid.IsValid() }
func (c resetValidConn) IsValid() bool { return c.base.valid.IsValid() }

// advertise gives a connection the optional interfaces that its base has.
func advertise(c *conn) driver.Conn {
	switch resets, validates := c.base.resetter != nil, c.base.valid != nil; {
	case resets && validates:
		return resetValidConn{c}
	case resets:
		return resetConn{c}
	case validates:
		return validConn{c}
	}
	return c
}
