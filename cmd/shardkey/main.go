// Command shardkey is a tool for programs that fill their keys with
// shardkey: it decodes keys, prints the keys of a time interval, checks
// sharding rules, shows what becomes of a statement or of those of a program,
// tries a rule's generators with their stores, and says who has which worker id.
//
//	shardkey decode 1095292305367040001
//	shardkey range yesterday
//	shardkey check rule.yaml
//	shardkey plan -rule rule.yaml 'INSERT INTO t_order (user_id) VALUES (?)'
//	shardkey lint -rule rule.yaml ./... schema.sql
//	shardkey generate -rule rule.yaml -table t_order -n 5
//	shardkey workers -rule rule.yaml
//	shardkey doctor -rule rule.yaml -dsn env:SHOP_DSN
//	shardkey migrate -dsn env:SHOP_DSN orders
//	shardkey init -dsn env:SHOP_DSN
//
// Only generate and workers ask the servers that the rule's generators and their
// worker-id assigners name; doctor asks these and the databases that it is given, as
// migrate and init do. The exit status is 0, 1 when something was
// found (a key that cannot be, a rule that does not load, a statement that is
// refused), and 2 when the command line is not understood. All of it is described in
// docs/cli.md.
//
// It stands on github.com/spf13/cobra: of the libraries for command lines it is
// the one whose shell completion knows the values of flags, and it brings one other
// package into the build.
package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/shardkey/shardkey/driver"
	_ "github.com/shardkey/shardkey/keygen/etcd"
	_ "github.com/shardkey/shardkey/keygen/redis"
	_ "github.com/shardkey/shardkey/keygen/zookeeper"
	"github.com/shardkey/shardkey/spi"
)

func main() {
	// A reader that has gone, as head does, is an error of the write and not the
	// end of the process: what is held is still given back.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	p := newProgram(interruptible{ctx, os.Stdin}, os.Stdout, os.Stderr, spi.SystemClock)
	p.piped = isPiped(os.Stdin)
	p.terminal = isTerminal(os.Stdout)
	p.colours = terminalColours(os.Stdout, os.Stderr)
	status := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

// program is one run of the tool, with its input and outputs.
type program struct {
	stdin   io.Reader
	read    bool // standard input has been read
	piped   bool // standard input is a pipe or a file, and read where no argument is given
	out     *bufio.Writer
	stderr  io.Writer
	clock   spi.Clock
	zone    *time.Location // of times that are typed without one
	colours colours
	// terminal says that standard output is one, where a look can replace the last.
	terminal bool

	json       bool   // -o json
	beforeWait func() // shows what was made of the lines so far, before more are waited for
}

func newProgram(stdin io.Reader, stdout, stderr io.Writer, clock spi.Clock) *program {
	return &program{stdin: stdin, out: bufio.NewWriter(stdout), stderr: stderr, clock: clock, zone: time.Local}
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
