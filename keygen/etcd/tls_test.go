package etcd

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// listen returns the address of a server that answers nothing, and what it was
// sent first.
func listen(t *testing.T) (addr string, heard func() []byte) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var mu sync.Mutex
	var first []byte
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 64)
			n, _ := conn.Read(b)
			mu.Lock()
			first = append(first, b[:n]...)
			mu.Unlock()
			_ = conn.Close()
		}
	}()
	return l.Addr().String(), func() []byte {
		mu.Lock()
		defer mu.Unlock()
		return first
	}
}

// No member hears a word in clear where TLS was asked for, whatever the scheme of
// the others.
func TestTLS_neverInClear(t *testing.T) {
	for _, c := range []struct{ endpoints, tls string }{
		{"http://A", "true"}, {"HTTP://A", "true"}, {"http://A", "skip-verify"}, {"http://A,http://B", "true"},
		{"http://A,https://B", ""}, {"https://A,http://B", ""}, {"A,https://B", ""}, {"https://A,B", ""},
		{"http://A,https://B", "true"}, {"https://A,http://B", "true"}, {"A,http://B", "true"}, {"A,https://B", "true"},
		{"A", "true"}, {"A,B", "skip-verify"}, {"https://A,https://B", ""}, {"https://A", "true"}, {"HTTPS://A/", "false"},
	} {
		a, heardA := listen(t)
		b, heardB := listen(t)
		endpoints := strings.NewReplacer("A", a, "B", b).Replace(strings.NewReplacer("HTTP", "HttP").Replace(c.endpoints))
		values := map[string]any{"endpoints": endpoints, "username": "u", "password": "canary", "timeout": "300ms"}
		if c.tls != "" {
			values["tls"] = c.tls
		}
		cluster, err := newCluster(props(t, values))
		if err != nil {
			var bad *spi.PropError
			if !errors.As(err, &bad) || bad.Name != "endpoints" {
				t.Errorf("%v\nhave: %v\nwant: a PropError of endpoints", c, err)
			}
			continue
		}
		s := newStore(cluster, defaultPrefix, "x")
		if _, err := s.Get(t.Context(), 1); err == nil {
			t.Errorf("%v: an answer of nobody", c)
		}
		_ = s.Close()
		for _, heard := range [][]byte{heardA(), heardB()} {
			if bytes.Contains(heard, []byte("PRI")) {
				t.Errorf("%v: in clear: %q", c, heard)
			}
		}
	}
}

// A member whose certificate is wrong is told as such, and not as one that does
// not answer.
func TestTLS_wrongCertificateIsTold(t *testing.T) {
	certificate, err := testserver.Certify(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(certificate.CertFile, certificate.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake()
			_ = conn.Close()
		}
	}()
	s := openStore(t, map[string]any{"endpoints": l.Addr().String(), "tls": "true", "timeout": "500ms"}, "x")
	_, err = s.Get(t.Context(), 1)
	if !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "x509") || !strings.Contains(err.Error(), "PEM file") {
		t.Errorf("\nhave: %v\nwant: the x509 reason, and the property tls", err)
	}
}
