// Package tlsprops reads the TLS properties that the stores have in common:
//
//	tls       false (the default); true: the server's certificate is checked
//	          against the system's authorities; skip-verify: it is not checked;
//	          anything else: the path of a PEM file with the authorities
//	tls-cert, tls-key
//	          paths of the client's own certificate and key, for servers that
//	          ask for one
package tlsprops

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/shardkey/shardkey/spi"
)

// Settings are the TLS properties as they were written. The zero Settings is
// plain text.
type Settings struct {
	mode      string // "false", "true", "skip-verify" or a path
	cert, key string
}

// FromProps reads tls, tls-cert and tls-key. It opens no file.
func FromProps(p spi.Props) (Settings, error) {
	s := Settings{
		mode: p.String("tls", "false"),
		cert: p.String("tls-cert", ""),
		key:  p.String("tls-key", ""),
	}
	for _, word := range []string{"false", "true", "skip-verify"} {
		if strings.EqualFold(s.mode, word) {
			s.mode = word
		}
	}
	const both = "both tls-cert and tls-key, or neither"
	switch {
	case s.mode == "":
		return Settings{}, p.Wrong("tls", "true, false, skip-verify or the path of a PEM file with the authorities")
	case s.cert != "" && s.key == "":
		return Settings{}, p.Wrong("tls-cert", both)
	case s.cert == "" && s.key != "":
		return Settings{}, p.Wrong("tls-key", both)
	case s.cert != "" && s.mode == "false":
		return Settings{}, p.Wrong("tls-cert", "tls to be on as well")
	}
	return s, nil
}

// On reports whether the connection is to be encrypted.
func (s Settings) On() bool { return s.mode != "" && s.mode != "false" }

// Config opens the files that the settings name. It is nil when TLS is off.
func (s Settings) Config() (*tls.Config, error) {
	if !s.On() {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	switch s.mode {
	case "true":
	case "skip-verify":
		c.InsecureSkipVerify = true
	default:
		pool, err := readAuthorities(s.mode)
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	if s.cert != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return nil, fmt.Errorf("property %q: %w", "tls-cert", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func readAuthorities(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("property %q: want true, false, skip-verify or a PEM file: %w", "tls", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("property %q: %s has no certificate in PEM form", "tls", path)
	}
	return pool, nil
}
