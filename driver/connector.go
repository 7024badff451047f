package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// Connector is the driver.Connector of this package: a base connector, a rule and the rule's live
// generators. Make it with [NewConnector], or reach that of an open database with [ConnectorOf]. A
// zero Connector has no rule: its methods return an error, [ErrNoRule], or nothing.
//
// Its methods are called by many goroutines at once.
type Connector struct {
	base     driver.Connector
	driver   driver.Driver
	host     spi.Host
	logger   *slog.Logger // as it was given; the host's does the same and never panics
	config   Config
	known    session.Cache // the server, and the tables in it
	verifier verifier
	unlisted unlisted
	cache    *base.Cache // of prepared statements
	counts   counts
	filled   func(context.Context, Filled) // nil: nobody wants to know
	refusals refusals
	// database is the DSN's, without user and password; empty when it is not known.
	database string

	// rules is the current rule; never nil once the connector is made.
	rules atomic.Pointer[ruleSet]

	mu          sync.Mutex
	connections int  // that are open
	closed      bool // Close was called
	closeBase   sync.Once
}

var (
	_ driver.Connector = (*Connector)(nil)
	_ io.Closer        = (*Connector)(nil)
)

// NewConnector returns a connector for sql.OpenDB that fills keys by the rule on connections of
// base: go-sql-driver's connector, sqlmock's, an instrumented one.
//
// The base's DSN is not known here: a generator or assigner that would use the
// connector's own database needs its own dsn property.
func NewConnector(base driver.Connector, r *rule.Rule, opts ...Option) (*Connector, error) {
	if isNil(base) {
		return nil, errors.New("shardkey: the base connector is nil")
	}
	o := newOptions(opts)
	own := &wrapped{base: base.Driver(), rule: r, opts: o}
	return newConnector(base, own, r, o, "")
}

func newConnector(under driver.Connector, d ownDriver, r *rule.Rule, o options, dsn string) (*Connector, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Connector{base: under, host: o.host(dsn), config: o.Config, filled: o.filled}
	c.driver = d.of(c)
	cfg := configOf(dsn)
	if cfg != nil {
		c.database = fmt.Sprintf("%s(%s)/%s", cfg.Net, cfg.Addr, cfg.DBName)
	}
	c.known.Kind, c.known.Client = cmp.Or(o.Server, session.ServerAuto), session.NewClient(cfg)
	c.verifier.set(o.Verify)
	c.cache = base.NewCache(o.Statements == statementsAlways)
	c.logger = cmp.Or(o.logger, slog.Default())
	c.unlisted.policy, c.unlisted.logger = o.Unlisted, c.host.Logger
	if _, err := c.install(r); err != nil {
		return nil, err
	}
	if err := openConnectors.add(c, o.Reload); err != nil {
		return nil, errors.Join(err, c.rules.Load().generators.Close())
	}
	return c, nil
}

// errZeroConnector is the error of a Connector that NewConnector did not make.
var errZeroConnector = fmt.Errorf("%w: the Connector is zero; make it with NewConnector", ErrNoRule)

// Connect opens a connection of the base and wraps it.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	under, err := c.base.Connect(ctx)
	if err == nil && under == nil {
		err = base.ErrNoAnswer
	}
	if err != nil {
		_ = c.leave()
		return nil, err
	}
	return newConn(c, under), nil
}

// Driver returns the driver that the connector was opened with: one of ours.
func (c *Connector) Driver() driver.Driver { return c.driver }

// Unwrap returns the base's connector.
func (c *Connector) Unwrap() driver.Connector { return c.base }

// Lookup returns what the current rule says of the table that a statement names,
// with schema the qualifier in front of the name or empty, as [rule.Live.Lookup]
// does; nil for a table whose keys are not filled. The Table is not to be changed,
// and its Generator is closed once another rule replaces this one.
func (c *Connector) Lookup(schema, table string) *rule.Table {
	return c.current().generators.Lookup(schema, table)
}

// Describe returns the rule's tables, generators and assigners, the server's kind and
// abilities as far as they are known, and the number of cached prepared statements,
// for logs and debugging. It holds no secrets.
func (c *Connector) Describe() string {
	cache := c.cacheStats()
	text := fmt.Sprintf("%s\n  %s\n  prepared statements: %s, %d kept",
		c.current().generators.Describe(), c.known.Describe(), cache.Mode, cache.Open)
	if cache.Limit >= 0 {
		text += fmt.Sprintf(" of %d", cache.Limit)
	}
	return text
}

// Format writes what Describe returns, whatever the verb: what a base holds may
// have a password in it.
func (c *Connector) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.Describe()) }

// Close closes the rule's generators and the base's connector. sql.DB.Close calls it. It may be
// called any number of times; the first error of the base is returned once.
//
// Generators serve the connections that are still open, as that of a transaction which has not
// ended, or of a second sql.DB on this connector: the last connection that closes then closes them.
// sql.DB.Close doesn't wait for statements that run. A program that exits right after it, while
// some do, keeps its worker ID until the lease ends: wait for them first, with http.Server.Shutdown
// for example.
func (c *Connector) Close() error {
	openConnectors.remove(c)
	err := c.release(func() { c.closed = true })
	c.closeBase.Do(func() {
		if closer, ok := c.base.(io.Closer); ok {
			err = errors.Join(err, closer.Close())
		}
	})
	return err
}

// enter counts a connection. One that comes after the generators were closed
// belongs to another sql.DB on this connector: they are opened again.
func (c *Connector) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rules.Load() == nil {
		return errZeroConnector
	}
	if c.unused() {
		if _, err := c.install(c.rules.Load().rule); err != nil {
			return hideBadConn(err)
		}
	}
	c.connections++
	return nil
}

// leave is the end of a connection.
func (c *Connector) leave() error { return c.release(func() { c.connections-- }) }

// unused reports whether no connection can need the generators.
func (c *Connector) unused() bool { return c.closed && c.connections == 0 }

// release changes what keeps the generators open, and closes them if nothing does any more.
func (c *Connector) release(change func()) error {
	c.mu.Lock()
	change()
	unused, rules := c.unused(), c.current()
	c.mu.Unlock()
	if !unused {
		return nil
	}
	return rules.generators.Close()
}

// Ready returns nil when a key can be made now for every table of the rule, and else what stands in
// the way: a [*NotReadyError] for each generator that cannot make one, joined where there are
// several, or [spi.ErrClosed]. It is for a readiness probe:
//
//	http.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
//		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
//		defer cancel()
//		if err := errors.Join(connector.Ready(ctx), db.PingContext(ctx)); err != nil {
//			http.Error(w, err.Error(), http.StatusServiceUnavailable)
//		}
//	})
//
// It uses no key, but takes what the first one needs, as a worker ID or a segment:
// a program that has been ready once does not wait with its first INSERT. A store
// that is away is no reason while keys can be made without it, nor is a changed
// rule file that could not be taken; [Connector.Stats] has both. It does not ask
// the database that the rows go to. It returns soon after ctx ends. A generator
// that is no [spi.ReadyReporter] is ready while its health has no error.
func (c *Connector) Ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rules, err := c.use()
	if err != nil {
		return err
	}
	defer func() { _ = rules.generators.Release() }()
	return rules.ready(ctx)
}

// ready asks each generator that tables use, all at once.
func (r *ruleSet) ready(ctx context.Context) error {
	var all []*NotReadyError
	byName := map[string]*NotReadyError{}
	for _, t := range r.rule.Tables() {
		key := strings.ToLower(t.GeneratorName)
		e := byName[key]
		if e == nil {
			e = &NotReadyError{Generator: t.GeneratorName}
			byName[key], all = e, append(all, e)
		}
		e.Tables = append(e.Tables, t.Logical)
	}
	var asked sync.WaitGroup
	for _, e := range all {
		g := r.generators.Generator(e.Generator)
		asked.Go(func() { e.Err = guard.Call("it", func() error { return isReady(ctx, g) }) })
	}
	asked.Wait()
	var errs []error
	for _, e := range all {
		if e.Err != nil {
			errs = append(errs, e)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func isReady(ctx context.Context, g spi.KeyGenerator) error {
	switch g := g.(type) {
	case spi.ReadyReporter:
		return g.Ready(ctx)
	case spi.HealthReporter:
		return g.Health().Err
	}
	return nil
}
