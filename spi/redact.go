package spi

import (
	"errors"
	"fmt"

	"github.com/shardkey/shardkey/internal/secrets"
)

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
	if p.IsSecret(prop.Name) || hidden.In(prop.Value) {
		shown.Value = ""
	}
	if !prop.fixed && hidden.In(prop.Want) {
		shown.Want = "another value; " + notShown
	}
	return &shown
}

// secrets returns the values of the properties that are secrets.
func (p Props) secrets() (forms secrets.Forms) {
	for key, given := range p.values {
		if !p.IsSecret(key) {
			continue
		}
		forms.Add(given.value.Reveal())
		for _, item := range given.list {
			forms.Add(item.Reveal())
		}
	}
	return forms
}
