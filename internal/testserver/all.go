package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// All are the shared servers of one test run.
type All struct {
	mu      sync.Mutex
	servers []*Server
	env     []string
	remove  []func()
}

// StartAll starts the shared servers that the environment does not name yet.
// They are quick rather than durable. After an error nothing runs.
func StartAll() (*All, error) {
	a := &All{env: []string{envRequire + "=1"}}
	if err := a.template(); err != nil {
		a.Close()
		return nil, err
	}
	var wg sync.WaitGroup
	shared := []struct {
		env    string
		recipe recipe
	}{{envMariaDB, mariaDB}, {envRedis, redis}, {envZooKeeper, zooKeeper}, {envEtcd, etcd}}
	errs := make([]error, len(shared))
	for i, s := range shared {
		if os.Getenv(s.env) == "" {
			wg.Go(func() { errs[i] = a.start(s.env, s.recipe) })
		}
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			a.Close()
			return nil, err
		}
	}
	return a, nil
}

// Env is what the tests' environment has more: "NAME=value".
func (a *All) Env() []string { return a.env }

// Close ends the servers and removes what they wrote.
func (a *All) Close() {
	for _, s := range a.servers {
		s.close()
	}
	for _, remove := range a.remove {
		remove()
	}
	a.servers, a.remove = nil, nil
}

func (a *All) start(env string, r recipe) error {
	s, err := startServer(nil, r, true, nil)
	if err != nil {
		return fmt.Errorf("start %s: %w", r.name, err)
	}
	value := s.Addr()
	if env == envMariaDB {
		value = s.DSN()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.servers = append(a.servers, s)
	a.env = append(a.env, env+"="+value)
	return nil
}

// template makes the data directory that every MariaDB of this run copies.
func (a *All) template() error {
	if os.Getenv(envTemplate) != "" {
		return nil
	}
	dir, remove, err := makeDir("template")
	if err != nil {
		return err
	}
	a.remove = append(a.remove, remove)
	data := filepath.Join(dir, "data")
	err = installMariaDB(data)
	switch {
	case notInstalled(err) && os.Getenv(envMariaDB) != "":
		return nil // another machine's server is used
	case err != nil:
		return err
	}
	a.env = append(a.env, envTemplate+"="+data)
	return os.Setenv(envTemplate, data)
}
