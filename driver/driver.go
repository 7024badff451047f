package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"sync"

	"github.com/shardkey/shardkey/internal/panics"
	_ "github.com/shardkey/shardkey/keygen/nanoid"
	_ "github.com/shardkey/shardkey/keygen/segment"
	_ "github.com/shardkey/shardkey/keygen/snowflake"
	_ "github.com/shardkey/shardkey/keygen/uuid"
	_ "github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/rule"
)

// The generator and assigner types that every rule can use. Programs import the types that need a
// client library (REDIS, ETCD, ZOOKEEPER, LEAF_SNOWFLAKE) themselves.

func init() { sql.Register("shardkey", Driver{}) }

// Driver is the driver that is registered as "shardkey". It wraps go-sql-driver/mysql and generates
// keys by the rule that the DSN names.
type Driver struct {
	connector *Connector // of an open database; nil in the registered one
}

var (
	_ driver.Driver        = Driver{}
	_ driver.DriverContext = Driver{}
	_ driver.Driver        = (*wrapped)(nil)
	_ driver.DriverContext = (*wrapped)(nil)
	_ driver.Connector     = opener{}
)

// Open opens a connection. The open connections of a DSN share a [Connector], and closing the last
// one closes its generators. database/sql calls OpenConnector instead.
func (d Driver) Open(dsn string) (driver.Conn, error) { return open(Driver{}, dsn) }

// OpenConnector reads the DSN and its rule. The error is a [*DSNError], or has [ErrNoRule] in its
// chain. OpenConnector doesn't contact the server.
//
// Instrumenting wrappers open the empty DSN to get the driver. For the empty DSN OpenConnector
// returns a connector whose Connect fails.
func (d Driver) OpenConnector(dsn string) (driver.Connector, error) {
	if dsn == "" {
		return opener{d, func() (driver.Conn, error) { return nil, &DSNError{Reason: emptyDSN, Err: ErrNoRule} }}, nil
	}
	return asConnector(d.openConnector(dsn, nil))
}

func (d Driver) openConnector(dsn string, opts []Option) (*Connector, error) {
	o := newOptions(opts)
	under, err := o.Config.parse(dsn)
	if err != nil {
		return nil, err
	}
	r, err := ruleOf(o.Rule)
	if err != nil {
		return nil, err
	}
	base, err := baseConnector(under)
	if err != nil {
		return nil, err
	}
	c, err := newConnector(base, r, o, under)
	if err == nil {
		c.driver = Driver{c}
	}
	return c, err
}

// Open opens a database by a DSN as sql.Open("shardkey", dsn) does, and also returns its
// [Connector]. The Connector reports readiness and statistics even while the server is unavailable.
// A parameter of the DSN overrides an option.
//
// The error is a [*DSNError], or has [ErrNoRule] in its chain. Open doesn't contact the server.
// Closing the sql.DB closes the Connector.
func Open(dsn string, opts ...Option) (*sql.DB, *Connector, error) {
	if dsn == "" {
		return nil, nil, &DSNError{Reason: emptyDSN, Err: ErrNoRule}
	}
	c, err := Driver{}.openConnector(dsn, opts)
	if err != nil {
		return nil, nil, err
	}
	return sql.OpenDB(c), c, nil
}

const emptyDSN = "it is empty; " + ruleAdvice

// Wrap returns a driver for sql.Register that adds keys to INSERTs by the rule r. The underlying
// driver, base, receives the data source name unchanged, including its parameters. If base or r is
// nil, opening a database fails.
func Wrap(base driver.Driver, r *rule.Rule, opts ...Option) driver.Driver {
	return &wrapped{base: base, rule: r, opts: newOptions(opts)}
}

// wrapped is the driver that Wrap returns, and the driver of a connector that NewConnector returns.
type wrapped struct {
	Driver
	base driver.Driver
	rule *rule.Rule
	opts options
}

func (wr *wrapped) Open(name string) (driver.Conn, error) { return open(wr, name) }

func (wr *wrapped) OpenConnector(name string) (driver.Connector, error) {
	if wr.base == nil {
		return nil, errors.New("shardkey: the wrapped driver is nil")
	}
	var base driver.Connector = opener{wr.base, func() (driver.Conn, error) { return wr.base.Open(name) }}
	if of, ok := wr.base.(driver.DriverContext); ok {
		var err error
		if base, err = of.OpenConnector(name); err != nil {
			return nil, err
		}
	}
	return asConnector(wr.connect(base, name))
}

// connect returns a connector over base, whose driver is like wr.
func (wr *wrapped) connect(base driver.Connector, name string) (*Connector, error) {
	c, err := newConnector(base, wr.rule, wr.opts, name)
	if err == nil {
		c.driver = &wrapped{Driver{c}, wr.base, wr.rule, wr.opts}
	}
	return c, err
}

// Unwrap returns the underlying driver.
func (wr *wrapped) Unwrap() driver.Driver { return wr.base }

// opener is a connector that opens connections by a function. The function hides the name of the
// data source, which may contain a password, from package fmt.
type opener struct {
	driver driver.Driver
	open   func() (driver.Conn, error)
}

func (op opener) Connect(context.Context) (driver.Conn, error) { return op.open() }
func (op opener) Driver() driver.Driver                        { return op.driver }

// openName is a driver and the name of its data source.
type openName struct {
	driver driver.DriverContext
	name   string
}

// openConnector is the connector of the connections that Open made for a name.
type openConnector struct {
	driver.Connector
	err         error
	once        sync.Once
	connections int // guarded by opened.mu
}

// opened are the connectors of connections that Open made. Wrappers without connectors, such as
// sqlhooks, make all connections of a pool with Open, and these share one connector.
var opened = struct {
	mu         sync.Mutex
	connectors map[openName]*openConnector
}{connectors: map[openName]*openConnector{}}

// open makes a connection. Closing the last connection of a name closes their connector.
func open(d driver.DriverContext, name string) (driver.Conn, error) {
	key := openName{d, name}
	opened.mu.Lock()
	shared := opened.connectors[key]
	if shared == nil {
		shared = new(openConnector)
		opened.connectors[key] = shared
	}
	shared.connections++
	opened.mu.Unlock()
	shared.once.Do(func() { shared.Connector, shared.err = d.OpenConnector(name) })
	leave := func() error { return shared.leave(key) }
	c, err := driver.Conn(nil), shared.err
	if err == nil {
		c, err = shared.Connect(context.Background())
	}
	if err != nil {
		_ = leave()
		return nil, err
	}
	c.(*conn).closeWith(leave)
	return c, nil
}

// leave closes the connector if its last connection of the name was closed.
func (shared *openConnector) leave(key openName) error {
	opened.mu.Lock()
	shared.connections--
	last := shared.connections == 0
	if last {
		delete(opened.connectors, key)
	}
	opened.mu.Unlock()
	if c, ok := shared.Connector.(*Connector); ok && last {
		return c.closeIdle()
	}
	return nil
}

// asConnector keeps a nil *Connector from becoming a driver.Connector that is not nil.
func asConnector(c *Connector, err error) (driver.Connector, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// ConnectorOf returns the connector behind v: a *sql.DB, a *sql.Conn, a connection that
// (*sql.Conn).Raw passes to its function, or a [*Connector]. It looks through wrappers that have a
// method Unwrap, or Raw as otelsql's connections have. It returns nil if v isn't of this driver, or if
// a wrapper doesn't show what it wraps. It sends nothing to the server.
func ConnectorOf(v any) *Connector {
	var c *Connector
	_ = panics.Call("the database", func() error { c = unwrap(v); return nil }) // for example a zero sql.DB
	return c
}

// unwrap returns the connector behind v if v and its wrappers show what they wrap.
func unwrap(v any) *Connector {
	const most = 100 // wrappers; a wrapper may unwrap to itself
	for range most {
		if isNil(v) {
			return nil
		}
		switch of := v.(type) {
		case *Connector:
			return of
		case interface{ Connector() *Connector }:
			return of.Connector()
		case interface{ connectorOf() *Connector }:
			return of.connectorOf()
		case interface{ Unwrap() driver.Conn }:
			v = of.Unwrap()
		case interface{ Unwrap() driver.Driver }:
			v = of.Unwrap()
		case interface{ Raw() driver.Conn }:
			v = of.Raw()
		case interface{ Raw(func(any) error) error }:
			v = nil
			_ = of.Raw(func(conn any) error { v = conn; return nil }) // a closed one has no connection
		case interface{ Driver() driver.Driver }:
			v = of.Driver()
		default:
			return nil
		}
	}
	return nil
}

// connectorOf returns the connector of an open database's driver.
func (d Driver) connectorOf() *Connector { return d.connector }

// isNil reports whether v is nil, or a nil pointer in an interface.
func isNil(v any) bool {
	rv := reflect.ValueOf(v)
	return v == nil || rv.Kind() == reflect.Pointer && rv.IsNil()
}
