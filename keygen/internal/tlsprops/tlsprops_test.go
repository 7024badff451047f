package tlsprops

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

func settings(t *testing.T, values map[string]any) (Settings, error) {
	t.Helper()
	p, err := spi.NewProps(values, spi.Host{})
	if err != nil {
		t.Fatal(err)
	}
	return FromProps(p)
}

func TestSettings_modes(t *testing.T) {
	for _, c := range []struct {
		mode         string
		on, insecure bool
	}{{"false", false, false}, {"FALSE", false, false}, {"true", true, false}, {"True", true, false}, {"skip-verify", true, true}} {
		s, err := settings(t, map[string]any{"tls": c.mode})
		if err != nil || s.On() != c.on {
			t.Errorf("tls: %s\nhave: %v, %v\nwant: on: %v", c.mode, s, err, c.on)
			continue
		}
		config, err := s.Config()
		if err != nil || (config != nil) != c.on || config != nil && config.InsecureSkipVerify != c.insecure {
			t.Errorf("tls: %s\nhave: %v, %v\nwant: on: %v, unchecked: %v", c.mode, config, err, c.on, c.insecure)
		}
	}
	s, err := settings(t, nil)
	if config, err2 := s.Config(); err != nil || err2 != nil || config != nil || s.On() || (Settings{}).On() {
		t.Errorf("no property\nhave: %v, %v, %v\nwant: plain text", config, err, err2)
	}
}

func TestSettings_refused(t *testing.T) {
	for want, values := range map[string]map[string]any{
		"skip-verify":          {"tls": ""},
		"both tls-cert and":    {"tls": "true", "tls-cert": "c.pem"},
		"or neither":           {"tls": "true", "tls-key": "k.pem"},
		"tls to be on as well": {"tls-cert": "c.pem", "tls-key": "k.pem"},
	} {
		var bad *spi.PropError
		if _, err := settings(t, values); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nhave: %v\nwant: a *spi.PropError with %q", values, err, want)
		}
	}
}

func TestSettings_badFiles(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		values map[string]any
		want   string
	}{
		{map[string]any{"tls": text}, "no certificate"},
		{map[string]any{"tls": text + "2"}, fs.ErrNotExist.Error()},
		{map[string]any{"tls": "true", "tls-cert": text, "tls-key": text}, "tls-cert"},
	} {
		s, err := settings(t, c.values)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Config(); err == nil || !strings.Contains(err.Error(), c.want) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v\nhave: %v\nwant: an error with %q", c.values, err, c.want)
		}
	}
}
