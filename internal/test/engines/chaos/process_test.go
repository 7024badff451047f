//go:build linux

package chaos

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// slot is the place of a process. When the process ends, another one takes its place.
type slot struct {
	orders orders
	proxy  *proxy // nil for a store without a server

	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed after all output of the process was read
	off   time.Duration // error of its clock
	ahead bool          // its clock was far ahead at some time

	mu      sync.Mutex
	keys    []int64
	rows    []record // of a writer, instead of keys
	errors  map[string]int
	strange []string // undocumented errors and unexpected exits
	last    time.Time
}

// farOff is an error of a clock for which a test can't wait.
const farOff = time.Minute

// start starts a process whose clock has the error clockOff.
func (s *slot) start(clockOff time.Duration) error {
	o := s.orders
	o.Clock = clockOff
	s.off, s.ahead = clockOff, clockOff > farOff
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	s.cmd = exec.Command(os.Args[0])
	// With the race detector's default, each process would wait for a second at its end.
	s.cmd.Env = append(os.Environ(), childEnv+"="+string(text), "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	var reading sync.WaitGroup
	reading.Go(func() { s.readKeys(stdout) })
	reading.Go(func() { s.readErrors(stderr) })
	done := make(chan struct{})
	s.done = done
	go func() { reading.Wait(); close(done) }()
	return nil
}

// readKeys reads a process' output: keys, or the rows of a writer.
func (s *slot) readKeys(r io.Reader) {
	in := bufio.NewReader(r)
	var b [16]byte
	size := 8
	if s.orders.Writer != nil {
		size = 16
	}
	for {
		if _, err := io.ReadFull(in, b[:size]); err != nil {
			return
		}
		first, second := int64(binary.BigEndian.Uint64(b[:])), int64(binary.BigEndian.Uint64(b[8:]))
		s.mu.Lock()
		if s.orders.Writer != nil {
			s.rows = append(s.rows, record{token: first, key: second})
		} else {
			s.keys = append(s.keys, first)
		}
		s.last = time.Now()
		s.mu.Unlock()
	}
}

func (s *slot) readErrors(r io.Reader) {
	for in := bufio.NewScanner(r); in.Scan(); {
		kind, message, _ := strings.Cut(in.Text(), "\t")
		s.mu.Lock()
		s.errors[kind]++
		if message == "" || kind == undocumented {
			s.strange = append(s.strange, in.Text())
		}
		s.mu.Unlock()
	}
}

func (s *slot) signal(sig syscall.Signal) { _ = s.cmd.Process.Signal(sig) }

// step changes the process' clock.
func (s *slot) step(d time.Duration) {
	s.off += d
	s.ahead = s.ahead || s.off > farOff
	s.tell("step " + d.String())
}

// tell sends a command. A process that has ended ignores it.
func (s *slot) tell(command string) { _, _ = fmt.Fprintln(s.stdin, command) }

// kill kills the process.
func (s *slot) kill() {
	s.signal(syscall.SIGKILL)
	<-s.done
	_ = s.cmd.Wait()
}

// quit ends the process regularly.
func (s *slot) quit() {
	s.tell("quit")
	<-s.done
	if err := s.cmd.Wait(); err != nil {
		s.mu.Lock()
		s.strange = append(s.strange, fmt.Sprintf("ended in good order, but: %v", err))
		s.mu.Unlock()
	}
	_ = s.stdin.Close()
}

// madeKeySince reports whether the process has generated a key since t.
func (s *slot) madeKeySince(t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.After(t)
}

func (s *slot) seenErrors() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.errors, s.strange)
}
