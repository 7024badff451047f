//go:build linux

package chaos

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
)

// agent applies faults to some of the processes, one at a time. Another agent does the same to
// the others.
type agent struct {
	run     *run
	rng     *rand.Rand
	slots   []*slot
	faults  map[string]int
	slowest map[string]time.Duration // from the end of a fault to the next key
	stuck   error
}

func newAgent(r *run, seed uint64, slots []*slot) *agent {
	return &agent{
		run: r, rng: rand.New(rand.NewPCG(seed, 1)), slots: slots,
		faults: map[string]int{}, slowest: map[string]time.Duration{},
	}
}

func (a *agent) work(d time.Duration) {
	a.recover("start", a.slots...)
	for end := time.Now().Add(d); time.Now().Before(end) && a.stuck == nil; {
		a.fault(a.slots[a.rng.IntN(len(a.slots))])
		wait(rand.N(200 * time.Millisecond))
	}
	for _, s := range a.slots {
		s.step(-s.off) // with its clock an hour back, it may find no worker ID
	}
	a.recover("end", a.slots...)
}

// fault disturbs a process, repairs it, and waits for its next key.
func (a *agent) fault(s *slot) {
	faults := 20
	if !a.run.clocks {
		faults = 14 // the last ones change clocks
	}
	switch n := a.rng.IntN(faults); {
	case n < 3:
		a.restart(s, "killed", s.kill, 0)
	case n < 5:
		a.restart(s, "closed", s.quit, 0)
	case n < 7:
		a.stop(s)
	case n < 8:
		a.cut(a.slots...)
	case n < 10:
		a.takeStoreAway()
	case n < 14:
		a.cut(s)
	case n < 15:
		a.restart(s, "killed, clock back", s.kill, -time.Hour)
	case n < 16:
		a.restart(s, "killed, clock ahead", s.kill, time.Hour)
	case n < 18:
		// By this clock all leases have ended, so the process takes the worker ID of a live
		// holder.
		a.restart(s, "usurper", s.kill, 2*lease+rand.N(lease))
	default:
		a.step(s)
	}
}

func (a *agent) restart(s *slot, name string, end func(), clockOff time.Duration) {
	if s.ahead {
		// If the process were killed, its worker ID would not be free for an hour. Soon there
		// would be no free ones.
		name, end = "closed", s.quit
	}
	a.faults[name]++
	a.run.whole.RLock()
	end()
	a.run.whole.RUnlock()
	if err := s.start(clockOff); err != nil {
		a.stuck = err
		return
	}
	a.recover(name, s)
}

// stop stops a process for part of its lease, or for longer than its lease.
func (a *agent) stop(s *slot) {
	s.signal(syscall.SIGSTOP)
	wait(rand.N(2 * lease))
	s.signal(syscall.SIGCONT)
	a.healed("stopped", s)
}

// step changes the clock of a running process.
func (a *agent) step(s *slot) {
	steps := []time.Duration{-time.Hour, time.Hour, -3 * time.Second, 3 * time.Second, -50 * time.Millisecond, 50 * time.Millisecond}
	s.step(steps[a.rng.IntN(len(steps))])
	a.healed("clock stepped", s)
}

// cut makes the store unavailable for part of the lease, or for longer.
func (a *agent) cut(slots ...*slot) {
	if slots[0].proxy == nil {
		a.takeStoreAway()
		return
	}
	m := []mode{refusing, holding}[a.rng.IntN(2)]
	for _, s := range slots {
		s.proxy.set(m)
	}
	wait(rand.N(2 * lease))
	for _, s := range slots {
		s.proxy.set(passing)
	}
	a.healed(map[mode]string{refusing: "cut off", holding: "held up"}[m], slots...)
}

// takeStoreAway makes the store unavailable to all processes for part of the lease, or for
// longer. The other agent waits for its own processes.
func (a *agent) takeStoreAway() {
	a.run.whole.Lock()
	defer a.run.whole.Unlock()
	server := a.run.server
	switch {
	case server == nil:
		a.lockFiles()
	case a.rng.IntN(2) == 0:
		server.Kill()
		wait(rand.N(2 * lease))
		server.Start()
		a.healed("server killed", a.slots...)
	default:
		server.Pause()
		wait(rand.N(2 * lease))
		server.Resume()
		a.healed("server stopped", a.slots...)
	}
}

// lockFiles makes a store without a server unavailable: it stops a process that holds all of the
// store's locks.
func (a *agent) lockFiles() {
	names, err := filepath.Glob(filepath.Join(a.run.where, "*", "*.lock"))
	var locked []*os.File
	for _, name := range names {
		f, openErr := os.Open(name)
		if openErr != nil {
			err = openErr
			continue
		}
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		locked = append(locked, f)
	}
	wait(rand.N(2 * lease))
	for _, f := range locked {
		_ = f.Close()
	}
	a.healed("locked", a.slots...)
	if err != nil {
		a.stuck = err
	}
}

// healed counts a fault that has ended, and waits for the affected processes.
func (a *agent) healed(name string, slots ...*slot) {
	a.faults[name]++
	a.recover(name, slots...)
}

// recover waits until processes generate keys again. It corrects clocks that are far back,
// because such a process may have no worker ID until then.
func (a *agent) recover(name string, slots ...*slot) {
	healed := time.Now()
	for _, s := range slots {
		for s.off > -farOff && !s.madeKeySince(healed) {
			if time.Since(healed) > recovery {
				a.stuck = fmt.Errorf("no key for %v after %q; clock off by %v; errors %v", recovery, name, s.off, s.seenErrors())
				return
			}
			wait(time.Millisecond)
		}
	}
	a.slowest[name] = max(a.slowest[name], time.Since(healed).Round(time.Millisecond))
}

// wait lets real time pass for the processes. The test doesn't rely on any event during this
// time.
func wait(d time.Duration) { <-time.After(d) }

// proxy is between one process and its store. It forwards traffic, breaks connections, or holds
// data until it is healed. Held data arrives after its sender has given up.
type proxy struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu    sync.Mutex
	free  *sync.Cond
	mode  mode
	conns map[net.Conn]struct{}
}

type mode int

const (
	passing mode = iota
	refusing
	holding
	closed
)

func startProxy(t testing.TB, server string) *proxy {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := &proxy{listener: l, server: server, conns: map[net.Conn]struct{}{}}
	p.free = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	t.Cleanup(func() {
		p.set(closed)
		_ = l.Close()
		p.running.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// set changes the handling of traffic. Modes that refuse or close also break open connections.
func (p *proxy) set(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	if m == refusing || m == closed {
		for c := range p.conns {
			_ = c.Close()
		}
	}
	p.free.Broadcast()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		if p.keep(client, server) {
			p.running.Go(func() { p.copy(server, client) })
			p.running.Go(func() { p.copy(client, server) })
		}
	}
}

// keep records a pair of connections, or closes them if the mode doesn't allow connections.
func (p *proxy) keep(pair ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range pair {
		if p.mode == refusing || p.mode == closed {
			_ = c.Close()
			continue
		}
		p.conns[c] = struct{}{}
	}
	return p.mode == passing || p.mode == holding
}

// copy forwards one direction. Data that was sent before a close still arrives, because a real
// network doesn't take it back either.
func (p *proxy) copy(to, from net.Conn) {
	defer func() {
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
		_ = to.Close()
		_ = from.Close()
	}()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		p.await()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				return
			}
			if half, ok := to.(*net.TCPConn); ok {
				_ = half.CloseWrite()
			}
			return
		}
	}
}

// await returns when no data is held.
func (p *proxy) await() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == holding {
		p.free.Wait()
	}
}
