package testserver

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// supervise starts a supervisor that this test's requests go to.
func supervise(t *testing.T, replaced ...*service) *Supervisor {
	t.Helper()
	s, err := Supervise("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if replaced != nil {
		s.services = replaced
	}
	t.Setenv(envSupervisor, s.listener.Addr().String())
	return s
}

func TestSupervisor_startsAServerOnce(t *testing.T) {
	StartRedis(t) // skips if there is none
	s := supervise(t)
	var addrs [8]string
	var all sync.WaitGroup
	for i := range addrs {
		all.Go(func() {
			var err error
			if addrs[i], err = request("redis"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if other := slices.Compact(addrs[:]); len(other) != 1 {
		t.Errorf("have: %q\nwant: one address", other)
	}
	for _, service := range s.services {
		if name := service.recipe.Name; (service.server != nil) != (name == "redis") {
			t.Errorf("%s is started: %v", name, service.server != nil)
		}
	}
	s.Close()
	awaitSilence(t, addrs[0])
	if _, err := request("redis"); !errors.Is(err, errNoSupervisor) {
		t.Errorf("after Close\nhave: %v\nwant: %v", err, errNoSupervisor)
	}
}

func TestSupervisor_namesServers(t *testing.T) {
	StartRedis(t) // skips if there is none
	s := supervise(t)
	env, err := s.Env("redis")
	if i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, envRedis+"=127.0.0.1:") }); err != nil || i < 0 {
		t.Errorf("have: %q, %v\nwant: %s", env, err, envRedis)
	}
	if env, err := s.Env("oracle"); err == nil {
		t.Errorf("unknown server\nhave: %q\nwant: an error", env)
	}
}

func TestSupervisor_reportsErrors(t *testing.T) {
	failing := Recipe{Name: "redis", Prepare: makeData, Command: func(s *Server) (*exec.Cmd, error) {
		return exec.Command("sh", "-c", "echo bad option; exit 3"), nil
	}, Answers: func(context.Context, *Server) error { return errors.New("silent") }}
	missing := Recipe{Name: "etcd", Prepare: func(*Server) error {
		_, err := Program("no-such-server", "some-package", envEtcd)
		return err
	}}
	supervise(t, &service{recipe: failing}, &service{recipe: missing})
	for _, test := range []struct {
		server, want string
		missing      bool
	}{
		{"redis", "bad option", false},
		{"etcd", "apt-get install some-package", true},
		{"oracle", "oracle", false},
	} {
		_, err := request(test.server)
		if err == nil || !strings.Contains(err.Error(), test.want) || NotInstalled(err) != test.missing {
			t.Errorf("%s\nhave: %v\nwant: %q, not installed: %v", test.server, err, test.want, test.missing)
		}
	}
}
