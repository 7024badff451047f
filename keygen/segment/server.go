package segment

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// claim claims numbers from a server. Its errors are already explained, except for the server's
// own. Only one goroutine at a time calls its methods.
type claim interface {
	// connected checks a new connection.
	connected(ctx context.Context, conn *sql.Conn) error
	// step returns the smallest number of numbers to claim. It is known after the first connection.
	step() int64
	// claim claims n numbers. If it is applied twice, the numbers of one claim become a gap.
	claim(ctx context.Context, conn *sql.Conn, n int64) (run, error)
}

// server is a database that has numbers. It has its own single connection. A claim in a caller's
// transaction would be rolled back with it. With several connections, a process could deadlock with
// itself. Only one goroutine at a time uses it.
type server struct {
	claim
	words
	name      string // network, address and database
	database  string
	table     string
	connector driver.Connector
	clock     spi.Clock
	logger    *slog.Logger
	warning   atomic.Value             // a string about failovers, for Health
	risks     atomic.Pointer[[]string] // settings with which the server may lose claims; nil if unknown

	db     *sql.DB   // opened at first use; there is no goroutine before that
	conn   *sql.Conn // nil until it is checked
	opened time.Time

	refused error // error after which the server is never used again

	// The generator's mutex guards these.
	pause  time.Duration // 0 while it is up
	until  time.Time     // it isn't asked again before this time
	failed error         // nil while it is up
}

// lifetime limits the use of a connection, so that changed settings are noticed when a new
// connection is checked.
const lifetime = 10 * time.Minute

// newServer returns a server without connecting. prop is the property with its address.
func newServer(prop string, cfg *mysql.Config, s settings) (*server, error) {
	connector, err := mysqldb.NewConnector(prop, cfg)
	if err != nil {
		return nil, err
	}
	return &server{
		words: s.words, name: mysqldb.Name(cfg), database: cfg.DBName, table: s.state.Name,
		connector: connector, clock: s.clock, logger: s.logger,
	}, nil
}

// try calls do. It calls it again until ctx ends if another client interfered, or if the claim was
// the victim of a deadlock: among clients that don't pause it may be the victim of hundreds. If the
// connection broke or the server became read-only, it calls it again on a new connection.
func (sv *server) try(ctx context.Context, do func(context.Context) error) error {
	const mostLost = 5
	for contended, lost := 0, 0; ; {
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case mysqldb.IsDeadlock(err), errors.Is(err, errRaced), errors.Is(err, errScattered):
			contended++
		case mysqldb.IsBroken(err), mysqldb.IsReadOnly(err):
			sv.disconnect()
			lost++
		default:
			lost = mostLost
		}
		pause := rand.N(time.Duration(min(contended+lost, 10)) * time.Millisecond)
		if lost == mostLost || sv.clock.Sleep(ctx, pause) != nil {
			sv.disconnect()
			return sv.explain(ctx, err)
		}
	}
}

func (sv *server) fetch(ctx context.Context, size func(step int64) int64) (run, error) {
	if err := sv.connect(ctx); err != nil {
		return run{}, err
	}
	return sv.claim.claim(ctx, sv.conn, size(sv.step()))
}

// connect opens and checks a connection, unless there is a recent one.
func (sv *server) connect(ctx context.Context) error {
	if sv.refused != nil {
		return sv.refused
	}
	now := sv.clock.Now()
	if sv.conn != nil && now.Sub(sv.opened) < lifetime {
		return nil
	}
	sv.disconnect()
	if sv.db == nil {
		sv.db = sql.OpenDB(sv.connector)
		sv.db.SetMaxOpenConns(1)
	}
	conn, err := sv.db.Conn(ctx)
	if err != nil {
		return err
	}
	sv.conn, sv.opened = conn, now
	if err := sv.connected(ctx, conn); err != nil {
		sv.disconnect()
		return err
	}
	sv.askRisks(ctx, conn)
	return nil
}

// askRisks reads the settings with which the server may lose claims, and logs new ones. If the
// request fails, the old ones stay, and the next claim returns the error.
func (sv *server) askRisks(ctx context.Context, conn *sql.Conn) {
	risks, err := mysqldb.Risks(ctx, conn, sv.database, sv.table)
	if err != nil {
		return
	}
	before := sv.risks.Swap(&risks)
	for _, risk := range risks {
		if before == nil || !slices.Contains(*before, risk) {
			sv.logger.Warn("shardkey: numbers may not be unique", "store", sv.title+" at "+sv.name, "warning", risk)
		}
	}
}

// warnings returns the server's warnings for Health.
func (sv *server) warnings() (all []string) {
	if w, _ := sv.warning.Load().(string); w != "" {
		all = append(all, w)
	}
	if risks := sv.risks.Load(); risks != nil {
		for _, risk := range *risks {
			all = append(all, sv.title+" at "+sv.name+": "+risk)
		}
	}
	return all
}

// disconnect closes the connection instead of returning it to database/sql, so that the next one is
// checked.
func (sv *server) disconnect() {
	if sv.conn == nil {
		return
	}
	_ = sv.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = sv.conn.Close()
	sv.conn = nil
}

func (sv *server) close() error {
	sv.disconnect()
	if sv.db == nil {
		return nil
	}
	return sv.explain(context.Background(), sv.db.Close())
}

// storeError returns an error of this server. kind may be nil.
func (sv *server) storeError(kind error, format string, args ...any) *spi.StoreError {
	return &spi.StoreError{Store: sv.title + " at " + sv.name, Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// explain adds the failed operation and the advice to the database's error. It doesn't change
// errors that are already explained.
func (sv *server) explain(ctx context.Context, err error) error {
	if _, known := errors.AsType[*spi.StoreError](err); known || err == nil {
		return err
	}
	e := sv.storeError(nil, "cannot claim numbers")
	e.Cause = err
	switch mysqldb.Number(err) {
	case 0: // not a server error
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			e.Cause = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	case sqlerr.UnknownTable:
		e.Advice = "create the table with " + sv.ddl
	case sqlerr.NoDatabase:
		e.Advice = "set the database in the property " + sv.address
	case sqlerr.DatabaseDenied, sqlerr.TableDenied:
		e.Advice = "GRANT " + sv.grant
	case sqlerr.AccessDenied:
		e.Advice = "check the user and the password"
	case sqlerr.ReadOnly, sqlerr.ReadOnlyTransaction, sqlerr.ReadOnlyMode:
		e.Advice = "set the address of a server that accepts writes"
	case sqlerr.OutOfRange, sqlerr.OutOfRangeColumn, sqlerr.OutOfRangeMariaDB,
		sqlerr.NoAutoIncrement, sqlerr.DuplicateKey: // at the column's end, MySQL generates the last id again
		e.Kind, e.Detail = errExhausted, sv.end
	}
	return e
}

// A server that failed is skipped for this time, which doubles with each failure.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// fetch gets numbers from the next server that has them. size returns how many to claim, for a
// claim's step.
//
// It first connects to all servers that have no connection. If a server has wrong settings, the
// fetch fails even if it is another server's turn, because other processes may get the same numbers
// from that server.
func (g *generator) fetch(ctx context.Context, size func(step int64) int64) (got run, err error) {
	var failed error
	var connected []*server
	for _, s := range g.inTurn() {
		switch err := g.ask(ctx, s, s.connect); {
		case errors.Is(err, errSettings):
			return run{}, err
		case err != nil:
			failed = both(failed, err)
		default:
			connected = append(connected, s)
		}
	}
	for _, s := range connected {
		err := g.ask(ctx, s, func(ctx context.Context) (err error) {
			got, err = s.fetch(ctx, size)
			return err
		})
		if err == nil {
			g.observe(s, nil)
			g.turn = (slices.Index(g.servers, s) + 1) % len(g.servers)
			return got, nil
		}
		failed = both(failed, err)
		if errors.Is(err, errSettings) || ctx.Err() != nil {
			return run{}, err
		}
	}
	if failed == nil {
		return run{}, &spi.StoreError{Store: g.title, Detail: "no database is configured; set the property " + g.address}
	}
	return run{}, failed
}

// inTurn returns the servers, beginning with the next one, without those that are paused. If all
// are paused, it returns all. Servers with wrong settings are always included.
func (g *generator) inTurn() []*server {
	all := slices.Concat(g.servers[g.turn:], g.servers[:g.turn])
	now := g.clock.Now()
	ready := slices.DeleteFunc(slices.Clone(all), func(s *server) bool {
		return s.failed != nil && !errors.Is(s.failed, errSettings) && now.Before(s.until)
	})
	if len(ready) == 0 {
		return all
	}
	return ready
}

// ask calls one server, limited by the timeout, and records its error.
func (g *generator) ask(ctx context.Context, s *server, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	err := s.try(ctx, do)
	if err != nil {
		g.observe(s, err)
	}
	return err
}

func (g *generator) closeServers() error {
	var errs []error
	for _, s := range g.servers {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
