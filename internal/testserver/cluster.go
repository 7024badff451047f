package testserver

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// Cluster is several servers that belong together. Whoever made it closes it.
type Cluster struct {
	servers []*Server
}

// Close ends the servers and removes what they wrote.
func (c *Cluster) Close() {
	for i := len(c.servers) - 1; i >= 0; i-- { // what uses another one first
		c.servers[i].close()
	}
	c.servers = nil
}

func (c *Cluster) cluster() *Cluster { return c }

// start starts servers of a product at once, each with arguments of its own.
func (c *Cluster) start(p *product, args ...[]string) ([]*Server, error) {
	servers, errs := make([]*Server, len(args)), make([]error, len(args))
	var wg sync.WaitGroup
	for i := range args {
		wg.Go(func() { servers[i], errs[i] = startServer(nil, p.recipe(), false, args[i]) })
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
func (c *Cluster) startOne(r recipe, args ...string) (*Server, error) {
	s, err := startServer(nil, r, false, args)
	if err == nil {
		c.servers = append(c.servers, s)
	}
	return s, err
}

// clusterForTest starts servers that end with the test. With -short it skips.
func clusterForTest[C interface{ cluster() *Cluster }](t testing.TB, name string, start func() (C, error)) C {
	t.Helper()
	if testing.Short() {
		t.Skipf("-short: no %s is started", name)
	}
	c, err := start()
	switch {
	case usesOther(err):
		t.Skip(err)
	case NotInstalled(err):
		Missing(t, err)
	case err != nil:
		t.Fatalf("start %s: %v", name, err)
	}
	for _, s := range c.cluster().servers {
		s.t = t
	}
	t.Cleanup(c.cluster().Close)
	return c
}

// Run runs statements, each on its own, at a SQL server or what speaks as one.
// The DSN is go-sql-driver's.
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
