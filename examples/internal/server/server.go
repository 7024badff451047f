// Package server starts the MySQL-compatible server of the quickstart, so that the examples need
// nothing but Go. It runs as a program, because compiling it takes longer than all examples.
package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Main is the function main of an example. It runs the example with an empty database of the server.
func Main(run func(ctx context.Context, out io.Writer, dsn string) error) {
	dsn, stop, err := Start()
	if err == nil {
		err = errors.Join(run(context.Background(), os.Stdout, dsn), stop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+":", err)
		os.Exit(1)
	}
}

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
