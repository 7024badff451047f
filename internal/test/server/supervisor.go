package testserver

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Supervisor starts each server that tests share when the first of them asks for it. They ask
// through a Unix socket. The servers are quick rather than durable.
type Supervisor struct {
	listener net.Listener
	services []*service
	remove   func()
}

type service struct {
	env    string // names a server to use instead
	recipe Recipe
	value  func(*Server) string // how a test reaches the server

	mu     sync.Mutex
	server *Server
	closed bool
}

func services() []*service {
	all := []*service{
		{env: envRedis, recipe: redis, value: (*Server).Addr},
		{env: envZooKeeper, recipe: zooKeeper, value: (*Server).Addr},
		{env: envEtcd, recipe: etcd, value: (*Server).Addr},
	}
	for _, p := range products {
		all = append(all, &service{env: envDSN, recipe: p.recipe(), value: (*Server).DSN})
	}
	return all
}

func find(services []*service, name string) *service {
	for _, s := range services {
		if s.recipe.Name == name {
			return s
		}
	}
	return nil
}

// answer is what a supervisor answers to a server's name: how to reach it, or an error.
type answer struct {
	Value, Error string
	Missing      *MissingError
}

// Supervise starts a supervisor at a socket, or, if that is "", at one of its own.
func Supervise(socket string) (*Supervisor, error) {
	s := &Supervisor{services: services(), remove: func() {}}
	if socket == "" {
		dir, remove, err := makeDir("supervisor")
		if err != nil {
			return nil, err
		}
		socket, s.remove = filepath.Join(dir, "socket"), remove
	}
	_ = os.Remove(socket) // of a supervisor that was killed
	var err error
	if s.listener, err = net.Listen("unix", socket); err != nil {
		s.remove()
		return nil, err
	}
	go s.serve()
	return s, nil
}

// Env returns the environment variables by which tests find the supervisor. With them a
// missing server fails a test. The servers of the given names are started and named, too.
func (s *Supervisor) Env(names ...string) ([]string, error) {
	env := Env(s.listener.Addr().String())
	values := map[string][]string{}
	for _, name := range names {
		service := find(s.services, name)
		if service == nil {
			return nil, fmt.Errorf("there is no server %q", name)
		}
		value, err := service.start()
		if err != nil {
			return nil, err
		}
		values[service.env] = append(values[service.env], value)
	}
	for name, list := range values {
		env = append(env, name+"="+strings.Join(list, ","))
	}
	return env, nil
}

// Env returns the environment variables by which tests find a supervisor at a socket. A list of
// required servers stays as it is.
func Env(socket string) []string {
	return []string{envSupervisor + "=" + socket, envRequire + "=" + cmp.Or(os.Getenv(envRequire), "1")}
}

// Close ends the servers and removes what they wrote.
func (s *Supervisor) Close() {
	_ = s.listener.Close()
	for _, service := range s.services {
		service.close()
	}
	s.remove()
}

func (s *Supervisor) serve() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.answer(conn)
	}
}

func (s *Supervisor) answer(conn net.Conn) {
	defer conn.Close()
	name, _ := bufio.NewReader(conn).ReadString('\n')
	name = strings.TrimSpace(name)
	service := find(s.services, name)
	if service == nil {
		_ = json.NewEncoder(conn).Encode(answer{Error: fmt.Sprintf("there is no server %q", name)})
		return
	}
	var a answer
	var err error
	if a.Value, err = service.start(); err != nil && !errors.As(err, &a.Missing) {
		a.Error = err.Error()
	}
	_ = json.NewEncoder(conn).Encode(a) // a test that has ended needs no answer
}

// start starts the server if it has not been started, and returns how to reach it.
func (s *service) start() (value string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return "", errors.New("the supervisor is being closed")
	case s.server == nil:
		if s.server, err = startServer(nil, s.recipe, true, nil); err != nil {
			return "", fmt.Errorf("start %s: %w", s.recipe.Name, err)
		}
	}
	return s.value(s.server), nil
}

func (s *service) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.server != nil {
		s.server.Close()
	}
}

// Background returns the file that the user's supervisor in the background uses with an
// extension: "sock", "pid" or "log".
func Background(extension string) (string, error) {
	dir, err := CacheDir()
	return filepath.Join(dir, "supervisor."+extension), err
}

// Answers reports whether a supervisor listens at a socket.
func Answers(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

var errNoSupervisor = errors.New("no servers run: make servers-up starts those that tests ask for")

// request returns how to reach the shared server of a name. The supervisor is the one that the
// environment names, or the one in the background.
func request(name string) (value string, err error) {
	background, err := Background("sock")
	if err != nil {
		return "", err
	}
	conn, err := net.Dial("unix", cmp.Or(os.Getenv(envSupervisor), background))
	if err != nil {
		return "", errNoSupervisor
	}
	defer conn.Close()
	var a answer
	if _, err = fmt.Fprintln(conn, name); err == nil {
		err = json.NewDecoder(conn).Decode(&a)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("ask the supervisor for %s: %w", name, err)
	case a.Missing != nil:
		return "", a.Missing
	case a.Error != "":
		return "", errors.New(a.Error)
	}
	return a.Value, nil
}
