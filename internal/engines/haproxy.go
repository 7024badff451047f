package engines

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
)

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

// haproxy starts haproxy as a server of the cluster. check is a configuration line with the
// health check of the back ends.
func (c *Cluster) haproxy(check string, backends ...*testserver.Server) (h *HAProxy, err error) {
	h = &HAProxy{backends: backends}
	h.Server, err = c.startOne(h.recipe(check))
	return h, err
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
