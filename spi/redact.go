package spi

import (
	"errors"
	"fmt"

	"github.com/shardkey/shardkey/internal/secrets"
)

// notShown takes the place of a text that may contain a secret.
const notShown = "the reason is not shown, because it may contain a secret"

// redacted returns a factory's error, or another one in its place where it may show
// a secret. Nothing is cut out of a text: the gap would give a short password away.
func (p Props) redacted(err error) error {
	switch {
	case err == nil:
		return nil
	case isNil(err):
		return fmt.Errorf("its factory returned a nil %T as error", err)
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
