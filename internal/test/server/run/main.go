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
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
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

	background, err := testserver.Background("sock")
	if err != nil {
		return 1, err
	}
	env := testserver.Env(background)
	if !testserver.Answers(background) {
		s, err := testserver.Supervise("")
		if err != nil {
			return 1, err
		}
		defer s.Close()
		if env, err = s.Env(); err != nil {
			return 1, err
		}
	}

	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
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
	socket, err := testserver.Background("sock")
	if err != nil || testserver.Answers(socket) {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	name, err := testserver.Background("log")
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

// serveBackground is the supervisor of the background, until it gets a signal. While it
// runs it has a lock on the file with its process ID.
func serveBackground() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	pid, err := openPID()
	if err != nil {
		return err
	}
	defer pid.Close()
	if running(pid) {
		return errors.New("there is a supervisor already")
	}
	if err := pid.Truncate(0); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(pid, os.Getpid()); err != nil {
		return err
	}
	socket, err := testserver.Background("sock")
	if err != nil {
		return err
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
	pid, err := openPID()
	if err != nil {
		return err
	}
	defer pid.Close()
	if !running(pid) {
		return nil
	}
	text, err := io.ReadAll(pid)
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", pid.Name(), err)
	}
	if err := syscall.Kill(id, syscall.SIGTERM); err != nil {
		return err
	}
	for running(pid) {
		time.Sleep(pollInterval)
	}
	return nil
}

func openPID() (*os.File, error) {
	name, err := testserver.Background("pid")
	if err != nil {
		return nil, err
	}
	return os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
}

// running reports whether a supervisor has the lock on the file. If none has, the caller
// gets it.
func running(pid *os.File) bool {
	return syscall.Flock(int(pid.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
