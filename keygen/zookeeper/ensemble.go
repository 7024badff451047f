package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/shardkey/shardkey/spi"
)

const (
	defaultSessionTimeout = 10 * time.Second
	defaultTimeout        = 3 * time.Second
)

// ensemble is a ZooKeeper ensemble. The first call connects to it.
type ensemble struct {
	servers  []string // host:port
	chroot   string   // "" or "/app"
	username string   // for the digest scheme, like password; may be empty
	password spi.Secret
	// sessionTimeout is requested from the ensemble. If a member is silent for two thirds of it,
	// the client connects to another one.
	sessionTimeout time.Duration
	timeout        time.Duration // limits each call

	mu      sync.Mutex
	conn    *connection // nil before the first call, and after it was forgotten
	closed  bool
	failed  int        // number of failed connection attempts
	dialErr error      // error of the last attempt
	changed *sync.Cond // one of these or of the connection has changed, or a caller must look again
	calls   sync.WaitGroup
}

// connection is a client of the ensemble. The client sends the last transaction that it has seen,
// and members without it refuse the client. So after a restored backup, only a new client gets a
// session. The old one is forgotten when it has had no session for the time of an operation.
type connection struct {
	client  *zk.Conn
	socket  net.Conn    // the last one; the ensemble's mu guards it, like the next fields
	session bool        // there is a session now
	since   time.Time   // when the session was lost, or the client created
	late    *time.Timer // wakes callers when it may be forgotten

	login    sync.Mutex
	loggedIn bool
}

// newEnsemble reads the property that names the servers, and the common properties.
func newEnsemble(p spi.Props, servers string) (*ensemble, error) {
	e := &ensemble{username: p.String("username", ""), password: p.Secret("password")}
	e.changed = sync.NewCond(&e.mu)
	var err error
	e.sessionTimeout, err = p.Duration("session-timeout", defaultSessionTimeout, 100*time.Millisecond, time.Hour)
	if err != nil {
		return nil, err
	}
	if e.timeout, err = p.Duration("timeout", defaultTimeout, time.Millisecond, time.Hour); err != nil {
		return nil, err
	}
	if (e.username == "") != (e.password.Reveal() == "") {
		return nil, &spi.PropError{Name: "username", Want: "both username and password, or neither"}
	}
	e.servers, e.chroot, err = parseServers(p, servers)
	return e, err
}

// parseServers parses a connection string such as "h1:2181,h2/app": host or host:port (default
// 2181), and after the last one an optional path for all nodes. An @, ? or = in the path is an
// error, because logs show the path and a password may follow, as in "u:12/password@host". See
// "Connecting to ZooKeeper" in ZooKeeper's programmer's guide:
// https://zookeeper.apache.org/doc/current/zookeeperProgrammers.html#ch_zkSessions
func parseServers(p spi.Props, name string) (servers []string, chroot string, err error) {
	list, path, found := strings.Cut(strings.Join(p.List(name), ","), "/")
	if strings.ContainsAny(path, "@?=") {
		return nil, "", p.CheckAddress(name, path, "the members' addresses, for example 10.0.0.1:2181,10.0.0.2:2181/path, "+
			"without @, ? and = in the path")
	}
	if found && strings.Trim(path, "/") != "" {
		chroot = "/" + strings.Trim(path, "/")
	}
	for server := range strings.SplitSeq(list, ",") {
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			host, port = server, "2181"
		}
		address := net.JoinHostPort(host, port)
		if host == "" || strings.ContainsAny(host, ": ") {
			address = ""
		}
		if err := p.CheckAddress(name, address, "the members' addresses, for example 10.0.0.1:2181,10.0.0.2:2181"); err != nil {
			return nil, "", err
		}
		servers = append(servers, address)
	}
	return servers, chroot, nil
}

// name returns the members' addresses, for messages.
func (e *ensemble) name() string { return strings.Join(e.servers, ",") + e.chroot }

// acl returns the ACL of new nodes. It gives access to the user only, or to all if there are no
// credentials.
func (e *ensemble) acl() []zk.ACL {
	if e.username != "" {
		return zk.AuthACL(zk.PermAll)
	}
	return zk.WorldACL(zk.PermAll)
}

// do runs one call, limited by the timeout and by ctx. The client doesn't support contexts, so a
// call that ctx ended may still be applied. Without a session do doesn't start a call, because the
// client would send it later.
func do[T any](ctx context.Context, e *ensemble, call func(*zk.Conn) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var a answer
	callCtx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	conn, err := e.await(callCtx)
	if err != nil {
		return a.value, e.wrap(ctx, err)
	}
	answers := make(chan answer, 1)
	go func() {
		defer e.calls.Done()
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("the client panicked: %v", p)
			}
			answers <- a
		}()
		if a.err = e.logIn(conn); a.err == nil {
			a.value, a.err = call(conn.client)
		}
	}()
	select {
	case a = <-answers:
	case <-callCtx.Done():
		a.err = callCtx.Err()
	}
	return a.value, e.wrap(ctx, a.err)
}

// await counts the call and returns the connection once it has a session. It returns an error if no
// member accepts a connection.
func (e *ensemble) await(ctx context.Context) (*connection, error) {
	defer context.AfterFunc(ctx, e.lookAgain)()
	e.mu.Lock()
	defer e.mu.Unlock()
	for enough := e.failed + len(e.servers); ; e.changed.Wait() {
		switch {
		case e.closed:
			return nil, spi.ErrClosed
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case e.conn != nil && e.conn.session:
			e.calls.Add(1)
			return e.conn, nil
		case e.failed >= enough:
			return nil, e.dialErr
		}
		if err := e.connect(); err != nil {
			return nil, err
		}
	}
}

// connect creates a client, unless there is one that may still get a session. The client connects
// in its own goroutines until it is closed. mu is held.
func (e *ensemble) connect() (err error) {
	if old := e.conn; old != nil {
		if time.Since(old.since) < e.timeout {
			return nil
		}
		e.conn = nil
		e.calls.Go(func() { e.end(old) })
	}
	c := &connection{since: time.Now(), late: time.AfterFunc(e.timeout, e.lookAgain)}
	c.client, _, err = zk.Connect(e.servers, e.sessionTimeout, zk.WithDialer(e.dialer(c)), zk.WithEventCallback(e.watcher(c)),
		zk.WithLogger(silence{}), zk.WithLogInfo(false), zk.WithHostProvider(&hosts{}))
	if err == nil {
		e.conn = c
	}
	return err
}

// end closes a client. It closes the socket too, because the client may wait for a member's answer.
func (e *ensemble) end(c *connection) {
	c.client.Close()
	c.late.Stop()
	e.change(func() {
		if c.socket != nil {
			_ = c.socket.Close()
		}
	})
}

// logIn sends the credentials once. The client repeats them on each new socket.
func (e *ensemble) logIn(c *connection) error {
	if e.username == "" {
		return nil
	}
	c.login.Lock()
	defer c.login.Unlock()
	if c.loggedIn {
		return nil
	}
	err := c.client.AddAuth("digest", []byte(e.username+":"+e.password.Reveal()))
	c.loggedIn = err == nil
	return err
}

// silence discards the client's log, because the calls return the errors.
type silence struct{}

func (silence) Printf(string, ...any) {}

func (e *ensemble) dialer(c *connection) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		socket, err := net.DialTimeout(network, address, timeout)
		e.change(func() {
			if err != nil {
				e.failed++
				e.dialErr = err
			} else {
				c.socket = socket
			}
		})
		return socket, err
	}
}

func (e *ensemble) watcher(c *connection) func(zk.Event) {
	return func(ev zk.Event) {
		if ev.Type != zk.EventSession {
			return
		}
		e.change(func() {
			has := ev.State == zk.StateHasSession
			if c.session && !has {
				c.since = time.Now()
				c.late.Reset(e.timeout)
			}
			c.session = has
		})
	}
}

// change changes the state and wakes all goroutines that wait for a change.
func (e *ensemble) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	e.changed.Broadcast()
}

func (e *ensemble) lookAgain() { e.change(func() {}) }

// Close closes the session.
func (e *ensemble) Close() error {
	var conn *connection
	e.change(func() { conn, e.conn, e.closed = e.conn, nil, true })
	if conn != nil {
		e.end(conn)
	}
	e.calls.Wait()
	return nil
}

// hosts returns the next member to try to the client's loop. Each dial resolves the name, so that a
// member can move to another address.
type hosts struct {
	servers []string
	next    int
	tried   int // since the last successful connection
}

func (h *hosts) Init(servers []string) error { h.servers = servers; return nil }
func (h *hosts) Len() int                    { return len(h.servers) }
func (h *hosts) Connected()                  { h.tried = 0 }

// Next returns the next server. retryStart reports that all have been tried, and makes the client
// wait for a second.
func (h *hosts) Next() (server string, retryStart bool) {
	server = h.servers[h.next]
	h.next = (h.next + 1) % len(h.servers)
	retryStart = h.tried > 0 && h.tried%len(h.servers) == 0
	h.tried++
	return server, retryStart
}

type node struct {
	name string // relative to its path, if it was listed
	data []byte
	stat *zk.Stat // nil if the node doesn't exist
}

// get reads a node, after all writes that the ensemble has acknowledged.
func (e *ensemble) get(ctx context.Context, path string) (node, error) {
	return there(do(ctx, e, func(c *zk.Conn) (node, error) {
		if _, err := c.Sync(e.chroot + path); err != nil {
			return node{}, err
		}
		data, stat, err := c.Get(e.chroot + path)
		return node{data: data, stat: stat}, err
	}))
}

// list reads the nodes under a path whose names are wanted, after all writes that the ensemble has
// acknowledged.
func (e *ensemble) list(ctx context.Context, path string, wanted func(name string) bool) ([]node, error) {
	names, err := there(do(ctx, e, func(c *zk.Conn) ([]string, error) {
		if _, err := c.Sync(e.chroot + path); err != nil {
			return nil, err
		}
		names, _, err := c.Children(e.chroot + path)
		return slices.DeleteFunc(names, func(name string) bool { return !wanted(name) }), err
	}))
	if err != nil {
		return nil, err
	}
	nodes := make([]node, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for i, name := range names {
		group.Go(func() (err error) {
			nodes[i], err = there(do(ctx, e, func(c *zk.Conn) (node, error) {
				data, stat, err := c.Get(e.chroot + path + "/" + name)
				return node{name, data, stat}, err
			}))
			return err
		})
	}
	err = group.Wait()
	return slices.DeleteFunc(nodes, func(n node) bool { return n.stat == nil }), err
}

// there replaces the error that a node doesn't exist by the zero value.
func there[T any](found T, err error) (T, error) {
	if errors.Is(err, zk.ErrNoNode) {
		return *new(T), nil
	}
	return found, err
}

// set changes a node if it still has the version. It returns false if it doesn't.
func (e *ensemble) set(ctx context.Context, path string, data []byte, version int32) (bool, error) {
	return swapped(do(ctx, e, func(c *zk.Conn) (*zk.Stat, error) {
		return c.Set(e.chroot+path, data, version)
	}))
}

// create creates a node and its parents. It returns false if the node exists.
func (e *ensemble) create(ctx context.Context, path string, data []byte, flags int32) (string, bool, error) {
	for {
		made, err := do(ctx, e, func(c *zk.Conn) (string, error) {
			return c.Create(e.chroot+path, data, flags, e.acl())
		})
		if !errors.Is(err, zk.ErrNoNode) {
			ok, err := swapped(made, err)
			return strings.TrimPrefix(made, e.chroot), ok, err
		}
		if err := e.makeParents(ctx, e.chroot+path); err != nil {
			return "", false, err
		}
	}
}

// makeParents creates the parents of a full path.
func (e *ensemble) makeParents(ctx context.Context, path string) error {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		_, err := do(ctx, e, func(c *zk.Conn) (string, error) {
			return c.Create(path[:i], nil, 0, e.acl())
		})
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// now returns the time of the ensemble's clock, which is the time that it records for a write of a
// node.
func (e *ensemble) now(ctx context.Context, path string) (time.Time, error) {
	if _, _, err := e.create(ctx, path, nil, 0); err != nil {
		return time.Time{}, err
	}
	stat, err := do(ctx, e, func(c *zk.Conn) (*zk.Stat, error) {
		return c.Set(e.chroot+path, nil, -1)
	})
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(stat.Mtime), nil
}

// swapped returns false for answers that mean that the comparison failed.
func swapped[T any](_ T, err error) (bool, error) {
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNodeExists) {
		return false, nil
	}
	return err == nil, err
}

// wrap returns the error of a call. If ctx has ended, it wraps ctx's error. ZooKeeper's errors
// about nodes aren't changed, because they answer the request.
func (e *ensemble) wrap(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrBadVersion):
		return err
	case errors.Is(err, spi.ErrClosed):
		return spi.ErrClosed
	case (errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrClosing)) && e.isClosed():
		return spi.ErrClosed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		err = cmp.Or(ctx.Err(), fmt.Errorf("no answer within %v", e.timeout))
	}
	w := &spi.StoreError{Store: "ZOOKEEPER at " + e.name(), Cause: err}
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed):
		w.Advice = "set the properties username and password of a user that may read, create and write there"
	case ctx.Err() == nil:
		w.Advice = "see that a majority of the members runs and can be reached"
	}
	return w
}

func (e *ensemble) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}
