package main

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

// choice is a flag value that must be one of words.
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

// duration is a flag value above 0.
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
	if err != nil || given <= 0 {
		err = errors.New("expected a duration above 0, such as 5s")
	}
	*d = duration(given)
	return err
}

// timeoutFlag declares --timeout with the default most.
func timeoutFlag(fs *pflag.FlagSet, value *duration, most time.Duration) {
	*value = duration(most)
	fs.Var(value, "timeout", "time limit, a `duration` such as 30s")
}

// zone is a flag value that names a time zone.
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

// epoch is a flag value: the time at which the time field of keys is 0.
type epoch struct{ time.Time }

func (e *epoch) Type() string   { return "time" }
func (e *epoch) String() string { return e.Format(time.RFC3339) }

func (e *epoch) Set(text string) (err error) {
	e.Time, err = parseEpoch(text)
	return err
}

// quoted quotes a word of the command line or the input for an error message. It shortens
// long words, and hides words that may be a DSN with a password.
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

// reworded replaces messages of package cobra and package strconv about flags and arguments.
func reworded(message string) string {
	for _, r := range rewordings {
		message = r.form.ReplaceAllString(message, r.text)
	}
	return message
}

var rewordings = []struct {
	form *regexp.Regexp
	text string
}{
	{
		regexp.MustCompile(`^if any flags in the group \[.*\] are set none .*; \[(\S+) (\S+)\] were all set$`),
		"--$1 and --$2 cannot be used together",
	},
	{regexp.MustCompile(`^at least one of the flags in the group \[(\S+) (\S+)\] is .*$`), "expected --$1 or --$2"},
	{regexp.MustCompile(`^accepts 0 arg\(s\), received`), "expected no arguments, found"},
	{regexp.MustCompile(`^accepts at most 1 arg\(s\), received`), "expected at most 1 argument, found"},
	{regexp.MustCompile(`^accepts between (\d) and (\d) arg\(s\), received`), "expected $1 or $2 arguments, found"},
	{regexp.MustCompile(`strconv\.ParseInt: parsing .*$`), "expected an integer"},
	{regexp.MustCompile(`strconv\.ParseBool: parsing .*$`), "expected true or false"},
}

// list joins names, at most the first 10.
func list(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
