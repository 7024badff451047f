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

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/fill"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// Connector is the driver.Connector of this package. It holds the underlying driver's connector, a
// rule and the rule's live generators. [NewConnector] and [Open] return one; [ConnectorOf] finds
// the Connector of an open database. The methods of a zero Connector return [ErrNoRule] or nothing,
// since it has no rule.
//
// A Connector is safe for concurrent use.
type Connector struct {
	env
	base     driver.Connector
	driver   driver.Driver
	host     spi.Host
	config   Config
	known    session.Cache // the server, and the tables in it
	cache    *base.Cache   // of prepared statements
	refusals refusals
	// database is the network address and database of the DSN; empty if unknown.
	database string
	// schema is the database of the DSN; empty if unknown.
	schema string

	// rules is the current rule; not nil in a connector that NewConnector returned.
	rules atomic.Pointer[ruleVersion]

	watcher *watcher // guarded by watchers.mu; nil if the rule isn't reloaded

	mu          sync.Mutex
	connections int  // open ones
	closed      bool // Close was called
	reopens     bool // closeIdle was called
	closeBase   sync.Once
}

var (
	_ driver.Connector = (*Connector)(nil)
	_ io.Closer        = (*Connector)(nil)
)

// NewConnector returns a connector for sql.OpenDB that adds keys to INSERTs by the rule r. The
// parameter base is the connector of go-sql-driver, or of another driver such as sqlmock.
//
// NewConnector has no DSN. A generator or worker-ID assigner that would use the connector's
// database needs a dsn property; with [Config.NewConnector] it doesn't.
//
// The error is about a nil base, a nil rule ([ErrNoRule]), an option ([*DSNError]), or the rule's
// generators.
func NewConnector(base driver.Connector, r *rule.Rule, opts ...Option) (*Connector, error) {
	if isNil(base) {
		return nil, errors.New("shardkey: the base connector is nil")
	}
	return (&wrapped{base: base.Driver(), rule: r, opts: newOptions(opts)}).connect(base, "")
}

// NewConnector returns a connector for sql.OpenDB over go-sql-driver with cfg.MySQL. Options of the same
// meaning override the fields of cfg. A generator or worker-ID assigner that uses the connector's database
// opens it by cfg.MySQL.FormatDSN.
//
// The error is a [*DSNError], or has [ErrNoRule] in its chain. NewConnector doesn't contact the server.
func (cfg *Config) NewConnector(opts ...Option) (*Connector, error) {
	switch {
	case cfg.MySQL == nil:
		return nil, &DSNError{Param: configPrefix + "MySQL", Reason: "it is nil; set it to a mysql.Config"}
	case cfg.Rule == "":
		return nil, &DSNError{Param: configPrefix + "Rule", Err: ErrNoRule,
			Reason: "no sharding rule: set it to the path of the rule's file, or to a name given to driver.RegisterRule"}
	}
	r, err := ruleOf(cfg.Rule)
	if err != nil {
		return nil, err
	}
	base, err := mysql.NewConnector(cfg.MySQL)
	if err != nil {
		return nil, &DSNError{Param: configPrefix + "MySQL", Reason: "go-sql-driver refuses it", Err: err}
	}
	connector, err := newConnector(base, r, newOptions(append([]Option{*cfg}, opts...)), cfg.MySQL.FormatDSN())
	if err == nil {
		connector.driver = Driver{connector}
	}
	return connector, err
}

// newConnector returns a connector without a driver.
func newConnector(under driver.Connector, r *rule.Rule, o options, dsn string) (*Connector, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	cfg := configOf(dsn)
	if cfg == nil {
		dsn = "" // the name of another driver's data source
	}
	host := spi.Host{DSN: spi.NewSecret(dsn), Clock: o.clock, Logger: cmp.Or(o.logger, slog.Default())}
	c := &Connector{base: under, host: host, config: o.Config}
	if cfg != nil {
		c.database = fmt.Sprintf("%s(%s)/%s", cfg.Net, cfg.Addr, cfg.DBName)
		c.schema = cfg.DBName
	}
	c.known.Kind, c.known.Client = cmp.Or(o.Server, session.ServerAuto), session.NewClient(cfg)
	c.known.Logger, c.logger, c.keyHook, c.caches = host.Logger, host.Logger, o.keyHook, o.Statements != statementsOff
	if o.Verify != "off" {
		c.verifier.read = secondParser
	}
	c.cache = base.NewCache(o.Statements == statementsAlways)
	if _, err := c.install(r); err != nil {
		return nil, err
	}
	if err := watchers.add(c, o.Reload); err != nil {
		return nil, errors.Join(err, c.rules.Load().generators.Close())
	}
	return c, nil
}

// errZeroConnector is the error for a Connector that NewConnector did not return.
var errZeroConnector = fmt.Errorf("%w: the Connector is zero; make it with NewConnector", ErrNoRule)

// Connect opens a connection of the underlying driver and wraps it. The error is the underlying
// driver's, a generator's if they were closed and can't be opened again, [ErrNoRule] for a zero
// Connector, or an [errors.ErrUnsupported]: a connection must be a [driver.ExecerContext], a
// [driver.QueryerContext], a [driver.ConnPrepareContext] and a [driver.ConnBeginTx].
func (connector *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := connector.enter(); err != nil {
		return nil, err
	}
	conn, err := connector.connect(ctx)
	if err != nil {
		_ = connector.leave()
		return nil, err
	}
	return conn, nil
}

func (connector *Connector) connect(ctx context.Context) (*conn, error) {
	under, err := connector.base.Connect(ctx)
	if err == nil && under == nil {
		err = base.ErrNoAnswer
	}
	if err != nil {
		return nil, err
	}
	conn, err := newConn(connector, under)
	if err != nil {
		_ = under.Close()
	}
	return conn, err
}

// Driver returns the driver that the connector was opened with.
func (connector *Connector) Driver() driver.Driver { return connector.driver }

// Lookup returns the current rule's table for a table name in a statement. schema is the qualifier
// in front of the name, or empty. Lookup returns nil for a table that isn't sharded. The Table is
// read-only, and its Generator is closed when another rule replaces this one. See
// [rule.Live.Lookup].
func (connector *Connector) Lookup(schema, table string) *rule.Table {
	return connector.current().generators.Lookup(schema, table)
}

// Format writes a description for every verb, since the underlying connector may hold a password. The
// description lists the rule's tables, generators and assigners, the server's kind and abilities, and
// the number of cached prepared statements. It contains no secrets.
func (connector *Connector) Format(f fmt.State, _ rune) {
	var s Stats
	connector.setCache(&s)
	fmt.Fprintf(f, "%s\n  %s\n  prepared statements: %s, %d cached",
		connector.current().generators.Describe(), connector.known.Describe(), s.StatementCache.Mode, s.StatementCache.Open)
	if limit := s.StatementCache.Limit; limit >= 0 {
		fmt.Fprintf(f, " of %d", limit)
	}
}

// Close closes the rule's generators and the underlying connector. sql.DB.Close calls it. Further
// calls do nothing. Close returns the errors of both.
//
// If connections are still open, the last of them closes the generators. This is the case during a
// transaction, or if a second sql.DB uses this connector. sql.DB.Close doesn't wait for running
// statements. A program that exits while one runs keeps its worker ID until the lease ends, so wait
// for running statements first, for example with http.Server.Shutdown.
func (connector *Connector) Close() error {
	watchers.remove(connector)
	err := connector.release(func() { connector.closed = true })
	connector.closeBase.Do(func() {
		if closer, ok := connector.base.(io.Closer); ok {
			err = errors.Join(err, closer.Close())
		}
	})
	return err
}

// closeIdle closes a connector that its driver's Open made. The program may still hold it, and not
// know that its pool has no connection at the moment, so Ready and NextKeys open the generators again.
func (connector *Connector) closeIdle() error {
	connector.mu.Lock()
	connector.reopens = true
	connector.mu.Unlock()
	return connector.Close()
}

// reopen opens the generators again after closeIdle, until leave.
func (connector *Connector) reopen() error {
	connector.mu.Lock()
	reopens := connector.reopens
	connector.mu.Unlock()
	if !reopens {
		return fmt.Errorf("%w: the database's generators", spi.ErrClosed)
	}
	return connector.enter()
}

// enter counts a connection. It opens the generators again if they were closed, since another
// sql.DB may still use this connector.
func (connector *Connector) enter() error {
	connector.mu.Lock()
	defer connector.mu.Unlock()
	if connector.rules.Load() == nil {
		return errZeroConnector
	}
	if connector.unused() {
		if _, err := connector.install(connector.rules.Load().rule); err != nil {
			return fill.HideBadConn(err)
		}
	}
	connector.connections++
	return nil
}

// leave counts a connection that was closed.
func (connector *Connector) leave() error {
	return connector.release(func() { connector.connections-- })
}

// unused reports whether no connection can use the generators.
func (connector *Connector) unused() bool { return connector.closed && connector.connections == 0 }

// release calls change, and then closes the generators if the connector is unused.
func (connector *Connector) release(change func()) error {
	connector.mu.Lock()
	change()
	unused, rules := connector.unused(), connector.current()
	connector.mu.Unlock()
	if !unused {
		return nil
	}
	return rules.generators.Close()
}

// Ready returns nil if keys can be generated now for every table of the rule. Otherwise it returns
// a [*GeneratorError] for each generator that can't generate one, joined if there are several, or
// [spi.ErrClosed]. Use it in a readiness probe:
//
//	http.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
//		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
//		defer cancel()
//		if err := errors.Join(connector.Ready(ctx), db.PingContext(ctx)); err != nil {
//			http.Error(w, err.Error(), http.StatusServiceUnavailable)
//		}
//	})
//
// Ready acquires the resources for the first key, such as a worker ID or a segment. It uses no key.
// So the first INSERT of a ready program doesn't wait. An acquisition continues after ctx ends, and
// a later call finds it done. Ready returns nil while a store is down if keys can still be
// generated, and after a failed rule reload; [Connector.Stats] reports both. It doesn't contact the
// database of the rows, and it returns soon after ctx ends. A generator that isn't an
// [spi.ReadyReporter] is ready while its health has no error.
func (connector *Connector) Ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rules, err := connector.use()
	if err != nil {
		return err
	}
	defer func() { _ = rules.generators.Release() }()
	return rules.ready(ctx)
}

// ready calls isReady for all generators of tables, concurrently.
func (version *ruleVersion) ready(ctx context.Context) error {
	var all []*GeneratorError
	seen := map[string]bool{}
	for _, t := range version.rule.Tables() {
		if key := strings.ToLower(t.GeneratorName); !seen[key] {
			seen[key] = true
			all = append(all, &GeneratorError{Generator: t.GeneratorName, Table: t.Logical, Column: t.Column})
		}
	}
	var asked sync.WaitGroup
	for _, e := range all {
		g := version.generators.Generator(e.Generator)
		asked.Go(func() { e.Err = panics.Call("it", func() error { return isReady(ctx, g) }) })
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
