package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/shardkey/shardkey/spi"
)

func TestServer_password(t *testing.T) {
	s := start(t)
	c := client(t, s.Addr())
	setUser(t, c, "app", "on", ">pa55", "~shardkey-test-*", "+eval", "+evalsha", "+time", "+type", "+hmget", "+hset")
	setUser(t, c, "default", ">s3cret")
	for name, c := range map[string]struct {
		username, password string
		want               string // part of the error; "" for none
	}{
		"default user":   {"", "s3cret", ""},
		"own user":       {"app", "pa55", ""},
		"wrong password": {"", "guess77", "set the properties username and password"},
		"wrong user":     {"nobody", "guess77", "set the properties username and password"},
		"none":           {"", "", "set the properties username and password"},
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, s.Addr(), "username", c.username, "password", c.password)
			err := g.GenerateInt64Keys(t.Context(), spi.Column{}, make([]int64, 5))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("have: %v\nwant: no error", err)
			case c.want != "" && (!errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("have: %v\nwant: spi.ErrStore, %q", err, c.want)
			}
			for _, text := range []string{g.Describe(), errText(err)} {
				if c.password != "" && strings.Contains(text, c.password) {
					t.Errorf("the password is shown: %s", text)
				}
			}
		})
	}
}

func setUser(t *testing.T, c *goredis.Client, user string, rules ...string) {
	t.Helper()
	if user == "default" {
		rules = append([]string{"resetpass"}, rules...)
	}
	if err := c.ACLSetUser(t.Context(), user, rules...).Err(); err != nil {
		t.Fatal(err)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// An assigner's user needs what docs/redis.md says, and no more. What it may not
// look at is said.
func TestServer_privilegesOfTheAssigner(t *testing.T) {
	s := start(t)
	for name, c := range map[string]struct {
		more     []string
		warnings int
	}{
		"all":    {[]string{"+config|get", "+info"}, 0},
		"enough": {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			setUser(t, client(t, s.Addr()), "app", append([]string{"reset", "on", ">pa55", "~orders:*", "+eval", "+evalsha", "+time", "+hget", "+hset", "+hgetall"}, c.more...)...)
			a, err := spi.NewWorkerIDAssigner("REDIS", props(t, map[string]any{"addr": s.Addr(), "username": "app", "password": "pa55", "namespace": "orders"}))
			if err != nil {
				t.Fatal(err)
			}
			defer a.(io.Closer).Close()
			if _, err := a.AcquireWorkerID(t.Context(), 1023); err != nil {
				t.Errorf("have: %v\nwant: no error", err)
			}
			w := a.(spi.HealthReporter).Health().Warnings
			if len(w) != c.warnings || len(w) > 0 && (!strings.Contains(w[0], "+config|get") || strings.Contains(w[0], "pa55")) {
				t.Errorf("warnings\nhave: %q\nwant: %d", w, c.warnings)
			}
		})
	}
}

func TestServer_userWithoutPrivileges(t *testing.T) {
	s := start(t)
	setUser(t, client(t, s.Addr()), "app", "on", ">pa55", "~elsewhere:*", "+@all")
	g := open(t, s.Addr(), "username", "app", "password", "pa55")
	err := g.GenerateInt64Keys(t.Context(), spi.Column{}, make([]int64, 1))
	if !errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), "the user needs") {
		t.Errorf("have: %v\nwant: spi.ErrStore that says what the user needs", err)
	}
}

func TestServer_tls(t *testing.T) {
	ca, cert, key := certificates(t)
	s := start(t, "--port", "0", "--tls-port", "{port}", "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", ca, "--tls-auth-clients", "optional")
	other, _, _ := certificates(t)
	for name, c := range map[string]struct {
		props []any
		want  string // part of the error; "" for none
	}{
		"authority":          {[]any{"tls", ca}, ""},
		"not checked":        {[]any{"tls", "skip-verify"}, ""},
		"client certificate": {[]any{"tls", ca, "tls-cert", cert, "tls-key", key}, ""},
		"system authorities": {[]any{"tls", "true"}, "PEM file of the server's authority"},
		"other authority":    {[]any{"tls", other}, "PEM file of the server's authority"},
		"no file":            {[]any{"tls", ca + ".missing"}, "no such file"},
		"not PEM":            {[]any{"tls", "generator_test.go"}, "no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, s.Addr(), c.props...)
			err := g.GenerateInt64Keys(t.Context(), spi.Column{}, make([]int64, 5))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("have: %v\nwant: no error", err)
			case c.want != "" && (!errors.Is(err, spi.ErrStore) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("have: %v\nwant: spi.ErrStore, %q", err, c.want)
			}
		})
	}
	t.Run("plain text", func(t *testing.T) {
		err := open(t, s.Addr()).GenerateInt64Keys(t.Context(), spi.Column{}, make([]int64, 1))
		if !errors.Is(err, spi.ErrStore) {
			t.Errorf("have: %v\nwant: spi.ErrStore", err)
		}
	})
}

// certificates writes an authority and a server's certificate for 127.0.0.1.
func certificates(t *testing.T) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	authority, authorityKey := certificate(t, nil, nil)
	server, serverKey := certificate(t, authority, authorityKey)
	der, err := x509.MarshalECPrivateKey(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("ca.pem", "CERTIFICATE", authority.Raw), write("cert.pem", "CERTIFICATE", server.Raw), write("key.pem", "EC PRIVATE KEY", der)
}

func certificate(t *testing.T, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: fmt.Sprintf("shardkey test %v", parent == nil)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:        parent == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}
