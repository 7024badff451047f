package spi

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// redacted returns a factory's error without the values of its secrets: a
// [*PropError] that shows one loses it, and of any other error that does only the
// text is left, in which "(secret)" stands for each.
func (p Props) redacted(err error) error {
	if err == nil {
		return nil
	}
	secrets := p.secrets()
	shows := func(text string) bool {
		return slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(text, s) })
	}
	var prop *PropError
	if errors.As(err, &prop) && err == error(prop) && p.isSecret(prop.Name) {
		shown := *prop
		shown.Value = ""
		err = &shown
	}
	if !shows(err.Error()) {
		return err
	}
	text := err.Error()
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "(secret)")
	}
	return errors.New(text)
}

// secrets are the values of the properties that are secrets, the longest first.
func (p Props) secrets() (texts []string) {
	add := func(s Secret) {
		if text := strings.TrimSpace(s.Reveal()); text != "" {
			texts = append(texts, text)
		}
	}
	for key, given := range p.values {
		if !p.isSecret(key) {
			continue
		}
		add(given.value)
		for _, item := range given.list {
			add(item)
		}
	}
	slices.SortFunc(texts, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return texts
}
