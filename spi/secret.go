package spi

import (
	"errors"
	"fmt"

	"github.com/shardkey/shardkey/internal/secrets"
)

// Secret is a string that must not appear in logs, errors or descriptions, for example a password
// or an address with one. Package fmt, log/slog and encoding/json print it as "(secret)", even as a
// field of another value. Only [Secret.Reveal] returns the string. The zero Secret is the empty
// string, and is printed as "".
type Secret struct {
	// reveal is a function because package fmt prints unexported fields without calling their
	// methods.
	reveal func() string
}

// NewSecret returns a Secret with this string.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{func() string { return text }}
}

// Reveal returns the string.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// Format writes the result of MarshalText for every verb.
func (s Secret) Format(f fmt.State, _ rune) {
	text, _ := s.MarshalText()
	_, _ = f.Write(text)
}

// MarshalText returns "(secret)", or "" if the secret is empty, so that encoders such as
// encoding/json don't write the secret.
func (s Secret) MarshalText() ([]byte, error) {
	if s.reveal == nil {
		return nil, nil
	}
	return []byte("(secret)"), nil
}

// notShown replaces a message that may contain a secret.
const notShown = "the reason is not shown, because it may contain a secret"

// redacted returns a factory's error, or an error without details if it may contain a secret. It
// replaces the whole message, because the length of a gap would reveal a short password.
func (p Props) redacted(err error) error {
	switch {
	case err == nil:
		return nil
	case isNil(err):
		return fmt.Errorf("the factory returned a nil %T as error", err)
	}
	hidden := p.secrets()
	prop, ok := err.(*PropError)
	if !ok {
		if hidden.In(err.Error()) {
			return errors.New(notShown + "; check the properties")
		}
		return err
	}
	shown := *prop
	if p.isSecret(prop.Name) || hidden.In(prop.Value) {
		shown.Value = ""
	}
	if !prop.fixed && hidden.In(prop.Want) {
		shown.Want = "another value; " + notShown
	}
	return &shown
}

func (p Props) secrets() (forms secrets.Forms) {
	for key, given := range p.values {
		if !p.isSecret(key) {
			continue
		}
		forms.Add(given.value.Reveal())
		for _, item := range given.list {
			forms.Add(item.Reveal())
		}
	}
	return forms
}
