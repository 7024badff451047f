// Package embedded starts a MySQL-compatible server within the process, so that
// an example runs on a machine that has nothing but Go.
package embedded

import (
	"fmt"
	"io"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/sirupsen/logrus"
)

// Name says what kind of server it is.
const Name = "go-mysql-server, in this process"

// Start starts go-mysql-server on a free port of loopback, with one empty
// database, and returns that database's DSN for go-sql-driver/mysql. The
// returned function stops the server; its data is gone then.
func Start() (dsn string, stop func() error, err error) {
	logrus.SetOutput(io.Discard) // the server's own log
	databases := memory.NewDBProvider(memory.NewDatabase("app"))
	s, err := server.NewServer(
		server.Config{Protocol: "tcp", Address: "127.0.0.1:0"},
		sqle.NewDefault(databases), sql.NewContext, memory.NewSessionBuilder(databases), nil)
	if err != nil {
		return "", nil, fmt.Errorf("start go-mysql-server: %w", err)
	}
	// Its port listens already: connections wait until it serves.
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
