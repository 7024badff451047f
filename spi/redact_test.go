package spi

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
)

// A factory's error is returned unchanged or replaced completely. If only the password were cut
// out, the rest would help to guess it.
func TestRedacted_wholeOrNotAtAll(t *testing.T) {
	const dial = "dial u:%s@db: connection refused"
	const plain = "property addr: want host:port, without a password, as 127.0.0.1:3306 or [::1]:3306"
	for _, secret := range []string{
		"p", "a", "1", "ab", "pw1", "?", ".*", "$1", "a.c", "[x]", "(", `\`, `"`, "%41", "é", "密", "ⅷ", "localhost", "3306", "db", "user",
		"want", "refused", "correct horse", "pass/word", "p@ss:w?rd&=+", "line\nbreak", `quo"te`, "<tag>", "ÄÖÜ", "hunter2hunter2",
	} {
		for name, show := range map[string]func(string) string{
			"plain":       func(s string) string { return s },
			"quoted":      func(s string) string { q := fmt.Sprintf("%q", s); return q[1 : len(q)-1] },
			"query":       url.QueryEscape,
			"path":        url.PathEscape,
			"user":        func(s string) string { return url.User(s).String() },
			"upper case":  strings.ToUpper,
			"after blank": func(s string) string { return " " + s + " " },
		} {
			p := ask(t, map[string]any{"password": secret})
			text := fmt.Sprintf(dial, show(secret))
			must.Contain(t, p.redacted(errors.New(text)).Error(), notShown, "password", secret, name)
			bad := p.redacted(&PropError{Name: "addr", Value: "h", Want: text})
			if got := bad.Error(); !strings.Contains(got, notShown) || !strings.Contains(got, `"addr"`) {
				t.Errorf("password %q, %s\nhave: %s\nwant: the property, and that the reason is not shown", secret, name, got)
			}
		}
		for _, err := range []error{errors.New(plain), &PropError{Name: "addr", Value: "nowhere", Want: plain}} {
			got := ask(t, map[string]any{"password": secret}).redacted(err).Error()
			if got != err.Error() && !strings.Contains(got, notShown) {
				t.Errorf("password %q\nhave: %s\nwant: the whole error or none of it", secret, got)
			}
		}
	}
}

// Short passwords are parts of most words.
func TestRedacted_partsOfWords(t *testing.T) {
	const text = "property endpoints: want the members' addresses"
	for _, secret := range []string{"p", "e", "en", "add", "point", "member"} {
		must.Equal(t, ask(t, map[string]any{"password": secret}).redacted(errors.New(text)).Error(), text, "password", secret)
	}
	p := ask(t, map[string]any{"password": "hunter2hunter2"})
	must.Contain(t, p.redacted(errors.New("login xhunter2hunter2y failed")).Error(), notShown)
}

// A library's error may quote a part of an address.
func TestRedacted_passwordOfAnAddress(t *testing.T) {
	for _, dsn := range []string{
		"u:pw1@tcp(db:3306)/d", "mysql://u:pw1@db/d", "jdbc:mysql://u:pw1@db/d", "u:pw1@http://db", "u:pw1@", ":pw1@h",
	} {
		for name, value := range map[string]any{"dsn": dsn, "dsns": []string{"u@tcp(h)/d", dsn}} {
			p := ask(t, map[string]any{name: value})
			must.Contain(t, p.redacted(errors.New("default addr for network 'pw1' unknown")).Error(), notShown, dsn)
		}
	}
}

// What a getter expects is no secret, whatever the password is.
func TestRedacted_gettersErrors(t *testing.T) {
	p := ask(t, map[string]any{"password": "integer", "db": "x", "token": "1023"})
	_, err := p.Int("db", 0, 0, 1023)
	must.Equal(t, p.redacted(err).Error(), `shardkey: property "db": expected an integer in 0..1023, found "x"`)
	p = ask(t, map[string]any{"password": "zz", "db": "u:zz@h"})
	_, err = p.Int("db", 0, 0, 1023)
	must.Equal(t, p.redacted(err).Error(), `shardkey: property "db": expected an integer in 0..1023`)
	_, err = p.Int("password", 0, 0, 1023)
	must.Equal(t, p.redacted(err).Error(), `shardkey: property "password": expected an integer in 0..1023`)
}

// ask makes properties whose factory has asked for all of them, for dsn and dsns as
// secrets.
func ask(t *testing.T, values map[string]any) Props {
	t.Helper()
	p := must.Get(NewProps(values, Host{}))(t)
	p.Secret("password")
	p.Secret("dsn")
	p.Secrets("dsns")
	return p
}

func TestRedacted_nilErrorOfAType(t *testing.T) {
	if err := (Props{}).redacted((*PropError)(nil)); err == nil || err.Error() == "" {
		t.Errorf("have: %v\nwant: an error", err)
	}
}

// Bounds in the wrong order panic, also while the property isn't set.
func TestProps_bounds(t *testing.T) {
	p := must.Get(NewProps(map[string]any{"set": "7", "long": "7s"}, Host{}))(t)
	for name, get := range map[string]func(){
		"Int":          func() { _, _ = p.Int("set", 1, 100, 5) },
		"Int, missing": func() { _, _ = p.Int("missing", 1, 100, 5) },
		"Duration":     func() { _, _ = p.Duration("long", time.Second, time.Minute, time.Second) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: have: no panic", name)
				}
			}()
			get()
		}()
	}
	must.Equal(t, must.Get(p.Int("set", 1, 7, 7))(t), 7)
}
