package engines

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
)

const (
	patience     = 90 * time.Second // enough for a loaded machine
	pollInterval = 20 * time.Millisecond
)

// Cluster is a group of servers that work together. The caller must close it.
type Cluster struct {
	servers []*testserver.Server
}

// Close ends the servers and removes their files.
func (c *Cluster) Close() {
	for i := len(c.servers) - 1; i >= 0; i-- { // a server may use those before it
		c.servers[i].Close()
	}
	c.servers = nil
}

// startAll starts servers of a kind in parallel, each with its arguments.
func (c *Cluster) startAll(kind testserver.Kind, args ...[]string) ([]*testserver.Server, error) {
	servers, errs := make([]*testserver.Server, len(args)), make([]error, len(args))
	var wg sync.WaitGroup
	for i := range args {
		wg.Go(func() { servers[i], errs[i] = testserver.Launch(kind.Recipe(), args[i]...) })
	}
	wg.Wait()
	for _, s := range servers {
		if s != nil {
			c.servers = append(c.servers, s)
		}
	}
	return servers, errors.Join(errs...)
}

// startOne starts one server.
func (c *Cluster) startOne(r testserver.Recipe, args ...string) (*testserver.Server, error) {
	s, err := testserver.Launch(r, args...)
	if err == nil {
		c.servers = append(c.servers, s)
	}
	return s, err
}

// open starts the servers. If that fails, it ends those that run.
func (c *Cluster) open(start func() error) error {
	err := start()
	if err == nil {
		return nil
	}
	c.Close()
	var m *testserver.MissingError
	if errors.As(err, &m) {
		return &testserver.MissingError{Program: m.Program, Remedy: m.Remedy} // a server elsewhere doesn't help
	}
	return err
}

// openForTest starts servers that end with the test. With -short it skips the test.
func (c *Cluster) openForTest(t testing.TB, name string, start func() error) {
	t.Helper()
	testserver.MayStart(t)
	testserver.Started(t, name, c.open(start))
	for _, s := range c.servers {
		s.Attach(t)
	}
	t.Cleanup(c.Close)
}

// Run runs statements one by one on a SQL server or proxy. The DSN is in go-sql-driver's form.
func Run(dsn string, statements ...string) error {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
