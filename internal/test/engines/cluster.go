package engines

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	testserver "github.com/shardkey/shardkey/internal/test/server"
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

func (c *Cluster) startOne(r testserver.Recipe, args ...string) (*testserver.Server, error) {
	s, err := testserver.Launch(r, args...)
	if err == nil {
		c.servers = append(c.servers, s)
	}
	return s, err
}

// openForTest starts servers that end with the test. With -short it skips the test.
func (c *Cluster) openForTest(t testing.TB, name string, start func() error) {
	t.Helper()
	testserver.MayStart(t)
	t.Cleanup(c.Close)
	err := start()
	if m, ok := errors.AsType[*testserver.MissingError](err); ok {
		err = &testserver.MissingError{Program: m.Program, Remedy: m.Remedy} // a server elsewhere doesn't help
	}
	testserver.Started(t, name, err)
	for _, s := range c.servers {
		s.Attach(t)
	}
}

// freeAddresses returns n addresses of this machine with free ports.
func freeAddresses(n int) ([]string, error) {
	addresses := make([]string, n)
	for i := range addresses {
		port, err := testserver.FreePort()
		if err != nil {
			return nil, err
		}
		addresses[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	return addresses, nil
}

// await calls ready until it returns nil, for as long as patience.
func await(ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", patience, err)
		}
	}
}

// Run runs statements one by one on a SQL server or proxy. The DSN is in go-sql-driver's form.
func Run(dsn string, statements ...string) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// HAProxy forwards connections to servers. The embedded methods are those of its process.
type HAProxy struct {
	*testserver.Server
	backends []*testserver.Server
}

// StartHAProxy starts haproxy in front of servers for one test. Each connection goes to the
// server with the fewest connections. haproxy leaves out servers that accept no connections.
func StartHAProxy(t testing.TB, backends ...*testserver.Server) *HAProxy {
	t.Helper()
	testserver.MayStart(t)
	h := &HAProxy{backends: backends}
	s, err := testserver.Launch(h.recipe("option tcp-check"))
	testserver.Started(t, "haproxy", err)
	s.Attach(t)
	t.Cleanup(s.Close)
	h.Server = s
	return h
}

// Enable enables or disables a back end. Disabling cuts its connections.
func (h *HAProxy) Enable(server *testserver.Server, on bool) error {
	for i, b := range h.backends {
		if b != server {
			continue
		}
		name := fmt.Sprintf("servers/s%d", i)
		if on {
			return h.say("enable server " + name)
		}
		if err := h.say("disable server " + name); err != nil {
			return err
		}
		return h.say("shutdown sessions server " + name)
	}
	return fmt.Errorf("haproxy has no server %s", server.Addr())
}

// Cut cuts all connections.
func (h *HAProxy) Cut() error {
	for i := range h.backends {
		if err := h.say(fmt.Sprintf("shutdown sessions server servers/s%d", i)); err != nil {
			return err
		}
	}
	return nil
}

// say sends a command. haproxy answers with an empty line if the command succeeded.
func (h *HAProxy) say(command string) error {
	conn, err := net.Dial("unix", h.socket(h.Server))
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, command+"\n"); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if text := strings.TrimSpace(string(answer)); err == nil && text != "" {
		err = fmt.Errorf("haproxy: %s: %s", command, text)
	}
	return err
}

func (h *HAProxy) socket(s *testserver.Server) string { return filepath.Join(s.Dir(), "admin") }

// recipe returns the recipe of a haproxy. check is a configuration line with the health check of the
// back ends.
func (h *HAProxy) recipe(check string) testserver.Recipe {
	return testserver.Recipe{
		Name:    "haproxy",
		Prepare: func(*testserver.Server) error { return nil },
		Command: func(s *testserver.Server) (*exec.Cmd, error) {
			path, err := testserver.Program("haproxy", "haproxy", "")
			if err != nil {
				return nil, err
			}
			file := filepath.Join(s.Dir(), "haproxy.cfg")
			if err := os.WriteFile(file, []byte(h.config(s, check)), 0o600); err != nil {
				return nil, err
			}
			return exec.Command(path, "-db", "-f", file), nil
		},
		Answers: func(ctx context.Context, s *testserver.Server) error {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
			if err == nil {
				_ = conn.Close()
			}
			return err
		},
	}
}

func (h *HAProxy) config(s *testserver.Server, check string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `global
  maxconn 2000
  stats socket %s mode 600 level admin
defaults
  mode tcp
  timeout connect 2s
  timeout client 60s
  timeout server 60s
listen servers
  bind %s
  balance leastconn
  %s
  default-server check inter 300ms fall 2 rise 1 on-marked-down shutdown-sessions
`, h.socket(s), s.Addr(), check)
	for i, backend := range h.backends {
		fmt.Fprintf(&b, "  server s%d %s\n", i, backend.Addr())
	}
	return b.String()
}
