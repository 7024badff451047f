package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
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

const (
	defaultTimeout = 3 * time.Second
	wantEndpoints  = "the members' addresses, for example 10.0.0.1:2379,10.0.0.2:2379"
)

// cluster is an etcd cluster. The first call connects to it.
type cluster struct {
	endpoints []string // host:port or http(s)://host:port
	username  string   // may be empty, like password
	password  spi.Secret
	timeout   time.Duration
	tls       func() (*tls.Config, error) // nil means no TLS, or the scheme of the endpoints

	refused atomic.Pointer[error] // error of the newest TLS handshake; nil if it succeeded

	live   context.Context // ends with Close
	end    context.CancelFunc
	turn   chan struct{} // has an element while the client is being created or closed
	client *clientv3.Client
}

// newCluster reads the properties endpoints, username, password, timeout and the TLS properties.
func newCluster(p spi.Props) (*cluster, error) {
	c := &cluster{username: p.String("username", ""), password: p.Secret("password"), turn: make(chan struct{}, 1)}
	c.live, c.end = context.WithCancel(context.Background())
	if c.password.Reveal() != "" && c.username == "" {
		return nil, &spi.PropError{Name: "username", Want: "a name, because password is set"}
	}
	var err error
	if c.timeout, err = p.Duration("timeout", defaultTimeout, time.Millisecond, time.Hour); err != nil {
		return nil, err
	}
	if c.tls, err = p.TLS(); err != nil {
		return nil, err
	}
	return c, c.readEndpoints(p)
}

// readEndpoints reads the property endpoints. All endpoints must have the same scheme, or none.
// etcd's client uses the scheme of the first one for all of them, and doesn't use TLS if it is
// http, whatever was configured.
func (c *cluster) readEndpoints(p spi.Props) error {
	if c.endpoints = p.List("endpoints"); len(c.endpoints) == 0 {
		return p.Wrong("endpoints", wantEndpoints)
	}
	first, _ := cutScheme(c.endpoints[0])
	for i, endpoint := range c.endpoints {
		scheme, host := cutScheme(endpoint)
		if err := p.CheckAddress("endpoints", host, wantEndpoints); err != nil {
			return err
		}
		switch {
		case scheme == "http://" && c.tls != nil:
			return p.Wrong("endpoints", "https:// or no scheme, because the property tls is on")
		case scheme != first:
			return p.Wrong("endpoints", "the same scheme for all endpoints, or none")
		}
		c.endpoints[i] = scheme + host
	}
	if first == "https://" && c.tls == nil {
		c.tls = func() (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS12}, nil }
	}
	return nil
}

// cutScheme splits http:// or https:// off an endpoint.
func cutScheme(endpoint string) (scheme, host string) {
	for _, scheme := range []string{"http://", "https://"} {
		if n := len(scheme); len(endpoint) >= n && strings.EqualFold(endpoint[:n], scheme) {
			return scheme, strings.TrimSuffix(endpoint[n:], "/")
		}
	}
	return "", endpoint
}

// name returns the members' addresses, for messages.
func (c *cluster) name() string { return strings.Join(c.endpoints, ",") }

// call runs f with the client, and limits it to the timeout.
func call[T any](ctx context.Context, c *cluster, f func(context.Context, *clientv3.Client) (T, error)) (T, error) {
	var value T
	callCtx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	client, err := c.open(callCtx)
	if err == nil {
		value, err = f(callCtx, client)
	}
	return value, c.wrap(ctx, err)
}

// open returns the client. The first call creates it. With a password, that is already a request to
// the cluster, so it ends with ctx or with Close.
func (c *cluster) open(ctx context.Context) (*clientv3.Client, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case c.live.Err() != nil:
		return nil, spi.ErrClosed
	case c.client != nil:
		return c.client, nil
	}
	live, end := context.WithCancel(c.live)
	stop := context.AfterFunc(ctx, end)
	client, err := c.connect(live)
	inTime := stop()
	if err == nil && inTime {
		c.client = client
		return client, nil
	}
	end()
	switch {
	case err == nil:
		_ = client.Close()
		err = ctx.Err()
	case c.live.Err() != nil:
		err = spi.ErrClosed
	case !inTime:
		err = ctx.Err()
	}
	return nil, err
}

func (c *cluster) connect(ctx context.Context) (*clientv3.Client, error) {
	// Reconnect within two seconds after a long outage. gRPC's default is two minutes.
	retry := backoff.DefaultConfig
	retry.BaseDelay, retry.MaxDelay = 100*time.Millisecond, time.Second
	connect := grpc.ConnectParams{Backoff: retry, MinConnectTimeout: c.timeout}
	options := []grpc.DialOption{grpc.WithConnectParams(connect)}
	var tlsConfig *tls.Config
	if c.tls != nil {
		var err error
		if tlsConfig, err = c.tls(); err != nil {
			return nil, err
		}
		options = append(options, grpc.WithTransportCredentials(noting{credentials.NewTLS(tlsConfig), &c.refused}))
	}
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: c.endpoints, Username: c.username, Password: c.password.Reveal(), TLS: tlsConfig,
		DialTimeout: c.timeout, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: c.timeout,
		Logger:      zap.NewNop(), // the calls return the errors
		DialOptions: options,
	})
}

// noting are credentials that record why a handshake failed. gRPC retries, and in the end reports
// only a timeout.
type noting struct {
	credentials.TransportCredentials
	refused *atomic.Pointer[error]
}

func (n noting) ClientHandshake(
	ctx context.Context, authority string, conn net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := n.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err == nil {
		n.refused.Store(nil)
	} else if ctx.Err() == nil {
		n.refused.Store(&err)
	}
	return secured, info, err
}

// Clone is called by gRPC for each connection.
func (n noting) Clone() credentials.TransportCredentials {
	return noting{n.TransportCredentials.Clone(), n.refused}
}

// Close closes the connections.
func (c *cluster) Close() error {
	c.end()
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	client := c.client
	if c.client = nil; client == nil {
		return nil
	}
	if err := client.Close(); !errors.Is(err, context.Canceled) {
		return c.wrap(context.Background(), err)
	}
	return nil
}

// wrap returns the error of a call. If ctx has ended, it wraps ctx's error.
func (c *cluster) wrap(ctx context.Context, err error) error {
	e := &spi.StoreError{Store: "ETCD at " + c.name(), Cause: err}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, spi.ErrClosed):
		return spi.ErrClosed
	case ctx.Err() != nil:
		e.Cause = ctx.Err()
		return e
	case status.Code(err) == codes.Canceled: // the client was closed during the call
		return spi.ErrClosed
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		e.Cause = fmt.Errorf("no answer within %v", c.timeout)
		if refused := c.refused.Load(); refused != nil {
			e.Cause = *refused
		}
	}
	for _, a := range []struct{ word, advice string }{
		{"authentication failed", "set the properties username and password"},
		{"user name is empty", "set the properties username and password"},
		{"permission denied", "the user needs to read and write the keys below the property prefix"},
		{"certificate", "set the property tls to the PEM file of the cluster's authority"},
		{"no answer", "see that a majority of the members runs and can be reached"},
	} {
		if strings.Contains(e.Cause.Error(), a.word) {
			e.Advice = a.advice
			break
		}
	}
	return e
}
