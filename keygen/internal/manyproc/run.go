//go:build unix

package manyproc

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Server is what the generators depend on.
type Server interface {
	Kill()
	Start()
	Pause()
	Resume()
}

// Config says what [Run] does.
type Config struct {
	Type      string
	Props     func(process int) map[string]any
	Server    Server
	Processes int
	// Duration is how long faults go on; SHARDKEY_SOAK in the environment
	// makes it longer.
	Duration time.Duration
	// Stop bounds how long a process or the server is stopped.
	Stop time.Duration
}

type process struct {
	orders orders
	cmd    *exec.Cmd
	stdin  io.Closer
	done   chan struct{}
	made   atomic.Int64 // keys read

	mu     sync.Mutex
	keys   []int64
	errors map[string]int
	t      testing.TB
}

// Run starts the processes, does one fault after another, waits after each
// until all make keys again, and fails the test for a key that came twice and
// for an error that is not documented.
func Run(t testing.TB, c Config) {
	if more, err := time.ParseDuration(os.Getenv("SHARDKEY_SOAK")); err == nil {
		c.Duration = more
	}
	var all []*process
	for i := range c.Processes {
		p := &process{orders: orders{c.Type, c.Props(i)}, errors: map[string]int{}, t: t}
		p.start()
		t.Cleanup(p.kill)
		all = append(all, p)
	}
	recovered(all)
	faults := map[string]int{}
	for end := time.Now().Add(c.Duration); time.Now().Before(end) && !t.Failed(); {
		p := all[rand.IntN(len(all))]
		name := fault(c, p)
		faults[name]++
		recovered(all)
	}
	report(t, c, all, faults)
}

func fault(c Config, p *process) string {
	switch rand.IntN(6) {
	case 0:
		p.kill()
		p.start()
		return "killed"
	case 1:
		p.quit()
		p.start()
		return "closed"
	case 2:
		c.Server.Kill()
		wait(rand.N(c.Stop))
		c.Server.Start()
		return "server killed"
	case 3:
		c.Server.Pause()
		wait(rand.N(c.Stop))
		c.Server.Resume()
		return "server stopped"
	}
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	wait(rand.N(c.Stop))
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	return "stopped"
}

// wait lets real time pass for the processes; nothing is expected to have
// happened afterwards.
func wait(d time.Duration) { <-time.After(d) }

// recovered returns when each process has made a key since. The test's own time
// is the limit.
func recovered(all []*process) {
	for _, p := range all {
		for before := p.made.Load(); p.made.Load() == before; {
			wait(time.Millisecond)
		}
	}
}

func report(t testing.TB, c Config, all []*process, faults map[string]int) {
	var keys []int64
	errors := map[string]int{}
	for _, p := range all {
		p.quit()
		keys = append(keys, p.keys...)
		for kind, n := range p.errors {
			errors[kind] += n
		}
	}
	slices.Sort(keys)
	duplicates := len(keys) - len(slices.Compact(slices.Clone(keys)))
	if duplicates != 0 {
		t.Errorf("keys that came twice\nhave: %d\nwant: 0", duplicates)
	}
	t.Logf("%s: keys=%d processes=%d faults=%v errors=%v duplicates=%d", c.Type, len(keys), len(all), faults, errors, duplicates)
}

func (p *process) start() {
	text, err := json.Marshal(p.orders)
	if err != nil {
		p.t.Error(err)
		return
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	stdin, err1 := p.cmd.StdinPipe()
	stdout, err2 := p.cmd.StdoutPipe()
	stderr, err3 := p.cmd.StderrPipe()
	if err1 != nil || err2 != nil || err3 != nil {
		p.t.Error(err1, err2, err3)
		return
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Error(err)
		return
	}
	p.stdin, p.done = stdin, make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() { p.readKeys(stdout) })
	reading.Go(func() { p.readErrors(stderr) })
	go func(done chan struct{}) {
		reading.Wait()
		close(done)
	}(p.done)
}

func (p *process) readKeys(r io.Reader) {
	in := bufio.NewReader(r)
	var b [8]byte
	for {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return
		}
		p.mu.Lock()
		p.keys = append(p.keys, int64(binary.BigEndian.Uint64(b[:])))
		p.mu.Unlock()
		p.made.Add(1)
	}
}

func (p *process) readErrors(r io.Reader) {
	for in := bufio.NewScanner(r); in.Scan(); {
		kind, message, _ := strings.Cut(in.Text(), "\t")
		p.mu.Lock()
		p.errors[kind]++
		p.mu.Unlock()
		if message == "" || kind == undocumented {
			p.t.Errorf("not documented: %s", in.Text())
		}
	}
}

// kill ends the process at once; quit lets it close its generator.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.reap()
}

func (p *process) quit() {
	_ = p.stdin.Close()
	p.reap()
}

func (p *process) reap() {
	<-p.done
	if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState.ExitCode() > 0 {
		p.t.Error(fmt.Errorf("a process has ended: %w", err))
	}
}
