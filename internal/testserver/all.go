package testserver

import (
	"errors"
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
	shared := []struct {
		env    string
		recipe Recipe
	}{{envRedis, redis}, {envZooKeeper, zooKeeper}, {envEtcd, etcd}}
	errs := make([]error, len(shared)+len(products))
	var wg sync.WaitGroup
	for i, s := range shared {
		wg.Go(func() { errs[i] = a.start(s.env, s.recipe, (*Server).Addr) })
	}
	for i, p := range products {
		wg.Go(func() {
			if errs[len(shared)+i] = a.makeTemplate(p); errs[len(shared)+i] == nil {
				errs[len(shared)+i] = a.start(p.env, p.recipe(), (*Server).DSN)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// Env is what the tests' environment has more: "NAME=value".
func (a *All) Env() []string { return a.env }

// Close ends the servers and removes what they wrote.
func (a *All) Close() {
	for _, s := range a.servers {
		s.Close()
	}
	for _, remove := range a.remove {
		remove()
	}
	a.servers, a.remove = nil, nil
}

func (a *All) start(env string, r Recipe, value func(*Server) string) error {
	if os.Getenv(env) != "" {
		return nil
	}
	s, err := startServer(nil, r, true, nil)
	if err != nil {
		return fmt.Errorf("start %s: %w", r.Name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.servers = append(a.servers, s)
	a.env = append(a.env, env+"="+value(s))
	return nil
}

// makeTemplate makes the data directory that every server of a product copies
// in this run.
func (a *All) makeTemplate(p *product) error {
	if os.Getenv(p.template) != "" {
		return nil
	}
	dir, remove, err := makeDir("template")
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	err = p.makeData(data)
	if usesOther(err) {
		remove()
		return nil // another machine's server is used
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove = append(a.remove, remove)
	if err != nil {
		return err
	}
	a.env = append(a.env, p.template+"="+data)
	return os.Setenv(p.template, data)
}
