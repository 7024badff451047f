package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// The generator and assigner types that every rule can name. Those that need a
// client library of a server (REDIS, ETCD, ZOOKEEPER, LEAF_SNOWFLAKE) are
// imported by the programs that use them.
import (
	_ "github.com/shardkey/shardkey/keygen/leaf"
	_ "github.com/shardkey/shardkey/keygen/nanoid"
	_ "github.com/shardkey/shardkey/keygen/snowflake"
	_ "github.com/shardkey/shardkey/keygen/ticket"
	_ "github.com/shardkey/shardkey/keygen/uuid"
	_ "github.com/shardkey/shardkey/keygen/workerid"
)

func init() { sql.Register("shardkey", Driver{}) }

// Driver is what is registered as "shardkey": go-sql-driver/mysql with keys
// filled by the rule that the DSN names.
type Driver struct{}

var (
	_ driver.Driver        = Driver{}
	_ driver.DriverContext = Driver{}
	_ driver.Driver        = (*wrapped)(nil)
	_ driver.DriverContext = (*wrapped)(nil)
	_ driver.Connector     = nameConnector{}
	_ driver.Connector     = noConnector{}
)

// Open opens one connection with generators of its own, which its Close
// closes. database/sql uses OpenConnector instead.
func (d Driver) Open(dsn string) (driver.Conn, error) { return open(d, dsn) }

// OpenConnector reads the DSN and its rule; what is wrong with either is a
// [*DSNError], or [ErrNoRule] in its chain. It does not talk to the server.
//
// The empty DSN is what instrumenting wrappers open to get the driver.
// It returns a connector that cannot connect.
func (d Driver) OpenConnector(dsn string) (driver.Connector, error) {
	if dsn == "" {
		return noConnector{d}, nil
	}
	parsed, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	r, err := ruleOf(parsed.rule)
	if err != nil {
		return nil, err
	}
	o := options{server: parsed.server, verify: parsed.verify, warnings: parsed.warnings}
	if o.unlisted, err = unlistedPolicy(parsed.unlisted); err != nil {
		return nil, err
	}
	base, err := parsed.baseConnector()
	if err != nil {
		return nil, err
	}
	return asConnector(newConnector(base, d, r, o, parsed.base))
}

// Wrap returns a driver for sql.Register that fills keys by the rule on
// connections of base. The data source name is passed to the base as it is: the
// rule is the one given here, and no parameter is taken out. A nil base or rule
// is the error of every open.
func Wrap(base driver.Driver, r *rule.Rule, opts ...Option) driver.Driver {
	return &wrapped{base: base, rule: r, opts: newOptions(opts)}
}

type wrapped struct {
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
	return asConnector(newConnector(base, d, d.rule, d.opts, mysqlDSN(name)))
}

// Unwrap returns the base's driver.
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

// asConnector keeps a nil *Connector from becoming a driver.Connector that is
// not nil.
func asConnector(c *Connector, err error) (driver.Connector, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// baseConnector opens the base as database/sql does.
func baseConnector(base driver.Driver, name string) (driver.Connector, error) {
	if d, ok := base.(driver.DriverContext); ok {
		return d.OpenConnector(name)
	}
	return nameConnector{base, spi.NewSecret(name)}, nil
}

// nameConnector is the connector of a base without DriverContext.
type nameConnector struct {
	driver driver.Driver
	name   spi.Secret
}

func (c nameConnector) Connect(context.Context) (driver.Conn, error) {
	return c.driver.Open(c.name.Reveal())
}
func (c nameConnector) Driver() driver.Driver { return c.driver }

// noConnector is a connector that cannot connect: it has its driver only.
type noConnector struct{ driver driver.Driver }

func (noConnector) Connect(context.Context) (driver.Conn, error) {
	return nil, &DSNError{Reason: "it is empty; " + ruleAdvice, Err: ErrNoRule}
}
func (c noConnector) Driver() driver.Driver { return c.driver }

// mysqlDSN is the name when it is a data source of go-sql-driver/mysql, which
// generators may then use as well; empty otherwise.
func mysqlDSN(name string) string {
	if name == "" {
		return ""
	}
	if _, err := parseBase(name); err != nil {
		return ""
	}
	return name
}

// ConnectorOf returns the connector that a connection, as (*sql.Conn).Raw shows
// it, came from; nil when it is not one of ours. Connections of other wrappers are
// looked through when they have an Unwrap method, or Raw, as otelsql calls it.
func ConnectorOf(conn any) *Connector {
	for conn != nil {
		if own, ok := conn.(interface{ Connector() *Connector }); ok {
			return own.Connector()
		}
		switch wrapper := conn.(type) {
		case interface{ Unwrap() driver.Conn }:
			conn = wrapper.Unwrap()
		case interface{ Raw() driver.Conn }:
			conn = wrapper.Raw()
		default:
			return nil
		}
	}
	return nil
}
