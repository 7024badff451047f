package testserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 10 * time.Minute // on a loaded machine
	stopTimeout  = 10 * time.Minute
	pollInterval = 20 * time.Millisecond
)

// A Server is a server process that one test may treat as it likes. It is ended
// when the test is. Its methods may be called from any goroutine; what fails in
// them fails the test.
type Server struct {
	recipe Recipe
	dir    string
	port   int
	args   []string
	fast   bool       // gives durability away for speed
	t      testing.TB // nil in the run command
	mu     sync.Mutex // guards process
	proc   *process   // nil while stopped
	unlock func()     // lets go of dir
}

// Recipe is the difference between kinds of servers.
type Recipe struct {
	Name    string
	Prepare func(s *Server) error                // makes the data directory, once
	Command func(s *Server) (*exec.Cmd, error)   // the server in the foreground
	Answers func(context.Context, *Server) error // nil once it serves

	env string // names a server to use instead of a shared one
}

// Addr is the server's host:port; it stays the same over restarts.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// DSN is a SQL server's data source, without a database.
func (s *Server) DSN() string { return "root@tcp(" + s.Addr() + ")/" }

// Start starts a stopped server, with its data, on its port, and returns when it
// answers. It does nothing to one that runs.
func (s *Server) Start() { s.report(s.start()) }

// Stop ends the server in an orderly way and returns when it has ended.
func (s *Server) Stop() { s.report(s.end((*process).terminate)) }

// Kill ends the server at once, like a power cut (but for the disk's cache).
func (s *Server) Kill() { s.report(s.end((*process).kill)) }

// Pause stops the server from running, with its connections open, and returns
// when it runs no more.
func (s *Server) Pause() { s.report(s.signal(pauseSignal, (*process).awaitStopped)) }

// Resume lets a paused server continue.
func (s *Server) Resume() { s.report(s.signal(resumeSignal, nil)) }

func (s *Server) report(err error) {
	if err != nil && s.t != nil {
		s.t.Errorf("%s: %v", s.recipe.Name, err)
	}
}

// Launch starts a server that the caller closes. Its methods report no errors until it
// is attached to a test.
func Launch(r Recipe, args ...string) (*Server, error) { return startServer(nil, r, false, args) }

// Attach makes what fails in the server's methods fail the test.
func (s *Server) Attach(t testing.TB) { s.t = t }

// startServer makes a server and starts it. The directory and the process are
// the caller's to close, unless there is an error.
func startServer(t testing.TB, r Recipe, fast bool, args []string) (*Server, error) {
	dir, unlock, err := makeDir(r.Name)
	if err != nil {
		return nil, err
	}
	s := &Server{recipe: r, dir: dir, unlock: unlock, fast: fast, args: args, t: t}
	if err = r.Prepare(s); err != nil {
		s.Close()
		return nil, err
	}
	// Another process may take the free port before the server does.
	for range 3 {
		if s.port, err = FreePort(); err != nil {
			break
		}
		if err = s.start(); err == nil {
			return s, nil
		}
	}
	s.Close()
	return nil, err
}

// forTest starts a server that ends with the test. See [MayStart].
func forTest(t testing.TB, r Recipe, args []string) *Server {
	t.Helper()
	MayStart(t)
	skipUnwanted(t, r.Name)
	s, err := startServer(t, r, false, args)
	Started(t, r.Name, err)
	t.Cleanup(s.Close)
	return s
}

// MayStart skips a test that starts a server if -short or SHARDKEY_TEST_DSN is set.
func MayStart(t testing.TB) {
	t.Helper()
	switch {
	case testing.Short():
		t.Skip("-short: no server is started")
	case os.Getenv(envDSN) != "":
		t.Skip(envDSN + " is set: no server is started")
	}
}

// Started skips or fails the test if err, of starting servers, is not nil.
func Started(t testing.TB, name string, err error) {
	t.Helper()
	switch m, isMissing := errors.AsType[*MissingError](err); {
	case isMissing && os.Getenv(m.Env) != "":
		t.Skip(err) // who runs the tests has chosen a server elsewhere
	case isMissing:
		Missing(t, name, err)
	case err != nil:
		t.Fatalf("start %s: %v", name, err)
	}
}

func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return nil
	}
	cmd, err := s.recipe.Command(s)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	p, err := startProcess(cmd)
	if err != nil {
		return err
	}
	err = p.poll(startTimeout, func(ctx context.Context) error { return s.recipe.Answers(ctx, s) })
	if err != nil {
		_ = p.kill()
		return fmt.Errorf("%s does not answer: %w; its log ends with\n%s", s.recipe.Name, err, s.LogTail())
	}
	s.proc = p
	return nil
}

// end ends the process in a way, unless it has ended.
func (s *Server) end(way func(*process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return nil
	}
	p := s.proc
	s.proc = nil
	return way(p)
}

// signal sends a signal, and waits for its effect.
func (s *Server) signal(sig syscall.Signal, await func(*process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return fmt.Errorf("%v: the server is stopped", sig)
	}
	if err := s.proc.cmd.Process.Signal(sig); err != nil || await == nil {
		return err
	}
	return await(s.proc)
}

// Close ends the server and removes what it wrote.
func (s *Server) Close() {
	_ = s.end((*process).kill)
	s.unlock()
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// LogTail returns the last lines of the server's log.
func (s *Server) LogTail() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// Dir is the directory that is removed with the server. It has the certificates of a SQL
// server and its socket, named sock.
func (s *Server) Dir() string { return s.dir }

// Data is the data directory, which [Recipe] makes.
func (s *Server) Data() string { return filepath.Join(s.dir, "data") }

// Port is the server's port; it stays the same over restarts.
func (s *Server) Port() int { return s.port }

// process is a child process that is waited for from its start.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended; valid after done
}

// startProcess starts cmd in a process group of its own, so that the
// terminal's ^C does not reach it before the tests have ended.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	setAttributes(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the thread that
		// forked ends: hold on to that thread for the child's life.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	return p, <-started
}

func (ps *process) kill() error {
	_ = ps.cmd.Process.Kill() // fails only when it has ended
	<-ps.done
	return nil
}

// terminate asks the process to end, and kills it if it does not.
func (ps *process) terminate() error {
	_ = ps.cmd.Process.Signal(syscall.SIGTERM)
	_ = ps.cmd.Process.Signal(resumeSignal) // a paused one would not hear it
	select {
	case <-ps.done:
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("did not end within %v of SIGTERM, and was killed", stopTimeout), ps.kill())
	}
}

// awaitStopped returns when SIGSTOP has taken effect.
func (ps *process) awaitStopped() error {
	return ps.poll(stopTimeout, func(context.Context) error {
		if !stopped(ps.cmd.Process.Pid) {
			return errors.New("it still runs after SIGSTOP")
		}
		return nil
	})
}

// poll calls ready until it returns nil, or returns the reason why it will not.
func (ps *process) poll(timeout time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ps.done:
			return fmt.Errorf("it ended: %v", ps.err)
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", timeout, err)
		case <-tick.C:
		}
	}
}

const dirPrefix = "shardkey-testserver-"

// makeDir makes a directory for a server. The returned function removes it.
//
// Its owner holds a lock on a file in it, which the kernel gives up when the
// owner dies: directories without an owner are removed on the way. The name is
// short, since a socket's path may have 107 bytes.
func makeDir(name string) (dir string, remove func(), err error) {
	removeAbandoned()
	dir, err = os.MkdirTemp("", dirPrefix+name+"-")
	if err != nil {
		return "", nil, err
	}
	// It gets its name once it is locked: nobody sees it without its owner.
	lock, err := os.Create(lockFile(dir) + ".new")
	if err == nil {
		err = tryLock(lock)
	}
	if err == nil {
		err = os.Rename(lock.Name(), lockFile(dir))
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		_ = lock.Close()
	}, nil
}

func lockFile(dir string) string { return filepath.Join(dir, "lock") }

func removeAbandoned() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range dirs {
		// One without a lock file has just been made.
		lock, err := os.Open(lockFile(dir))
		if err != nil {
			continue
		}
		if tryLock(lock) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}

// Lock waits for the lock on a file, which it creates if there is none. The kernel releases the
// lock when the process dies.
func Lock(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := awaitLock(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// FreePort returns a free port on loopback, which is the process's until it ends: no other call
// returns it, in any process. It is below the range out of which systems pick the ports of outgoing
// connections. So a stopped server finds its port free when it is started again.
func FreePort() (int, error) {
	for range 100 {
		port := 10000 + rand.IntN(20000)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		reservation, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err == nil {
			reservations.Store(port, reservation)
			return port, l.Close()
		}
		_ = reservation.Close()
	}
	return 0, errors.New("no free port on 127.0.0.1 in 10000..29999")
}

// reservations are UDP sockets by their port. No server uses UDP, and the kernel closes them when
// the process dies.
var reservations sync.Map
