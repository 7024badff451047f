package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/shardkey/shardkey/spi"
)

const (
	defaultSessionTimeout = 10 * time.Second
	defaultTimeout        = 3 * time.Second
)

// ensemble is an ensemble that is connected to at the first call.
type ensemble struct {
	servers  []string // host:port
	chroot   string   // "" or "/app"
	username string   // sent with the digest scheme, as the password; may be empty
	password spi.Secret
	// sessionTimeout is asked of the ensemble. A member that is silent for two
	// thirds of it is given up for another one.
	sessionTimeout time.Duration
	timeout        time.Duration // bounds each call

	mu      sync.Mutex
	conn    *zk.Conn
	closed  bool
	session bool          // there is one now
	failed  int           // connections that could not be made
	dialErr error         // the last one's error
	changed chan struct{} // closed, and replaced, when any of these changes
	calls   sync.WaitGroup

	login    sync.Mutex
	loggedIn bool
}

// newEnsemble reads the property that names the servers, and those that all
// have.
func newEnsemble(p spi.Props, servers string) (*ensemble, error) {
	e := &ensemble{username: p.String("username", ""), password: p.Secret("password"), changed: make(chan struct{})}
	var err error
	if e.sessionTimeout, err = p.Duration("session-timeout", defaultSessionTimeout, 100*time.Millisecond, time.Hour); err != nil {
		return nil, err
	}
	if e.timeout, err = p.Duration("timeout", defaultTimeout, time.Millisecond, time.Hour); err != nil {
		return nil, err
	}
	if (e.username == "") != e.password.IsZero() {
		return nil, &spi.PropError{Name: "username", Want: "both username and password, or neither"}
	}
	if e.servers, e.chroot, err = parseServers(strings.Join(p.List(servers), ",")); err != nil {
		return nil, p.WrongAddress(servers, err.Error())
	}
	return e, nil
}

// parseServers takes a connection string apart, as "h1:2181,h2/app": host or
// host:port (2181), and after the last one a path below which all nodes are. An @, ?
// or = in the path is an error: a password may follow, as in "u:12/password@host", and
// logs show the path. See "Connecting to ZooKeeper" in ZooKeeper's programmer's guide:
// https://zookeeper.apache.org/doc/current/zookeeperProgrammers.html#ch_zkSessions
func parseServers(text string) (servers []string, chroot string, err error) {
	list, path, found := strings.Cut(text, "/")
	if strings.ContainsAny(path, "@?=") {
		return nil, "", errors.New("the members' addresses, for example 10.0.0.1:2181,10.0.0.2:2181/path, without @, ? and = in the path")
	}
	if found && strings.Trim(path, "/") != "" {
		chroot = "/" + strings.Trim(path, "/")
	}
	for server := range strings.SplitSeq(list, ",") {
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			host, port = server, "2181"
		}
		if host == "" || strings.ContainsAny(host, ": ") || !spi.IsHostPort(net.JoinHostPort(host, port)) {
			return nil, "", errors.New("the members' addresses, as 10.0.0.1:2181,10.0.0.2:2181")
		}
		servers = append(servers, net.JoinHostPort(host, port))
	}
	return servers, chroot, nil
}

// name is the members' addresses, for messages.
func (e *ensemble) name() string { return strings.Join(e.servers, ",") + e.chroot }

// acl is the ACL of new nodes: the user's own, or open without credentials.
func (e *ensemble) acl() []zk.ACL {
	if e.username != "" {
		return zk.AuthACL(zk.PermAll)
	}
	return zk.WorldACL(zk.PermAll)
}

// do runs one call of the ensemble: within the timeout, and no longer than ctx.
// The client knows no contexts, and a call that ctx gave up may still happen. It
// is not begun without a session, for the client would keep it for later.
func do[T any](ctx context.Context, e *ensemble, call func(*zk.Conn) (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, e.wrap(err)
	}
	callCtx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	conn, err := e.await(callCtx)
	if err != nil {
		return zero, e.wrap(ended(ctx, e, err))
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		defer e.calls.Done()
		a := answer{err: e.logIn(conn)}
		if a.err == nil {
			a.err = guarded(func() (err error) { a.value, err = call(conn); return err })
		}
		answers <- a
	}()
	select {
	case a := <-answers:
		return a.value, e.wrap(a.err)
	case <-callCtx.Done():
		return zero, e.wrap(ended(ctx, e, callCtx.Err()))
	}
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

// await returns the connection once it has a session, and counts the call. It
// gives up when no member can be connected to.
func (e *ensemble) await(ctx context.Context) (*zk.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.connect(); err != nil {
		return nil, err
	}
	enough := e.failed + len(e.servers)
	for !e.session {
		if e.closed {
			return nil, spi.ErrClosed
		}
		if e.failed >= enough {
			return nil, e.dialErr
		}
		changed := e.changed
		e.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		e.mu.Lock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if e.closed {
		return nil, spi.ErrClosed
	}
	e.calls.Add(1)
	return e.conn, nil
}

// connect makes the client, which connects in goroutines of its own until
// Close.
func (e *ensemble) connect() error {
	if e.closed {
		return spi.ErrClosed
	}
	if e.conn != nil {
		return nil
	}
	conn, _, err := zk.Connect(e.servers, e.sessionTimeout, zk.WithDialer(e.dial), zk.WithEventCallback(e.event),
		zk.WithLogger(silence{}), zk.WithLogInfo(false), zk.WithHostProvider(&hosts{}))
	if err != nil {
		return err
	}
	e.conn = conn
	return nil
}

// logIn sends the credentials, once; the client repeats them by itself with
// each new connection.
func (e *ensemble) logIn(conn *zk.Conn) error {
	if e.username == "" {
		return nil
	}
	e.login.Lock()
	defer e.login.Unlock()
	if e.loggedIn {
		return nil
	}
	err := conn.AddAuth("digest", []byte(e.username+":"+e.password.Reveal()))
	e.loggedIn = err == nil
	return err
}

// silence is the client's log: what fails is in the errors of the calls.
type silence struct{}

func (silence) Printf(string, ...any) {}

func (e *ensemble) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		e.change(func() { e.failed++; e.dialErr = err })
	}
	return conn, err
}

func (e *ensemble) event(ev zk.Event) {
	if ev.Type == zk.EventSession {
		e.change(func() { e.session = ev.State == zk.StateHasSession })
	}
}

// change changes the state and wakes all who wait for that.
func (e *ensemble) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	close(e.changed)
	e.changed = make(chan struct{})
}

// Close ends the session.
func (e *ensemble) Close() error {
	var conn *zk.Conn
	e.change(func() {
		if !e.closed {
			conn = e.conn
		}
		e.closed = true
	})
	if conn != nil {
		conn.Close()
	}
	e.calls.Wait()
	return nil
}

// hosts returns to the client the next member to try. Names are looked up by each
// dial, so that a member may move to another address.
type hosts struct {
	mu      sync.Mutex
	servers []string
	next    int
	tried   int // since the last good one
}

// Init is called by the client with its servers.
func (h *hosts) Init(servers []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers = servers
	return nil
}

// Len is the number of servers.
func (h *hosts) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.servers)
}

// Next is the next server, and whether all have been tried: the client then
// rests for a second.
func (h *hosts) Next() (server string, retryStart bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	retryStart = h.tried > 0 && h.tried%len(h.servers) == 0
	h.tried++
	return server, retryStart
}

// Connected is called when the last server is good.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
}
