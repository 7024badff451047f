package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/shardkey/shardkey/keygen/internal/tlsprops"
	"github.com/shardkey/shardkey/spi"
)

// Cluster says where an etcd cluster is and how to log in there.
type Cluster struct {
	// Endpoints are the members, as host:port or http(s)://host:port.
	Endpoints []string
	// Username and Password are empty where none are needed.
	Username, Password string
	// TLS encrypts the connections; nil is plain text, unless an endpoint
	// begins with https.
	TLS *tls.Config
	// Timeout bounds each call of the cluster; 0 is 3 s.
	Timeout time.Duration
}

const defaultTimeout = 3 * time.Second

// cluster is an etcd cluster that is connected to at the first call.
type cluster struct {
	Cluster
	loadTLS func() (*tls.Config, error) // for the files named by properties

	mu     sync.Mutex
	client *clientv3.Client
	making *making // the client is being made
	closed bool
}

// making is a client that somebody makes and several may wait for.
type making struct {
	done   chan struct{} // closed when client and err are set
	cancel context.CancelFunc
	client *clientv3.Client
	err    error
}

func clusterFromProps(p spi.Props) (*cluster, error) {
	c := &cluster{Cluster: Cluster{Endpoints: p.List("endpoints"), Username: p.String("username", ""), Password: p.Secret("password")}}
	if err := checkEndpoints(c.Endpoints); err != nil {
		return nil, p.Wrong("endpoints", err.Error())
	}
	if c.Password != "" && c.Username == "" {
		return nil, &spi.PropError{Name: "username", Want: "a name, as there is a password"}
	}
	var err error
	if c.Timeout, err = p.Duration("timeout", defaultTimeout, time.Millisecond, time.Hour); err != nil {
		return nil, err
	}
	files, err := tlsprops.FromProps(p)
	if err != nil {
		return nil, err
	}
	c.loadTLS = files.Config
	return c, nil
}

func newCluster(c Cluster) (*cluster, error) {
	if err := checkEndpoints(c.Endpoints); err != nil {
		return nil, &spi.PropError{Name: "endpoints", Value: strings.Join(c.Endpoints, ","), Want: err.Error()}
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	return &cluster{Cluster: c, loadTLS: func() (*tls.Config, error) { return c.TLS, nil }}, nil
}

func checkEndpoints(endpoints []string) error {
	err := errors.New("the members' addresses, as 10.0.0.1:2379,10.0.0.2:2379")
	if len(endpoints) == 0 {
		return err
	}
	for _, e := range endpoints {
		host := e
		if u, parseErr := url.Parse(e); parseErr == nil && (u.Scheme == "http" || u.Scheme == "https") {
			host = u.Host
		}
		if _, port, splitErr := net.SplitHostPort(host); splitErr != nil || port == "" {
			return err
		}
	}
	return nil
}

// name is the members' addresses, for messages.
func (c *cluster) name() string { return strings.Join(c.Endpoints, ",") }

// call runs one call of the cluster within the timeout.
func call[T any](ctx context.Context, c *cluster, f func(context.Context, *clientv3.Client) (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, c.wrap(ctx, err)
	}
	callCtx, cancel := context.WithTimeout(ctx, c.Timeout)
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
// a call of the cluster already, so nobody waits for it longer than its context
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
		m.client, m.err = c.connect(ctx)
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

func (c *cluster) connect(ctx context.Context) (*clientv3.Client, error) {
	tlsConfig, err := c.loadTLS()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: c.Endpoints, Username: c.Username, Password: c.Password, TLS: tlsConfig,
		DialTimeout: c.Timeout, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: c.Timeout,
		Logger: zap.NewNop(), // what fails is in the error of the call
		// A cluster that was away for long is found again in a second or two;
		// gRPC by itself would look each two minutes only.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: c.Timeout,
		})},
	})
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

// clusterError is a failure of the cluster, with what to do about it.
type clusterError struct {
	cluster, advice string
	cause           error
}

func (e *clusterError) Error() string {
	msg := fmt.Sprintf("shardkey: ETCD at %s: %v", e.cluster, e.cause)
	if e.advice != "" {
		msg += "; " + e.advice
	}
	return msg
}

func (e *clusterError) Unwrap() []error { return []error{spi.ErrStore, e.cause} }

// wrap makes the error of a call: the context's own when that has ended.
func (c *cluster) wrap(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, spi.ErrClosed):
		return spi.ErrClosed
	case ctx.Err() != nil:
		return &clusterError{cluster: c.name(), cause: ctx.Err()}
	case status.Code(err) == codes.Canceled: // the client was closed under the call
		return spi.ErrClosed
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		err = fmt.Errorf("no answer within %v", c.Timeout)
	}
	e := &clusterError{cluster: c.name(), cause: err}
	for _, a := range []struct{ word, advice string }{
		{"authentication failed", "set the properties username and password"},
		{"user name is empty", "set the properties username and password"},
		{"permission denied", "the user needs to read and write the keys below the property prefix"},
		{"certificate", "set the property tls to the PEM file of the cluster's authority"},
		{"no answer", "see that a majority of the members runs and can be reached"},
	} {
		if strings.Contains(err.Error(), a.word) {
			e.advice = a.advice
			break
		}
	}
	return e
}
