//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
)

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
