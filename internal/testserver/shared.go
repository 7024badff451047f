package testserver

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// The environment that names the shared servers.
const (
	envMySQL      = "SHARDKEY_TEST_MYSQL_DSN"
	envMariaDB    = "SHARDKEY_TEST_MARIADB_DSN"
	envMariaDB118 = "SHARDKEY_TEST_MARIADB118_DSN"
	envRedis      = "SHARDKEY_TEST_REDIS_ADDR"
	envZooKeeper  = "SHARDKEY_TEST_ZOOKEEPER_ADDR"
	envEtcd       = "SHARDKEY_TEST_ETCD_ADDR"

	// envSupervisor names the socket of the supervisor.
	envSupervisor = "SHARDKEY_TEST_SUPERVISOR"
	// envRequire turns skipped tests into failed ones.
	envRequire = "SHARDKEY_TEST_REQUIRE"
	// envRecord names the file that the run's compatibility matrix is made of.
	envRecord = "SHARDKEY_TEST_RECORD"
)

// SQL returns the DSN for go-sql-driver/mysql, without a database, of the shared
// server that [Each] runs the test on: "root@tcp(127.0.0.1:3306)/". Its user may
// do everything.
func SQL(t testing.TB) string { t.Helper(); return shared(t, productOf(t).name) }

// Redis returns the shared server's host:port.
func Redis(t testing.TB) string { t.Helper(); return shared(t, redis.Name) }

// ZooKeeper returns the shared server's host:port.
func ZooKeeper(t testing.TB) string { t.Helper(); return shared(t, zooKeeper.Name) }

// Etcd returns the shared server's host:port.
func Etcd(t testing.TB) string { t.Helper(); return shared(t, etcd.Name) }

// Database makes an empty database on the shared server that [Each] runs the
// test on, MariaDB outside of it, and returns the DSN that opens it. It is
// dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(SQL(t))
	if err != nil {
		t.Fatalf("%s: %v", productOf(t).env, err)
	}
	name := "shardkey_test_" + strings.ToLower(rand.Text())
	execute(t, cfg, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, cfg, "DROP DATABASE "+name) })
	own := cfg.Clone()
	own.DBName = name
	return own.FormatDSN()
}

// execute runs one statement on a connection of its own.
func execute(t testing.TB, cfg *mysql.Config, statement string) {
	t.Helper()
	err := with(cfg, func(db *sql.DB) error { _, err := db.Exec(statement); return err })
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// shared returns how to reach a shared server: the one that the environment names, or the
// supervisor's. With -short a test starts none.
func shared(t testing.TB, name string) string {
	t.Helper()
	env := find(services(), name).env
	if value := os.Getenv(env); value != "" {
		return value
	}
	NotShort(t)
	value, err := request(name)
	if errors.Is(err, errNoSupervisor) {
		Missing(t, fmt.Errorf("%w; or set %s to a server that tests may use", err, env))
	}
	Started(t, name, err)
	return value
}

// Missing skips the test that needs what is not there, or fails it when all
// tests are required to run.
func Missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv(envRequire) == "1" {
		t.Fatal(err)
	}
	t.Skip(err)
}
