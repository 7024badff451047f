package main

import (
	"errors"
	"fmt"
	"io"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/sirupsen/logrus"
)

// startServer starts go-mysql-server on a free port of 127.0.0.1 with one empty database. It
// returns the DSN of the database, for go-sql-driver/mysql, and a function that stops the server
// and drops its data.
func startServer() (dsn string, stop func() error, err error) {
	logrus.SetOutput(io.Discard) // silences the server's log
	databases := memory.NewDBProvider(memory.NewDatabase("app"))
	s, err := server.NewServer(
		server.Config{Protocol: "tcp", Address: "127.0.0.1:0"},
		sqle.NewDefault(databases), sql.NewContext, memory.NewSessionBuilder(databases), nil)
	if err != nil {
		return "", nil, fmt.Errorf("start go-mysql-server: %w", err)
	}
	// The port is open already: connections wait until the server accepts them.
	ended := make(chan error, 1)
	go func() { ended <- s.Start() }()
	stop = func() error {
		if err := s.Close(); err != nil {
			return err
		}
		return <-ended
	}
	return "root@tcp(" + s.Listener.Addr().String() + ")/app", stop, nil
}

// serve starts the server, writes its DSN to out, and stops the server when in ends.
func serve(in io.Reader, out io.Writer) error {
	dsn, stop, err := startServer()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, dsn)
	_, err = io.Copy(io.Discard, in)
	return errors.Join(err, stop())
}
