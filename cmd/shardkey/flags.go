package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones for machines without a time zone database
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/rule"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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

func (du *duration) Type() string { return "duration" }

func (du *duration) String() string {
	if *du == 0 {
		return ""
	}
	return time.Duration(*du).String()
}

func (du *duration) Set(text string) error {
	given, err := time.ParseDuration(text)
	if err != nil || given <= 0 {
		err = errors.New("expected a duration above 0, such as 5s")
	}
	*du = duration(given)
	return err
}

// timeoutFlag declares --timeout with the default most; see limited.
func timeoutFlag(fs *pflag.FlagSet, most time.Duration) {
	fs.Var((*duration)(&most), "timeout", "time limit, a `duration` such as 30s")
}

// zoneFlag declares --tz, a time zone of any form that parseZone accepts, with the default UTC.
func zoneFlag(fs *pflag.FlagSet, zone **time.Location, usage string) {
	*zone = time.UTC
	usage = "time `zone` " + usage + ", such as Asia/Shanghai, +08:00, UTC or Local (default UTC)"
	fs.Func("tz", usage, func(name string) (err error) {
		*zone, err = parseZone(name)
		return err
	})
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

// rewordings replace messages of package cobra and package strconv about flags and arguments.
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

func list(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// parseZone parses a time zone: a name, or an offset such as +08:00.
func parseZone(name string) (*time.Location, error) {
	if t, err := time.Parse("-07:00", name); err == nil {
		_, offset := t.Zone()
		return time.FixedZone(name, offset), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil, errors.New("expected a time zone: a name such as Asia/Shanghai, +08:00, UTC or Local")
	}
	return zone, nil
}

const timeHelp = `A time is a day (2026-01-31, today, yesterday), a local time ('2026-01-31 10:00'), a time
with its zone (2026-01-31T12:00:00Z), now, or a duration before now (24h, 90m, 7d). UNTIL
may also be a duration after FROM (+24h). Days and local times are in the zone of --tz.`

// timeForms are the accepted layouts of times with and without a zone.
var timeForms = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04Z07:00",
	"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04",
}

// parseTime parses a time, by default in the zone of now. A duration such as +24h counts
// from start. isDay reports whether text is a day without a time.
func parseTime(text string, now, start time.Time) (t time.Time, isDay bool, err error) {
	switch text {
	case "now":
		return now, false, nil
	case "today", "yesterday":
		y, m, d := now.Date()
		if text == "yesterday" {
			d--
		}
		return time.Date(y, m, d, 0, 0, 0, 0, now.Location()), true, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return t, true, nil
	}
	for _, form := range timeForms {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, false, nil
		}
	}
	length, after := strings.CutPrefix(text, "+")
	d, ok := parseLength(length)
	switch {
	case !ok:
		return t, false, fmt.Errorf("expected a time such as 2026-01-31, yesterday, '2026-01-31 10:00', "+
			"2026-01-31T12:00:00Z or 24h, found %s", quoted(text))
	case after:
		return start.Add(d), false, nil
	}
	return now.Add(-d), false, nil
}

// parseLength parses a duration without a sign. It also accepts days of 24 hours, such as 7d.
func parseLength(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && !strings.ContainsAny(text[:1], "+-")
}

// parseEpoch parses an epoch: a time with its zone, a date, which means midnight UTC, or
// milliseconds since 1970.
func parseEpoch(text string) (time.Time, error) {
	for _, form := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n < 1<<43 {
		return time.UnixMilli(n).UTC(), nil
	}
	return time.Time{}, errors.New("expected a time such as 2026-01-31T12:00:00Z, a date, or milliseconds since 1970")
}

// formatTime formats t in RFC 3339 with milliseconds, or with more digits if t is not a
// whole number of milliseconds.
func formatTime(t time.Time, zone *time.Location) string {
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		return t.In(zone).Format(time.RFC3339Nano)
	}
	return t.In(zone).Format("2006-01-02T15:04:05.000Z07:00")
}

// didYouMean returns the end of a message about a wrong word: a suggestion, or "" if no
// right word is similar.
func didYouMean(wrong string, right []string) string {
	if word := nearest.Word(wrong, right); word != "" {
		return "; did you mean " + word + "?"
	}
	return ""
}

var ruleFiles = cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)

func words(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

func completeFlags(c *cobra.Command) {
	for name, values := range map[string]cobra.CompletionFunc{
		"rule":   ruleFiles,
		"output": words("text", "json"),
		"layout": words(
			snowflake.Classic.String()+"\tSNOWFLAKE, LEAF_SNOWFLAKE", "41-12-10\tREDIS",
			"js53\tSNOWFLAKE for JavaScript"),
		"server":    words(serverKinds...),
		"generator": fromRule(generatorNames),
		"type":      words(registry.Types(registry.KeyGenerators)...),
		"table":     fromRule(allTableNames),
	} {
		if c.Flag(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name, values) // can't fail: the flag exists
		}
	}
}

// fromRule completes with names from the command's rule file. It offers none if the file
// can't be read, and doesn't read a rule from standard input, which belongs to the shell.
func fromRule(names func(*rule.Rule) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) (found []string, _ cobra.ShellCompDirective) {
		if file, err := ruleFile(c); err == nil {
			if r, err := rule.Load(file); err == nil {
				found = names(r)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
