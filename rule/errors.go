package rule

import (
	"errors"
	"strconv"
	"strings"
)

// Error is what is wrong with a rule, and where. Every error of [Load],
// [Parse], [New] and [Rule.Open] is one, or has one in its chain.
type Error struct {
	// File is the rule's name as it was given; "rule" for a rule built in Go.
	File string
	// Line and Column count from 1 and point at the wrong word. Both are zero
	// when there is no text to point at, as for a rule built in Go.
	Line, Column int
	// Path says where in a rule built in Go, as `Tables[1] "t_order"`.
	Path string
	// Word is the wrong word, as it is written; empty when nothing is written.
	Word string
	// Nearest are the right words that are most like Word, best first.
	Nearest []string
	// Reason says what is wrong and the way out.
	Reason string
	// Err is the cause: a *spi.PropError, *spi.UnknownTypeError, *fs.PathError
	// or the error of a generator's factory. It is nil when the rule itself is
	// wrong.
	Err error
}

// ErrNoSharding is in the chain of the error for a text that has no sharding
// rule, and ErrNoKeys for one whose tables have no key generator.
var (
	ErrNoSharding = errors.New("shardkey: no sharding rule")
	ErrNoKeys     = errors.New("shardkey: no table has a key generator")
)

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("shardkey: ")
	b.WriteString(e.File)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line) + ":" + strconv.Itoa(e.Column))
	}
	if e.Path != "" {
		b.WriteString(": " + e.Path)
	}
	b.WriteString(": " + e.Reason)
	for i, word := range e.Nearest {
		switch {
		case i == 0:
			b.WriteString(": did you mean ")
		case i == len(e.Nearest)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(word))
	}
	if len(e.Nearest) > 0 {
		b.WriteByte('?')
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// place is where a word of a rule stands: in a file, or in a Go struct.
type place struct {
	line, column int
	path         string
}

// word is one text of a rule and its place.
type word struct {
	text  string
	place place
}

// named makes the name of an inner word of a rule built in Go.
func (p place) named(name string) place {
	if p.line == 0 && p.path != "" {
		p.path += "." + name
	}
	return p
}

// errorAt makes the error about the word w.
func errorAt(file string, w word, reason string, right ...string) *Error {
	return &Error{
		File: file, Line: w.place.line, Column: w.place.column, Path: w.place.path,
		Word: w.text, Reason: reason, Nearest: nearest(w.text, right),
	}
}
