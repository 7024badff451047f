package redis

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// dialer makes the client's connections. A failure becomes a connection that
// fails: the client would write a line to the log for each, and try again in a
// goroutine of its own.
func dialer(tlsConfig *tls.Config, timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: timeout}
	dial := plain.DialContext
	if tlsConfig != nil {
		dial = (&tls.Dialer{NetDialer: plain, Config: tlsConfig}).DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return failedConn{err}, nil
		}
		return conn, nil
	}
}

// failedConn is a connection that could not be made.
type failedConn struct{ err error }

func (c failedConn) Read([]byte) (int, error)         { return 0, c.err }
func (c failedConn) Write([]byte) (int, error)        { return 0, c.err }
func (c failedConn) Close() error                     { return nil }
func (c failedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c failedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c failedConn) SetDeadline(time.Time) error      { return nil }
func (c failedConn) SetReadDeadline(time.Time) error  { return nil }
func (c failedConn) SetWriteDeadline(time.Time) error { return nil }
