package testserver

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// The environment that names the shared servers.
const (
	envDSN       = "SHARDKEY_TEST_DSN"
	envRedis     = "SHARDKEY_TEST_REDIS_ADDR"
	envZooKeeper = "SHARDKEY_TEST_ZOOKEEPER_ADDR"
	envEtcd      = "SHARDKEY_TEST_ETCD_ADDR"

	// envSupervisor names the socket of the supervisor.
	envSupervisor = "SHARDKEY_TEST_SUPERVISOR"
	// envRequire turns skipped tests into failed ones: all of them if it is 1. A list such as
	// mysql,mariadb names the servers that tests use, and the tests of others are skipped.
	envRequire = "SHARDKEY_TEST_REQUIRE"
)

func wanted(name string) bool { return required(name) || os.Getenv(envRequire) == "" }

func required(name string) bool {
	list := os.Getenv(envRequire)
	return list == "1" || slices.Contains(strings.Split(list, ","), name)
}

// skipUnwanted skips a test of a server that the environment doesn't list.
func skipUnwanted(t testing.TB, name string) {
	t.Helper()
	if !wanted(name) {
		t.Skip(name + " isn't among the servers of make test: make ci runs this test")
	}
}

// SQL returns the DSN for go-sql-driver/mysql, without a database, of the shared
// server that [Each] runs the test on: "root@tcp(127.0.0.1:3306)/". Its user has all
// privileges.
func SQL(t testing.TB) string { t.Helper(); return productOf(t).shared(t) }

// Redis returns the shared server's host:port.
func Redis(t testing.TB) string { t.Helper(); return shared(t, redis) }

// ZooKeeper returns the shared server's host:port.
func ZooKeeper(t testing.TB) string { t.Helper(); return shared(t, zooKeeper) }

// Etcd returns the shared server's host:port.
func Etcd(t testing.TB) string { t.Helper(); return shared(t, etcd) }

// Database makes an empty database on the shared server that [Each] runs the
// test on, or outside of it on MariaDB, and returns the DSN that opens it. It is
// dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	cfg, err := mysql.ParseDSN(SQL(t))
	if err != nil {
		t.Fatal(err)
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

func (p *product) shared(t testing.TB) string {
	t.Helper()
	if p.dsn != "" {
		return p.dsn
	}
	return shared(t, p.recipe())
}

// shared returns how to reach a shared server: the one that the environment names, or the
// supervisor's. With -short a test starts none.
func shared(t testing.TB, r Recipe) string {
	t.Helper()
	if value := os.Getenv(r.env); value != "" && r.env != envDSN {
		return value
	}
	MayStart(t)
	skipUnwanted(t, r.Name)
	value, err := request(r.Name)
	if errors.Is(err, errNoSupervisor) {
		Missing(t, r.Name, fmt.Errorf("%w; or set %s to a server that tests may use", err, r.env))
	}
	Started(t, r.Name, err)
	return value
}

// Missing skips the test that needs what is not there, or fails it if the environment requires what
// has this name.
func Missing(t testing.TB, name string, err error) {
	t.Helper()
	if required(name) {
		t.Fatal(err)
	}
	t.Skip(err)
}

// named returns the servers that SHARDKEY_TEST_DSN names, in its order, or nil if it is not
// set. Each is asked once for its kind and version.
var named = sync.OnceValues(func() ([]*product, error) { return parseNamed(os.Getenv(envDSN)) })

func parseNamed(list string) (all []*product, err error) {
	if list == "" {
		return nil, nil
	}
	for i, dsn := range strings.Split(list, ",") {
		cfg, err := mysql.ParseDSN(strings.TrimSpace(dsn))
		if err != nil {
			return nil, fmt.Errorf("%s: DSN %d: %w", envDSN, i+1, err)
		}
		cfg.DBName = "" // tests make their own
		p := &product{dsn: cfg.FormatDSN()}
		if p.kind, p.series, err = askVersion(cfg); err != nil {
			return nil, fmt.Errorf("%s: DSN %d, %s: %w", envDSN, i+1, cfg.Addr, err)
		}
		p.name = strings.ToLower(string(p.kind)) + "-" + p.series
		for _, ours := range products {
			if ours.kind == p.kind && ours.series == p.series {
				p.name = ours.name
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// NamedServer is a SQL server for a program that isn't a test.
type NamedServer struct {
	Kind Kind
	DSN  string
}

// Named returns the servers that SHARDKEY_TEST_DSN names.
func Named() (all []NamedServer, err error) {
	products, err := named()
	for _, p := range products {
		all = append(all, NamedServer{p.kind, p.dsn})
	}
	return all, err
}

// SQL starts the servers with these names of [Each]'s subtests, until the supervisor is closed.
func (su *Supervisor) SQL(names ...string) (all []NamedServer, err error) {
	for _, name := range names {
		i := slices.IndexFunc(products, func(p *product) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no SQL server %q", name)
		}
		dsn, err := su.start(name)
		if err != nil {
			return nil, err
		}
		all = append(all, NamedServer{products[i].kind, dsn})
	}
	return all, nil
}

var seriesIn = regexp.MustCompile(`^\d+\.\d+`)

func askVersion(cfg *mysql.Config) (kind Kind, series string, err error) {
	var version string
	err = with(cfg, func(db *sql.DB) error { return db.QueryRow("SELECT VERSION()").Scan(&version) })
	if err != nil {
		return "", "", err
	}
	kind = KindMySQL
	if strings.Contains(version, "MariaDB") {
		kind = KindMariaDB
	}
	return kind, seriesIn.FindString(strings.TrimPrefix(version, "5.5.5-")), nil // a prefix of older MariaDB
}

// NeedsFlock skips a test that leases worker IDs of type FILE on a system without flock.
func NeedsFlock(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("FILE worker IDs need flock, which Windows doesn't have")
	}
}
