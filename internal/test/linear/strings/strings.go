// Package strings counts the bytes that functions of the standard package strings pass over. The
// overlay of package linear imports it in place of that package.
package strings

import (
	"iter"
	"strings"

	"github.com/shardkey/shardkey/internal/test/linear/steps"
)

type (
	// Builder is strings.Builder.
	Builder = strings.Builder
	// Reader is strings.Reader.
	Reader = strings.Reader
	// Replacer is strings.Replacer.
	Replacer = strings.Replacer
)

// These functions take constant time, or time in the length of a result.
var (
	HasPrefix   = strings.HasPrefix
	HasSuffix   = strings.HasSuffix
	CutPrefix   = strings.CutPrefix
	CutSuffix   = strings.CutSuffix
	TrimPrefix  = strings.TrimPrefix
	TrimSuffix  = strings.TrimSuffix
	NewReader   = strings.NewReader
	NewReplacer = strings.NewReplacer
	Compare     = strings.Compare
	Repeat      = strings.Repeat
	Join        = strings.Join
)

// found counts the bytes up to a position, all if it is negative.
func found(s string, at int) int {
	if at < 0 {
		steps.N += int64(len(s))
	} else {
		steps.N += int64(at) + 1
	}
	return at
}

func foundLast(s string, at int) int {
	steps.N += int64(len(s) - max(at, 0))
	return at
}

func trimmed(s, rest string) string {
	steps.N += int64(len(s)-len(rest)) + 1
	return rest
}

func all(s string) string {
	steps.N += int64(len(s)) + 1
	return s
}

func IndexByte(s string, c byte) int     { return found(s, strings.IndexByte(s, c)) }
func Index(s, sub string) int            { return found(s, strings.Index(s, sub)) }
func IndexAny(s, chars string) int       { return found(s, strings.IndexAny(s, chars)) }
func LastIndexByte(s string, c byte) int { return foundLast(s, strings.LastIndexByte(s, c)) }
func LastIndex(s, sub string) int        { return foundLast(s, strings.LastIndex(s, sub)) }
func Contains(s, sub string) bool        { return Index(s, sub) >= 0 }
func ContainsRune(s string, r rune) bool { return found(s, strings.IndexRune(s, r)) >= 0 }
func ContainsAny(s, chars string) bool   { return IndexAny(s, chars) >= 0 }
func Trim(s, cut string) string          { return trimmed(s, strings.Trim(s, cut)) }
func TrimLeft(s, cut string) string      { return trimmed(s, strings.TrimLeft(s, cut)) }
func TrimRight(s, cut string) string     { return trimmed(s, strings.TrimRight(s, cut)) }
func TrimRightFunc(s string, is func(rune) bool) string {
	return trimmed(s, strings.TrimRightFunc(s, is))
}
func TrimFunc(s string, is func(rune) bool) string { return trimmed(s, strings.TrimFunc(s, is)) }

func TrimSpace(s string) string           { return trimmed(s, strings.TrimSpace(s)) }
func Count(s, sub string) int             { return strings.Count(all(s), sub) }
func Split(s, sep string) []string        { return strings.Split(all(s), sep) }
func SplitAfter(s, sep string) []string   { return strings.SplitAfter(all(s), sep) }
func ToLower(s string) string             { return strings.ToLower(all(s)) }
func ToUpper(s string) string             { return strings.ToUpper(all(s)) }
func ToValidUTF8(s, by string) string     { return strings.ToValidUTF8(all(s), by) }
func ReplaceAll(s, old, by string) string { return strings.ReplaceAll(all(s), old, by) }
func Clone(s string) string               { return strings.Clone(all(s)) }
func Fields(s string) []string            { return strings.Fields(all(s)) }
func EqualFold(a, b string) bool          { return strings.EqualFold(all(a), b) }

func SplitSeq(s, sep string) iter.Seq[string]          { return strings.SplitSeq(all(s), sep) }
func FieldsFunc(s string, is func(rune) bool) []string { return strings.FieldsFunc(all(s), is) }
func Map(by func(rune) rune, s string) string          { return strings.Map(by, all(s)) }
func Replace(s, old, by string, n int) string          { return strings.Replace(all(s), old, by, n) }

func IndexFunc(s string, is func(rune) bool) int { return found(s, strings.IndexFunc(s, is)) }

func ContainsFunc(s string, is func(rune) bool) bool { return IndexFunc(s, is) >= 0 }

func Cut(s, sep string) (before, after string, ok bool) {
	found(s, strings.Index(s, sep))
	return strings.Cut(s, sep)
}
