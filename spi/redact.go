package spi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
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
	secrets := p.secrets()
	prop, ok := err.(*PropError)
	if !ok {
		if secrets.in(err.Error()) {
			return errors.New(notShown + "; check the properties")
		}
		return err
	}
	shown := *prop
	if p.isSecret(prop.Name) || secrets.in(prop.Value) {
		shown.Value = ""
	}
	if !prop.fixed && secrets.in(prop.Want) {
		shown.Want = "another value; " + notShown
	}
	return &shown
}

// secretForms are secrets, in lower case, in all the forms in which errors write
// them.
type secretForms []string

// secrets returns the values of the properties that are secrets, and the passwords
// in those that are addresses.
func (p Props) secrets() (forms secretForms) {
	for key, given := range p.values {
		if !p.isSecret(key) {
			continue
		}
		forms.add(given.value.Reveal())
		for _, item := range given.list {
			forms.add(item.Reveal())
		}
	}
	return forms
}

func (f *secretForms) add(text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	quoted := strconv.Quote(text)
	inJSON, _ := json.Marshal(text)
	for _, form := range []string{
		text, quoted[1 : len(quoted)-1], string(inJSON[1 : len(inJSON)-1]),
		url.QueryEscape(text), url.PathEscape(text), url.User(text).String(),
	} {
		*f = append(*f, strings.ToLower(form))
	}
	if at := strings.LastIndexByte(text, '@'); at >= 0 { // [scheme://]user:password@host
		user := text[:at]
		if _, rest, found := strings.Cut(user, "://"); found {
			user = rest
		}
		_, password, _ := strings.Cut(user, ":")
		f.add(password)
	}
}

// in reports whether the text may contain one of the secrets.
func (f secretForms) in(text string) bool {
	text = strings.ToLower(text)
	for _, form := range f {
		for rest, last := text, utf8.RuneError; ; {
			at := strings.Index(rest, form)
			if at < 0 {
				break
			}
			before, size := utf8.DecodeLastRuneInString(rest[:at])
			if size == 0 {
				before = last
			}
			after, _ := utf8.DecodeRuneInString(rest[at+len(form):])
			if isWhole(before, form, after) {
				return true
			}
			last, size = utf8.DecodeRuneInString(rest[at:])
			rest = rest[at+size:]
		}
	}
	return false
}

// isWhole reports whether a secret between two characters stands for itself. A short
// one is part of many words.
func isWhole(before rune, form string, after rune) bool {
	const long = 8
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, _ := utf8.DecodeRuneInString(form)
	last, _ := utf8.DecodeLastRuneInString(form)
	return len(form) >= long || !(isWord(before) && isWord(first)) && !(isWord(last) && isWord(after))
}
