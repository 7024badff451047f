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
	"slices"
	"strconv"
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

// A service is a server that is started at the first request.
type service struct {
	Recipe

	mu     sync.Mutex
	server *Server
	closed bool
}

// recipes are the servers that tests share.
func recipes() []Recipe {
	all := []Recipe{redis, zooKeeper, etcd}
	for _, p := range products {
		all = append(all, p.recipe())
	}
	return all
}

// answer is what a supervisor answers to a server's name: how to reach it, or an error.
type answer struct {
	Value, Error string
	Missing      *MissingError
}

// Supervise starts a supervisor at a socket, or, if that is "", at one of its own.
func Supervise(socket string) (*Supervisor, error) {
	s := &Supervisor{remove: func() {}}
	for _, r := range recipes() {
		s.services = append(s.services, &service{Recipe: r})
	}
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

// Socket returns the path of the supervisor's socket.
func (su *Supervisor) Socket() string { return su.listener.Addr().String() }

// Env returns the environment variables by which tests find a supervisor at a socket. With them a
// missing server fails a test. A list of required servers stays as it is.
func Env(socket string) []string {
	return []string{envSupervisor + "=" + socket, envRequire + "=" + cmp.Or(os.Getenv(envRequire), "1")}
}

// Close ends the servers and removes what they wrote. The supervisor answers until they have ended.
func (su *Supervisor) Close() {
	for _, service := range su.services {
		service.close()
	}
	_ = su.listener.Close()
	su.remove()
}

func (su *Supervisor) serve() {
	for {
		conn, err := su.listener.Accept()
		if err != nil {
			return
		}
		go su.answer(conn)
	}
}

func (su *Supervisor) answer(conn net.Conn) {
	defer conn.Close()
	name, _ := bufio.NewReader(conn).ReadString('\n')
	var a answer
	var err error
	if a.Value, err = su.start(strings.TrimSpace(name)); err != nil && !errors.As(err, &a.Missing) {
		a.Error = err.Error()
	}
	_ = json.NewEncoder(conn).Encode(a) // a test that has ended needs no answer
}

// start starts the server of a name if it has not been started, and returns how to reach
// it. The name [processID] is none.
func (su *Supervisor) start(name string) (value string, err error) {
	if name == processID {
		return strconv.Itoa(os.Getpid()), nil
	}
	i := slices.IndexFunc(su.services, func(s *service) bool { return s.Name == name })
	if i < 0 {
		return "", fmt.Errorf("there is no server %q", name)
	}
	return su.services[i].start()
}

func (sv *service) start() (value string, err error) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	switch {
	case sv.closed:
		return "", errors.New("the supervisor is being closed")
	case sv.server == nil:
		if sv.server, err = startServer(nil, sv.Recipe, true, nil); err != nil {
			return "", fmt.Errorf("start %s: %w", sv.Name, err)
		}
	}
	if sv.env == envDSN {
		return sv.server.DSN(), nil
	}
	return sv.server.Addr(), nil
}

func (sv *service) close() {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.closed = true
	if sv.server != nil {
		sv.server.Close()
	}
}

// Background returns the path of the socket of the user's supervisor in the background.
func Background() (string, error) {
	dir, err := CacheDir()
	return filepath.Join(dir, "supervisor.sock"), err
}

// Answers reports whether a supervisor listens at a socket.
func Answers(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// processID is a request for the supervisor's process ID.
const processID = "pid"

// ProcessID returns the process ID of the supervisor at a socket.
func ProcessID(socket string) (int, error) {
	value, err := ask(socket, processID)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(value)
}

var errNoSupervisor = errors.New("no servers run: make servers-up starts those that tests ask for")

// request returns how to reach the shared server of a name. The supervisor is the one that the
// environment names, or the one in the background.
func request(name string) (value string, err error) {
	background, err := Background()
	if err != nil {
		return "", err
	}
	return ask(cmp.Or(os.Getenv(envSupervisor), background), name)
}

func ask(socket, name string) (value string, err error) {
	conn, err := net.Dial("unix", socket)
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
