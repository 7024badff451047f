// Command run starts the servers that tests share, runs a command with the
// environment that names them, and stops them again:
//
//	go run ./internal/testserver/run -- go test ./...
//
// A server that the environment names already is not started. Signals go to the
// command, whose exit code is run's own.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/shardkey/shardkey/internal/testserver"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: run -- command [argument ...]")
		os.Exit(2)
	}
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testserver:", err)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	// Taken before the servers start, so that no signal leaves them behind.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	endWithParent()

	servers, err := testserver.StartAll()
	if err != nil {
		return 1, err
	}
	defer servers.Close()

	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), servers.Env()...)
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			_ = cmd.Process.Signal(sig) // fails only when it has ended
		case err := <-ended:
			return exitCode(err)
		}
	}
}

// exitCode is the command's own, or 128 and the signal's number, as a shell has
// it, for one that a signal ended.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err != nil {
			return 1, err
		}
		return 0, nil
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
