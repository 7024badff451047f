package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/shardkey/shardkey/spi"
)

const defaultTimeout = 3 * time.Second

// server is a Redis server that is connected to at the first call.
type server struct {
	addr      string // host:port; several with commas are the nodes of a cluster
	username  string // may be empty, as the password may
	password  spi.Secret
	db        int // 0 in a cluster
	timeout   time.Duration
	tls       func() (*tls.Config, error) // nil: plain text
	onConnect func(context.Context, *goredis.Conn) error
	noRetry   bool // a call may not be sent twice

	mu     sync.Mutex
	client goredis.UniversalClient
	closed bool
	calls  sync.WaitGroup
}

// newServer reads addr, username, password, db, timeout and the TLS
// properties.
func newServer(p spi.Props) (*server, error) {
	s := &server{addr: p.String("addr", ""), username: p.String("username", ""), password: p.Secret("password")}
	for item := range strings.SplitSeq(s.addr, ",") {
		if !spi.IsHostPort(strings.TrimSpace(item)) {
			return nil, p.WrongAddress("addr", "the server's address, host:port")
		}
	}
	db, err := p.Int("db", 0, 0, 1<<16)
	if err != nil {
		return nil, err
	}
	s.db = int(db)
	if s.db != 0 && strings.Contains(s.addr, ",") {
		return nil, p.Wrong("db", "0: a cluster has no other database")
	}
	if s.timeout, err = p.Duration("timeout", defaultTimeout, time.Millisecond, time.Hour); err != nil {
		return nil, err
	}
	s.tls, err = p.TLS()
	return s, err
}

// do runs one call of the server: within the timeout, and no longer than ctx,
// although the client itself looks at a context only between its steps. A call
// abandoned by ctx continues until the timeout, or Close.
func do[T any](ctx context.Context, s *server, call func(context.Context, goredis.UniversalClient) (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, wrapError(s.addr, err)
	}
	client, err := s.begin()
	if err != nil {
		return zero, err
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	callCtx, cancel := context.WithTimeout(ctx, s.timeout)
	go func() {
		defer s.calls.Done()
		defer cancel()
		var a answer
		a.err = guarded(func() (err error) { a.value, err = call(callCtx, client); return err })
		answers <- a
	}()
	var a answer
	select {
	case a = <-answers:
	case <-callCtx.Done(): // the caller's end or the timeout
		a.err = callCtx.Err()
		select {
		case a = <-answers:
		default:
		}
	}
	return a.value, wrapError(s.addr, s.ended(ctx, callCtx, a.err))
}

// guarded makes a panic of the client, for example on an answer that it doesn't understand, an error.
func guarded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the client panicked: %v", p)
		}
	}()
	return call()
}

// ended makes the error of a call that a context has ended. The connection has
// the context's deadline, and can be the first to say so.
func (s *server) ended(ctx, callCtx context.Context, err error) error {
	callers, _ := ctx.Deadline()
	ours, _ := callCtx.Deadline()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case callers.Equal(ours):
		return context.DeadlineExceeded
	}
	return fmt.Errorf("no answer within %v", s.timeout)
}

// begin counts a call, and makes the client at the first.
func (s *server) begin() (goredis.UniversalClient, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, spi.ErrClosed
	}
	if s.client == nil {
		var tlsConfig *tls.Config
		if s.tls != nil {
			var err error
			if tlsConfig, err = s.tls(); err != nil {
				return nil, wrapError(s.addr, err)
			}
		}
		s.client = goredis.NewUniversalClient(s.options(tlsConfig))
	}
	s.calls.Add(1)
	return s.client, nil
}

func (s *server) options(tlsConfig *tls.Config) *goredis.UniversalOptions {
	var addrs []string
	for item := range strings.SplitSeq(s.addr, ",") {
		addrs = append(addrs, strings.TrimSpace(item))
	}
	retries := 1 // for connections that broke while they were idle
	if s.noRetry {
		retries = -1
	}
	return &goredis.UniversalOptions{
		Addrs: addrs, Username: s.username, Password: s.password.Reveal(), DB: s.db, TLSConfig: tlsConfig,
		OnConnect:   s.onConnect,
		Dialer:      dialer(tlsConfig, s.timeout),
		DialTimeout: s.timeout, ReadTimeout: s.timeout, WriteTimeout: s.timeout,
		ContextTimeoutEnabled: true,
		// A server that is away is an error at once: the caller knows best
		// whether to try again.
		MaxRetries: retries, DialerRetries: 1,
		// Nothing but our own commands: restricted users may do no more.
		Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// Close waits for in-flight calls, including abandoned ones, and ends the
// connections. It takes as long as the timeout when the server does not answer.
func (s *server) Close() error {
	s.mu.Lock()
	client := s.client
	s.client, s.closed = nil, true
	s.mu.Unlock()
	s.calls.Wait()
	if client == nil {
		return nil
	}
	return wrapError(s.addr, client.Close())
}

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
