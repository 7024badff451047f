// Package secrets finds secrets in errors.
package secrets

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
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

// In reports whether a text may contain one of the secrets. A short secret is part of many words, so
// it counts only as a whole word.
func (f Forms) In(text string) bool {
	const long = 8
	text = strings.ToLower(text)
	return slices.ContainsFunc(f, func(form string) bool {
		return strings.Contains(text, form) && (len(form) >= long || wholeWord(form).MatchString(text))
	})
}

// wholeWord matches a form between characters that aren't part of the same word.
func wholeWord(form string) *regexp.Regexp {
	const notWord = `[^\pL\p{Nd}]`
	isWord := func(r rune, _ int) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	expr := regexp.QuoteMeta(form)
	if isWord(utf8.DecodeRuneInString(form)) {
		expr = "(?:^|" + notWord + ")" + expr
	}
	if isWord(utf8.DecodeLastRuneInString(form)) {
		expr += "(?:$|" + notWord + ")"
	}
	return regexp.MustCompile(expr)
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
