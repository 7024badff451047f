package zookeeper

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

// member is a proxy before a server. Once it is restored, it refuses clients that have seen a
// transaction, as a server does that lacks it.
type member struct {
	net.Listener
	server   string
	restored atomic.Bool
	refused  atomic.Int64
	mu       sync.Mutex
	open     []net.Conn
}

func newMember(t *testing.T, server string) *member {
	m := &member{Listener: must.Get(net.Listen("tcp", "127.0.0.1:0"))(t), server: server}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := m.Accept()
			if err != nil {
				return
			}
			all.Go(func() { m.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = m.Close()
		m.cut()
		all.Wait()
	})
	return m
}

// serve reads the client's first packet: its length, the protocol's version, and the last
// transaction.
func (m *member) serve(client net.Conn) {
	defer client.Close()
	head := make([]byte, 16)
	if _, err := io.ReadFull(client, head); err != nil {
		return
	}
	if seen := binary.BigEndian.Uint64(head[8:]); seen > 0 && m.restored.Load() {
		m.refused.Add(1)
		return
	}
	server, err := net.Dial("tcp", m.server)
	if err != nil {
		return
	}
	defer server.Close()
	m.mu.Lock()
	m.open = append(m.open, client, server)
	m.mu.Unlock()
	_, _ = server.Write(head)
	go func() { _, _ = io.Copy(client, server) }()
	_, _ = io.Copy(server, client)
}

// cut closes all connections.
func (m *member) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.open {
		_ = c.Close()
	}
	m.open = nil
}

// A member that was restored from a backup lacks transactions that the client has seen, and refuses
// it. The store forgets that client, and the new one logs in again.
func TestStore_restoredMember(t *testing.T) {
	for _, values := range []map[string]any{{}, {"username": "u", "password": "p"}} {
		m := newMember(t, testserver.ZooKeeper(t))
		values["servers"], values["timeout"] = m.Addr().String(), "500ms"
		s := openStore(t, values, "/restored", unique(t))
		retry := func(call func() error) { // a busy server may answer late
			err := call()
			for errors.Is(err, spi.ErrStore) {
				err = call()
			}
			must.Do(t, err)
		}
		get := func() error {
			r, err := s.Get(t.Context(), 1)
			if err == nil {
				must.Equal(t, r, aRecord)
			}
			return err
		}
		retry(func() error { return must.Err(s.CompareAndSet(t.Context(), 1, workerid.Record{}, aRecord)) })
		retry(get)
		m.restored.Store(true)
		m.cut()
		retry(get) // until the client is forgotten
		must.Equal(t, m.refused.Load() > 0, true, "refused")
		must.Do(t, s.Close())
	}
}
