package testserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificate holds the files, in PEM form, that a TLS server for tests needs,
// and the pool that a client trusts it with.
type Certificate struct {
	CAFile, CertFile, KeyFile string
	Pool                      *x509.CertPool
}

// Certify makes a certificate for 127.0.0.1, ::1 and localhost, good for a day,
// with an authority of its own, in the files ca.pem, cert.pem and key.pem of
// dir.
func Certify(dir string) (*Certificate, error) {
	ca, caKey, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "shardkey tests"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}, nil, nil)
	if err != nil {
		return nil, err
	}
	cert, key, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "localhost"},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca, caKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	c := &Certificate{Pool: x509.NewCertPool()}
	c.Pool.AddCert(ca)
	for _, f := range []struct {
		path       *string
		name, kind string
		der        []byte
	}{
		{&c.CAFile, "ca.pem", "CERTIFICATE", ca.Raw},
		{&c.CertFile, "cert.pem", "CERTIFICATE", cert.Raw},
		{&c.KeyFile, "key.pem", "PRIVATE KEY", keyDER},
	} {
		*f.path = filepath.Join(dir, f.name)
		text := pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der})
		if err := os.WriteFile(*f.path, text, 0o600); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// sign makes a key and its certificate, signed by the parent or, without one,
// by itself.
func sign(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(24 * time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}
