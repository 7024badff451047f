package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/spf13/pflag"
)

// choice is a flag's value that is one of a few words.
type choice struct {
	words  []string
	chosen string
}

func (c *choice) String() string { return c.chosen }
func (c *choice) Type() string   { return "word" }

func (c *choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("expected one of " + strings.Join(c.words, ", ") + didYouMean(word, c.words))
	}
	c.chosen = word
	return nil
}

// duration is a flag's value above 0.
type duration time.Duration

func (d *duration) Type() string { return "duration" }

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *duration) Set(text string) error {
	given, err := time.ParseDuration(text)
	if err == nil && given <= 0 {
		err = errors.New("expected a duration above 0")
	}
	*d = duration(given)
	return err
}

// timeoutFlag declares --timeout.
func timeoutFlag(fs *pflag.FlagSet, value *duration, most time.Duration) {
	*value = duration(most)
	fs.Var(value, "timeout", "give up after this `duration`")
}

// zone is a flag's value that names a time zone.
type zone struct{ *time.Location }

func (z *zone) Type() string { return "zone" }

func (z *zone) Set(name string) (err error) {
	z.Location, err = parseZone(name)
	return err
}

// zoneFlag declares --tz.
func zoneFlag(fs *pflag.FlagSet, value *zone, usage string) {
	fs.Var(value, "tz", "time `zone` "+usage+", such as Asia/Shanghai, +08:00, UTC or Local")
}

// epoch is a flag's value that is the time from which keys count.
type epoch struct{ time.Time }

func (e *epoch) Type() string   { return "time" }
func (e *epoch) String() string { return e.Format(time.RFC3339) }

func (e *epoch) Set(text string) (err error) {
	e.Time, err = parseEpoch(text)
	return err
}

// quoted is a word of the command line or the input, as an error shows it: the start of
// a long one, and nothing that may be a DSN with its password.
func quoted(word string) string {
	if strings.Contains(word, "@") {
		return `"…"`
	}
	const most = 60
	if len(word) <= most {
		return strconv.Quote(word)
	}
	end := most
	for end > 0 && !utf8.RuneStart(word[end]) {
		end--
	}
	return strconv.Quote(word[:end] + "…")
}

// didYouMean is the end of a message about a wrong word; empty if no right one is near.
func didYouMean(wrong string, right []string) string {
	if word := nearest.Word(wrong, right); word != "" {
		return "; did you mean " + word + "?"
	}
	return ""
}

// list joins names, the first few of many.
func list(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
