package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/shardkey/shardkey/spi"
)

const defaultTimeout = 3 * time.Second

// cluster is an etcd cluster that is connected to at the first call.
type cluster struct {
	endpoints []string // host:port or http(s)://host:port
	username  string   // may be empty, as the password may
	password  spi.Secret
	timeout   time.Duration
	tls       func() (*tls.Config, error) // nil: plain text, or the endpoints' scheme

	refused refusals

	mu     sync.Mutex
	client *clientv3.Client
	making *making // the client is being made
	closed bool
}

// making is a client that is being made; several callers may wait for it.
type making struct {
	done   chan struct{} // closed when client and err are set
	cancel context.CancelFunc
	client *clientv3.Client
	err    error
}

// newCluster reads endpoints, username, password, timeout and the TLS
// properties.
func newCluster(p spi.Props) (*cluster, error) {
	c := &cluster{endpoints: p.List("endpoints"), username: p.String("username", ""), password: p.Secret("password")}
	if !areEndpoints(c.endpoints) {
		return nil, p.WrongAddress("endpoints", "the members' addresses, as 10.0.0.1:2379,10.0.0.2:2379")
	}
	if !c.password.IsZero() && c.username == "" {
		return nil, &spi.PropError{Name: "username", Want: "a name, as there is a password"}
	}
	var err error
	if c.timeout, err = p.Duration("timeout", defaultTimeout, time.Millisecond, time.Hour); err != nil {
		return nil, err
	}
	if c.tls, err = p.TLS(); err != nil {
		return nil, err
	}
	if c.endpoints, err = c.schemes(p); err != nil {
		return nil, err
	}
	return c, nil
}

func areEndpoints(endpoints []string) bool {
	for _, e := range endpoints {
		if _, host := cutScheme(e); !spi.IsHostPort(host) {
			return false
		}
	}
	return len(endpoints) > 0
}

// cutScheme takes http:// or https:// off an endpoint.
func cutScheme(endpoint string) (scheme, host string) {
	for _, scheme := range []string{"http", "https"} {
		if n := len(scheme + "://"); len(endpoint) > n && strings.EqualFold(endpoint[:n], scheme+"://") {
			return scheme, strings.TrimSuffix(endpoint[n:], "/")
		}
	}
	return "", endpoint
}

// schemes returns the endpoints with one scheme, or none: etcd's client takes the
// first one's for all, and leaves TLS out where that is http, whatever was
// configured.
func (c *cluster) schemes(p spi.Props) ([]string, error) {
	first, _ := cutScheme(c.endpoints[0])
	endpoints := make([]string, len(c.endpoints))
	for i, endpoint := range c.endpoints {
		scheme, host := cutScheme(endpoint)
		switch {
		case scheme == "http" && c.tls != nil:
			return nil, p.Wrong("endpoints", "https:// or no scheme, as the property tls is on")
		case scheme != first:
			return nil, p.Wrong("endpoints", "all of them with the same scheme, or without: https:// speaks TLS, http:// does not")
		}
		if endpoints[i] = host; scheme != "" {
			endpoints[i] = scheme + "://" + host
		}
	}
	return endpoints, nil
}

// name is the members' addresses, for messages.
func (c *cluster) name() string { return strings.Join(c.endpoints, ",") }

// call runs one call of the cluster within the timeout.
func call[T any](ctx context.Context, c *cluster, f func(context.Context, *clientv3.Client) (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, c.wrap(ctx, err)
	}
	callCtx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	client, err := c.open(callCtx)
	if err != nil {
		return zero, c.wrap(ctx, err)
	}
	value, err := f(callCtx, client)
	if err != nil {
		return zero, c.wrap(ctx, err)
	}
	return value, nil
}

// open returns the client, which the first call makes. With a password that is
// a call of the cluster already, so no caller waits for it longer than its context
// lasts.
func (c *cluster) open(ctx context.Context) (*clientv3.Client, error) {
	c.mu.Lock()
	if c.closed || c.client != nil {
		defer c.mu.Unlock()
		if c.closed {
			return nil, spi.ErrClosed
		}
		return c.client, nil
	}
	if c.making == nil {
		c.making = c.make()
	}
	m := c.making
	c.mu.Unlock()
	select {
	case <-m.done:
		return m.client, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// make begins to make the client. The client lives until Close, which also ends
// the making.
func (c *cluster) make() *making {
	ctx, cancel := context.WithCancel(context.Background())
	m := &making{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(m.done)
		m.err = guarded(func() (err error) { m.client, err = c.connect(ctx); return err })
		c.mu.Lock()
		defer c.mu.Unlock()
		c.making = nil
		if m.err == nil && c.closed {
			_ = m.client.Close()
			m.client, m.err = nil, spi.ErrClosed
		}
		c.client = m.client
		if m.err != nil {
			cancel()
		}
	}()
	return m
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

func (c *cluster) connect(ctx context.Context) (*clientv3.Client, error) {
	var tlsConfig *tls.Config
	if c.tls != nil {
		var err error
		if tlsConfig, err = c.tls(); err != nil {
			return nil, err
		}
	}
	if scheme, _ := cutScheme(c.endpoints[0]); tlsConfig == nil && scheme == "https" {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	options := []grpc.DialOption{
		// A cluster that was away for long is found again in a second or two;
		// gRPC by itself would look each two minutes only.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: c.timeout,
		}),
	}
	if tlsConfig != nil {
		options = append(options, grpc.WithTransportCredentials(noting{credentials.NewTLS(tlsConfig), &c.refused}))
	}
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: c.endpoints, Username: c.username, Password: c.password.Reveal(), TLS: tlsConfig,
		DialTimeout: c.timeout, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: c.timeout,
		Logger:      zap.NewNop(), // what fails is in the error of the call
		DialOptions: options,
	})
}

// refusals keeps why the newest TLS handshake failed: gRPC tries again, and says
// in the end that time was up.
type refusals struct{ newest atomic.Pointer[error] }

func (r *refusals) err() error {
	if err := r.newest.Load(); err != nil {
		return *err
	}
	return nil
}

// noting are credentials that note the outcome of each handshake.
type noting struct {
	credentials.TransportCredentials
	refused *refusals
}

func (n noting) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := n.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if n.refused.newest.Store(nil); err != nil && ctx.Err() == nil {
		n.refused.newest.Store(&err)
	}
	return secured, info, err
}

// Clone is called by gRPC for each connection.
func (n noting) Clone() credentials.TransportCredentials {
	return noting{n.TransportCredentials.Clone(), n.refused}
}

// Close ends the connections.
func (c *cluster) Close() error {
	c.mu.Lock()
	client, m := c.client, c.making
	c.client, c.closed = nil, true
	c.mu.Unlock()
	if m != nil {
		m.cancel()
		<-m.done
	}
	if client == nil {
		return nil
	}
	if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return c.wrap(context.Background(), err)
	}
	return nil
}

// wrap makes the error of a call: the context's own when that has ended.
func (c *cluster) wrap(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, spi.ErrClosed):
		return spi.ErrClosed
	case ctx.Err() != nil:
		return c.storeError(ctx.Err())
	case status.Code(err) == codes.Canceled: // the client was closed under the call
		return spi.ErrClosed
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		if err = c.refused.err(); err == nil {
			err = fmt.Errorf("no answer within %v", c.timeout)
		}
	}
	e := c.storeError(err)
	for _, a := range []struct{ word, advice string }{
		{"authentication failed", "set the properties username and password"},
		{"user name is empty", "set the properties username and password"},
		{"permission denied", "the user needs to read and write the keys below the property prefix"},
		{"certificate", "set the property tls to the PEM file of the cluster's authority"},
		{"no answer", "see that a majority of the members runs and can be reached"},
	} {
		if strings.Contains(err.Error(), a.word) {
			e.Advice = a.advice
			break
		}
	}
	return e
}

func (c *cluster) storeError(cause error) *spi.StoreError {
	return &spi.StoreError{Store: "ETCD at " + c.name(), Cause: cause}
}
