// Package server starts the MySQL-compatible server of the quickstart, so that the examples need
// nothing but Go. It runs as a program, because compiling it takes longer than all examples.
package server

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Start compiles and starts the server with one empty database. It returns the DSN of the database,
// for go-sql-driver/mysql, and a function that stops the server and drops its data. The server
// also stops when this process ends.
func Start() (dsn string, stop func() error, err error) {
	fmt.Fprintln(os.Stderr, "starting the quickstart's server, which takes a minute the first time")
	cmd := exec.Command("go", "run", "github.com/shardkey/shardkey/examples/quickstart", "-serve")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the quickstart's server: %w", err)
	}
	stop = func() error {
		err := stdin.Close()
		_ = cmd.Wait() // go run fails after an interrupt, which ends the examples too
		return err
	}
	dsn, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", nil, fmt.Errorf("start the quickstart's server: %w", errors.Join(err, stop()))
	}
	return strings.TrimSpace(dsn), stop, nil
}
