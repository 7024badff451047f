package main

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/pflag"
)

// choice is a flag's value that is one of a few words, the first by default.
type choice struct {
	words  []string
	chosen string
}

func (c *choice) String() string {
	if c.chosen == "" && len(c.words) > 0 {
		return c.words[0]
	}
	return c.chosen
}

func (c *choice) Set(word string) error {
	for _, known := range c.words {
		if word == known {
			c.chosen = word
			return nil
		}
	}
	return errors.New("none of " + strings.Join(c.words, ", ") + didYouMean(word, c.words))
}

func (c *choice) Type() string { return strings.Join(c.words, "|") }

// outputFlag is -o, of each command that answers.
func (p *program) outputFlag(fs *pflag.FlagSet) {
	fs.VarP(&outputFormat{choice{words: []string{"text", "json"}}, p}, "o", "o", "the output: text, or json, which is an object a line")
}

type outputFormat struct {
	choice
	p *program
}

func (f *outputFormat) Set(word string) error {
	err := f.choice.Set(word)
	f.p.json = f.chosen == "json"
	return err
}

// emit prints a JSON object on a line of its own. The error is errOutput: what
// is printed can always be marshalled.
func (p *program) emit(v any) error {
	out := json.NewEncoder(p.out)
	out.SetEscapeHTML(false)
	if out.Encode(v) != nil {
		return errOutput
	}
	return nil
}

// A colour is what the digits of a terminal's control sequence say.
type colour string

const (
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	faint  colour = "2"
)

// colours say where to use colours.
type colours struct {
	when           colourMode // -color
	stdout, stderr bool       // with auto
}

type colourMode struct{ choice }

func (m *colourMode) String() string {
	m.words = []string{"auto", "always", "never"}
	return m.choice.String()
}

func (m *colourMode) Set(word string) error {
	_ = m.String()
	return m.choice.Set(word)
}

// out colours a word of standard output, err one of standard error.
func (c *colours) out(as colour, text string) string { return c.paint(as, text, c.stdout) }
func (c *colours) err(as colour, text string) string { return c.paint(as, text, c.stderr) }

func (c *colours) paint(as colour, text string, auto bool) string {
	when := c.when.String()
	if when == "never" || when == "auto" && !auto || text == "" {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// terminalColours are used where an output is a terminal that has some, unless
// the environment says NO_COLOR.
func terminalColours(stdout, stderr *os.File) (c colours) {
	switch {
	case os.Getenv("NO_COLOR") != "", os.Getenv("TERM") == "dumb":
	case runtime.GOOS == "windows" && os.Getenv("WT_SESSION") == "" && os.Getenv("TERM") == "":
	default:
		c.stdout, c.stderr = isTerminal(stdout), isTerminal(stderr)
	}
	return c
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
