package spi_test

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

// readTLS reads the TLS properties, and the files that they name.
func readTLS(t *testing.T, values map[string]any) (config *tls.Config, on bool, err error) {
	t.Helper()
	p := must.Get(spi.NewProps(values, spi.Host{}))(t)
	open, err := p.TLS()
	if err != nil || open == nil {
		return nil, false, err
	}
	config, err = open()
	return config, true, err
}

func TestTLS_modes(t *testing.T) {
	for _, c := range []struct {
		values       map[string]any
		on, insecure bool
	}{
		{nil, false, false},
		{map[string]any{"tls": "false"}, false, false},
		{map[string]any{"tls": "FALSE"}, false, false},
		{map[string]any{"tls": "true"}, true, false},
		{map[string]any{"tls": "True"}, true, false},
		{map[string]any{"tls": "skip-verify"}, true, true},
	} {
		config, on, err := readTLS(t, c.values)
		if err != nil || on != c.on || (config != nil) != c.on || config != nil && config.InsecureSkipVerify != c.insecure {
			t.Errorf("%v\nhave: %v, on: %v, %v\nwant: on: %v, unchecked: %v", c.values, config, on, err, c.on, c.insecure)
		}
	}
}

func TestTLS_refused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	must.Do(t, os.WriteFile(text, []byte("no PEM"), 0o600))
	for _, c := range []struct {
		values map[string]any
		want   string
		prop   bool // refused before a file is read
	}{
		{map[string]any{"tls": ""}, "skip-verify", true},
		{map[string]any{"tls": "true", "tls-cert": "c.pem"}, "both tls-cert and", true},
		{map[string]any{"tls": "true", "tls-key": "k.pem"}, "or neither", true},
		{map[string]any{"tls-cert": "c.pem", "tls-key": "k.pem"}, "tls: true next to it", true},
		{map[string]any{"tls": text}, "no certificate", false},
		{map[string]any{"tls": text + "2"}, fs.ErrNotExist.Error(), false},
		{map[string]any{"tls": "true", "tls-cert": text, "tls-key": text}, "tls-cert", false},
	} {
		_, on, err := readTLS(t, c.values)
		var bad *spi.PropError
		if on == c.prop || errors.As(err, &bad) != c.prop || err == nil ||
			!strings.Contains(err.Error(), c.want) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v\nhave: %v\nwant: an error with %q", c.values, err, c.want)
		}
	}
}

// An invalid address is shown unless it may contain a password.
func TestProps_wrongAddress(t *testing.T) {
	for address, c := range map[string]struct{ valid, shown bool }{
		"10.0.0.1:6379":                {true, true},
		"[::1]:6379":                   {true, true},
		"redis.example:6379":           {true, true},
		"redis.example":                {false, true},
		"redis.example:port":           {false, true},
		"http://redis.example:1":       {false, true},
		"redis://:hidden@host:6379":    {false, false},
		"hidden@host:6379":             {false, false},
		"host:6379,password=hidden":    {false, false},
		"user:12/hidden@host:6379":     {false, false},
		"host:6379?password=hidden":    {false, false},
		"https://user:hidden@host:1/x": {false, false},
	} {
		p := must.Get(spi.NewProps(map[string]any{"addr": address}, spi.Host{}))(t)
		err := p.WrongAddress("addr", "host:port")
		var bad *spi.PropError
		if spi.IsHostPort(address) != c.valid || !errors.As(err, &bad) || (bad.Value == address) != c.shown ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s\nhave: %v, %v\nwant: valid %v, shown %v", address, spi.IsHostPort(address), err, c.valid, c.shown)
		}
	}
}
