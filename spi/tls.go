package spi

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
)

// TLS reads the properties tls, tls-cert and tls-key of a type that connects to a server. It
// returns a function that reads the files and makes the configuration, or nil for connections
// without TLS. The error is a [*PropError].
//
//   - tls: false (the default); true to verify the server's certificate with the system's
//     authorities; skip-verify not to verify it; or the path of a PEM file with the authorities
//   - tls-cert, tls-key: the paths of the client's certificate and key, for servers that require
//     them
func (p Props) TLS() (config func() (*tls.Config, error), err error) {
	mode, cert, key := p.String("tls", "false"), p.String("tls-cert", ""), p.String("tls-key", "")
	for _, word := range []string{"false", "true", "skip-verify"} {
		if strings.EqualFold(mode, word) {
			mode = word
		}
	}
	const both = "both tls-cert and tls-key, or neither"
	switch {
	case mode == "":
		return nil, p.Wrong("tls", "true, false, skip-verify or the path of a PEM file with the authorities")
	case cert != "" && key == "":
		return nil, p.Wrong("tls-cert", both)
	case cert == "" && key != "":
		return nil, p.Wrong("tls-key", both)
	case cert != "" && mode == "false":
		return nil, p.Wrong("tls-cert", "tls: true next to it")
	case mode == "false":
		return nil, nil
	}
	return func() (*tls.Config, error) { return tlsConfig(mode, cert, key) }, nil
}

func tlsConfig(mode, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	switch mode {
	case "true":
	case "skip-verify":
		c.InsecureSkipVerify = true
	default:
		pem, err := os.ReadFile(mode)
		if err != nil {
			return nil, fmt.Errorf("property %q: expected true, false, skip-verify or a PEM file: %w", "tls", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("property %q: %s has no certificate in PEM form", "tls", mode)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("property %q: %w", "tls-cert", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
