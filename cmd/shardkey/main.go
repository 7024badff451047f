// Command shardkey generates and decodes keys, checks sharding rules, shows how
// statements are rewritten, and checks databases against a rule.
//
//	shardkey decode 1095292305367040001
//	shardkey check rule.yaml
//	shardkey plan 'INSERT INTO t_order (user_id) VALUES (?)'
//	shardkey lint ./... schema.sql
//	shardkey generate --table t_order -n 5
//	shardkey workers
//	shardkey doctor --dsn env:SHOP_DSN
//	shardkey migrate --dsn env:SHOP_DSN orders
//	shardkey init --dsn env:SHOP_DSN
//
// Commands that need a rule read the file that --rule or the environment variable
// SHARDKEY_RULE names, or else ./rule.yaml. Only generate, workers, doctor, migrate and
// init connect to servers. The exit status is 0 for success, 1 if the command found a
// problem or failed, and 2 if the command line is wrong. The [documentation] has sessions.
//
// [documentation]: https://github.com/shardkey/shardkey/blob/main/docs/reference/cli.md
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/shardkey/shardkey/driver"
	_ "github.com/shardkey/shardkey/keygen/etcd"
	_ "github.com/shardkey/shardkey/keygen/redis"
	_ "github.com/shardkey/shardkey/keygen/zookeeper"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/cobra"
)

// The exit statuses.
const (
	statusOK    = 0
	statusError = 1 // the command found a problem, or failed
	statusUsage = 2 // the command line is wrong
)

func main() {
	// Without SIGPIPE, a closed output such as head is only a failed write. The process
	// continues and releases its leases.
	signal.Ignore(syscall.SIGPIPE)
	p := newProgram(os.Stdin, os.Stdout, os.Stderr, spi.SystemClock)
	p.piped = isPiped(os.Stdin)
	os.Exit(p.run(context.Background(), os.Args[1:]))
}

// program is one run of the command, with its input and outputs.
type program struct {
	stdin  io.Reader
	piped  bool // standard input is a pipe or a file, which commands read if they have no arguments
	read   bool // standard input has been read
	out    *bufio.Writer
	stderr io.Writer
	clock  spi.Clock

	output     choice   // -o
	dsns       []string // --dsn
	running    bool     // the command line is valid and the command has started
	beforeWait func()   // shows the results so far; called before each read of standard input
}

func newProgram(stdin io.Reader, stdout, stderr io.Writer, clock spi.Clock) *program {
	return &program{
		stdin: stdin, out: bufio.NewWriter(stdout), stderr: stderr, clock: clock,
		output: choice{words: []string{"text", "json"}, chosen: "text"},
	}
}

// usageError reports a wrong command line.
type usageError struct{ reason string }

func (ue *usageError) Error() string { return ue.reason }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

var (
	// errFound ends a command that has printed problems.
	errFound = errors.New("shardkey: found problems")
	// errOutput ends the reading of input if the output cannot be written. run reports the cause.
	errOutput = errors.New("shardkey: output")
)

// run executes the command line args and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.rootCommand()
	addBuiltins(root)
	root.SetArgs(append([]string{}, args...)) // not nil, which stands for os.Args
	c, err := root.ExecuteContextC(ctx)
	status := p.report(c, args, err)
	switch err := p.out.Flush(); {
	case readerGone(err):
	case err != nil:
		fmt.Fprintln(p.stderr, "shardkey: output:", err)
		return max(status, statusError)
	}
	return status
}

// report prints the error of a command and returns the exit status.
func (p *program) report(c *cobra.Command, args []string, err error) int {
	switch {
	case err == nil, errors.Is(err, errOutput):
		return statusOK
	case !p.running, errors.As(err, new(*usageError)):
		message := redact(trimPrefix(err), args)
		for _, r := range rewordings {
			message = r.form.ReplaceAllString(message, r.text)
		}
		p.warn(fmt.Sprintf("%s\nRun '%s --help' for usage.", message, c.CommandPath()))
		return statusUsage
	case errors.Is(err, errFound):
	case p.json():
		p.emit(struct {
			Error string `json:"error"`
		}{trimPrefix(err)})
	default:
		p.warn(trimPrefix(err))
	}
	return statusError
}

// redact removes arguments that may contain a password from an error message.
func redact(message string, args []string) string {
	for _, arg := range args {
		_, value, _ := strings.Cut(arg, "=")
		for _, secret := range []string{arg, value} {
			if strings.Contains(secret, "@") {
				quoted := fmt.Sprintf("%q", secret)
				message = strings.NewReplacer(secret, "…", quoted[1:len(quoted)-1], "…").Replace(message)
			}
		}
	}
	return message
}

// warn prints a message on standard error, after the output so far.
func (p *program) warn(message string) {
	_ = p.out.Flush() // run reports the error
	fmt.Fprintln(p.stderr, "shardkey:", visible(message))
}

// visible replaces the characters of a message that aren't printable, except line feeds and tabs. A
// server may have written it, with control sequences for terminals.
func visible(message string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, message)
}

func (p *program) rootCommand() *cobra.Command {
	cobra.EnableCommandSorting = false
	root := &cobra.Command{
		Use:   "shardkey",
		Short: "generate and decode keys, check rules and databases",
		Long: `shardkey generates and decodes keys, checks sharding rules, shows how statements are
rewritten, and checks databases against a rule.`,
		Version:       buildVersion().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(p.out)
	root.SetErr(p.stderr)
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Keys", []*cobra.Command{generateCommand(p), decodeCommand(p)}},
		{"Rules", []*cobra.Command{initCommand(p), checkCommand(p), planCommand(p), lintCommand(p)}},
		{"Databases", []*cobra.Command{doctorCommand(p), workersCommand(p), migrateCommand(p)}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, c := range group.commands {
			c.GroupID = group.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(versionCommand(p))
	for _, c := range root.Commands() {
		c.Flags().VarP(&p.output, "output", "o", "output `format`: text, or json for one JSON object")
		completeFlags(c)
		if c.ValidArgsFunction == nil {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		run := c.RunE
		c.RunE = func(c *cobra.Command, args []string) error {
			p.running = true
			return run(c, args)
		}
	}
	return root
}

// addBuiltins adds cobra's commands help and completion, in the style of the others.
func addBuiltins(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Short = "show the help of a command"
			c.Args = func(_ *cobra.Command, args []string) error {
				if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return usagef("there is no command %s", quoted(strings.Join(args, " ")))
				}
				return nil
			}
		case "completion":
			c.Short = "print the completion script of a shell"
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(c *cobra.Command, args []string) error {
				if len(args) == 0 {
					return c.Help()
				}
				return usagef("expected one of bash, zsh, fish, powershell, found %s", quoted(args[0]))
			}
		}
	}
}

func (p *program) json() bool { return p.output.chosen == "json" }

// emit prints a value as JSON on one line. Characters that aren't printable are escaped.
func (p *program) emit(v any) {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	_ = out.Encode(v) // all values can be encoded
	for _, r := range strings.TrimSuffix(text.String(), "\n") {
		if unicode.IsPrint(r) {
			_, _ = p.out.WriteRune(r) // run reports an error of the output
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(p.out, `\u%04x`, unit)
		}
	}
	fmt.Fprintln(p.out)
}

// answer prints the result v of a command: as JSON, or with text. It returns errFound if
// problem is set.
func (p *program) answer(v any, text func(io.Writer), problem bool) error {
	if p.json() {
		p.emit(v)
	} else {
		text(p.out)
	}
	if problem {
		return errFound
	}
	return nil
}

// limited returns a context that ends after the command's --timeout, or earlier if the process is
// interrupted. Call it after the standard input was read, which an interrupt should end too.
func limited(c *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(*c.Flag("timeout").Value.(*duration)))
	return ctx, func() { cancel(); stop() }
}

// logger returns the logger of generators and stores.
func (p *program) logger() *slog.Logger {
	withoutTime := func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{} // the user sees each line when it is written
		}
		return a
	}
	options := &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutTime}
	return slog.New(slog.NewTextHandler(p.stderr, options))
}

// trimPrefix returns an error's message without the prefix "shardkey: ", which warn adds.
func trimPrefix(err error) string { return strings.TrimPrefix(err.Error(), "shardkey: ") }

// version is the output of the command version.
type version struct {
	Version string `json:"version"` // of the module, or the commit of a development build
	Go      string `json:"go"`
}

func buildVersion() version { return version{driver.Version(), runtime.Version()} }

func (ve version) String() string { return "shardkey " + ve.Version + " " + ve.Go }

func versionCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Long: `Use version in bug reports. It prints the version of shardkey and the version of Go that
built it.`,
		Example: "  shardkey version -o json",
		Args:    cobra.ExactArgs(0),
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			return p.answer(v, func(w io.Writer) { fmt.Fprintln(w, v) }, false)
		},
	}
}
