package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// The generator and assigner types that every rule can use. Programs import the types that need a
// client library (REDIS, ETCD, ZOOKEEPER, LEAF_SNOWFLAKE) themselves.
import (
	_ "github.com/shardkey/shardkey/keygen/nanoid"
	_ "github.com/shardkey/shardkey/keygen/segment"
	_ "github.com/shardkey/shardkey/keygen/snowflake"
	_ "github.com/shardkey/shardkey/keygen/uuid"
	_ "github.com/shardkey/shardkey/keygen/workerid"
)

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
	_ driver.Connector     = nameConnector{}
	_ driver.Connector     = noConnector{}
)

// Open opens one connection with separate generators, which closing the connection closes.
// database/sql calls OpenConnector instead.
func (d Driver) Open(dsn string) (driver.Conn, error) { return open(d, dsn) }

// OpenConnector reads the DSN and its rule. The error is a [*DSNError], or has [ErrNoRule] in its
// chain. OpenConnector doesn't contact the server.
//
// Instrumenting wrappers open the empty DSN to get the driver. For the empty DSN OpenConnector
// returns a connector whose Connect fails.
func (d Driver) OpenConnector(dsn string) (driver.Connector, error) {
	if dsn == "" {
		return noConnector{d}, nil
	}
	return asConnector(d.openConnector(dsn, nil))
}

func (d Driver) openConnector(dsn string, opts []Option) (*Connector, error) {
	o := newOptions(opts)
	parsed, err := parseDSN(dsn, &o.Config)
	if err != nil {
		return nil, err
	}
	r, err := ruleOf(parsed.rule)
	if err != nil {
		return nil, err
	}
	base, err := parsed.baseConnector()
	if err != nil {
		return nil, err
	}
	return newConnector(base, d, r, o, parsed.base)
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

type wrapped struct {
	Driver
	base driver.Driver
	rule *rule.Rule
	opts options
}

func (d *wrapped) Open(name string) (driver.Conn, error) { return open(d, name) }

func (d *wrapped) OpenConnector(name string) (driver.Connector, error) {
	if d.base == nil {
		return nil, errors.New("shardkey: the wrapped driver is nil")
	}
	base, err := baseConnector(d.base, name)
	if err != nil {
		return nil, err
	}
	return asConnector(newConnector(base, d, d.rule, d.opts, name))
}

// Unwrap returns the underlying driver.
func (d *wrapped) Unwrap() driver.Driver { return d.base }

// open makes a connection whose Close closes its connector.
func open(d driver.DriverContext, name string) (driver.Conn, error) {
	connector, err := d.OpenConnector(name)
	if err != nil {
		return nil, err
	}
	c, err := connector.Connect(context.Background())
	if own, ok := connector.(*Connector); ok {
		if err != nil {
			_ = own.Close()
			return nil, err
		}
		c.(interface{ closeWith(func() error) }).closeWith(own.Close)
	}
	return c, err
}

// asConnector keeps a nil *Connector from becoming a driver.Connector that is not nil.
func asConnector(c *Connector, err error) (driver.Connector, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// baseConnector opens the underlying driver as database/sql does.
func baseConnector(base driver.Driver, name string) (driver.Connector, error) {
	if d, ok := base.(driver.DriverContext); ok {
		return d.OpenConnector(name)
	}
	return nameConnector{base, spi.NewSecret(name)}, nil
}

// nameConnector is the connector for an underlying driver without DriverContext.
type nameConnector struct {
	driver driver.Driver
	name   spi.Secret
}

func (c nameConnector) Connect(context.Context) (driver.Conn, error) {
	return c.driver.Open(c.name.Reveal())
}
func (c nameConnector) Driver() driver.Driver { return c.driver }

// noConnector is a connector that has a driver but can't connect.
type noConnector struct{ driver driver.Driver }

func (noConnector) Connect(context.Context) (driver.Conn, error) {
	return nil, &DSNError{Reason: emptyDSN, Err: ErrNoRule}
}
func (c noConnector) Driver() driver.Driver { return c.driver }

// ConnectorOf returns the connector behind v: a *sql.DB, a *sql.Conn, a connection that
// (*sql.Conn).Raw passes to its function, or a [*Connector]. It returns nil if v isn't of this
// driver.
//
// ConnectorOf looks through other wrappers that have a method Unwrap, or Raw as otelsql has. If
// such a wrapper is around the driver of a *sql.DB, pass a *sql.Conn instead.
func ConnectorOf(v any) (c *Connector) {
	defer func() {
		if recover() != nil { // for example from a zero sql.DB
			c = nil
		}
	}()
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
		case ownDriver:
			return of.connectorOf()
		case interface{ Unwrap() driver.Conn }:
			v = of.Unwrap()
		case interface{ Unwrap() driver.Driver }:
			v = of.Unwrap()
		case interface{ Raw() driver.Conn }:
			v = of.Raw()
		case interface{ Driver() driver.Driver }:
			v = of.Driver()
		case interface{ Raw(func(any) error) error }:
			var inner any
			_ = of.Raw(func(conn any) error { inner = conn; return nil })
			v = inner
		default:
			return nil
		}
	}
	return nil
}

// ownDriver is a driver of this package. An open database's driver has its connector.
type ownDriver interface {
	driver.DriverContext
	connectorOf() *Connector
	of(*Connector) driver.Driver
}

func (d Driver) connectorOf() *Connector       { return d.connector }
func (d Driver) of(c *Connector) driver.Driver { return Driver{c} }

// Host returns the host of an open database's generators, for package doctor. Its DSN is a secret.
func (d Driver) Host() spi.Host {
	if d.connector == nil {
		return spi.Host{}
	}
	return d.connector.host
}

func (d *wrapped) of(c *Connector) driver.Driver {
	own := *d
	own.connector = c
	return &own
}

// isNil reports whether v is nil, or a nil pointer in an interface.
func isNil(v any) bool {
	rv := reflect.ValueOf(v)
	return v == nil || rv.Kind() == reflect.Pointer && rv.IsNil()
}
