//go:build unix

// Command run runs a command with servers that the tests share. Each is started when a
// test first asks for it, and they end with the command:
//
//	go run ./internal/test/server/run go test ./...
//
// With -up the servers stay in the background until -down ends them. Other runs then use
// them, and so do tests that are run without this command.
//
// Signals go to the command, whose exit code becomes that of run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

func main() {
	up := flag.Bool("up", false, "start a supervisor in the background")
	down := flag.Bool("down", false, "end the supervisor in the background, and its servers")
	serve := flag.Bool("serve", false, "be the supervisor of the background")
	flag.Parse()
	var code int
	var err error
	switch {
	case *up:
		err = startBackground()
	case *down:
		err = endBackground()
	case *serve:
		err = serveBackground()
	case flag.NArg() > 0:
		code, err = run(flag.Args())
	default:
		fmt.Fprintln(os.Stderr, "usage: run command [argument ...] | -up | -down")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testserver:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	// Taken before a server starts, so that no signal leaves one behind.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	endWithParent()

	socket, err := testserver.Background("sock")
	if err != nil {
		return 1, err
	}
	if !testserver.Answers(socket) {
		s, err := testserver.Supervise("")
		if err != nil {
			return 1, err
		}
		defer s.Close()
		socket = s.Socket()
	}

	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), testserver.Env(socket)...)
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

const pollInterval = 20 * time.Millisecond

// startBackground starts the supervisor of the background, unless there is one.
func startBackground() error {
	name, err := testserver.Background("log")
	if err != nil {
		return err
	}
	unlock, err := testserver.Lock(name + ".lock") // of two that start it at once, one does
	if err != nil {
		return err
	}
	defer unlock()
	socket, err := testserver.Background("sock")
	if err != nil || testserver.Answers(socket) {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(name)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(program, "-serve")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // outlives the terminal
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !testserver.Answers(socket) {
		select {
		case err := <-ended:
			return fmt.Errorf("the supervisor ended: %w; see %s", err, name)
		case <-time.After(pollInterval):
		}
	}
	return nil
}

// serveBackground is the supervisor of the background, until it gets a signal.
func serveBackground() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	socket, err := testserver.Background("sock")
	if err != nil {
		return err
	}
	if testserver.Answers(socket) {
		return errors.New("there is a supervisor already")
	}
	s, err := testserver.Supervise(socket)
	if err != nil {
		return err
	}
	<-signals
	s.Close()
	return nil
}

// endBackground ends the supervisor of the background, and returns when it has ended.
func endBackground() error {
	socket, err := testserver.Background("sock")
	if err != nil || !testserver.Answers(socket) {
		return err
	}
	pid, err := testserver.ProcessID(socket)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return err
	}
	for testserver.Answers(socket) {
		time.Sleep(pollInterval)
	}
	return nil
}
