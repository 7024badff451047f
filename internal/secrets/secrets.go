// Package secrets finds secrets in errors.
package secrets

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Forms are secrets in all forms that errors may contain, in lower case.
type Forms []string

// Add adds a secret and, if it is an address, its password.
func (f *Forms) Add(text string) {
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
		f.Add(password)
	}
}

// In reports whether a text may contain one of the secrets.
func (f Forms) In(text string) bool {
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

// ShownName returns the part of a property's name that an error may show. If a user forgets the
// space after the colon, the name contains the value, which may be a password.
func ShownName(name string) string {
	isOdd := func(r rune) bool {
		return r < 0x80 && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(".-_", r))
	}
	if i := strings.IndexFunc(name, isOdd); i >= 0 {
		return name[:i]
	}
	return name
}

// isWhole reports whether a match is a whole word. A short secret is part of many words.
func isWhole(before rune, form string, after rune) bool {
	const long = 8
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, _ := utf8.DecodeRuneInString(form)
	last, _ := utf8.DecodeLastRuneInString(form)
	return len(form) >= long || !(isWord(before) && isWord(first)) && !(isWord(last) && isWord(after))
}
