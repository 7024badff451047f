package redis

import (
	"cmp"
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

// server is a Redis server. The first call connects to it.
type server struct {
	addr      string // host:port; several, separated by commas, are the nodes of a cluster
	username  string // may be empty, like password
	password  spi.Secret
	db        int // 0 in a cluster
	timeout   time.Duration
	tls       func() (*tls.Config, error) // nil means no TLS
	onConnect func(context.Context, *goredis.Conn) error
	retries   int // of a call whose connection is broken, for example an idle one; -1 for none

	mu     sync.Mutex
	client goredis.UniversalClient
	closed bool
	calls  sync.WaitGroup
}

// newServer reads the properties addr, username, password, db, timeout and the TLS properties.
func newServer(p spi.Props) (*server, error) {
	s := &server{
		addr: p.String("addr", ""), username: p.String("username", ""), password: p.Secret("password"), retries: 1,
	}
	for _, addr := range s.addrs() {
		if err := p.CheckAddress("addr", addr, "the server's address in the form host:port"); err != nil {
			return nil, err
		}
	}
	db, err := p.Int("db", 0, 0, 1<<16)
	if err != nil {
		return nil, err
	}
	s.db = int(db)
	if s.db != 0 && len(s.addrs()) > 1 {
		return nil, p.Wrong("db", "0; a cluster has no other database")
	}
	if s.timeout, err = p.Duration("timeout", defaultTimeout, time.Millisecond, time.Hour); err != nil {
		return nil, err
	}
	s.tls, err = p.TLS()
	return s, err
}

func (sv *server) addrs() []string {
	addrs := strings.Split(sv.addr, ",")
	for i := range addrs {
		addrs[i] = strings.TrimSpace(addrs[i])
	}
	return addrs
}

// do runs one call, limited by the timeout and by ctx. The client itself only checks a context
// between its steps. A call that ctx ends continues in the background until the timeout.
func do[T any](
	ctx context.Context, s *server, call func(context.Context, goredis.UniversalClient) (T, error),
) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var a answer
	if err := ctx.Err(); err != nil {
		return a.value, wrapError(s.addr, err)
	}
	client, err := s.begin()
	if err != nil {
		return a.value, err
	}
	callCtx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		defer s.calls.Done()
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("the client panicked: %v", p)
			}
			answers <- a
		}()
		a.value, a.err = call(callCtx, client)
	}()
	select {
	case a = <-answers:
	case <-callCtx.Done():
		a.err = callCtx.Err()
	}
	if errors.Is(a.err, os.ErrDeadlineExceeded) {
		<-callCtx.Done() // the connection has the context's deadline, and may notice it first
	}
	if a.err != nil && callCtx.Err() != nil {
		a.err = cmp.Or(ctx.Err(), fmt.Errorf("no answer within %v", s.timeout))
	}
	return a.value, wrapError(s.addr, a.err)
}

// begin counts a call. The first call creates the client.
func (sv *server) begin() (goredis.UniversalClient, error) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	if sv.closed {
		return nil, spi.ErrClosed
	}
	if sv.client == nil {
		var tlsConfig *tls.Config
		if sv.tls != nil {
			var err error
			if tlsConfig, err = sv.tls(); err != nil {
				return nil, wrapError(sv.addr, err)
			}
		}
		sv.client = goredis.NewUniversalClient(sv.options(tlsConfig))
	}
	sv.calls.Add(1)
	return sv.client, nil
}

func (sv *server) options(tlsConfig *tls.Config) *goredis.UniversalOptions {
	dial := goredis.NewDialer(&goredis.Options{DialTimeout: sv.timeout, TLSConfig: tlsConfig})
	return &goredis.UniversalOptions{
		Addrs: sv.addrs(), Username: sv.username, Password: sv.password.Reveal(), DB: sv.db,
		OnConnect: sv.onConnect,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				conn, _ = net.Pipe()
				conn = failedConn{conn, err}
			}
			return conn, nil
		},
		DialTimeout: sv.timeout, ReadTimeout: sv.timeout, WriteTimeout: sv.timeout,
		ContextTimeoutEnabled: true,
		// If the server is unavailable, return the error at once. The caller decides whether to
		// retry.
		MaxRetries: sv.retries, DialerRetries: 1,
		// Send only our own commands, because the user may not be permitted to run others.
		Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// failedConn stands for a connection that couldn't be opened. If the dialer returned the error, the
// client would log it and retry in the background.
type failedConn struct {
	net.Conn // nil
	err      error
}

func (c failedConn) Read([]byte) (int, error)  { return 0, c.err }
func (c failedConn) Write([]byte) (int, error) { return 0, c.err }

// Close waits for calls in flight, including those that ctx ended, and closes the connections. If
// the server doesn't answer, it takes as long as the timeout.
func (sv *server) Close() error {
	sv.mu.Lock()
	client := sv.client
	sv.client, sv.closed = nil, true
	sv.mu.Unlock()
	sv.calls.Wait()
	if client == nil {
		return nil
	}
	return wrapError(sv.addr, client.Close())
}

// errForeignState is in the chain if the Redis key for the generator's state has other content. The
// content isn't changed.
var errForeignState = errors.New("shardkey: the Redis key has other content")

// foreignState returns the error for a field or a type of the state that this program hasn't
// written.
func (g *generator) foreignState(field, value string) error {
	e := storeError(g.server.addr, nil)
	e.Kind = errForeignState
	if field == "epoch" {
		e.Detail = fmt.Sprintf("the state %q belongs to keys with another epoch, %s ms after 1970, "+
			"and keys of two epochs can be equal", g.stateKey, value)
		e.Advice = "use that epoch, or another namespace and shard-id"
	} else {
		e.Detail = fmt.Sprintf("%q was not written by shardkey (%s is %q)", g.stateKey, field, value)
		e.Advice = "use another namespace, or delete the key if no program needs it"
	}
	return e
}

func storeError(server string, cause error) *spi.StoreError {
	return &spi.StoreError{Store: "REDIS at " + server, Cause: cause}
}

func wrapError(server string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, goredis.ErrClosed):
		return spi.ErrClosed
	}
	e := storeError(server, err)
	e.Advice = advice(err)
	return e
}

const credentials = "set the properties username and password"

// advice returns how to fix a server error, judged by its first word.
func advice(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ""
	}
	for _, a := range []struct{ word, advice string }{
		{"WRONGPASS", credentials}, {"NOAUTH", credentials}, {"invalid password", credentials},
		{"NOPERM", "the user needs eval, evalsha, script, time, type, hmget and hset on the keys of the namespace"},
		{"MOVED", "addr is one node of a cluster; set several nodes, separated by commas"},
		{"READONLY", "addr is a replica; set the primary"},
		{"x509", "set the property tls to the PEM file of the server's authority"},
		{"tls:", "check whether the server uses TLS, and the property tls"},
	} {
		if strings.Contains(err.Error(), a.word) {
			return a.advice
		}
	}
	return ""
}
