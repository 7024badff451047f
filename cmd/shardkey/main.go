// Command shardkey is a tool for programs that fill their keys with
// shardkey: it decodes keys, prints the keys of a time interval, checks
// sharding rules, shows what becomes of a statement or of those of a program, and
// tries a rule's generators with their stores.
//
//	shardkey decode 1095292305367040001
//	shardkey range 2026-01-01 2026-02-01
//	shardkey check rule.yaml
//	shardkey plan -rule rule.yaml 'INSERT INTO t_order (user_id) VALUES (?)'
//	shardkey lint -rule rule.yaml ./... schema.sql
//	shardkey generate -rule rule.yaml -table t_order -n 5
//
// Only generate asks a server, and only those that the rule's generator and its
// worker-id assigner name. The exit status is 0, 1 when the answer is an error
// (a key that cannot be, a rule that does not load, a statement that is
// refused), and 2 when the command line is not understood.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	_ "github.com/shardkey/shardkey/driver"
	_ "github.com/shardkey/shardkey/keygen/etcd"
	_ "github.com/shardkey/shardkey/keygen/redis"
	_ "github.com/shardkey/shardkey/keygen/zookeeper"
	"github.com/shardkey/shardkey/spi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	p := newProgram(os.Stdin, os.Stdout, os.Stderr, spi.SystemClock)
	status := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

func newProgram(stdin io.Reader, stdout, stderr io.Writer, clock spi.Clock) *program {
	return &program{stdin: stdin, out: newOutput(stdout), stderr: stderr, clock: clock}
}

// The exit statuses.
const (
	statusOK    = 0
	statusError = 1 // the answer is an error
	statusUsage = 2 // the command line is not understood
)

// program is one run of the tool, with its input and outputs.
type program struct {
	stdin  io.Reader
	out    *bufio.Writer
	stderr io.Writer
	clock  spi.Clock
}

func newOutput(w io.Writer) *bufio.Writer { return bufio.NewWriter(w) }

// command is one of the tool's commands.
type command struct {
	name  string
	args  string // what follows the flags
	short string // one line
	long  string
	// flags declares the flags and returns what runs with them.
	flags func(*flag.FlagSet) action
}

// action runs a command with its arguments.
type action func(ctx context.Context, p *program, args []string) error

// usageError says that the command line is not understood.
type usageError struct{ reason string }

func (e *usageError) Error() string { return e.reason }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// errReported ends a command whose error has already been printed.
var errReported = errors.New("shardkey: see above")

// run runs the command that args name and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	status := p.dispatch(ctx, args)
	if err := p.out.Flush(); err != nil {
		fmt.Fprintln(p.stderr, "shardkey: output:", err)
		return max(status, statusError)
	}
	return status
}

func (p *program) dispatch(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(p.stderr, overview())
		return statusUsage
	}
	name := args[0]
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-version", "--version":
		name = "version"
	}
	c := find(name)
	if c == nil {
		return p.misused("", usagef("unknown command %q", name))
	}
	fs := newFlagSet(c)
	act := c.flags(fs)
	rest, err := parse(fs, args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(p.out, c.help())
		return statusOK
	case err != nil:
		return p.misused(c.name, err)
	}
	return p.finish(c, act(ctx, p, rest))
}

func (p *program) finish(c *command, err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &usage):
		return p.misused(c.name, err)
	case !errors.Is(err, errReported):
		p.report(err)
	}
	return statusError
}

// report prints an error, after what has been printed so far.
func (p *program) report(err error) {
	_ = p.out.Flush() // run sees it again
	fmt.Fprintln(p.stderr, "shardkey:", strings.TrimPrefix(err.Error(), "shardkey: "))
}

func (p *program) misused(name string, err error) int {
	help := "shardkey help"
	if name != "" {
		help += " " + name
	}
	p.report(fmt.Errorf("%w\nsee '%s'", err, help))
	return statusUsage
}

// logger is where generators write their few lines.
func (p *program) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{} // lines are read as they appear
		}
		return a
	}}))
}
