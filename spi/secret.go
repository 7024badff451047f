package spi

import (
	"fmt"
	"io"
)

// Secret is a text that no log, error or description may show: a password, or an
// address that may hold one. Printed by package fmt with any verb, by log/slog or
// as JSON, also as a field of something else, it is "(secret)"; [Secret.Reveal]
// alone returns the text. The zero Secret is the empty text, and prints as that.
type Secret struct {
	// A function, since package fmt shows the fields of unexported fields as they
	// are, and calls no methods of theirs.
	reveal func() string
}

// NewSecret makes a Secret of a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{func() string { return text }}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// IsZero reports whether the text is empty.
func (s Secret) IsZero() bool { return s.reveal == nil }

// String returns "(secret)", or nothing for an empty text.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return "(secret)"
}

// Format writes what String returns, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is String, for JSON and others.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
