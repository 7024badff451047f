//go:build unix

// Command run runs a command with servers that the tests share. Each is started when a
// test first asks for it, and they end with the command:
//
//	go run ./internal/test/server/run go test ./...
//
// With -up the servers stay in the background until -down ends them. Other runs then use
// them, and so do tests that are run without this command.
//
// Signals go to the command, whose exit code becomes that of run (255 after a signal).
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
	socket, err := testserver.Background()
	switch {
	case err != nil:
	case *up:
		err = startBackground(socket)
	case *down:
		err = endBackground(socket)
	case *serve:
		err = serveBackground(socket)
	case flag.NArg() > 0:
		code, err = run(socket, flag.Args())
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

// run runs a command, with the supervisor of the background or one of its own. It returns the
// command's exit code, which is -1 if a signal ended the command.
func run(socket string, args []string) (code int, err error) {
	// Taken before a server starts, so that no signal leaves one behind.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	endWithParent()

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
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				return exit.ExitCode(), nil
			}
			return 0, err
		}
	}
}

const pollInterval = 20 * time.Millisecond

// startBackground starts the supervisor of the background, unless there is one.
func startBackground(socket string) error {
	unlock, err := testserver.Lock(socket + ".lock") // of two that start it at once, one does
	if err != nil {
		return err
	}
	defer unlock()
	if testserver.Answers(socket) {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(socket + ".log")
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
			return fmt.Errorf("the supervisor ended: %w; see %s", err, log.Name())
		case <-time.After(pollInterval):
		}
	}
	return nil
}

// serveBackground is the supervisor of the background, until it gets a signal.
func serveBackground(socket string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
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
func endBackground(socket string) error {
	if !testserver.Answers(socket) {
		return nil
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
