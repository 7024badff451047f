package testserver

import (
	"crypto/rand"
	"database/sql"
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

	// envRequire turns skipped tests into failed ones.
	envRequire = "SHARDKEY_TEST_REQUIRE"
	// envRecord names the file that the run's compatibility matrix is made of.
	envRecord = "SHARDKEY_TEST_RECORD"
)

// SQL returns the DSN for go-sql-driver/mysql, without a database, of the shared
// server that [Each] runs the test on: "root@tcp(127.0.0.1:3306)/". Its user may
// do everything.
func SQL(t testing.TB) string { t.Helper(); return fromEnv(t, productOf(t).env) }

// Redis returns the shared server's host:port.
func Redis(t testing.TB) string { t.Helper(); return fromEnv(t, envRedis) }

// ZooKeeper returns the shared server's host:port.
func ZooKeeper(t testing.TB) string { t.Helper(); return fromEnv(t, envZooKeeper) }

// Etcd returns the shared server's host:port.
func Etcd(t testing.TB) string { t.Helper(); return fromEnv(t, envEtcd) }

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
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func fromEnv(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		Missing(t, fmt.Errorf("%s is not set: make test starts a server (so does"+
			" go run ./internal/testserver/run -- go test), or set it to one that tests may use", name))
	}
	return v
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
