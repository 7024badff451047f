package engines

import (
	"fmt"
	"strings"
	"testing"

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// Spider is MariaDB's Spider engine: heads whose tables are partitioned over back ends. All of
// them have a database app.
type Spider struct {
	Cluster
	Heads, BackEnds []*testserver.Server
}

// StartSpider starts heads and back ends for one test.
func StartSpider(t testing.TB, heads, backEnds int) *Spider {
	t.Helper()
	s := new(Spider)
	s.openForTest(t, "spider", func() error { return s.start(heads, backEnds) })
	return s
}

func (s *Spider) start(heads, backEnds int) error {
	servers, err := s.startAll(testserver.KindMariaDB, make([][]string, heads+backEnds)...)
	if err != nil {
		return err
	}
	s.Heads, s.BackEnds = servers[:heads], servers[heads:]
	for _, server := range servers {
		if err := Run(server.DSN(), "CREATE DATABASE app"); err != nil {
			return err
		}
	}
	for _, head := range s.Heads {
		if err := Run(head.DSN(), "INSTALL SONAME 'ha_spider'"); err != nil {
			return &testserver.MissingError{Program: "MariaDB's Spider engine", Remedy: "apt-get install mariadb-plugin-spider"}
		}
		for i, b := range s.BackEnds {
			if err := Run(head.DSN(), fmt.Sprintf("CREATE SERVER b%d FOREIGN DATA WRAPPER mysql OPTIONS "+
				"(HOST '127.0.0.1', PORT %d, USER 'root', DATABASE 'app')", i, b.Port())); err != nil {
				return err
			}
		}
	}
	return nil
}

// CreateTable creates a table on each back end, and a partitioned table on each head. columns is
// the part of CREATE TABLE in parentheses. by is the partitioning, such as "HASH (id)". For
// RANGE, bounds are the VALUES LESS THAN of the partitions.
func (s *Spider) CreateTable(name, columns, by string, bounds ...string) error {
	table := fmt.Sprintf("CREATE TABLE app.%s (%s)", name, columns)
	for _, b := range s.BackEnds {
		if err := Run(b.DSN(), table); err != nil {
			return err
		}
	}
	var partitions []string
	for i := range s.BackEnds {
		values := ""
		if i < len(bounds) {
			values = "VALUES LESS THAN " + bounds[i]
		}
		partitions = append(partitions, fmt.Sprintf(`PARTITION p%d %s COMMENT 'srv "b%[1]d"'`, i, values))
	}
	for _, head := range s.Heads {
		if err := Run(head.DSN(), fmt.Sprintf(`%s ENGINE=SPIDER COMMENT='wrapper "mysql", table "%s"' PARTITION BY %s (%s)`,
			table, name, by, strings.Join(partitions, ", "))); err != nil {
			return err
		}
	}
	return nil
}
