package driver

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// server is what a connector knows about the engine at its other end.
type server struct {
	// lastInsertID: LAST_INSERT_ID(expr) in an INSERT's values becomes the
	// statement's insert id. MySQL and MariaDB do so; engines that speak their
	// protocol may not, or may refuse an expression for a sharding column.
	lastInsertID bool
	// foundRows: the connection may have clientFoundRows, so that ON DUPLICATE
	// KEY UPDATE reports 1 for a row that existed and did not change.
	foundRows bool
}

// The values of the parameter shardkeyServer.
const (
	serverAuto    = "auto"
	serverMySQL   = "mysql"
	serverMariaDB = "mariadb"
	serverOther   = "other"
)

// checkServer refuses a value that shardkeyServer does not have.
func checkServer(kind string) error {
	switch kind {
	case "", serverAuto, serverMySQL, serverMariaDB, serverOther:
		return nil
	}
	return &DSNError{Param: paramServer, Reason: fmt.Sprintf("%q is none of auto, mysql, mariadb, other", kind)}
}

// serverOf returns what is known about the server, and asks it once per
// connector unless the DSN tells.
func (c *conn) serverOf(ctx context.Context) (*server, error) {
	if s := c.connector.server.Load(); s != nil {
		return s, nil
	}
	s := &server{foundRows: mayFindRows(c.connector.host.DSN)}
	switch c.connector.serverKind {
	case serverMySQL, serverMariaDB:
		s.lastInsertID = true
	case serverOther:
	default:
		row, err := c.askRow(ctx, "SELECT VERSION(), @@version_comment")
		if err != nil {
			return nil, err
		}
		s.lastInsertID = len(row) == 2 && echoesLastInsertID(text(row[0]), text(row[1]))
	}
	c.connector.server.Store(s)
	return s, nil
}

// echoesLastInsertID knows MariaDB by its version, and MySQL by the comments of
// its builds. Whoever else speaks the protocol is treated with care.
func echoesLastInsertID(version, comment string) bool {
	if strings.Contains(version, "MariaDB") {
		return true
	}
	for _, other := range []string{"TiDB", "Vitess", "ShardingSphere", "Dolt", "OceanBase", "Doris", "StarRocks", "PolarDB", "SingleStore", "Databend"} {
		if strings.Contains(version, other) || strings.Contains(comment, other) {
			return false
		}
	}
	for _, build := range []string{"MySQL", "Percona", "Source distribution", "Ubuntu", "Debian", "Google", "Homebrew"} {
		if strings.Contains(comment, build) {
			return true
		}
	}
	return false
}

func mayFindRows(dsn string) bool {
	cfg, err := mysql.ParseDSN(dsn)
	return dsn == "" || err != nil || cfg.ClientFoundRows
}
