//go:build linux

package chaos

import (
	"io"
	"net"
	"sync"
	"testing"
)

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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
