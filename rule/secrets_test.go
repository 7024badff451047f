package rule_test

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

func withSecrets(login, hosts, password any) rule.Config {
	cfg := config()
	cfg.Generators["uuid"] = rule.GeneratorConfig{Type: "SECRETS", Props: rule.Props{"login": login, "hosts": hosts, "password": password}}
	return cfg
}

// Package fmt prints a string in a map with some verbs, even if the map has a String method.
func TestNew_refusesSecretsAsStrings(t *testing.T) {
	s := spi.NewSecret("pw")
	for name, cfg := range map[string]rule.Config{
		"login":    withSecrets("pw", s, s),
		"hosts":    withSecrets(s, []string{"pw"}, s),
		"password": withSecrets(s, s, 12345),
	} {
		_, err := rule.New(cfg)
		var at *rule.Error
		if !errors.As(err, &at) || at.Path != fmt.Sprintf("Generators[\"uuid\"].Props[%q]", name) || !strings.Contains(err.Error(), "spi.Secret") || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s\nhave: %v\nwant: an error at the property that asks for a spi.Secret", name, err)
		}
	}
}

// A Config that New accepts contains no secret that can be printed.
func TestConfig_printsNoSecrets(t *testing.T) {
	const canary = "01732654417"
	s := spi.NewSecret(canary)
	cfg := withSecrets(s, []spi.Secret{s, s}, s)
	if _, err := rule.New(cfg); err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	text, jsonText, structured := slog.NewTextHandler(&shown, nil), slog.NewJSONHandler(&shown, nil), json.NewEncoder(&shown)
	for _, v := range []any{cfg, &cfg, cfg.Generators, cfg.Generators["uuid"], cfg.Generators["uuid"].Props, cfg.Generators["uuid"].Props["hosts"], s, &s} {
		for verb := ' '; verb < 0x7f; verb++ {
			for _, flags := range []string{"", "+", "#", " ", "0", "-9.3"} {
				fmt.Fprintf(&shown, "%"+flags+string(verb)+"\n", v)
			}
		}
		slog.New(text).Info("x", "v", v)
		slog.New(jsonText).Info("x", "v", v)
		_ = structured.Encode(v) // an error contains no value
		_ = gob.NewEncoder(&shown).Encode(v)
		if b, err := yaml.Marshal(v); err == nil {
			shown.Write(b)
		}
	}
	for _, form := range []string{canary, hex.EncodeToString([]byte(canary)), base64.StdEncoding.EncodeToString([]byte(canary))[:12]} {
		if strings.Contains(strings.ToLower(shown.String()), strings.ToLower(form)) {
			t.Errorf("a Config shows its secret as %s", form)
		}
	}
}
