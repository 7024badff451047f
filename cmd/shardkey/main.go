// Command shardkey is for whoever runs a program that fills its keys with
// shardkey: it takes keys apart, gives the keys of a time interval, checks
// sharding rules, shows what becomes of a statement, and tries a rule's
// generators with their stores.
//
//	shardkey decode 1095292305367040001
//	shardkey range 2026-01-01 2026-02-01
//	shardkey check rule.yaml
//	shardkey plan -rule rule.yaml 'INSERT INTO t_order (user_id) VALUES (?)'
//	shardkey generate -rule rule.yaml -table t_order -n 5
//
// Only generate asks a server, and only those that the rule's generator and its
// worker-id assigner name. The exit status is 0, 1 when the answer is an error
// (a key that cannot be, a rule that does not load, a statement that is
// refused), and 2 when the command line is not understood.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/shardkey/shardkey/spi"

	// Every type that a rule can name.
	_ "github.com/shardkey/shardkey/driver"
	_ "github.com/shardkey/shardkey/keygen/etcd"
	_ "github.com/shardkey/shardkey/keygen/redis"
	_ "github.com/shardkey/shardkey/keygen/zookeeper"
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
